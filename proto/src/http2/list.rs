//! Fields kept for a reader.

use crate::Fields;

/// Names and values in order.
#[derive(Debug, Default)]
pub(super) struct HeaderList {
    bytes: Vec<u8>,
    /// The ends of each field's name and value.
    ends: Vec<(u32, u32)>,
}

impl HeaderList {
    /// Adds a field.
    pub(super) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name_end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((name_end, self.bytes.len() as u32));
    }

    /// Frees the memory reserved for more fields.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Number of heap bytes.
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields::from_list(&self.bytes, &self.ends)
    }
}
