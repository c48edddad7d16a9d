//! Bounds for percentiles of the latency since requests were due, over all requests that were due: it is unknown how
//! long those without a complete response would have lasted.

use std::fmt;
use std::time::Duration;

use onrush_plan::schedule::Arrivals;
use onrush_plan::{Plan, Schedule};
use onrush_stats::{Distribution, OpenLoop, rank};
use onrush_text::units;

use super::NS_PER_US;
use crate::run::Outcome;

/// Requests in flight at the end are ordinary up to this multiple of the expected number and of the slowest latency:
/// when a target cannot keep up, they reach twice the number that its mean latency implies.
const ORDINARY: f64 = 1.5;
/// Random variation makes it at most this many more.
const ORDINARY_FEW: u64 = 10;
/// A percentile is known when its bounds differ by at most this share.
const KNOWN: f64 = 0.01;

/// All requests that were due, for the bounds of their percentiles.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    /// The latencies of complete responses.
    pub completed: &'a Distribution<u64>,
    /// The ages of requests without a complete response, except those that failed.
    pub censored: &'a Distribution<u64>,
    /// Of these, the ages of those merely in flight at the end ([`in_flight`]).
    pub in_flight: Option<&'a Distribution<u64>>,
    /// Requests that failed.
    pub failed: u64,
}

/// The bounds of percentiles over all requests that were due.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The latencies and all ages together.
    least: Distribution<u64>,
    /// The latencies, and the ages of requests merely in flight at the end.
    finite: Distribution<u64>,
    /// How many requests were due.
    due: u64,
}

impl Bounds {
    /// The bounds for these requests.
    pub fn new(Due { completed, censored, in_flight, failed }: Due<'_>) -> Self {
        let (mut least, mut finite) = (completed.clone(), completed.clone());
        least += censored;
        if let Some(in_flight) = in_flight {
            finite += in_flight;
        }
        let due = least.count() + failed;
        Self { least, finite, due }
    }

    /// The bounds for a run with a schedule.
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Self> {
        let OpenLoop { scheduled, censored, .. } = outcome.totals.open_loop.as_deref()?;
        let in_flight = in_flight(plan, outcome);
        let failed = outcome.totals.counters.failed;
        Some(Self::new(Due { completed: scheduled, censored, in_flight: in_flight.as_ref(), failed }))
    }

    /// The latencies together with the ages of requests without a complete response; their percentiles are the lower
    /// bounds. Failed requests are left out, as if they had taken as long as the others.
    pub fn least(&self) -> &Distribution<u64> {
        &self.least
    }

    /// The same, without the rest.
    pub fn into_least(self) -> Distribution<u64> {
        self.least
    }

    /// The number of requests that were due.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// How many requests have a latency without an upper bound.
    pub fn unknown(&self) -> u64 {
        self.due.saturating_sub(self.finite.count())
    }

    /// The bounds of a percentile; `None`: there is no latency and no age.
    pub fn percentile(&self, percent: f64) -> Option<Between> {
        let lower_ns = (self.least.count() > 0).then(|| self.least.percentile(percent))?;
        let rank = rank(percent, self.due).min(self.due);
        // The histograms resolve values within a bin differently, which must not turn the bounds round.
        let upper_ns = (rank <= self.finite.count()).then(|| self.finite.at_rank(rank).max(lower_ns));
        Some(Between { lower_ns, upper_ns })
    }
}

/// The bounds of a percentile, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// As if failed requests had taken as long as the others, and the others without a complete response as long as
    /// their age.
    pub lower_ns: u64,
    /// As if every request without a complete response had lasted for ever, except those merely in flight at the end;
    /// `None`: the percentile would be infinite, too.
    pub upper_ns: Option<u64>,
}

impl Between {
    /// Whether the bounds are as good as one figure.
    pub fn is_known(&self) -> bool {
        self.upper_ns.is_some_and(|upper_ns| upper_ns as f64 <= self.lower_ns as f64 * (1.0 + KNOWN))
    }

    /// The bounds, and why there are two of them: `at least 1.20ms, with no upper bound, because 10 % of the requests due
    /// failed`.
    pub fn because(&self, missing: Missing) -> String {
        let (bounds, why) = (self.to_string(), missing.to_string());
        let bounds = if self.upper_ns.is_none() { bounds + ", with no upper bound" } else { bounds };
        let is_one = bounds == Self { upper_ns: Some(self.lower_ns), ..*self }.to_string();
        if is_one || why.is_empty() { bounds } else { format!("{bounds}, because {why}") }
    }
}

impl fmt::Display for Between {
    /// `1.20ms`, `between 1.20ms and 3.00ms`, `at least 1.20ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |ns: u64| units::time_us(ns as f64 / NS_PER_US);
        let lower = text(self.lower_ns);
        match self.upper_ns.map(text) {
            Some(upper) if upper == lower => f.write_str(&lower),
            Some(upper) => write!(f, "between {lower} and {upper}"),
            None => write!(f, "at least {lower}"),
        }
    }
}

/// What became of the requests that were due and whose latency has no upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// All requests that were due.
    pub due: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests that were abandoned.
    pub abandoned: u64,
    /// Requests that were dropped (`--max-late`).
    pub dropped: u64,
    /// Requests that were unsent at the end.
    pub unsent: u64,
    /// Requests in flight at the end that are more, or older, than responses account for.
    pub hanging: u64,
}

impl fmt::Display for Missing {
    /// `10 % of the requests due failed and 2.5 % were not sent by the end`, `5 of 14 requests due were dropped`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ends = [
            (self.failed, "failed"),
            (self.abandoned, "were abandoned"),
            (self.dropped, "were dropped"),
            (self.unsent, "were not sent by the end"),
            (self.hanging, "had no response by the end"),
        ];
        let ends = ends.into_iter().filter(|(count, _)| *count > 0).enumerate();
        let words = ends.map(|(index, (count, end))| {
            let share = units::share(count, self.due);
            match index {
                0 if share.ends_with('%') => format!("{share} of the requests due {end}"),
                0 => format!("{share} requests due {end}"),
                _ => format!("{share} {end}"),
            }
        });
        f.write_str(&units::listed(&words.collect::<Vec<_>>()))
    }
}

/// The ages of the requests merely in flight at the end of a run with a schedule: not much older than the slowest
/// response, and no more than become due while one is processed. `None`: there are none.
pub fn in_flight(plan: &Plan, outcome: &Outcome) -> Option<Distribution<u64>> {
    let OpenLoop { scheduled, in_flight, .. } = outcome.totals.open_loop.as_deref()?;
    let (schedule, mean_ns, ages) = (plan.schedule.as_ref()?, scheduled.mean()?, in_flight.as_deref()?);
    let oldest_ns = scheduled.max()? as f64 * ORDINARY;
    // Those that are young enough became due at the rate of the last moments, not of the run's busiest stage.
    let per_s = per_second_lately(schedule, outcome.elapsed, Duration::from_nanos(oldest_ns as u64));
    let mut ordinary = Distribution::new();
    let young = ages.values().filter(|(age_ns, _)| *age_ns as f64 <= oldest_ns);
    young.for_each(|(age_ns, count)| ordinary.record_many(age_ns, count));
    let most = most_in_flight(per_s, mean_ns, together(plan, outcome));
    (ordinary.count() > 0 && ordinary.count() as f64 <= most).then_some(ordinary)
}

/// The mean number of requests per second that were due in the last moments of a run; zero if there were none.
pub(super) fn per_second_lately(schedule: &Schedule, elapsed: Duration, moments: Duration) -> f64 {
    let from = elapsed.saturating_sub(moments);
    if from < elapsed { schedule.per_second_between(from, elapsed) } else { 0.0 }
}

/// The most requests that are ordinarily in flight at one moment, at this rate and mean latency, if so many are sent
/// together.
pub fn most_in_flight(per_s: f64, mean_ns: f64, together: u64) -> f64 {
    per_s * mean_ns / 1e9 * ORDINARY + (ORDINARY_FEW + together) as f64
}

/// How many requests each thread of a run with a schedule sends together.
pub fn together(plan: &Plan, outcome: &Outcome) -> u64 {
    match plan.schedule.as_ref().map(|schedule| (schedule.arrivals, schedule.part.of)) {
        Some((Arrivals::Burst(burst), parts)) => burst.get().div_ceil(parts),
        _ => outcome.batch as u64,
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;

    use super::*;
    use crate::fixtures::{flawless, plan, schedule};

    const MS: u64 = 1_000_000;

    fn of(values: impl IntoIterator<Item = u64>) -> Distribution<u64> {
        let mut distribution = Distribution::new();
        values.into_iter().for_each(|value| distribution.record(value));
        distribution
    }

    fn bounds(completed: &Distribution<u64>, censored: &Distribution<u64>, failed: u64) -> Bounds {
        Bounds::new(Due { completed, censored, in_flight: None, failed })
    }

    fn between(lower_ns: u64, upper_ns: Option<u64>) -> Option<Between> {
        Some(Between { lower_ns, upper_ns })
    }

    #[test]
    fn what_is_not_complete_counts_at_its_age_or_as_infinitely_long() {
        let bounds = bounds(&of(1..=90), &of(41..=50), 0);
        for (percent, lower_ns, upper_ns) in
            [(10.0, 11, Some(11)), (50.0, 46, Some(51)), (89.0, 80, Some(90)), (90.0, 81, None), (100.0, 90, None)]
        {
            assert_eq!(bounds.percentile(percent), between(lower_ns, upper_ns), "{percent} %");
        }
    }

    #[test]
    fn failed_requests_are_left_out_or_infinitely_long() {
        // 900 responses and 100 failures: the 80th percentile is the 801st of 1,000, and the 721st of 900.
        let bounds = bounds(&of(1..=900), &Distribution::new(), 100);
        for (percent, lower_ns, upper_ns) in
            [(0.0, 1, Some(1)), (80.0, 721, Some(801)), (89.9, 810, Some(900)), (90.0, 811, None), (99.0, 892, None)]
        {
            assert_eq!(bounds.percentile(percent), between(lower_ns, upper_ns), "{percent} %");
        }
        assert_eq!(bounds.due(), 1_000);
    }

    #[test]
    fn requests_merely_in_flight_count_with_their_age() {
        let (completed, censored, in_flight) = (of(101..=190), of((1..=8).chain([500, 900])), of(1..=8));
        let bounds =
            Bounds::new(Due { completed: &completed, censored: &censored, in_flight: Some(&in_flight), failed: 0 });
        assert_eq!(bounds.percentile(50.0), between(143, Some(143)));
        assert_eq!(bounds.percentile(97.0), between(190, Some(190)));
        assert_eq!(bounds.percentile(98.0), between(500, None));
    }

    #[test]
    fn the_bounds_are_never_the_wrong_way_round() {
        // These values share a bin that is 512 wide.
        for (completed, censored) in [(vec![600_000], vec![600_060]), (vec![600_000; 3], vec![600_050; 2])] {
            let bounds = bounds(&of(completed), &of(censored), 0);
            for percent in [0.0, 10.0, 50.0] {
                let Between { lower_ns, upper_ns } = bounds.percentile(percent).unwrap();
                assert!(upper_ns.is_none_or(|upper_ns| upper_ns >= lower_ns), "{percent} %");
            }
        }
    }

    #[test]
    fn bounds_coincide_without_open_requests() {
        let completed = of(1..=100);
        let bounds_of = |completed| bounds(completed, &Distribution::new(), 0);
        for percent in [0.0, 50.0, 99.0, 100.0] {
            let measured = completed.percentile(percent);
            assert_eq!(bounds_of(&completed).percentile(percent), between(measured, Some(measured)));
        }
        assert_eq!(bounds_of(&Distribution::new()).percentile(50.0), None);
    }

    #[test]
    fn only_young_and_few_requests_are_merely_in_flight() {
        let mut plan = plan(Dialect::Native, "http://h/", 10, 2, 10);
        plan.schedule = Some(schedule(1_000));
        // At 1,000/s and 100 ms, 100 requests are in flight: up to 161, none older than 150 ms.
        let ordinary = |ages: &[(u64, u64)]| {
            let mut outcome = flawless(10_000, 10);
            let open_loop = outcome.totals.open_loop.get_or_insert_default();
            open_loop.scheduled.record_many(100 * MS, 9_900);
            let in_flight = open_loop.in_flight.get_or_insert_default();
            ages.iter().for_each(|&(ns, count)| in_flight.record_many(ns, count));
            in_flight_count(&plan, &outcome)
        };
        assert_eq!(ordinary(&[(20 * MS, 50), (140 * MS, 50)]), 100);
        assert_eq!(ordinary(&[(20 * MS, 90), (200 * MS, 10)]), 90, "the old ones hang");
        assert_eq!((ordinary(&[(20 * MS, 161)]), ordinary(&[(20 * MS, 162)])), (161, 0), "too many");
    }

    fn in_flight_count(plan: &Plan, outcome: &Outcome) -> u64 {
        in_flight(plan, outcome).map_or(0, |ages| ages.count())
    }

    #[test]
    fn bounds_are_said_with_what_they_are_for() {
        let words = |lower_ns, upper_ns| Between { lower_ns, upper_ns }.to_string();
        assert_eq!(words(514_000, None), "at least 514.00us");
        assert_eq!(words(2 * MS, Some(3 * MS)), "between 2.00ms and 3.00ms");
        assert_eq!(words(2 * MS, Some(2 * MS + 1)), "2.00ms");
        let missing = Missing { due: 1_000, failed: 100, ..Missing::default() };
        assert_eq!(missing.to_string(), "10 % of the requests due failed");
        let between = |upper_ns| Between { lower_ns: MS, upper_ns }.because(missing);
        assert_eq!(between(None), "at least 1.00ms, with no upper bound, because 10 % of the requests due failed");
        assert_eq!(between(Some(2 * MS)), "between 1.00ms and 2.00ms, because 10 % of the requests due failed");
        assert_eq!(between(Some(MS)), "1.00ms");
        let missing = Missing { due: 400, failed: 1, unsent: 10, hanging: 3, ..Missing::default() };
        assert_eq!(
            missing.to_string(),
            "0.25 % of the requests due failed, 2.5 % were not sent by the end and 0.75 % had no response by the end"
        );
        assert_eq!(
            Missing { due: 14, dropped: 5, ..Missing::default() }.to_string(),
            "5 of 14 requests due were dropped"
        );
    }
}
