//! The requests of a connection, by stream ID.
//!
//! A client's streams have consecutive odd IDs. So they are stored in a ring, in which the ID determines the place. A
//! stream that outlasts many later ones moves to a map, so that one slow response does not make the ring grow.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use super::message::Http2Request;
use super::response::ResponseState;

/// Usual size of the ring, if only a few streams are open at a time.
const RING_USUAL: usize = 1024;

/// A request without a complete response.
#[derive(Debug)]
pub(super) struct Stream {
    /// The request, until all of it has been written.
    pub(super) message: Option<Rc<Http2Request>>,
    pub(super) body_written: usize,
    /// Number of bytes written on the connection up to the end of the request's HEADERS.
    pub(super) headers_end: u64,
    /// Number of body bytes that may be sent; a change of settings can make it negative.
    pub(super) window: i32,
    /// Number of received bytes of DATA for which the window has not been renewed.
    pub(super) received: u32,
    pub(super) response: ResponseState,
}

/// The open streams, and the ID of the next one.
#[derive(Debug)]
pub(super) struct Streams {
    /// The ID of the first stream in the ring.
    first: u32,
    /// The streams in numerical order; ended ones are `None`, but never the first one.
    ring: VecDeque<Option<Stream>>,
    /// Open streams with lower IDs.
    slow: BTreeMap<u32, Stream>,
    open: u32,
    /// Largest number of streams open at any time.
    peak: u32,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self { first: 1, ring: VecDeque::new(), slow: BTreeMap::new(), open: 0, peak: 0 }
    }

    /// Number of open streams.
    pub(super) fn open_count(&self) -> u32 {
        self.open
    }

    /// Largest number of streams open at any time.
    pub(super) fn peak_count(&self) -> u32 {
        self.peak
    }

    /// The ID of the next stream.
    pub(super) fn next_id(&self) -> u32 {
        self.first + 2 * self.ring.len() as u32
    }

    /// Opens the next stream, and returns its ID.
    pub(super) fn open_next(&mut self, stream: Stream) -> u32 {
        if self.ring.len() >= RING_USUAL.max(4 * self.peak as usize)
            && let Some(Some(slow)) = self.ring.pop_front()
        {
            self.slow.insert(self.first, slow);
            self.first += 2;
            self.drop_leading_gaps();
        }
        let id = self.next_id();
        self.ring.push_back(Some(stream));
        self.open += 1;
        self.peak = self.peak.max(self.open);
        id
    }

    /// An open stream.
    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        match self.place(id) {
            Some(index) => self.ring.get_mut(index)?.as_mut(),
            None => self.slow.get_mut(&id),
        }
    }

    pub(super) fn has(&self, id: u32) -> bool {
        match self.place(id) {
            Some(index) => matches!(self.ring.get(index), Some(Some(_))),
            None => self.slow.contains_key(&id),
        }
    }

    /// Closes a stream, if it is open.
    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = match self.place(id) {
            Some(index) => self.ring.get_mut(index)?.take()?,
            None => self.slow.remove(&id)?,
        };
        self.drop_leading_gaps();
        self.open -= 1;
        Some(stream)
    }

    /// The open stream with the lowest ID above `id`.
    pub(super) fn first_above(&self, id: u32) -> Option<u32> {
        let slow = self.slow.range((Bound::Excluded(id), Bound::Unbounded)).next();
        slow.map(|(slow, _)| *slow).or_else(|| {
            let start = (id + 1).saturating_sub(self.first).div_ceil(2) as usize;
            let index = self.ring.iter().skip(start).position(Option::is_some)? + start;
            Some(self.first + 2 * index as u32)
        })
    }

    /// All open streams.
    pub(super) fn iter(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slow.values_mut().chain(self.ring.iter_mut().flatten())
    }

    /// Number of heap bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.ring.capacity() * size_of::<Option<Stream>>() + self.slow.len() * size_of::<(u32, Stream)>()
    }

    /// Continues with this ID.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, id: u32) {
        assert!(self.ring.is_empty());
        self.first = id;
    }

    /// The place of a stream in the ring, unless its ID is lower than all in it.
    fn place(&self, id: u32) -> Option<usize> {
        id.checked_sub(self.first).filter(|distance| distance % 2 == 0).map(|distance| distance as usize / 2)
    }

    /// Drops ended streams from the front of the ring.
    fn drop_leading_gaps(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.first += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::ResponseKind;

    fn stream() -> Stream {
        let response = ResponseState::new(ResponseKind::Usual);
        Stream { message: None, body_written: 0, headers_end: 0, window: 0, received: 0, response }
    }

    #[test]
    fn streams_are_found_until_removed() {
        let mut streams = Streams::new();
        assert_eq!([(); 4].map(|()| streams.open_next(stream())), [1, 3, 5, 7]);
        assert!(streams.get(5).is_some());
        assert!(streams.remove(5).is_some());
        assert!(streams.remove(5).is_none());
        for absent in [0, 2, 4, 5, 9, u32::MAX] {
            assert!(streams.get(absent).is_none(), "{absent}");
        }
        assert_eq!((streams.first_above(0), streams.first_above(3), streams.first_above(7)), (Some(1), Some(7), None));
        assert!(streams.remove(1).is_some());
        assert!(streams.remove(3).is_some());
        assert_eq!((streams.open_count(), streams.ring.len(), streams.next_id()), (1, 1, 9));
    }

    #[test]
    fn slow_streams_do_not_make_the_ring_grow() {
        let mut streams = Streams::new();
        let slow = [streams.open_next(stream()), streams.open_next(stream())];
        for _ in 0..10_000 {
            let id = streams.open_next(stream());
            assert!(streams.remove(id).is_some());
        }
        assert!(streams.ring.len() <= RING_USUAL);
        assert_eq!((streams.open_count(), streams.first_above(0), streams.first_above(1)), (2, Some(1), Some(3)));
        assert_eq!(streams.iter().count(), 2);
        for id in slow {
            assert!(streams.get(id).is_some());
            assert!(streams.remove(id).is_some());
            assert!(streams.remove(id).is_none());
        }
        assert_eq!((streams.open_count(), streams.first_above(0), streams.next_id()), (0, None, 20_005));
    }

    #[test]
    fn many_slow_streams_end_as_quickly_as_few() {
        const MANY: u32 = 100_000;
        let mut streams = Streams::new();
        for _ in 0..MANY {
            streams.open_next(stream());
        }
        // Later streams end first.
        for _ in 0..4 * MANY {
            let id = streams.open_next(stream());
            streams.remove(id);
        }
        assert!(streams.slow.len() > MANY as usize - RING_USUAL);
        // Streams that end in order, and streams that fail together.
        for id in (1..MANY).step_by(2) {
            assert!(streams.remove(id).is_some());
        }
        let mut id = 0;
        while let Some(above) = streams.first_above(id) {
            assert!((MANY..2 * MANY).contains(&above) && streams.remove(above).is_some());
            id = above;
        }
        assert_eq!((streams.open_count(), streams.next_id()), (0, 10 * MANY + 1));
    }

    #[test]
    fn streams_use_little_memory() {
        assert!(size_of::<Option<Stream>>() <= 48, "{}", size_of::<Option<Stream>>());
    }
}
