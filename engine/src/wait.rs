//! A worker's wait: blocked in the kernel, after a moment of busy-polling where that pays. If sends leave with the next
//! wait, the worker instead writes a request just before it is due.

use onrush_proto::Nanos;

use super::Engine;
use super::round::Round;
use super::turn::Spin;
use crate::backend::{Backend, thread_cpu_ns};
use crate::config::Ahead;

/// Length of busy-polling after a start or an event, in nanoseconds: longer than a quick response takes, and negligible
/// compared with a slow one.
const SPIN_NS: u64 = 1_000_000;
/// Length of busy-polling before a request is due, in nanoseconds: longer than waking up takes.
const SPIN_BEFORE_DUE_NS: u64 = 50_000;
/// Up to this many connects and requests in flight, waking up for one takes a large part of its time.
const FEW: u64 = 4;

/// From this many requests in flight on, a lingering worker waits for several completions at a time.
pub const LINGER_MIN: u64 = 8;

impl<B: Backend> Engine<B> {
    /// Waits for completions, but not past the next timer or the end. Does not wait while connections are left to open.
    pub(super) fn wait_for_completions(&mut self) {
        if !self.roster.connecting.queue.is_empty() {
            self.roster.backend.wait(Nanos::default());
            return;
        }
        // If all connections are busy, another one may be opened for the next request.
        let may_open =
            self.may_open_more() && !self.dispatch.crowding.is_catching_up() && self.roster.connecting.missing == 0;
        let is_awaited = self.dispatch.can_start(&self.books.tally) || may_open;
        let due = if is_awaited { self.dispatch.next_start_at(&self.books.tally) } else { Nanos::MAX };
        let until = self.timers.next_at().min(due).min(self.books.end_at);
        // Requests overdue before this are a backlog, not a stall.
        self.turn.waited_until = until.max(self.turn.began_at);
        if self.gather_until_slice_end(due, until) {
            return;
        }
        if self.roster.config.spins && self.busy_poll(due, until) {
            return;
        }
        self.settle_spin();
        let Some(ahead) = self.roster.config.lingers else {
            self.roster.backend.wait(until);
            return;
        };
        let (several, linger_ns) = self.lingering_allowance(ahead);
        let allowed_ns = self.roster.backend.wait_for_several(several, linger_ns, until);
        if allowed_ns > 0 {
            self.books.tally.interval.activity.count_linger(allowed_ns);
        }
    }

    /// Busy-polls where that pays. Returns true if there was a wait.
    fn busy_poll(&mut self, due: Nanos, until: Nanos) -> bool {
        let waits_for_due = due == until && due > Nanos::default() && due < Nanos::MAX && !self.gathers_slices();
        let is_first = due < self.timers.next_at().min(self.books.end_at);
        let prepares = B::GATHERS && waits_for_due && is_first && self.dispatch.can_start(&self.books.tally);
        let begin_at = if prepares { self.lead.preparation_start(due) } else { until };
        if (1..=FEW).contains(&(self.books.tally.in_flight() + self.roster.connecting.under_way)) {
            // The first poll submits queued operations, which is work.
            let is_ready = self.roster.backend.wait(Nanos::default());
            // A timer in between starts nothing, and so does not extend the busy-polling.
            if is_ready || self.spin_until(begin_at.min(self.turn.awaited_since + SPIN_NS)) {
                return true;
            }
        }
        if waits_for_due {
            self.wait_for_due(due, begin_at);
        }
        waits_for_due
    }

    /// Number of completions worth waiting for together, and the longest wait in nanoseconds, short enough that
    /// latencies hardly change. With a schedule, or with few requests in flight, completions are not grouped.
    fn lingering_allowance(&mut self, ahead: Ahead) -> (u32, u64) {
        let (now, tally) = (self.turn.began_at, &mut self.books.tally);
        let open = tally.in_flight();
        if self.roster.config.rules.open_loop.is_some() || open < LINGER_MIN {
            tally.round = Round::first(now);
            return (1, 0);
        }
        let connecting = &self.roster.connecting;
        let on_each = open.div_ceil(connecting.wanted.saturating_sub(connecting.missing).max(1).into());
        tally.round.lingering_allowance(now, open, ahead.response.min(ahead.connection / on_each))
    }

    /// Gathers responses until the end of the slice, when requests leave, if possible: nothing needs them earlier, and
    /// their latency ends at their arrival. A response that ends with its connection has no arrival time. Due requests
    /// leave before the arrivals are read, unless timers come first. False if there was no wait.
    fn gather_until_slice_end(&mut self, due: Nanos, until: Nanos) -> bool {
        let Some(rules) = self.roster.config.rules.open_loop.filter(|rules| rules.slice_ns > 0) else { return false };
        if self.turn.has_seen_unknown_end || due.since(self.turn.began_at) > rules.slice_ns {
            return false;
        }
        self.settle_spin();
        if !self.roster.backend.gather(until, until + rules.slice_ns) {
            return false;
        }
        let now = self.roster.backend.now();
        if now < self.timers.next_at().min(self.books.end_at) {
            self.dispatch_due_requests(now);
            self.send_and_stamp_gathered(now);
        }
        self.roster.backend.wait(Nanos::default());
        true
    }

    /// True if sends are gathered into slices: less precision for less processor time.
    fn gathers_slices(&self) -> bool {
        self.roster.config.rules.open_loop.is_some_and(|rules| rules.slice_ns > 0)
    }

    /// Waits until a request is due, or until `begin_at` to prepare it. Busy-polls at the end: a sleeping thread wakes
    /// up too late.
    fn wait_for_due(&mut self, due: Nanos, begin_at: Nanos) {
        let wake_at = Nanos(due.0.saturating_sub(SPIN_BEFORE_DUE_NS));
        if self.roster.backend.now() < wake_at {
            self.settle_spin();
            self.roster.backend.wait(wake_at);
        } else if !self.roster.backend.wait(Nanos::default()) && !self.spin_until(begin_at) && begin_at < due {
            self.prepare_due_requests(due);
        }
    }

    /// Starts and writes requests about to be due, and submits them when they are.
    fn prepare_due_requests(&mut self, due: Nanos) {
        let began_at = self.roster.backend.now();
        if began_at >= due {
            return;
        }
        self.dispatch_due_requests(due);
        let (roster, mut cx) = self.roster_and_context();
        roster.send_gathered(&mut cx, due);
        let written_at = roster.backend.now();
        self.lead.adjust_to(written_at.since(began_at));
        self.books.tally.interval.activity.spun_ns += due.since(written_at);
        while self.roster.backend.now() < due {
            std::hint::spin_loop();
        }
        let (roster, mut cx) = self.roster_and_context();
        roster.stamp_gathered(&mut cx);
        self.roster.backend.wait(Nanos::default());
    }

    /// Busy-polls until `stop_at`. Returns true if there may be completions.
    fn spin_until(&mut self, stop_at: Nanos) -> bool {
        let mut looked_at = self.roster.backend.now();
        if looked_at >= stop_at {
            return false;
        }
        let cpu_before_ns = thread_cpu_ns();
        self.count_spin(looked_at, cpu_before_ns);
        let mut is_ready = false;
        while !is_ready && looked_at < stop_at {
            is_ready = self.roster.backend.wait(Nanos::default());
            if !is_ready {
                looked_at = self.roster.backend.now();
            }
        }
        // Completions must not wait for the thread's clock to be read.
        self.turn.spin = Some(Spin { cpu_before_ns, looked_at });
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::super::tests::pacing::every;
    use super::super::tests::{config, get, job};
    use super::*;
    use crate::backend::Sim;
    use crate::backend::sim::Scenario;
    use crate::{Advanced, Job, http1};

    #[test]
    fn overdue_requests_do_not_backdate_waits() {
        let ms = |number: u64| Nanos(number * 1_000_000);
        let backend = Sim::new(1, Scenario::default().network(1));
        let job = Job { pacer: every(ms(10).0, None), ..job(get(), http1(1)) };
        let mut engine = Box::new(Engine::new(config(), backend, job, Arc::default(), Arc::default()));
        engine.begin_run(Instant::now());
        let Advanced::Running(mut engine) = engine.run_past(ms(35)) else { panic!("it lasts a second") };
        // The turn began 20 ms later, with the requests that had become due in the meantime.
        engine.turn.began_at = ms(60);
        engine.wait_for_completions();
        assert_eq!(engine.turn.waited_until, ms(60));
    }
}
