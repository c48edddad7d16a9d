//! Fields that are kept for somebody who wants to read them.

use crate::Fields;

/// Names and values in order.
#[derive(Debug, Default)]
pub(super) struct HeaderList {
    bytes: Vec<u8>,
    /// The end of each field's name and of its value.
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

    /// Frees the memory for more fields.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The bytes it has on the heap.
    pub(super) fn heap(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(u32, u32)>()
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        Fields::of_list(&self.bytes, &self.ends)
    }
}
