//! The start of a run, and the start of measuring.

use std::time::Instant;

use onrush_proto::Nanos;

use super::Engine;
use super::connection::Live;
use super::demand::Demand;
use super::slot::{Slot, State};
use super::timers::{SAMPLE_NS, Timer};
use crate::backend::{Backend, ConnId};

impl<B: Backend> Engine<B> {
    /// Starts the run at this moment.
    pub fn begin_run(&mut self, begin: Instant) {
        let now = self.roster.backend.time_at(begin);
        self.dispatch.begin_schedule(now);
        let start = now + self.roster.config.warmup_ns;
        if start > now {
            // The end is set when the warm-up is over.
            self.books.begin_measuring(start, None);
            self.books.tally.start_warm_up();
            self.timers.set_timer(start, Timer::Start);
        } else {
            self.books.begin_measuring(start, self.roster.config.duration_ns);
            self.timers.set_timer(start + self.books.sample_ns, Timer::Sample);
        }
        self.timers.set_timer(now + self.sweep_ns(), Timer::Sweep(ConnId(0)));
        let first = self.roster.config.demand.initial_connections(self.roster.config.max_inflight);
        self.worker_link.show_idle(first == 0);
        self.set_wanted_connections(first, now);
        if let Demand::Staged(_) = self.roster.config.demand {
            self.timers.set_timer(start, Timer::Level);
        }
    }

    /// Ends the warm-up: nothing so far counts. Requests in flight will count when they end, with their whole latency.
    pub(super) fn count_from(&mut self, now: Nanos) {
        self.worker_link.show_warm_up_delay(now.since(self.books.start));
        self.take_counts();
        self.settle_spin();
        let planned = self.books.start;
        let config = &self.roster.config;
        // The schedule starts as planned: nothing is due after its end.
        let late_ns = config.rules.open_loop.map_or(0, |_| now.since(planned));
        let duration_ns = config.duration_ns.map(|planned_ns| match late_ns {
            0 => planned_ns,
            // Some time is measured in any case, but no longer than planned.
            _ => planned_ns.saturating_sub(late_ns).max(SAMPLE_NS.min(planned_ns)),
        });
        self.books.begin_measuring(now, duration_ns);
        if let Some(http2) = &self.http2 {
            // Waits in progress continue, but the time already waited does not count.
            let mut allowed = Vec::new();
            for live in self.roster.slots.iter_mut().filter_map(Slot::open_connection) {
                live.protocol.count_so_far(now);
                allowed.extend(live.protocol.streams_allowed());
            }
            http2.reset_counts(&allowed);
        }
        self.roster.forget_sockets(&mut self.books, now);
        self.books.script_noted_ns = self.dispatch.script.script_time_ns();
        // Script calls during the warm-up do not count, nor does one that delayed the start of measuring until now.
        self.dispatch.script.take_long_script_times();
        self.worker_link.show_warm_up(self.books.tally.completed);
        self.roster.slots.iter_mut().for_each(|slot| slot.is_counted = matches!(slot.state, State::Open(_)));
        let open = self.roster.slots.iter().filter(|slot| slot.is_counted).count();
        self.books.tally.count_from(now, planned, open as u64);
        self.roster.forget_occupancy();
        if self.roster.config.rules.open_loop.is_some() {
            let open = self.roster.slots.iter_mut().filter_map(Slot::open_connection).flat_map(|live| live.open.iter());
            open.for_each(|request| self.books.tally.record_carried_age(request.due));
        }
        // A request that was late in the warm-up can be counted as late again in the measured window.
        self.roster.slots.iter_mut().filter_map(Slot::open_connection).for_each(Live::reset_late);
        // Connections carried over are in use with their negotiated parameters, although their handshakes were not
        // measured.
        let kept = self.roster.slots.iter().filter(|slot| slot.is_counted).filter_map(|slot| slot.link.as_ref());
        kept.for_each(|link| self.books.tally.interval.handshakes.record_existing(link.negotiated().0, 1));
    }

    /// Adds the backend's counts since the last call. With TLS, only the link knows the number of plain bytes sent.
    pub(super) fn take_counts(&mut self) {
        let untimestamped = self.roster.backend.take_untimestamped();
        if untimestamped > 0 {
            self.books.tally.interval.open_loop.get_or_insert_default().untimestamped += untimestamped;
        }
        let taken = self.roster.backend.take_sent_count();
        if self.roster.config.tls.is_none() {
            self.books.tally.interval.counters.bytes_sent += taken;
        }
    }

    /// Interval of the sweeps for overdue requests: short enough that the shorter limit is meaningful.
    pub(super) fn sweep_ns(&self) -> u64 {
        let limits = [self.roster.config.rules.timeout_ns, self.roster.config.give_up_ns];
        let shortest = limits.into_iter().flatten().min().unwrap_or(u64::MAX);
        (shortest / 16).clamp(1_000_000, SAMPLE_NS)
    }
}
