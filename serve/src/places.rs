//! The places of `/pool` and `/prefork`: limits on concurrent requests or connections, with a queue in order of
//! arrival.
//!
//! An [`Admission`] is claimed at once and given sooner or later. Dropping an admission releases its place or its
//! position in the queue; the first waiting claim gets a free place, and its owner is woken. Nothing here blocks, and
//! there are no timers.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::inbox::ConnectionWaker;
use super::service::ServiceDistribution;

/// All limits and their queues, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct AdmissionControl(Mutex<HashMap<AdmissionLimit, AdmissionQueue>>);

/// A limit on what is served at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AdmissionLimit {
    /// At most one request per worker at a time. Requests with other parameters have other workers.
    Pool {
        /// Number of workers.
        workers: u32,
        /// Service times of the workers.
        service: ServiceDistribution,
    },
    /// Connections, each from its first request until it is closed.
    Prefork {
        /// Maximum number of connections served at a time.
        serves: u32,
    },
}

/// The places that were given and the claims that wait for one; dropped once no place is given.
#[derive(Debug, Default)]
struct AdmissionQueue {
    /// Number of claims so far.
    arrivals: u64,
    /// Start of each place given, by arrival number.
    given: HashMap<u64, Instant>,
    /// Waiting claims, by arrival number.
    waiting: BTreeMap<u64, Waiter>,
}

#[derive(Debug)]
struct Waiter {
    since: Instant,
    caller: ConnectionWaker,
}

/// A place, or a claim to one.
#[derive(Debug)]
pub(super) struct Admission {
    places: Arc<AdmissionControl>,
    limit: AdmissionLimit,
    number: u64,
    /// Time at which the place becomes free; if unknown, when the admission is dropped.
    free_at: Option<Instant>,
}

impl AdmissionLimit {
    fn place_count(self) -> usize {
        match self {
            Self::Pool { workers: places, .. } | Self::Prefork { serves: places } => places as usize,
        }
    }
}

impl AdmissionControl {
    /// Claims a place. If one is free it is given at once, and `caller` is never woken; if none is, `caller` is woken
    /// when the place is given.
    pub(super) fn claim_place(
        self: &Arc<Self>,
        limit: AdmissionLimit,
        now: Instant,
        caller: ConnectionWaker,
    ) -> Admission {
        let number = self.lock().entry(limit).or_default().join_queue(limit.place_count(), now, caller);
        Admission { places: Arc::clone(self), limit, number, free_at: None }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AdmissionLimit, AdmissionQueue>> {
        // The queues are always consistent, even if another thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionQueue {
    fn join_queue(&mut self, places: usize, now: Instant, caller: ConnectionWaker) -> u64 {
        let number = self.arrivals;
        self.arrivals += 1;
        if self.given.len() < places {
            self.given.insert(number, now);
        } else {
            self.waiting.insert(number, Waiter { since: now, caller });
        }
        number
    }

    /// Removes a claim. Its place, if it had been given one, is free from `free_at` on. Returns the waker of the claim
    /// that gets the place, if any waits.
    fn leave_queue(&mut self, number: u64, free_at: Instant) -> Option<ConnectionWaker> {
        self.waiting.remove(&number);
        self.given.remove(&number)?;
        let (number, next) = self.waiting.pop_first()?;
        self.given.insert(number, free_at.max(next.since));
        Some(next.caller)
    }
}

impl Admission {
    /// The limit to which this admission applies.
    pub(super) fn limit(&self) -> AdmissionLimit {
        self.limit
    }

    /// Time at which the place was given; `None` while the claim is waiting.
    pub(super) fn given_at(&self) -> Option<Instant> {
        self.places.lock().get(&self.limit)?.given.get(&self.number).copied()
    }

    /// Sets the time at which the place becomes free. The next claim in the queue then starts at this time, even if
    /// this admission is dropped later: a worker loses no time between requests.
    pub(super) fn free_place_at(&mut self, at: Instant) {
        self.free_at = Some(at);
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut lines = self.places.lock();
        let Some(line) = lines.get_mut(&self.limit) else { return };
        let next = line.leave_queue(self.number, self.free_at.map_or(now, |at| at.min(now)));
        if line.given.is_empty() {
            // No claim is waiting: it would have been given the place.
            lines.remove(&self.limit);
        }
        drop(lines);
        if let Some(caller) = next {
            caller.send_wakeup();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::inbox::{Inbox, WakeCall};
    use super::super::token::PollToken;
    use super::*;

    const TWO: AdmissionLimit = AdmissionLimit::Prefork { serves: 2 };

    fn new_admission_control() -> (Arc<AdmissionControl>, Arc<Inbox>) {
        (Arc::default(), Arc::new(Inbox::new().unwrap()))
    }

    fn wake_call(slot: u32) -> WakeCall {
        WakeCall { token: PollToken::of_slot(slot, 0), exchange: None }
    }

    /// Claims a place for each of these slots in turn.
    fn claim_places(
        places: &Arc<AdmissionControl>,
        inbox: &Arc<Inbox>,
        slots: std::ops::Range<u32>,
        now: Instant,
    ) -> Vec<Option<Admission>> {
        let caller = |slot| ConnectionWaker { inbox: Arc::clone(inbox), call: wake_call(slot) };
        slots.map(|slot| Some(places.claim_place(TWO, now, caller(slot)))).collect()
    }

    fn called_slots(inbox: &Inbox) -> Vec<usize> {
        inbox.take_calls().into_iter().map(|call| call.token.index()).collect()
    }

    fn slots_with_place(all: &[Option<Admission>]) -> Vec<usize> {
        let has = |place: &Option<Admission>| place.as_ref().is_some_and(|place| place.given_at().is_some());
        (0..all.len()).filter(|&index| has(&all[index])).collect()
    }

    #[test]
    fn places_are_given_in_the_order_of_arrival() {
        let (places, inbox) = new_admission_control();
        let mut all = claim_places(&places, &inbox, 0..6, Instant::now());
        assert_eq!((slots_with_place(&all), called_slots(&inbox)), (vec![0, 1], vec![]));
        for (leaves, gets, have) in [(1, vec![2], vec![0, 2]), (0, vec![3], vec![2, 3]), (3, vec![4], vec![2, 4])] {
            all[leaves] = None;
            assert_eq!((called_slots(&inbox), slots_with_place(&all)), (gets, have), "{leaves} left");
        }
    }

    #[test]
    fn departed_waiters_take_no_place() {
        let (places, inbox) = new_admission_control();
        let mut all = claim_places(&places, &inbox, 0..6, Instant::now());
        for waiting in [2, 4] {
            all[waiting] = None;
        }
        assert_eq!((called_slots(&inbox), slots_with_place(&all)), (vec![], vec![0, 1]));
        (all[0], all[1]) = (None, None);
        assert_eq!((called_slots(&inbox), slots_with_place(&all)), (vec![3, 5], vec![3, 5]));
        all.clear();
        assert!(places.lock().is_empty(), "nothing is kept of those who left");
    }

    #[test]
    fn unused_admissions_are_passed_on() {
        let (places, inbox) = new_admission_control();
        let mut all = claim_places(&places, &inbox, 0..4, Instant::now());
        all[0] = None;
        all[2] = None;
        assert_eq!((called_slots(&inbox), slots_with_place(&all)), (vec![2, 3], vec![1, 3]));
    }

    #[test]
    fn admissions_start_when_places_became_free() {
        let (places, inbox) = new_admission_control();
        let start = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        let mut all = claim_places(&places, &inbox, 0..3, start);
        let free_at = start + Duration::from_millis(5);
        all[0].as_mut().unwrap().free_place_at(free_at);
        all[0] = None;
        assert_eq!(all[2].as_ref().unwrap().given_at(), Some(free_at));
        // A place released early is not busy until then.
        let before = Instant::now();
        all.extend(claim_places(&places, &inbox, 3..4, start));
        all[1].as_mut().unwrap().free_place_at(before + Duration::from_secs(99));
        all[1] = None;
        assert!((before..=Instant::now()).contains(&all[3].as_ref().unwrap().given_at().unwrap()));
    }

    #[test]
    fn service_starts_after_arrival() {
        let (places, inbox) = new_admission_control();
        let start = Instant::now().checked_sub(Duration::from_secs(9)).unwrap();
        let mut all = claim_places(&places, &inbox, 0..2, start);
        let late = start + Duration::from_secs(1);
        all.extend(claim_places(&places, &inbox, 2..3, late));
        all[0].as_mut().unwrap().free_place_at(start + Duration::from_millis(5));
        all[0] = None;
        assert_eq!(all[2].as_ref().unwrap().given_at(), Some(late));
    }

    #[test]
    fn different_parameters_use_separate_places() {
        let (places, inbox) = new_admission_control();
        let pool =
            |ms| AdmissionLimit::Pool { workers: 1, service: ServiceDistribution::Constant(Duration::from_millis(ms)) };
        let caller = ConnectionWaker { inbox, call: wake_call(0) };
        let all = [pool(5), pool(6), pool(5)].map(|limit| places.claim_place(limit, Instant::now(), caller.clone()));
        assert_eq!(all.each_ref().map(|place| place.given_at().is_some()), [true, true, false]);
    }
}
