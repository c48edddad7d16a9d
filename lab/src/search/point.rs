//! One judged run of a search: whether the load holds, and if not, why.

use std::time::Duration;

use onrush_load::figures::{bounds, unavailable};
use onrush_load::judge;
use onrush_load::record::Document;
use onrush_load::record::gate::Judged;
use onrush_load::run::{Outcome, nanos};
use onrush_plan::condition::{Term, Threshold};
use onrush_plan::metric::{Metric, Statistic};
use onrush_plan::schedule::Arrivals;
use onrush_plan::search::{Search, SearchVariable};
use onrush_plan::{Condition, Plan};
use onrush_stats::{Gap, silences};

use super::{ClientLimit, PlannedRun, SlowExcess, Starvation, errors};

/// One run of a search, and whether its load holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The load, in the unit of [`SearchVariable`].
    pub load: u64,
    /// Length of the measured part of the run.
    pub length: Duration,
    /// Complete responses per second of the measured time.
    pub per_s: f64,
    /// Complete responses, including those that arrived after the last request was sent.
    pub completed: u64,
    /// The terms of the objective, each judged for this run.
    pub terms: Vec<Judged>,
    /// Increase of the mean latency, in nanoseconds per second; `None` if too few windows have responses.
    pub slope_ns_per_s: Option<f64>,
    /// Time for which onrush itself was stalled.
    pub stalled: Duration,
    /// Requests slower than a percentile of the objective allows. `None` without a percentile.
    pub excess: Option<SlowExcess>,
    /// Waits for a processor during the run.
    pub starved: Starvation,
    /// Time without a response although one was due.
    pub silent: Duration,
    /// Number of failed attempts to connect.
    pub unconnected: u64,
    /// True if the run was to confirm the load.
    pub confirms: bool,
    /// True if the run was stopped early, because it could no longer pass.
    pub is_early: bool,
    /// True if errors alone break the objective. More processor time would not have changed that.
    pub is_broken_by_errors: bool,
    /// Why the load does not hold; `None` if the load holds.
    pub fault: Option<LoadFailure>,
}

/// Why a load does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFailure {
    /// There was no response.
    NoResponse,
    /// A term of the objective does not hold.
    Objective,
    /// The load was not reached: due requests were not sent or never completed, or there were fewer connections than
    /// requested.
    Unreached,
    /// The latency was still rising: the load would not hold for long.
    Rising,
    /// The limit was not the target: the run says nothing about the target.
    Limited(ClientLimit),
}

/// Measurements of a run that judge its load.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// The requested load, the reached load, and their ordinary difference, in requests or connections. Failed requests
    /// count as sent; the objective judges them. `None` for threads, which are always reached.
    pub reached: Option<(f64, f64, f64)>,
    /// Equal parts of the measured time.
    pub windows: Vec<Window>,
    /// Number of complete responses.
    pub completed: u64,
    /// Time for which onrush itself was stalled.
    pub stalled: Duration,
    /// Requests slower than a percentile of the objective allows; `None` without a percentile.
    pub excess: Option<SlowExcess>,
    /// The terms of the objective, each judged for this run.
    pub terms: Vec<Judged>,
}

/// A part of the measured time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Number of complete responses in this part.
    pub completed: u64,
    /// Sum of the latencies, in nanoseconds.
    pub sum_ns: f64,
}

/// Number of windows of a run.
pub const WINDOWS: u32 = 5;

/// A load counts as reached if at most this share, or a few requests, are missing.
const MISSING: f64 = 0.01;
const MISSING_REQUESTS: f64 = 2.0;

/// A failure is not attributed to the target if onrush itself was stalled for this share of the run.
const STILL: f64 = 0.01;

/// The latency is rising if its slope is this multiple of its standard error (with five windows, once in a hundred runs
/// by chance, and rarely in a queue that comes and goes) ...
const STEEP: f64 = 5.0;
/// ... and if the latency rose during the run by this share of the lowest latency limit of the objective ...
const RISE_OF_LIMIT: f64 = 0.1;
/// ... or, without a latency limit, by this share of its own mean.
const RISE_OF_MEAN: f64 = 0.5;

impl Point {
    /// Judges a run with this measured length.
    pub fn from_outcome(
        search: &Search,
        plan: &Plan,
        step: PlannedRun,
        outcome: &Outcome,
        document: &Document,
    ) -> Self {
        let PlannedRun { load, length, confirms, .. } = step;
        let timeline = &outcome.timeline;
        let whole = (length.as_nanos() / u128::from(timeline.length_ns.max(1))) as usize;
        let windows = timeline.rows.iter().take(whole).map(|row| {
            let latency = if plan.schedule.is_some() { &row.scheduled } else { &row.latency };
            Window { completed: row.completed, sum_ns: latency.sum_ns as f64 }
        });
        let windows: Vec<Window> = windows.collect();
        let counters = &outcome.totals.counters;
        let reached = match search.over {
            SearchVariable::Rate => {
                let due = SearchVariable::Rate.load_for_users(load) * length.as_secs_f64();
                let completed: u64 = windows.iter().map(|window| window.completed).sum();
                let ended = (completed + counters.failed + counters.abandoned) as f64;
                let in_flight = usual_in_flight(&windows, length, bounds::send_group_size(plan, outcome));
                Some((due, ended, chance_deviation(plan, due) + in_flight))
            }
            SearchVariable::Connections => Some((load as f64, counters.slots_opened as f64, 0.0)),
            SearchVariable::Threads => None,
        };
        let terms = judge::judge_objective(&search.objective, document);
        let stalled = stalled(outcome, length);
        let excess = SlowExcess::from_outcome(&search.objective, plan, outcome, WINDOWS as usize);
        let measured = MeasuredRun { reached, windows, completed: counters.completed, stalled, excess, terms };
        let point = Self::judge(load, length, measured, lowest_latency_limit_ns(&search.objective));
        let is_broken_by_errors = errors::errors_break_objective(&search.objective, outcome);
        let silent = unavailable::unanswered_time(plan, outcome);
        let unconnected = outcome.totals.ledger.totals().connect;
        Self { confirms, starved: Starvation::from_outcome(outcome), silent, unconnected, is_broken_by_errors, ..point }
    }

    /// Judges the measurements of a run. `lowest_latency_limit_ns`: the lowest latency limit of the objective.
    pub fn judge(load: u64, length: Duration, measured: MeasuredRun, limit_ns: Option<f64>) -> Self {
        let MeasuredRun { reached, windows, completed, stalled, excess, terms } = measured;
        let in_time: u64 = windows.iter().map(|window| window.completed).sum();
        let rise_ns = limit_ns.map_or(mean_ns(&windows) * RISE_OF_MEAN, |limit_ns| limit_ns * RISE_OF_LIMIT);
        let slope = mean_latency_slope(&windows, length);
        let is_short = |(asked, reached, ordinary): (f64, f64, f64)| {
            asked - reached > (asked * MISSING).max(MISSING_REQUESTS) + ordinary
        };
        let is_rising = |(slope, error): (f64, f64)| slope > STEEP * error && slope * length.as_secs_f64() > rise_ns;
        let fault = match () {
            () if completed == 0 => Some(LoadFailure::NoResponse),
            () if terms.iter().any(|term| !term.holds && !term.undecided) => Some(LoadFailure::Objective),
            () if terms.iter().any(|term| term.undecided) => Some(LoadFailure::Limited(ClientLimit::Open)),
            () if reached.is_some_and(is_short) => Some(LoadFailure::Unreached),
            () if slope.is_some_and(is_rising) => Some(LoadFailure::Rising),
            () => None,
        };
        let is_spoilt = stalled >= length.mul_f64(STILL) && fault != Some(LoadFailure::NoResponse);
        let fault = fault.map(|fault| if is_spoilt { LoadFailure::Limited(ClientLimit::Stalled) } else { fault });
        let per_s = in_time as f64 / length.as_secs_f64();
        let slope_ns_per_s = slope.map(|(slope, _)| slope);
        Self {
            load,
            length,
            per_s,
            completed,
            terms,
            slope_ns_per_s,
            stalled,
            excess,
            starved: Starvation::default(),
            silent: Duration::ZERO,
            unconnected: 0,
            confirms: false,
            is_early: false,
            is_broken_by_errors: false,
            fault,
        }
    }

    /// The slow requests, if their number decides whether the load holds; otherwise `None`.
    pub fn deciding_excess(&self) -> Option<&SlowExcess> {
        let excess = self.excess.as_ref()?;
        let is_broken = excess.ratio() > 1.0;
        (is_broken || self.holds()).then_some(excess).filter(|_| self.completed > 0)
    }

    /// True if the run says something about the target: no other limit interfered.
    pub fn is_clean(&self) -> bool {
        !matches!(self.fault, Some(LoadFailure::Limited(_)))
    }

    /// Attributes the failure to a limit other than the target; without effect if the load holds or if `limit` is
    /// `None`.
    pub fn set_client_limit(&mut self, limit: Option<ClientLimit>) {
        if let (Some(fault), Some(limit)) = (&mut self.fault, limit) {
            *fault = LoadFailure::Limited(limit);
        }
    }

    /// True if the load holds, as far as this run shows.
    pub fn holds(&self) -> bool {
        self.fault.is_none()
    }
}

/// The runs before the first success, when the target may have been slower than it was later.
pub fn runs_before_first_success(points: &[Point]) -> &[Point] {
    &points[..points.iter().position(Point::holds).unwrap_or(points.len())]
}

/// Time for which onrush itself was stalled during the first `length` of a run.
fn stalled(outcome: &Outcome, length: Duration) -> Duration {
    let run = Gap { until_ns: nanos(length), ..Gap::ALL };
    silences::common_gaps(&outcome.stalls, &[run]).iter().map(|gap| Duration::from_nanos(gap.length_ns())).sum()
}

/// Largest usual number of requests in flight at the end of a run if the target keeps up. Each thread sends `together`
/// requests at a time.
pub(super) fn usual_in_flight(windows: &[Window], length: Duration, together: u64) -> f64 {
    let completed: u64 = windows.iter().map(|window| window.completed).sum();
    bounds::usual_peak_in_flight(completed as f64 / length.as_secs_f64(), mean_ns(windows), together)
}

/// The mean latency, in nanoseconds.
fn mean_ns(windows: &[Window]) -> f64 {
    let completed: u64 = windows.iter().map(|window| window.completed).sum();
    windows.iter().map(|window| window.sum_ns).sum::<f64>() / completed.max(1) as f64
}

/// Ordinary deviation of the number of due requests from its mean.
pub(super) fn chance_deviation(plan: &Plan, due: f64) -> f64 {
    match plan.schedule.as_ref().map(|schedule| schedule.arrivals) {
        Some(Arrivals::Poisson) => 3.0 * due.sqrt(),
        Some(Arrivals::Burst(size)) => size.get() as f64,
        Some(Arrivals::Uniform) | None => 0.0,
    }
}

/// The lowest latency limit of an objective, in nanoseconds.
pub(super) fn lowest_latency_limit_ns(objective: &Condition) -> Option<f64> {
    objective.terms.iter().filter_map(latency_limit_ns).min_by(f64::total_cmp)
}

/// The latency limit of a term, in nanoseconds. A limit on a deviation does not count.
pub(super) fn latency_limit_ns(term: &Term) -> Option<f64> {
    match (term.metric, term.value) {
        (Metric::Latency(_, Statistic::Stdev), _) => None,
        (Metric::Latency(..), Threshold::Time(time)) => Some(time.as_nanos() as f64),
        _ => None,
    }
}

/// Slope of the mean latency of the windows, in nanoseconds per second, and its standard error, by least squares.
/// `None`: too few windows have responses.
fn mean_latency_slope(windows: &[Window], length: Duration) -> Option<(f64, f64)> {
    let step_s = length.as_secs_f64() / windows.len().max(1) as f64;
    let points: Vec<(f64, f64)> = (0..)
        .zip(windows)
        .filter(|(_, window)| window.completed > 0)
        .map(|(index, window)| (f64::from(index) * step_s, window.sum_ns / window.completed as f64))
        .collect();
    if points.len() < WINDOWS as usize - 1 {
        return None;
    }
    onrush_load::figures::slope::linear_slope(&points)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of two seconds at 1000/s, with these mean latencies in its windows.
    fn run(means_ms: [f64; 5], completed: f64, holds: bool) -> Point {
        stalled(means_ms, completed, holds, Duration::ZERO)
    }

    /// This run, with a stall of onrush.
    fn stalled(means_ms: [f64; 5], completed: f64, holds: bool, stalled: Duration) -> Point {
        let per_window = completed / 5.0;
        let window = |ms: f64| Window { completed: per_window as u64, sum_ns: ms * 1e6 * per_window };
        let term = Judged { term: "p99<50ms".to_owned(), was: None, holds, undecided: false };
        let measured = MeasuredRun {
            reached: Some((2_000.0, completed, 0.0)),
            windows: means_ms.map(window).to_vec(),
            completed: completed as u64,
            stalled,
            excess: None,
            terms: vec![term],
        };
        Point::judge(60_000, Duration::from_secs(2), measured, Some(50e6))
    }

    #[test]
    fn loads_hold_when_reached_with_steady_latency() {
        let calm = [1.0, 1.2, 0.9, 1.1, 1.0];
        for (means_ms, completed, holds, fault) in [
            (calm, 2_000.0, true, None),
            (calm, 1_980.0, true, None),
            (calm, 1_975.0, true, Some(LoadFailure::Unreached)),
            (calm, 2_000.0, false, Some(LoadFailure::Objective)),
            (calm, 0.0, false, Some(LoadFailure::NoResponse)),
            ([1.0, 3.0, 5.0, 7.0, 9.0], 2_000.0, true, Some(LoadFailure::Rising)),
            // Steady, but far below the objective.
            ([1.0, 1.3, 1.6, 1.9, 2.2], 2_000.0, true, None),
            // A larger difference, but without a trend.
            ([1.0, 9.0, 2.0, 10.0, 6.0], 2_000.0, true, None),
            ([9.0, 7.0, 5.0, 3.0, 1.0], 2_000.0, true, None),
        ] {
            let point = run(means_ms, completed, holds);
            assert_eq!(point.fault, fault, "{means_ms:?} {completed}");
            assert_eq!((point.holds(), point.per_s), (fault.is_none(), completed / 2.0));
        }
    }

    #[test]
    fn own_stalls_do_not_count_against_targets() {
        let (calm, ms) = ([1.0; 5], Duration::from_millis);
        let fault = |completed, holds, still| stalled(calm, completed, holds, still).fault;
        assert_eq!(fault(2_000.0, false, ms(19)), Some(LoadFailure::Objective));
        assert_eq!(fault(2_000.0, false, ms(20)), Some(LoadFailure::Limited(ClientLimit::Stalled)));
        assert_eq!(fault(1_500.0, true, ms(500)), Some(LoadFailure::Limited(ClientLimit::Stalled)));
        assert_eq!(fault(0.0, false, ms(500)), Some(LoadFailure::NoResponse));
        assert_eq!(fault(2_000.0, true, ms(500)), None, "a load that holds is unaffected by a stall");
    }

    #[test]
    fn slopes_are_least_squares() {
        let windows = [2.0, 4.0, 3.0, 5.0, 6.0].map(|ns| Window { completed: 10, sum_ns: 10.0 * ns });
        let (slope, error) = mean_latency_slope(&windows, Duration::from_secs(5)).unwrap();
        assert!((slope - 0.9).abs() < 1e-9 && (error - (1.9f64 / 3.0 / 10.0).sqrt()).abs() < 1e-9, "{slope} {error}");
        let empty = Window { completed: 0, sum_ns: 0.0 };
        assert!(
            mean_latency_slope(&[windows[0], empty, empty, windows[1], windows[2]], Duration::from_secs(5)).is_none()
        );
    }
}
