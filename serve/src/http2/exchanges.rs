//! The exchanges of a connection, their wakeups and their timers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use super::exchange::Exchange;

#[derive(Debug, Default)]
pub(super) struct Exchanges {
    slots: Vec<ExchangeSlot>,
    /// Slots that hold no exchange and can be reused.
    free: Vec<usize>,
    /// Timers in nanoseconds of the thread's clock.
    timers: BTreeSet<(u64, usize)>,
    woken: Arc<Woken>,
    /// Bytes of requests kept by all exchanges.
    kept: usize,
}

#[derive(Debug)]
struct ExchangeSlot {
    exchange: Option<Exchange>,
    timer_ns: Option<u64>,
    /// Wakes the exchange. A stale waker of an earlier exchange is harmless: a spuriously woken exchange continues to
    /// wait.
    waker: Waker,
}

/// The exchanges that can continue.
#[derive(Debug, Default)]
struct Woken(Mutex<Vec<usize>>);

/// Wakes an exchange of a connection.
struct ExchangeWaker {
    woken: Arc<Woken>,
    slot: usize,
}

impl Exchanges {
    /// Adds an exchange that can continue at once.
    pub(super) fn add_exchange(&mut self, exchange: Exchange) {
        let index = self.free.pop().unwrap_or_else(|| {
            let slot = self.slots.len();
            let waker = Waker::from(Arc::new(ExchangeWaker { woken: Arc::clone(&self.woken), slot }));
            self.slots.push(ExchangeSlot { exchange: None, timer_ns: None, waker });
            slot
        });
        self.kept += exchange.kept_bytes();
        self.slots[index].exchange = Some(exchange);
        self.wake_exchange(Some(index));
    }

    /// Lets one exchange, or all of them, continue in the next turn.
    pub(super) fn wake_exchange(&self, index: Option<usize>) {
        match index {
            Some(index) => self.woken.lock().push(index),
            None => self.woken.lock().extend(0..self.slots.len()),
        }
    }

    /// Takes an exchange that can continue at this time out of its slot, which stays reserved for it. Returns the
    /// number of the slot, the exchange and its waker.
    pub(super) fn take_ready(&mut self, now_ns: u64) -> Option<(usize, Exchange, Waker)> {
        loop {
            let index = self.due_exchange(now_ns).or_else(|| self.woken.lock().pop())?;
            let slot = &mut self.slots[index];
            if let Some(due_ns) = slot.timer_ns.take() {
                self.timers.remove(&(due_ns, index));
            }
            if let Some(exchange) = slot.exchange.take() {
                self.kept -= exchange.kept_bytes();
                return Some((index, exchange, slot.waker.clone()));
            }
        }
    }

    fn due_exchange(&self, now_ns: u64) -> Option<usize> {
        self.timers.first().filter(|(due_ns, _)| *due_ns <= now_ns).map(|(_, index)| *index)
    }

    /// Returns an exchange to its slot, to wait for a wakeup or until this time, if given.
    pub(super) fn put_back(&mut self, index: usize, exchange: Exchange, timer_ns: Option<u64>) {
        self.kept += exchange.kept_bytes();
        let slot = &mut self.slots[index];
        slot.exchange = Some(exchange);
        slot.timer_ns = timer_ns;
        if let Some(due_ns) = timer_ns {
            self.timers.insert((due_ns, index));
        }
    }

    /// Frees the slot of an exchange that was taken out and has finished.
    pub(super) fn remove_exchange(&mut self, index: usize) {
        self.free.push(index);
    }

    /// Time of the earliest timer, in nanoseconds of the thread's clock; `None` if no exchange has one.
    pub(super) fn next_timer_ns(&self) -> Option<u64> {
        self.timers.first().map(|(due_ns, _)| *due_ns)
    }

    /// Number of request bytes kept by all exchanges in their slots.
    pub(super) fn kept_bytes(&self) -> usize {
        self.kept
    }
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, Vec<usize>> {
        // A list is always consistent, even if another thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for ExchangeWaker {
    fn wake(self: Arc<Self>) {
        self.woken.lock().push(self.slot);
    }
}
