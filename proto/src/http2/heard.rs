//! The last header block, for readers of fields.

use std::rc::Rc;

use super::list::HeaderList;
use super::memo::Memo;
use crate::Fields;

/// The header block completed by the last input.
#[derive(Debug, Default)]
pub(super) struct Completed {
    kind: HeaderKind,
    /// The fields, if wanted.
    memo: Option<Rc<Memo>>,
}

#[derive(Clone, Copy, Debug, Default)]
enum HeaderKind {
    #[default]
    Nothing,
    /// A head with this status.
    Head(u16),
    Trailers,
}

impl Completed {
    pub(super) fn head(memo: Rc<Memo>) -> Self {
        Self { kind: HeaderKind::Head(memo.meaning.status), memo: memo.list.is_some().then_some(memo) }
    }

    pub(super) fn trailers(memo: Rc<Memo>) -> Self {
        Self { kind: HeaderKind::Trailers, memo: Some(memo) }
    }

    pub(super) fn fields(&self) -> Fields<'_> {
        self.memo.as_ref().and_then(|memo| memo.list.as_ref()).map_or(Fields::from_lines(b""), HeaderList::fields)
    }

    /// Appends a head or trailers as text.
    pub(super) fn write_text(&self, text: &mut Vec<u8>) {
        if let HeaderKind::Head(status) = self.kind {
            text.extend_from_slice(format!("HTTP/2 {status}\r\n").as_bytes());
        }
        for (name, value) in self.fields() {
            text.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
        }
        if let HeaderKind::Head(_) = self.kind {
            text.extend_from_slice(b"\r\n");
        }
    }

    /// Number of heap bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.memo.as_ref().map_or(0, |memo| memo.heap())
    }
}
