//! Bytes to send.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

/// Bytes to send.
#[derive(Clone, Debug)]
pub enum Transmit {
    /// A range of constant bytes, sent without copying.
    Shared(Rc<[u8]>, Range<usize>),
    /// Bytes made for one send.
    Owned(Vec<u8>),
    /// Bytes in several places, for a vectored write.
    Vectored(Rc<Vectored>),
}

/// Frames whose payloads are parts of bodies and are sent without copying.
#[derive(Debug)]
pub struct Vectored {
    /// The bytes of the frames, without the payloads.
    frames: Rc<[u8]>,
    payloads: Vec<Payload>,
    /// Number of used bytes of `frames`, and total number of bytes.
    written: usize,
    length: usize,
}

/// A part of a body.
#[derive(Debug)]
pub(crate) struct Payload {
    /// Number of frame bytes before the payload.
    pub at: usize,
    pub body: Rc<dyn BodyBytes>,
    pub range: Range<usize>,
}

/// A request with a constant body.
pub(crate) trait BodyBytes: fmt::Debug {
    /// The bytes of the body.
    fn body(&self) -> &[u8];
}

impl Payload {
    fn bytes(&self) -> &[u8] {
        &self.body.body()[self.range.clone()]
    }
}

impl Vectored {
    /// The first `written` bytes of `frames`, with these payloads in between.
    pub(crate) fn new(frames: Rc<[u8]>, written: usize, payloads: Vec<Payload>) -> Self {
        let length = written + payloads.iter().map(|payload| payload.range.len()).sum::<usize>();
        Self { frames, payloads, written, length }
    }

    /// The slices from byte `from` on, none of them empty.
    fn slices_from(&self, mut from: usize) -> Vec<&[u8]> {
        let mut slices = Vec::with_capacity(2 * self.payloads.len() + 1);
        let mut at = 0;
        for payload in &self.payloads {
            slices.extend([&self.frames[at..payload.at], payload.bytes()]);
            at = payload.at;
        }
        slices.push(&self.frames[at..self.written]);
        for slice in &mut slices {
            let skipped = from.min(slice.len());
            *slice = &slice[skipped..];
            from -= skipped;
        }
        slices.retain(|slice| !slice.is_empty());
        slices
    }
}

impl Transmit {
    /// These bytes, with payloads in between.
    pub(crate) fn vectored_with(self, payloads: Vec<Payload>) -> Self {
        match self {
            _ if payloads.is_empty() => self,
            Self::Shared(frames, range) => Self::Vectored(Rc::new(Vectored::new(frames, range.end, payloads))),
            Self::Owned(frames) => {
                let written = frames.len();
                Self::Vectored(Rc::new(Vectored::new(frames.into(), written, payloads)))
            }
            Self::Vectored(_) => self,
        }
    }

    /// Total number of bytes, in all places.
    #[expect(clippy::len_without_is_empty, reason = "what is empty is not sent")]
    pub fn len(&self) -> usize {
        match self {
            Self::Shared(_, range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Vectored(vectored) => vectored.length,
        }
    }

    /// The bytes, if they are in one place; `None` for [`Self::Vectored`].
    pub fn contiguous_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Shared(bytes, range) => Some(&bytes[range.clone()]),
            Self::Owned(bytes) => Some(bytes),
            Self::Vectored(_) => None,
        }
    }

    /// The bytes, copied if they are in several places.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Vectored(vectored) => Cow::Owned(vectored.slices_from(0).concat()),
            _ => Cow::Borrowed(self.contiguous_bytes().unwrap_or_default()),
        }
    }

    /// The slices from byte `from` on, none of them empty.
    pub fn slices_from(&self, from: usize) -> Vec<&[u8]> {
        match self {
            Self::Vectored(vectored) => vectored.slices_from(from),
            _ => self
                .contiguous_bytes()
                .map(|bytes| &bytes[from..])
                .into_iter()
                .filter(|rest| !rest.is_empty())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl BodyBytes for [u8; 10] {
        fn body(&self) -> &[u8] {
            self
        }
    }

    fn vectored() -> Transmit {
        let body: Rc<dyn BodyBytes> = Rc::new(*b"0123456789");
        let payload = |at, range| Payload { at, body: Rc::clone(&body), range };
        Transmit::Owned(b"abcd".to_vec()).vectored_with(vec![payload(1, 0..4), payload(3, 4..10)])
    }

    #[test]
    fn payloads_are_sent_between_their_frames() {
        let transmit = vectored();
        assert_eq!(
            (transmit.len(), &*transmit.bytes(), transmit.contiguous_bytes()),
            (14, &b"a0123bc456789d"[..], None)
        );
        for from in 0..=14 {
            let slices = transmit.slices_from(from);
            assert!(slices.iter().all(|slice| !slice.is_empty()));
            assert_eq!(slices.concat(), transmit.bytes()[from..]);
        }
    }

    #[test]
    fn contiguous_bytes_are_not_copied() {
        let owned = Transmit::Owned(b"abc".to_vec()).vectored_with(Vec::new());
        assert_eq!(
            (owned.contiguous_bytes(), owned.slices_from(1), owned.slices_from(3)),
            (Some(&b"abc"[..]), vec![&b"bc"[..]], vec![])
        );
    }
}
