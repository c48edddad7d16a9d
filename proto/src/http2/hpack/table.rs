//! The dynamic table (RFC 7541, 2.3.2 and 4).

use std::collections::VecDeque;
use std::rc::Rc;

/// Default size of a table, in bytes.
pub(in crate::http2) const SIZE_USUAL: u32 = 4096;

/// Size of an entry in addition to its bytes (RFC 7541, 4.1).
pub(super) const OVERHEAD: usize = 32;

/// A field. Tables of one thread share it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http2) struct Entry {
    name_length: u32,
    /// The name, then the value.
    bytes: Box<[u8]>,
}

impl Entry {
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        Self { name_length: name.len() as u32, bytes: [name, value].concat().into() }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.bytes[..self.name_length as usize]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.bytes[self.name_length as usize..]
    }

    fn size(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

/// The entries of one connection's table.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// The entries, newest first.
    entries: VecDeque<Rc<Entry>>,
    size: usize,
    size_max: usize,
    /// Number of changes.
    version: u32,
}

impl DynamicTable {
    pub(super) fn new() -> Self {
        Self { entries: VecDeque::new(), size: 0, size_max: SIZE_USUAL as usize, version: 0 }
    }

    /// The entry with an index, 0 being the newest.
    pub(super) fn get(&self, index: usize) -> Option<&Rc<Entry>> {
        self.entries.get(index)
    }

    /// Adds an entry; the oldest ones make room. An entry larger than the table empties it.
    pub(super) fn insert(&mut self, entry: Rc<Entry>) {
        self.version = self.version.wrapping_add(1);
        let size = entry.size();
        self.evict(self.size_max.saturating_sub(size));
        if size <= self.size_max {
            self.size += size;
            self.entries.push_front(entry);
        }
    }

    /// Adds an entry that was added before. If responses repeat, this very entry has to make room for itself.
    pub(super) fn reinsert(&mut self, entry: &Rc<Entry>) {
        let is_oldest = self.entries.back().is_some_and(|oldest| Rc::ptr_eq(oldest, entry));
        if is_oldest
            && self.size + entry.size() > self.size_max
            && let Some(oldest) = self.entries.pop_back()
        {
            self.version = self.version.wrapping_add(1);
            self.entries.push_front(oldest);
        } else {
            self.insert(Rc::clone(entry));
        }
    }

    pub(super) fn set_size_max(&mut self, size_max: usize) {
        self.version = self.version.wrapping_add(1);
        self.size_max = size_max;
        self.evict(size_max);
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Version of the table: equal versions have equal entries.
    pub(super) fn version(&self) -> u32 {
        self.version
    }

    /// Removes the oldest entries until the rest is no larger than `size`.
    fn evict(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= entry.size();
        }
    }

    /// Number of heap bytes, without shared entries.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        let own = self.entries.iter().filter(|entry| Rc::strong_count(entry) == 1);
        let entries = own.map(|entry| 2 * size_of::<usize>() + size_of::<Entry>() + entry.bytes.len());
        self.entries.capacity() * size_of::<Rc<Entry>>() + entries.sum::<usize>()
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| (entry.name(), entry.value()))
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}
