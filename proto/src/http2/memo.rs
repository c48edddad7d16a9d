//! Previously decoded header blocks.
//!
//! Most responses of a server have identical blocks. A block that refers only to the static table has the same meaning
//! on every connection, and repeats the same insertions into the table. A block that refers to the dynamic table keeps
//! its meaning until its connection's table changes.

use std::rc::Rc;

use super::hpack::{Decoder, Effects, Entry};
use super::list::HeaderList;
use super::meaning::Meaning;
use super::written::hash;
use crate::Breach;

/// Number of remembered blocks for all connections of a thread. A power of two.
const PLACES: usize = 16;

/// Longest remembered block. For a block that depends on the table, also the limit on its fields: each connection may
/// keep one such block.
const LENGTH_MAX: usize = 1024;

/// A decoded header block: its meaning, and the insertions to repeat when it recurs. If it cannot be remembered, block
/// and insertions are empty.
#[derive(Debug)]
pub(super) struct Memo {
    block: Box<[u8]>,
    pub(super) meaning: Meaning,
    /// The fields, if wanted.
    pub(super) list: Option<HeaderList>,
    /// Total bytes of all names and values.
    pub(super) decoded: u32,
    inserted: Box<[Rc<Entry>]>,
}

impl Memo {
    /// Number of heap bytes, without the entries.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        let list = self.list.as_ref().map_or(0, HeaderList::heap);
        size_of::<Self>() + self.block.len() + size_of_val(&*self.inserted) + list
    }
}

/// Blocks with the same meaning on every connection, and buffers reused from block to block.
#[derive(Debug, Default)]
pub(super) struct Memos {
    places: [Option<Rc<Memo>>; PLACES],
    /// The place of the last block.
    last: usize,
    effects: Effects,
}

/// A connection's last block that depends on its table, and the version of the table.
pub(super) type OwnMemo = Option<(Rc<Memo>, u32)>;

impl Memos {
    /// Decodes a block, or recalls it. `wants_fields`: all fields, not only those of statuses from 300 on and the
    /// message of a gRPC call.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        decoder: &mut Decoder,
        own: &mut OwnMemo,
        wants_fields: bool,
    ) -> Result<Rc<Memo>, Breach> {
        let is_same = |memo: &Option<Rc<Memo>>| memo.as_ref().is_some_and(|memo| *memo.block == *block);
        let mut is_known = is_same(&self.places[self.last]);
        if !is_known {
            self.last = hash(block) as usize % PLACES;
            is_known = is_same(&self.places[self.last]);
        }
        let place = &mut self.places[self.last];
        if !decoder.update_due() {
            if let Some(memo) = place.as_ref().filter(|_| is_known) {
                decoder.repeat_insertions(&memo.inserted);
                return Ok(Rc::clone(memo));
            }
            if let Some((memo, version)) = own
                && *memo.block == *block
                && *version == decoder.version()
            {
                return Ok(Rc::clone(memo));
            }
        }
        let before = decoder.version();
        let mut meaning = Meaning::new();
        let mut list = None;
        decoder.decode(block, &mut self.effects, |name, value| {
            meaning.note_field(name, value);
            let is_wanted = wants_fields || meaning.status >= 300 || name == b"grpc-message";
            if is_wanted && name.first() != Some(&b':') {
                list.get_or_insert_with(HeaderList::default).push(name, value);
            }
        })?;
        let Effects { inserted, depends, decoded, .. } = &self.effects;
        let (depends, decoded) = (*depends, *decoded as u32);
        if let Some(list) = &mut list {
            list.shrink();
        }
        let changes_its_meaning = depends && decoder.version() != before;
        let length = if depends { list.as_ref().map_or(0, HeaderList::heap) } else { 0 };
        if block.len().max(length) > LENGTH_MAX || changes_its_meaning {
            return Ok(Rc::new(Memo { block: Box::default(), meaning, list, decoded, inserted: Box::default() }));
        }
        let (block, inserted) = (block.into(), inserted[..].into());
        let memo = Rc::new(Memo { block, meaning, list, decoded, inserted });
        if depends {
            *own = Some((Rc::clone(&memo), before));
        } else {
            *place = Some(Rc::clone(&memo));
        }
        Ok(memo)
    }
}
