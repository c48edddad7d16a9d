//! The requests in flight on one connection. Looking up a stream takes constant time, however many there are.

use std::rc::Rc;

use onrush_proto::{Nanos, Request, StreamId};

use super::open_request::{OpenRequest, Watched};

/// The requests in flight on one connection: a hash table with open addressing. Protocols assign stream IDs in order,
/// so the lower bits of an ID are as good as any hash. HTTP/2's IDs are odd.
#[derive(Debug)]
pub struct OpenRequests {
    /// A power of two places. Half of them are free, so that a search ends soon, unless the stream IDs are consecutive:
    /// then each request is at its home.
    places: Vec<Option<OpenRequest>>,
    /// Number of requests, including the rest of a batch.
    count: usize,
    rest: Option<Box<Rest>>,
    /// Streams that leave with the next wait, if there is more than one place.
    gathered: Vec<StreamId>,
}

/// The requests of a batch that leave only after the earlier ones and have no streams until then.
#[derive(Debug)]
pub struct Rest {
    /// The first request of the rest, without its content; the others differ only in the number.
    pub first: OpenRequest,
    /// The batch ...
    pub batch: Rc<Vec<Request>>,
    /// ... whether the batch is the only one of its kind, so that each request has its content ...
    pub is_new: bool,
    /// ... number of its started requests, including these ...
    pub end: usize,
    /// ... and whether the last of these is the batch's last.
    pub is_last: bool,
}

impl Rest {
    /// Number of requests in the rest.
    pub fn len(&self) -> usize {
        self.end - self.first.number as usize
    }

    /// One request of the rest, counted from zero.
    fn nth_request(&self, index: usize, stream: StreamId, watched: Option<Box<Watched>>) -> OpenRequest {
        let number = self.first.number as usize + index;
        OpenRequest {
            stream,
            content: self.is_new.then(|| self.batch[number].clone()),
            number: number as u32,
            is_last: self.is_last && number + 1 == self.end,
            watched,
            kept: None,
            ..self.first
        }
    }
}

impl Default for OpenRequests {
    /// Starts with a single place: most connections never have more requests.
    fn default() -> Self {
        Self { places: Vec::from([None]), count: 0, rest: None, gathered: Vec::new() }
    }
}

impl OpenRequests {
    /// Number of requests, including the rest of a batch.
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if all requests leave with the next wait.
    pub fn are_gathered(&self) -> bool {
        match &self.places[..] {
            [place] => place.as_ref().is_none_or(|request| request.is_gathered),
            _ => {
                let waiting = self.rest.as_ref().filter(|rest| rest.first.is_gathered).map_or(0, |rest| rest.len());
                self.gathered.len() + waiting == self.count
            }
        }
    }

    /// Adds the rest of a batch, if there is none yet.
    pub fn add_rest_of_batch(&mut self, rest: Rest) {
        debug_assert!(self.rest.is_none() && rest.len() > 0, "one after the other");
        if self.places.len() == 1 {
            self.grow();
        }
        self.count += rest.len();
        self.rest = Some(Box::new(rest));
    }

    /// Number of requests that wait to be started behind others of their batch.
    pub fn waiting_count(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| rest.len())
    }

    /// True if any request waits.
    pub fn any_waits(&self) -> bool {
        self.rest.is_some()
    }

    /// The content of the first waiting request.
    pub fn first_waiting(&self) -> Option<&Request> {
        let rest = self.rest.as_ref()?;
        rest.batch.get(rest.first.number as usize)
    }

    /// Takes out the first waiting request, which now has this stream.
    pub fn take_waiting(&mut self, stream: StreamId, watched: Option<Box<Watched>>) -> Option<OpenRequest> {
        let rest = self.rest.as_mut()?;
        let request = rest.nth_request(0, stream, watched);
        rest.first.number += 1;
        self.count -= 1;
        if rest.len() == 0 {
            self.rest = None;
        }
        Some(request)
    }

    /// A waiting request, counted from zero.
    pub fn nth_waiting(&self, index: usize, watched: Option<Box<Watched>>) -> Option<OpenRequest> {
        let rest = self.rest.as_ref()?;
        Some(rest.nth_request(index, rest.first.stream, watched))
    }

    /// Adds a request.
    pub fn insert(&mut self, request: OpenRequest) {
        match &mut self.places[..] {
            [place @ None] => (*place, self.count) = (Some(request), 1),
            _ => self.insert_among(request),
        }
    }

    /// [`Self::insert`] when there is, or may have been, another request.
    #[inline(never)]
    fn insert_among(&mut self, request: OpenRequest) {
        let is_home_free = self.places[self.home_of(request.stream)].is_none();
        if 2 * self.count >= self.places.len() && !is_home_free {
            self.grow();
        }
        if request.is_gathered {
            self.gathered.push(request.stream);
        }
        self.insert_at_home(request);
        self.count += 1;
    }

    /// The request on a stream.
    pub fn get_mut(&mut self, stream: StreamId) -> Option<&mut OpenRequest> {
        let place = self.find(stream)?;
        self.places[place].as_mut()
    }

    /// Takes out the request on a stream, if there is one.
    pub fn remove(&mut self, stream: StreamId) -> Option<OpenRequest> {
        match &mut self.places[..] {
            [place] => {
                let request = place.take_if(|request| request.stream == stream)?;
                self.count = 0;
                Some(request)
            }
            _ => self.remove_among(stream),
        }
    }

    /// [`Self::remove`] when there may be other requests.
    #[inline(never)]
    fn remove_among(&mut self, stream: StreamId) -> Option<OpenRequest> {
        let mut place = self.find(stream)?;
        let request = self.places[place].take()?;
        self.count -= 1;
        if request.is_gathered {
            self.gathered.retain(|gathered| *gathered != stream);
        }
        // Requests after the free place that are not at their home move up.
        loop {
            let behind = (place + 1) & self.mask();
            match &self.places[behind] {
                Some(other) if behind != self.home_of(other.stream) => self.places.swap(place, behind),
                _ => return Some(request),
            }
            place = behind;
        }
    }

    /// Takes out all requests except the rest of a batch.
    pub fn drain(&mut self) -> impl Iterator<Item = OpenRequest> {
        self.count = self.waiting_count();
        self.gathered.clear();
        self.places.iter_mut().filter_map(Option::take)
    }

    /// All requests, unordered; each request of a batch's rest is represented by the first.
    pub fn iter(&self) -> impl Iterator<Item = &OpenRequest> {
        let waiting = self.rest.iter().flat_map(|rest| std::iter::repeat_n(&rest.first, rest.len()));
        self.places.iter().flatten().chain(waiting)
    }

    /// All requests except the rest of a batch, unordered.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut OpenRequest> {
        self.places.iter_mut().flatten()
    }

    /// Passes the requests that leave now to `stamp`.
    pub fn stamp_gathered(&mut self, mut stamp: impl FnMut(&mut OpenRequest)) {
        if let [place] = &mut self.places[..] {
            if let Some(request) = place.as_mut().filter(|request| request.is_gathered) {
                request.is_gathered = false;
                stamp(request);
            }
            return;
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        for stream in gathered.drain(..) {
            if let Some(request) = self.get_mut(stream) {
                request.is_gathered = false;
                stamp(request);
            }
        }
        self.gathered = gathered;
        if let Some(rest) = self.rest.as_mut().filter(|rest| rest.first.is_gathered) {
            rest.first.is_gathered = false;
            (0..rest.len()).for_each(|_| stamp(&mut rest.first));
        }
    }

    /// The streams of requests at least `limit_ns` old, without streams that stay open. The rest of a batch has no
    /// streams.
    pub fn older_than(&self, limit_ns: u64, now: Nanos) -> Vec<StreamId> {
        let is_old = |request: &&OpenRequest| !request.lives && now.since(request.sent_at) >= limit_ns;
        self.places.iter().flatten().filter(is_old).map(|request| request.stream).collect()
    }

    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// The place of a request if no other occupies it.
    fn home_of(&self, stream: StreamId) -> usize {
        stream.0 as usize & self.mask()
    }

    /// Distance of the request at a place from its home.
    fn distance_from_home(&self, place: usize) -> Option<usize> {
        let there = self.places[place].as_ref()?;
        Some(place.wrapping_sub(self.home_of(there.stream)) & self.mask())
    }

    fn find(&self, stream: StreamId) -> Option<usize> {
        if let [place] = &self.places[..] {
            return place.as_ref().filter(|request| request.stream == stream).map(|_| 0);
        }
        let mut place = self.home_of(stream);
        let mut distance = 0;
        // Requests with earlier homes come first.
        while distance < self.places.len() && self.distance_from_home(place)? >= distance {
            if self.places[place].as_ref().is_some_and(|request| request.stream == stream) {
                return Some(place);
            }
            place = (place + 1) & self.mask();
            distance += 1;
        }
        None
    }

    fn grow(&mut self) {
        let places = 2 * self.places.len().max(2);
        let before = std::mem::replace(&mut self.places, (0..places).map(|_| None).collect());
        if let [Some(only)] = &before[..]
            && only.is_gathered
        {
            self.gathered.push(only.stream);
        }
        before.into_iter().flatten().for_each(|request| self.insert_at_home(request));
    }

    /// Puts a request as near to its home as requests with earlier homes allow.
    fn insert_at_home(&mut self, mut request: OpenRequest) {
        let mut place = self.home_of(request.stream);
        let mut distance = 0;
        while let Some(other) = self.distance_from_home(place) {
            if other < distance
                && let Some(there) = &mut self.places[place]
            {
                std::mem::swap(there, &mut request);
                distance = other;
            }
            place = (place + 1) & self.mask();
            distance += 1;
        }
        self.places[place] = Some(request);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onrush_plan::Random;

    use super::*;

    fn request(stream: u32, is_gathered: bool) -> OpenRequest {
        OpenRequest {
            stream: StreamId(stream),
            due: Nanos(0),
            sent_at: Nanos(u64::from(stream)),
            first_at: None,
            returns: 0,
            content: None,
            number: 0,
            name: 0,
            is_gathered,
            calm: 0,
            late: false,
            status: None,
            is_after: false,
            is_last: true,
            lives: false,
            watched: None,
            kept: None,
        }
    }

    #[test]
    fn requests_are_found_in_any_completion_order() {
        for step in [1, 2] {
            let mut random = Random::new(7);
            let (mut open, mut expected) = (OpenRequests::default(), BTreeSet::new());
            for stream in (1..).step_by(step).take(3_000) {
                open.insert(request(stream, false));
                expected.insert(stream);
                // One request never ends.
                while expected.len() > 1 && random.below(10) < 5 {
                    let ended = *expected.iter().nth(1 + random.below(expected.len() as u64 - 1) as usize).unwrap();
                    assert_eq!(open.remove(StreamId(ended)).map(|request| request.stream.0), Some(ended));
                    assert!(open.remove(StreamId(ended)).is_none());
                    expected.remove(&ended);
                }
                assert_eq!(open.len(), expected.len());
                assert!(expected.iter().all(|stream| open.get_mut(StreamId(*stream)).is_some()));
            }
            assert!(open.places.len() <= 16 * expected.len().max(16), "{} for {}", open.places.len(), expected.len());
        }
    }

    #[test]
    fn consecutive_streams_fill_every_place() {
        let mut open = OpenRequests::default();
        (7..7 + 1_024).for_each(|stream| open.insert(request(stream, false)));
        assert_eq!((open.len(), open.places.len()), (1_024, 1_024));
        // As responses arrive, the next requests take the free places.
        for stream in 7..7 + 3_000 {
            assert!(open.get_mut(StreamId(stream + 1_024)).is_none());
            assert!(open.remove(StreamId(stream)).is_some() && open.remove(StreamId(stream)).is_none());
            open.insert(request(stream + 1_024, false));
        }
        assert_eq!((open.len(), open.places.len()), (1_024, 1_024));
        assert!((3_007..3_007 + 1_024).all(|stream| open.get_mut(StreamId(stream)).is_some()));
    }

    #[test]
    fn waiting_batch_requests_take_no_places() {
        for is_gathered in [false, true] {
            let mut open = OpenRequests::default();
            open.insert(request(0, is_gathered));
            let batch = Rc::new(vec![Request::new(onrush_proto::RequestParts::default()); 1_000]);
            let first = OpenRequest { number: 1, ..request(0, is_gathered) };
            open.add_rest_of_batch(Rest { first, batch, is_new: true, end: 1_000, is_last: true });
            assert_eq!(
                (open.len(), open.waiting_count(), open.iter().count(), open.places.len()),
                (1_000, 999, 1_000, 4)
            );
            assert_eq!(open.are_gathered(), is_gathered);
            let mut left = 0;
            open.stamp_gathered(|_| left += 1);
            open.stamp_gathered(|_| left += 1);
            assert_eq!((left, open.are_gathered()), (if is_gathered { 1_000 } else { 0 }, false));
            assert_eq!(open.older_than(0, Nanos(1)), [StreamId(0)]);
            for number in 1..1_000 {
                let taken = open.take_waiting(StreamId(number), None).unwrap();
                assert!((taken.stream, taken.number, taken.is_gathered) == (StreamId(number), number, false));
                assert_eq!((taken.is_last, taken.content.is_some()), (number == 999, true));
            }
            assert!(!open.any_waits() && open.take_waiting(StreamId(0), None).is_none());
            assert_eq!(open.len(), 1);
        }
    }

    #[test]
    fn gathered_requests_are_stamped_once() {
        let mut open = OpenRequests::default();
        assert!(open.are_gathered());
        (1..=3).for_each(|stream| open.insert(request(stream, stream > 1)));
        assert!(!open.are_gathered());
        open.remove(StreamId(2));
        let mut left = Vec::new();
        open.stamp_gathered(|request| left.push(request.stream.0));
        open.stamp_gathered(|request| left.push(request.stream.0));
        assert_eq!(left, [3]);
        assert_eq!(open.older_than(2, Nanos(4)), [StreamId(1)]);
        assert_eq!(open.drain().count(), 2);
        assert!(open.is_empty());
        // Also a request gathered while there was a single place.
        let mut open = OpenRequests::default();
        open.insert(request(1, true));
        assert!(open.are_gathered());
        open.insert(request(2, true));
        assert!(open.are_gathered());
        let mut left = 0;
        open.stamp_gathered(|_| left += 1);
        assert_eq!((left, open.are_gathered()), (2, false));
    }
}
