//! Measurements of a run: plain sums, added up with `+=`.
//!
//! A worker records into an [`Interval`] and swaps it for an empty one ten times a second. [`Totals`] and everything
//! else shown are sums of intervals. Nothing here prints, reads a clock, takes a lock or shares anything with another
//! thread. Recording into an existing row allocates nothing.
//!
//! A `distribution` is bins (`bins`) with exact `moments`; `hdr` reads and writes it, `rank` is the position of a
//! percentile, `batches` and `confidence` estimate the precision of a metric. `counters` contains all plain counts,
//! `errors` the ledger, `timeline` the rows of a run. Latencies: `phases`, `by_class`, `by_name`, `open_loop`, `wrk2`,
//! `silences`. Connections: `handshakes`, `buffers`, `tcp_info`, `sockets`, `spread`. The worker itself: `activity`,
//! `occupancy`.

#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

pub mod activity;
mod batches;
mod binned;
mod bins;
pub mod buffers;
mod by_class;
mod by_name;
mod confidence;
mod corrupt;
pub mod counters;
mod distribution;
pub mod errors;
pub mod handshakes;
pub mod hdr;
pub mod latencies;
mod log_entry;
mod moments;
pub mod occupancy;
pub mod open_loop;
pub mod phases;
mod rank;
pub mod silences;
mod socket_samples;
pub mod sockets;
pub mod spread;
pub mod tcp_info;
pub mod timeline;
pub mod transcript;
pub mod wrk2;

use std::ops::AddAssign;

pub use activity::Activity;
pub use batches::{BATCHES_MIN, Batch, Batches, PrecisionEstimate, Unknown};
pub use binned::{Binned, SpectrumRow};
pub use bins::{Count, HIGHEST};
pub use buffers::BufferSizes;
pub use by_class::ByClass;
pub use by_name::{ByName, OfName};
pub use corrupt::Corrupt;
pub use counters::{Counters, Statuses};
pub use distribution::Distribution;
pub use errors::{Cause, Errors, FailureRow, Ledger, Phase, ProxyFailure, TlsFailure};
pub use handshakes::{Handshakes, Negotiated};
pub use latencies::Latencies;
pub use log_entry::{Fate, LogEntry};
pub use moments::{Moments, sample_stdev};
pub use occupancy::Occupancy;
pub use open_loop::OpenLoopStats;
pub use phases::Phases;
pub use rank::{has_enough_beyond, hdr_rank, rank};
pub use silences::{Gap, Silences};
pub use socket_samples::SocketSamples;
pub use sockets::SocketStats;
pub use spread::ConnectionSpread;
pub use tcp_info::TcpInfo;
pub use timeline::{RowFigures, Timeline};
pub use transcript::Transcript;
pub use wrk2::Wrk2;

/// Measurements of one thread in 100 ms.
pub type Interval = Stats<u32>;

/// The sum of any number of intervals.
pub type Totals = Stats<u64>;

/// All measurements, for one thread and 100 ms or for all threads and the whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Stats<C: Count> {
    /// Start of recording, in nanoseconds since the start of the worker.
    pub from_ns: u64,
    /// End of recording, in nanoseconds since the start of the worker; zero until the interval is handed over.
    pub until_ns: u64,
    /// Service latencies in nanoseconds: first byte of the request handed to the kernel to last byte of the response.
    /// One per response.
    pub latency: Distribution<C>,
    /// The latencies shown in the report, in nanoseconds, of responses with a status of 300 to 599; with a schedule,
    /// from due times. `None` until there is such a response, and always in compat dialects.
    pub by_class: Option<Box<ByClass<C>>>,
    /// Outcomes by request name. `None` until a request with a name has ended.
    pub by_name: Option<Box<ByName<C>>>,
    /// Service latencies of batches, in nanoseconds, up to the last byte of a batch's last response. `None` unless
    /// requests are sent in batches.
    pub batch_latency: Option<Box<Distribution<C>>>,
    /// Ages in nanoseconds of requests abandoned or still in flight at the end: lower bounds of their latencies. `None`
    /// until there is one.
    pub censored: Option<Box<Distribution<C>>>,
    /// The phases of connections and requests. `None` unless requested.
    pub phases: Option<Box<Phases<C>>>,
    /// Measurements of scheduled requests. `None` in a closed loop.
    pub open_loop: Option<Box<OpenLoopStats<C>>>,
    /// Whole requests per second of one thread, one value per 100 ms; if wrk is imitated, only from intervals with a
    /// completed request.
    pub rates: Distribution<C>,
    /// All plain counts.
    pub counters: Counters,
    /// How the worker spent its time; in totals, the sum over all workers.
    pub activity: Activity,
    /// Number of responses with each status.
    pub statuses: Statuses,
    /// The ledger of failures.
    pub ledger: Ledger,
    /// The TLS handshakes, and the parameters in use.
    pub handshakes: Handshakes,
    /// Sums of the `TCP_INFO` read from some of the connections.
    pub sockets: SocketStats,
    /// The `Location` of one of the redirects, as sent by the server; in a sum, the first in alphabetical order.
    pub location: Option<String>,
    /// True if a response with status 400 announced that the port expects TLS.
    pub expects_tls: bool,
}

impl<C: Count> Stats<C> {
    /// The latencies of batches, for recording; creates them if there are none yet.
    pub fn batch_latency(&mut self) -> &mut Distribution<C> {
        self.batch_latency.get_or_insert_default()
    }

    /// Number of requests without a good response in time, each counted once, as in the metric `errors`:
    ///
    /// - failed, abandoned, dropped or unsent requests
    /// - unsuccessful or late responses
    /// - late requests in flight
    ///
    /// A late request that ends badly in a later interval counts in the interval in which it became late.
    pub fn errors(&self) -> u64 {
        let Counters { failed, abandoned, unsuccessful, late, late_ended, .. } = self.counters;
        let never_sent = self.open_loop.as_deref().map_or(0, |open_loop| open_loop.dropped + open_loop.unsent);
        (failed + abandoned + unsuccessful + late + never_sent).saturating_sub(late_ended)
    }

    /// Records the phases omitted so far. Must be called before `phases` is read.
    pub fn settle_phases(&mut self) {
        if let Some(phases) = &mut self.phases {
            phases.record_omitted(&self.latency);
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        (self.from_ns, self.until_ns) = (0, 0);
        self.latency.clear();
        if let Some(by_class) = &mut self.by_class {
            by_class.clear();
        }
        if let Some(by_name) = &mut self.by_name {
            by_name.clear();
        }
        if let Some(batch_latency) = &mut self.batch_latency {
            batch_latency.clear();
        }
        if let Some(censored) = &mut self.censored {
            censored.clear();
        }
        if let Some(phases) = &mut self.phases {
            phases.clear();
        }
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.clear();
        }
        self.rates.clear();
        self.counters = Counters::default();
        self.activity = Activity::default();
        self.statuses.clear();
        self.ledger.clear();
        self.handshakes.clear();
        self.sockets = SocketStats::default();
        self.location = None;
        self.expects_tls = false;
    }
}

impl<A: Count, B: Count> AddAssign<&Stats<B>> for Stats<A> {
    fn add_assign(&mut self, other: &Stats<B>) {
        self.until_ns = self.until_ns.max(other.until_ns);
        if let Some(phases) = other.phases.as_deref() {
            self.phases.get_or_insert_default().add_phases(&self.latency, phases, &other.latency);
        }
        self.latency += &other.latency;
        if let Some(by_class) = other.by_class.as_deref() {
            **self.by_class.get_or_insert_default() += by_class;
        }
        if let Some(by_name) = other.by_name.as_deref() {
            **self.by_name.get_or_insert_default() += by_name;
        }
        if let Some(batches) = other.batch_latency.as_deref().filter(|batches| batches.count() > 0) {
            *self.batch_latency() += batches;
        }
        if let Some(censored) = other.censored.as_deref().filter(|censored| censored.count() > 0) {
            **self.censored.get_or_insert_default() += censored;
        }
        if let Some(open_loop) = other.open_loop.as_deref() {
            **self.open_loop.get_or_insert_default() += open_loop;
        }
        self.rates += &other.rates;
        self.counters += other.counters;
        self.activity += other.activity;
        self.statuses += &other.statuses;
        self.ledger += &other.ledger;
        self.handshakes += &other.handshakes;
        self.sockets += other.sockets;
        if other.location.is_some() && (self.location.is_none() || other.location < self.location) {
            self.location.clone_from(&other.location);
        }
        self.expects_tls |= other.expects_tls;
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;

    use super::*;

    /// An interval with one request of each kind.
    fn interval(value: u64) -> Interval {
        let mut interval = Interval::default();
        interval.latency.record(value);
        interval.batch_latency().record(value * 4);
        interval.by_class.get_or_insert_default().record(301, value);
        interval.by_name.get_or_insert_default().record_response(3, Some(301), value, true);
        interval.censored.get_or_insert_default().record(value * 2);
        interval.rates.record(value * 3);
        let open_loop = interval.open_loop.get_or_insert_default();
        open_loop.scheduled.record(value * 5);
        open_loop.lateness.record(value * 6);
        open_loop.censored.record(value * 7);
        open_loop.later.get_or_insert_default().record(value * 10);
        open_loop.open.get_or_insert_default().record(value * 11);
        open_loop.entered.get_or_insert_default().record(value * 12);
        open_loop.later_failed = 1;
        (open_loop.due, open_loop.carried, open_loop.late) = (5, 4, 3);
        (open_loop.dropped, open_loop.unsent) = (2, 1);
        open_loop.wrk2.get_or_insert_default().record(value * 8_000, value * 9_000);
        let phases = interval.phases.get_or_insert_default();
        phases.connect.record(value);
        phases.tls.get_or_insert_default().record(value);
        phases.ttfb.record(value);
        phases.ttlb.record(value);
        interval.counters.completed = 1;
        interval.activity.count_wait(value as usize);
        interval.statuses.record(301);
        interval.ledger.record(Phase::Head, Cause::Errno(104), 7, Vec::new);
        interval.handshakes.record(Negotiated::default(), true);
        interval
            .sockets
            .record_reading(Some((TcpInfo::default(), 1)), &TcpInfo { retransmits: 3, ..TcpInfo::default() });
        interval.location = Some(format!("/{value}"));
        interval
    }

    #[test]
    fn every_part_of_an_interval_reaches_the_totals() {
        let mut totals = Totals::default();
        totals += &interval(10);
        totals += &interval(20);
        assert_eq!(totals.latency.mean(), Some(15.0));
        assert_eq!(totals.batch_latency().mean(), Some(60.0));
        assert_eq!(totals.by_class.as_ref().unwrap().latencies_of_class(3).unwrap().mean(), Some(15.0));
        assert_eq!(totals.by_name.as_ref().unwrap().iter().next().unwrap().1.latency.mean(), Some(15.0));
        assert_eq!(totals.censored.as_ref().unwrap().mean(), Some(30.0));
        assert_eq!(totals.rates.mean(), Some(45.0));
        let open_loop = totals.open_loop.as_ref().unwrap();
        let means = [&open_loop.scheduled, &open_loop.lateness, &open_loop.censored].map(|times| times.mean());
        assert_eq!(means, [Some(75.0), Some(90.0), Some(105.0)]);
        let means = [&open_loop.later, &open_loop.open, &open_loop.entered].map(|times| times.as_ref().unwrap().mean());
        assert_eq!((means, open_loop.later_failed), ([Some(150.0), Some(165.0), Some(180.0)], 2));
        assert_eq!([open_loop.due, open_loop.carried, open_loop.late], [10, 8, 6]);
        assert_eq!([open_loop.dropped, open_loop.unsent], [4, 2]);
        let wrk2 = open_loop.wrk2.as_ref().unwrap();
        assert_eq!([wrk2.recorded.mean(), wrk2.uncorrected.mean()], [Some(120.0), Some(135.0)]);
        let phases = totals.phases.as_ref().unwrap();
        let rows = [&phases.connect, phases.tls.as_ref().unwrap(), &phases.ttfb, &phases.ttlb];
        assert_eq!(rows.map(|row| row.mean()), [Some(15.0); 4]);
        assert_eq!(totals.counters.completed, 2);
        assert_eq!((totals.activity.completions, totals.activity.completions_max), (30, 20));
        assert_eq!(totals.statuses.iter().collect::<Vec<_>>(), [(301, 2)]);
        assert_eq!(totals.ledger.rows()[0].count, 2);
        assert_eq!((totals.handshakes.total, totals.handshakes.resumed), (2, 2));
        assert_eq!((totals.sockets.readings, totals.sockets.retransmits), (2, 6));
        assert_eq!(totals.location.as_deref(), Some("/10"));
    }

    /// An interval of a run with arbitrary contents.
    fn drawn(random: &mut Random) -> Interval {
        let mut interval = interval(1 + random.below(2_000_000_000));
        interval.from_ns = random.below(3_000) * 1_000_000_000;
        interval.until_ns = interval.from_ns + 100_000_000;
        let (cause, example) = (Cause::Errno(random.below(3) as i32), random.below(3));
        let tenth = (interval.from_ns / 100_000_000) as u32;
        interval.ledger.record(Phase::Connect, cause, tenth, || vec![b'a'; example as usize]);
        interval.handshakes.record(Negotiated { suite: random.below(3) as u16, ..Negotiated::default() }, false);
        interval.counters.started = random.below(9);
        interval.expects_tls = random.below(50) == 0;
        interval.activity.wall_ns = random.below(2);
        interval.activity.queued_ns = Some(0).filter(|_| interval.activity.wall_ns == 0 || random.below(50) > 0);
        if random.below(3) == 0 {
            interval.phases.as_mut().unwrap().is_left_out = true;
            interval.phases.as_mut().unwrap().ttfb.clear();
            interval.phases.as_mut().unwrap().ttlb.clear();
        }
        match random.below(3) {
            0 => interval.open_loop = None,
            1 => interval.location = None,
            _ => interval.censored = None,
        }
        interval
    }

    #[test]
    fn merging_is_associative_and_commutative() {
        let mut random = Random::new(1);
        for _ in 0..3 {
            let mut sum = (Totals::default(), Timeline::default());
            let mut parts = vec![sum.clone(); 5];
            for _ in 0..40 {
                let interval = drawn(&mut random);
                for part in [&mut sum, &mut parts[random.below(5) as usize]] {
                    part.0 += &interval;
                    part.1.record(&interval);
                }
            }
            while parts.len() > 1 {
                let other = parts.swap_remove(random.below(parts.len() as u64) as usize);
                let part = random.below(parts.len() as u64) as usize;
                parts[part].0 += &other.0;
                parts[part].1 += &other.1;
            }
            sum.0.settle_phases();
            parts[0].0.settle_phases();
            assert!(format!("{:?}", parts[0]) == format!("{sum:?}"), "{:?}", (&parts[0].0.ledger, &sum.0.ledger));
        }
    }

    #[test]
    fn phase_omissions_are_in_the_totals() {
        let left_out = |latencies: &[u64]| {
            let mut interval = Interval::default();
            latencies.iter().for_each(|latency| interval.latency.record(*latency));
            interval.phases.get_or_insert_default().is_left_out = true;
            interval
        };
        let mut sum = left_out(&[10, 20]);
        sum += &left_out(&[30]);
        sum += &interval(100);
        let mut totals = Totals::default();
        totals += &left_out(&[40]);
        totals += &left_out(&[50]);
        totals.settle_phases();
        assert_eq!(totals.phases.as_ref().unwrap().ttfb.count(), 2);
        totals += &sum;
        let phases = totals.phases.as_ref().unwrap();
        assert_eq!((phases.ttfb.count(), phases.ttfb.mean()), (6, Some(250.0 / 6.0)));
        assert_eq!((phases.ttlb.count(), phases.ttlb.max()), (6, Some(100)));
        assert_eq!(totals.latency.count(), 6);
    }

    #[test]
    fn late_requests_are_one_error() {
        let of = |counters| Interval { counters, ..Interval::default() };
        let late = of(Counters { late: 1, ..Counters::default() });
        let abandoned = of(Counters { late_ended: 1, abandoned: 1, ..Counters::default() });
        let mut never_sent = of(Counters { failed: 2, unsuccessful: 3, ..Counters::default() });
        never_sent.open_loop.get_or_insert_default().dropped = 4;
        never_sent.open_loop.get_or_insert_default().unsent = 5;
        assert_eq!([&late, &abandoned, &never_sent].map(Stats::errors), [1, 0, 14]);
        let mut totals = Totals::default();
        [late, abandoned, never_sent].iter().for_each(|interval| totals += interval);
        assert_eq!(totals.errors(), 15);
    }

    #[test]
    fn impossible_sums_are_refused() {
        let mut distribution = Distribution::<u64>::new();
        [10, 20].into_iter().for_each(|value| distribution.record(value));
        let json = serde_json::to_value(&distribution);
        let mut json = json.expect("it can be written");
        let is_read = |json: &serde_json::Value| serde_json::from_value::<Distribution<u64>>(json.clone()).is_ok();
        assert!(is_read(&json));
        json["sum_of_squares"] = 449.into();
        assert!(!is_read(&json), "two values with a mean of 15 have 450 at least");
    }

    #[test]
    fn cleared_intervals_add_nothing() {
        let mut cleared = interval(10);
        cleared.clear();
        let mut totals = Totals::default();
        totals += &cleared;
        assert_eq!(totals.latency.count() + totals.rates.count(), 0);
        assert!(totals.batch_latency.is_none() && totals.censored.is_none());
        assert!(totals.by_class.as_ref().unwrap().latencies_of_class(3).is_none());
        assert_eq!(totals.by_name.as_ref().unwrap().iter().count(), 0);
        let open_loop = totals.open_loop.as_ref().unwrap();
        assert_eq!(
            (open_loop.scheduled.count() + open_loop.lateness.count() + open_loop.censored.count(), open_loop.due),
            (0, 0)
        );
        assert_eq!(open_loop.wrk2.as_ref().unwrap().recorded.count(), 0);
        let phases = totals.phases.as_ref().unwrap();
        assert_eq!(phases.connect.count() + phases.ttfb.count() + phases.ttlb.count(), 0);
        assert!(phases.tls.is_none());
        assert_eq!((totals.counters, totals.activity), (Counters::default(), Activity::default()));
        assert_eq!(totals.statuses.iter().count(), 0);
        assert!(totals.ledger.rows().is_empty());
        assert_eq!((totals.handshakes.total, totals.sockets), (0, SocketStats::default()));
        assert_eq!(totals.location, None);
    }
}
