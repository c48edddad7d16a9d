//! Decodes header blocks (RFC 7541, 6).

use std::ops::Range;
use std::rc::Rc;

use super::table::{DynamicTable, Entry, OVERHEAD, SIZE_USUAL};
use super::{huffman, statics};
use crate::Breach;
use crate::http1::HEAD_MAX;

/// The largest accepted integer; nothing it could count is larger.
const INTEGER_MAX: u64 = 1 << 31;

/// The decoder of one connection.
#[derive(Debug)]
pub(in crate::http2) struct Decoder {
    table: DynamicTable,
    /// Largest table size that the encoder may ask for.
    size_limit: u32,
    /// True if the next block must begin with a table size update.
    update_due: bool,
    /// Limit on the length of a block's fields, as counted by SETTINGS_MAX_HEADER_LIST_SIZE.
    decoded_max: usize,
}

/// Effects of decoding a block, apart from its fields. Reused for every block.
#[derive(Debug, Default)]
pub(in crate::http2) struct Effects {
    /// The entries added to the table, in this order.
    pub(in crate::http2) inserted: Vec<Rc<Entry>>,
    /// True if the block depends on the earlier state of the table, or changes its size.
    pub(in crate::http2) depends: bool,
    /// Total bytes of all names and values.
    pub(in crate::http2) decoded: usize,
    /// The decoded strings of the current field.
    text: Vec<u8>,
}

impl Decoder {
    /// A decoder for a peer that has not seen our SETTINGS yet, which will allow this table size.
    pub(in crate::http2) fn new(size: u32) -> Self {
        Self { table: DynamicTable::new(), size_limit: size.max(SIZE_USUAL), update_due: false, decoded_max: HEAD_MAX }
    }

    /// Removes the limit on the length of blocks, for our own blocks.
    pub(in crate::http2) fn without_limit(self) -> Self {
        Self { decoded_max: usize::MAX, ..self }
    }

    /// Records that the peer has seen the SETTINGS with this table size.
    pub(in crate::http2) fn on_settings_acknowledged(&mut self, size: u32) {
        self.size_limit = size;
        self.update_due |= self.table.size_max() > size as usize;
    }

    /// Version of the table: identical blocks have the same meaning at equal versions.
    pub(in crate::http2) fn version(&self) -> u32 {
        self.table.version()
    }

    /// True if the next block must begin with a table size update.
    pub(in crate::http2) fn update_due(&self) -> bool {
        self.update_due
    }

    /// Repeats the insertions of a previously decoded block.
    pub(in crate::http2) fn repeat_insertions(&mut self, inserted: &[Rc<Entry>]) {
        for entry in inserted {
            self.table.reinsert(entry);
        }
    }

    /// Decodes a block and passes its fields on, name and value, in order.
    pub(in crate::http2) fn decode(
        &mut self,
        block: &[u8],
        effects: &mut Effects,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Breach> {
        let Effects { inserted, depends, decoded, text } = effects;
        let mut fields = 0;
        inserted.clear();
        *depends = false;
        *decoded = 0;
        let mut reader = BlockReader { rest: block };
        while let Some(&first) = reader.rest.first() {
            text.clear();
            if first & 0xe0 == 0x20 {
                self.resize_table(reader.integer(5)?, fields == 0)?;
                *depends = true;
                continue;
            }
            if self.update_due {
                return Err(Breach::TableSize);
            }
            let is_inserted = first & 0xc0 == 0x40;
            let (name, value) = if first & 0x80 != 0 {
                self.entry_at(reader.integer(7)?)?
            } else {
                let name = match reader.integer(if is_inserted { 6 } else { 4 })? {
                    0 => reader.string(text)?,
                    index => self.entry_at(index)?.0,
                };
                (name, reader.string(text)?)
            };
            *depends |= matches!(name, FieldText::Name(_)) || matches!(value, FieldText::Value(_));
            let (name, value) = (name.bytes(text), value.bytes(text));
            *decoded += name.len() + value.len();
            fields += 1;
            if *decoded + fields * OVERHEAD > self.decoded_max {
                return Err(Breach::BlockTooLong);
            }
            field(name, value);
            if is_inserted {
                let entry = Rc::new(Entry::new(name, value));
                inserted.push(Rc::clone(&entry));
                self.table.insert(entry);
            }
        }
        Ok(())
    }

    /// The entry with an index into both tables.
    fn entry_at(&self, index: usize) -> Result<(FieldText<'static>, FieldText<'static>), Breach> {
        if let Some((name, value)) = statics::get(index) {
            return Ok((FieldText::Plain(name), FieldText::Plain(value)));
        }
        let index = index.checked_sub(statics::COUNT + 1).ok_or(Breach::Index)?;
        let entry = self.table.get(index).ok_or(Breach::Index)?;
        Ok((FieldText::Name(Rc::clone(entry)), FieldText::Value(Rc::clone(entry))))
    }

    /// Handles a table size update by the peer.
    fn resize_table(&mut self, size: usize, is_first: bool) -> Result<(), Breach> {
        if !is_first || size > self.size_limit as usize {
            return Err(Breach::TableSize);
        }
        self.table.set_size_max(size);
        self.update_due = false;
        Ok(())
    }

    /// Number of heap bytes, without shared entries.
    #[cfg(test)]
    pub(in crate::http2) fn heap(&self) -> usize {
        self.table.heap()
    }

    /// The fields in the table as lines, the newest first, and the table's size.
    #[cfg(test)]
    pub(super) fn table(&self) -> (Vec<String>, usize) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = self.table.entries().map(|(name, value)| format!("{}: {}", text(name), text(value)));
        (lines.collect(), self.table.size())
    }
}

/// A name or a value, wherever it is stored.
enum FieldText<'a> {
    /// In the block, or in the static table.
    Plain(&'a [u8]),
    /// The name of an entry, which may be removed while its name is used.
    Name(Rc<Entry>),
    /// The value of an entry.
    Value(Rc<Entry>),
    /// Decoded: a range of the field's strings.
    Decoded(Range<usize>),
}

impl FieldText<'_> {
    fn bytes<'a>(&'a self, decoded: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Name(entry) => entry.name(),
            Self::Value(entry) => entry.value(),
            Self::Decoded(range) => &decoded[range.clone()],
        }
    }
}

/// Reads integers and strings.
struct BlockReader<'a> {
    rest: &'a [u8],
}

impl<'a> BlockReader<'a> {
    /// Reads an integer that begins in the lowest bits of the next byte (5.1).
    fn integer(&mut self, prefix_bits: u32) -> Result<usize, Breach> {
        let prefix_max = (1 << prefix_bits) - 1;
        let mut integer = u64::from(self.byte()? & prefix_max);
        if integer == u64::from(prefix_max) {
            let mut shift = 0;
            loop {
                let byte = self.byte()?;
                integer += u64::from(byte & 0x7f) << shift;
                if integer > INTEGER_MAX || (shift == 28 && byte & 0x80 != 0) {
                    return Err(Breach::Integer);
                }
                if byte & 0x80 == 0 {
                    break;
                }
                shift += 7;
            }
        }
        Ok(integer as usize)
    }

    /// Reads a string (5.2); appends it to `text` if it must be decoded.
    fn string(&mut self, text: &mut Vec<u8>) -> Result<FieldText<'a>, Breach> {
        let is_huffman = self.rest.first().is_some_and(|byte| byte & 0x80 != 0);
        let length = self.integer(7)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(Breach::Truncated)?;
        self.rest = rest;
        if !is_huffman {
            return Ok(FieldText::Plain(string));
        }
        let start = text.len();
        if !huffman::decode(string, text) {
            return Err(Breach::Huffman);
        }
        Ok(FieldText::Decoded(start..text.len()))
    }

    fn byte(&mut self) -> Result<u8, Breach> {
        let (&byte, rest) = self.rest.split_first().ok_or(Breach::Truncated)?;
        self.rest = rest;
        Ok(byte)
    }
}
