//! Chooses the next run: growing steps until a load held and another failed, then loads near the probable limit, then a
//! long run that confirms the result, and higher loads while time remains.

use std::time::Duration;

use onrush_plan::search::{Search, SearchVariable};

use super::{ClientLimit, LimitFit, LoadFailure, PlannedRun, Point, SearchEnd, length, runs_before_first_success};

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Make another run.
    Run(PlannedRun),
    /// End the search.
    End(SearchEnd),
}

/// Everything that the choice of the next run depends on.
pub struct SearchProgress<'a> {
    /// The search, as requested.
    pub search: &'a Search,
    /// The load of the first run.
    pub first: u64,
    /// The runs so far, in order.
    pub points: &'a [Point],
    /// Time since the start of the search.
    pub elapsed: Duration,
    /// Gives the expected responses per second at a load.
    pub per_s: &'a dyn Fn(u64) -> f64,
}

/// Factors of successive steps in one direction. The first steps are small, because the first load is close to the
/// limit of a target limited by its processor.
const STEPS: [f64; 4] = [1.25, 1.25, 1.5, 2.0];

/// An overloaded target still reaches about its limit. The next load is the rate it reached times this factor, and
/// should hold.
const GUESS: f64 = 0.985;

/// A guess counts as new if it differs from every tried load by at least this factor.
const GUESSED: f64 = 1.02;

/// A search ends when the upper end of its interval is at most this multiple of the lower end.
pub const NARROW: f64 = 1.02;

/// While the interval is wider, the next load is its middle, later ...
pub(super) const WIDE: f64 = 1.15;
/// ... one of the loads that exceed the limit with these probabilities, in turn.
const AROUND: [f64; 3] = [0.6, 0.3, 0.75];

/// Probability that the load to be confirmed exceeds the limit, ...
const CONFIRMED: f64 = 0.15;
/// ... the same after a failed confirmation, within the range then known, ...
const LOWER: f64 = 0.04;
/// ... and the same after a successful one, if the load is higher by at least the factor below.
const HIGHER: f64 = 0.45;
const HIGHER_BY: f64 = 1.01;

/// Maximum number of attempts to confirm a result.
const CONFIRMATIONS_MAX: usize = 3;

/// A confirmation takes one part in this many of the search's time. It is still made if only the share below of such a
/// part is left; while the load to confirm is unclear, only this share is reserved for it.
const PARTS: u32 = 3;
const SHORTENED: f64 = 0.6;

/// If the interval is at least this wide (upper end divided by lower end), the load to confirm is unclear.
const UNCLEAR: f64 = 1.06;

/// A single failure is repeated after this many later successes, or at once if the target collapsed. It is not repeated
/// directly, because the next run may fail as well.
const LONE_FOR: usize = 2;

/// A search ends after this many runs at one load with a limit other than the target.
const LIMITED_MAX: usize = 3;

impl SearchProgress<'_> {
    /// Returns the next run, or the end of the search.
    pub fn next(&self) -> Next {
        let range = LoadRange { over: self.search.over, least: self.search.over.lowest_load(), most: self.search.most };
        let Some(last) = self.points.last() else {
            return self.exploring_run(self.first.clamp(range.least, range.most), Duration::ZERO);
        };
        if let Some(limit) = repeated_client_limit(self.points) {
            return Next::End(SearchEnd::Limited(limit));
        }
        if !last.is_clean() {
            return self.repeat_last(last);
        }
        let clean = || self.points.iter().filter(|point| point.is_clean());
        let holds = clean().filter(|point| point.holds()).map(|point| point.load).max();
        if last.fault == Some(LoadFailure::NoResponse)
            && let Some(next) = self.after_silence(last, holds)
        {
            return next;
        }
        let alike = clean().rev().take_while(|point| point.holds() == last.holds()).count();
        let steps = STEPS[(alike - 1).min(STEPS.len() - 1)];
        let fails = clean().filter(|point| !point.holds()).map(|point| point.load).min();
        match (holds, fails, LimitFit::from_points(self.points)) {
            (Some(holds), None, _) if holds == range.most => Next::End(SearchEnd::Done),
            // All loads that failed have held since: the limit may be anywhere above.
            (Some(holds), ..) if holds < range.most && !clean().any(|point| is_beyond(point, holds)) => {
                self.exploring_run(range.higher_load(holds, steps), Duration::ZERO)
            }
            // Nothing below is worth a run before this load has failed twice.
            (None, Some(fails), _) if clean().filter(|point| point.load == fails).count() < 2 => {
                self.exploring_run(fails, Duration::ZERO)
            }
            (None, Some(fails), _) if fails == range.least => Next::End(SearchEnd::Done),
            (None, Some(fails), _) => {
                // A target that reached less than half of the load has collapsed: the reached rate is not its limit.
                let is_limit =
                    |per_s: &f64| range.over == SearchVariable::Rate && *per_s * 2.0 > range.over.load_for_users(fails);
                let reached = last_rate_at(self.points, fails).filter(is_limit).unwrap_or(f64::MAX);
                self.exploring_run(range.load(reached * GUESS).min(range.lower_load(fails, steps)), Duration::ZERO)
            }
            (Some(holds), Some(_), Some(fit)) => self.next_near_limit(&range, holds, &fit),
            _ => self.repeat_last(last),
        }
    }

    /// Repeats the last run.
    fn repeat_last(&self, last: &Point) -> Next {
        let step = PlannedRun {
            load: last.load,
            settle: self.settling_time(last.length),
            length: last.length,
            confirms: last.confirms,
        };
        self.run_if_in_time(step)
    }

    /// Decides what follows a run without a response: the target has died if the highest load that held gets no
    /// response either. `None` if only the last run was silent and no load has held.
    fn after_silence(&self, last: &Point, holds: Option<u64>) -> Option<Next> {
        let silent = self.points.iter().rev().take_while(|point| point.fault == Some(LoadFailure::NoResponse)).count();
        match holds {
            Some(holds) if last.load <= holds => Some(Next::End(SearchEnd::Died)),
            Some(holds) => Some(self.exploring_run(holds, Duration::ZERO)),
            None => (silent > 1).then_some(Next::End(SearchEnd::Died)),
        }
    }

    /// Next run between a success and a failure.
    fn next_near_limit(&self, range: &LoadRange, holds: u64, fit: &LimitFit) -> Next {
        let Self { search, points, .. } = *self;
        let (low, high) = fit.interval();
        let confirmed = highest_confirmed_load(points);
        let failed = points.iter().filter(|point| point.is_clean() && point.confirms && !point.holds()).count();
        let is_narrow = high <= low * NARROW || is_exact(range.over, points);
        if confirmed.is_some() && is_narrow {
            return Next::End(SearchEnd::Done);
        }
        if confirmed.is_none() && failed >= CONFIRMATIONS_MAX {
            return Next::End(SearchEnd::Unconfirmed);
        }
        let third = search.budget / PARTS;
        let left = search.budget.saturating_sub(self.elapsed);
        // A failed confirmation can be followed by a lower one, a successful one by a higher one. While the limit is
        // unclear, the run is shorter.
        let is_unclear = high > low * UNCLEAR;
        let last = if is_unclear { third.mul_f64(SHORTENED) } else { third };
        let reserved = if confirmed.is_none() && failed == 0 { third + last } else { last };
        let free = left.saturating_sub(reserved);
        let near = if high < low * WIDE { (free / 3).min(third / 2) } else { Duration::ZERO };
        let share = if confirmed.is_some() {
            HIGHER
        } else if failed > 0 {
            LOWER
        } else {
            CONFIRMED
        };
        let mut candidate = range.floor(fit.load_at(share));
        if is_exact(range.over, points) {
            candidate = holds;
        }
        let is_due = is_narrow || self.planned_run(candidate, near).last_due_after() > free;
        // A run may have been disturbed. A confirmed result must not depend on a single run.
        if is_due
            && confirmed.is_none()
            && failed == 0
            && let Some(lone) = lone_failure(points, holds)
            && left >= self.planned_run(lone.load, Duration::ZERO).last_due_after() + third.mul_f64(SHORTENED)
        {
            return self.exploring_run(lone.load, Duration::ZERO);
        }
        let is_worth_it = confirmed.is_none_or(|load| candidate as f64 > load as f64 * HIGHER_BY);
        let confirmation = self.confirming_run(candidate, third.min(left));
        if is_due && is_worth_it && left >= third.mul_f64(SHORTENED) && self.has_enough_responses(confirmation) {
            return self.run_if_in_time(confirmation);
        }
        if confirmed.is_none() && failed > 0 && left < third.mul_f64(SHORTENED) {
            return Next::End(SearchEnd::Unconfirmed);
        }
        self.exploring_run(self.most_informative_load(range, holds, fit), near)
    }

    /// The load whose result is most informative about the limit.
    fn most_informative_load(&self, range: &LoadRange, holds: u64, fit: &LimitFit) -> u64 {
        let (low, high) = fit.interval();
        let points = self.points;
        if let Some(middle) = range.middle_load(points) {
            return middle;
        }
        let is_time = |lone: &&Point| has_collapsed(points, lone) || successes_since(points, lone.load) >= LONE_FOR;
        if let Some(lone) = lone_failure(points, holds).filter(is_time) {
            return lone.load;
        }
        if high >= low * WIDE {
            return self.guess_after_overload(range).unwrap_or_else(|| range.nearest_load(fit.load_at(0.5)));
        }
        range.nearest_load(fit.load_at(AROUND[points.len() % AROUND.len()]))
    }

    /// The rate that the overloaded target still reached, if it is new. Most servers stay near their capacity at any
    /// load.
    fn guess_after_overload(&self, range: &LoadRange) -> Option<u64> {
        let clean = || self.points.iter().filter(|point| point.is_clean());
        let holds = clean().filter(|point| point.holds()).map(|point| point.load).max()?;
        let fails = clean().filter(|point| !point.holds() && point.load > holds).min_by_key(|point| point.load)?;
        let load = range.load(fails.per_s * GUESS);
        let is_new = load as f64 > holds as f64 * GUESSED && (load as f64) * GUESSED < fails.load as f64;
        (range.over == SearchVariable::Rate && is_new).then_some(load)
    }

    /// A run that explores this load for at least this long, if time permits.
    fn exploring_run(&self, load: u64, least: Duration) -> Next {
        self.run_if_in_time(self.planned_run(load, least))
    }

    fn planned_run(&self, load: u64, least: Duration) -> PlannedRun {
        let needed = length::responses_needed(&self.search.objective);
        let length = length::run_length(self.search.budget, needed, (self.per_s)(load), least);
        PlannedRun { load, settle: self.settling_time(length), length, confirms: false }
    }

    fn confirming_run(&self, load: u64, whole: Duration) -> PlannedRun {
        let settle = length::settling_time(self.search, whole - whole / 6);
        PlannedRun { load, settle, length: length::whole_grains(whole.saturating_sub(settle)), confirms: true }
    }

    /// True if a run has enough responses for the objective. A shorter run confirms nothing.
    fn has_enough_responses(&self, step: PlannedRun) -> bool {
        (self.per_s)(step.load) * step.length.as_secs_f64() >= length::responses_needed(&self.search.objective)
    }

    fn settling_time(&self, length: Duration) -> Duration {
        length::settling_time(self.search, length)
    }

    fn run_if_in_time(&self, step: PlannedRun) -> Next {
        let is_in_time = self.elapsed + step.last_due_after() <= self.search.budget && !step.length.is_zero();
        if is_in_time { Next::Run(step) } else { Next::End(self.end_out_of_time()) }
    }

    /// End of a search that ran out of time.
    fn end_out_of_time(&self) -> SearchEnd {
        let is_silent = self.points.last().is_some_and(|point| point.fault == Some(LoadFailure::NoResponse));
        let failed = self.points.iter().any(|point| point.is_clean() && point.confirms && !point.holds());
        match highest_confirmed_load(self.points) {
            _ if is_silent => SearchEnd::Died,
            None if failed => SearchEnd::Unconfirmed,
            _ => SearchEnd::Time,
        }
    }
}

/// True if the run failed, and at a higher load than this.
fn is_beyond(point: &Point, load: u64) -> bool {
    !point.holds() && point.load > load
}

/// The lowest failure above all successes, if the evidence is weak: either a single failure, or only failures before
/// the first success, when the target may have been slower. A long run is sufficient evidence.
fn lone_failure(points: &[Point], holds: u64) -> Option<&Point> {
    let failed =
        |points: &'_ [Point]| points.iter().filter(|point| point.is_clean() && is_beyond(point, holds)).count();
    let since = failed(&points[runs_before_first_success(points).len()..]);
    let lowest =
        points.iter().filter(|point| point.is_clean() && is_beyond(point, holds)).min_by_key(|point| point.load)?;
    let is_sure = lowest.confirms || (since > 0 && failed(points) > 1);
    (!is_sure).then_some(lowest)
}

/// True if the failed run had less than half the throughput of a success at a lower load: the target collapsed, or the
/// run was disturbed.
fn has_collapsed(points: &[Point], failed: &Point) -> bool {
    points.iter().any(|point| point.holds() && point.load < failed.load && point.per_s > 2.0 * failed.per_s)
}

/// Number of successes since the last run at this load.
fn successes_since(points: &[Point], load: u64) -> usize {
    points.iter().rev().take_while(|point| point.load != load).filter(|point| point.holds()).count()
}

/// The highest load that a long run confirmed; `None` if none did.
pub fn highest_confirmed_load(points: &[Point]) -> Option<u64> {
    points.iter().filter(|point| point.confirms && point.holds()).map(|point| point.load).max()
}

/// The limit that ends a search, because several successive runs at one load said nothing about the target;
/// `None` while there are too few such runs.
pub fn repeated_client_limit(points: &[Point]) -> Option<ClientLimit> {
    let last = points.last()?;
    let Some(LoadFailure::Limited(limit)) = last.fault else { return None };
    let runs = points.iter().rev().take_while(|point| point.load == last.load && !point.is_clean()).count();
    (runs >= LIMITED_MAX).then_some(limit)
}

/// Responses per second of the last run at this load.
fn last_rate_at(points: &[Point], load: u64) -> Option<f64> {
    points.iter().rev().find(|point| point.load == load).map(|point| point.per_s)
}

/// Range of possible loads.
struct LoadRange {
    over: SearchVariable,
    least: u64,
    most: u64,
}

impl LoadRange {
    /// The load nearest to a value in its own unit.
    fn load(&self, number: f64) -> u64 {
        self.over.load_from_number(number).clamp(self.least, self.most)
    }

    /// The load nearest to a fractional load.
    fn nearest_load(&self, load: f64) -> u64 {
        self.load(load * self.over.load_for_users(1))
    }

    /// Rounds down if loads are counted, otherwise to the nearest load.
    fn floor(&self, load: f64) -> u64 {
        if self.over == SearchVariable::Rate {
            self.nearest_load(load)
        } else {
            (load as u64).clamp(self.least, self.most)
        }
    }

    fn scaled_load(&self, load: u64, factor: f64) -> u64 {
        self.load(self.over.load_for_users(load) * factor)
    }

    /// A load higher by this factor, and by at least one step.
    fn higher_load(&self, load: u64, factor: f64) -> u64 {
        self.scaled_load(load, factor).max(load + 1).min(self.most)
    }

    /// A load lower by this factor, and by at least one step.
    fn lower_load(&self, load: u64, factor: f64) -> u64 {
        self.scaled_load(load, 1.0 / factor).min(load - 1).max(self.least)
    }

    /// Middle of the highest success and the lowest failure; `None` if the two are neighbours, or if loads are not
    /// counted.
    fn middle_load(&self, points: &[Point]) -> Option<u64> {
        let (holds, fails) = bracketing_loads(points)?;
        let middle = ((holds as f64 * fails as f64).sqrt().round() as u64).clamp(holds + 1, fails.max(holds + 2) - 1);
        (self.over != SearchVariable::Rate && fails > holds + 1).then_some(middle)
    }
}

/// The highest success and the lowest failure.
fn bracketing_loads(points: &[Point]) -> Option<(u64, u64)> {
    let clean = || points.iter().filter(|point| point.is_clean());
    let holds = clean().filter(|point| point.holds()).map(|point| point.load).max()?;
    let fails = clean().filter(|point| !point.holds()).map(|point| point.load).min()?;
    Some((holds, fails))
}

/// True if loads are counted, and the limit is between two neighbours, the higher of which failed twice.
pub(super) fn is_exact(over: SearchVariable, points: &[Point]) -> bool {
    let failed = |load: u64| points.iter().filter(|point| point.is_clean() && point.load == load).count();
    over != SearchVariable::Rate
        && bracketing_loads(points).is_some_and(|(holds, fails)| fails == holds + 1 && failed(fails) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::simulation::{points, search};
    use onrush_plan::LimitedBy;

    fn next(search: &Search, first: u64, points: &[Point], elapsed_s: u64) -> Next {
        let (elapsed, per_s) = (Duration::from_secs(elapsed_s), |_| 1_000.0);
        SearchProgress { search, first, points, elapsed, per_s: &per_s }.next()
    }

    fn load(next: Next) -> u64 {
        let Next::Run(step) = next else { panic!("{next:?}") };
        step.load
    }

    #[test]
    fn runs_failed_by_others_repeat_twice() {
        let search = search(SearchVariable::Connections);
        let limit = ClientLimit::Verdict(LimitedBy::Ports);
        let limited = |runs: usize| {
            let mut points = points(&vec![(8, false); runs]);
            points.iter_mut().for_each(|point| point.set_client_limit(Some(limit)));
            points
        };
        assert_eq!([1, 2].map(|runs| load(next(&search, 8, &limited(runs), 0))), [8, 8]);
        assert_eq!(next(&search, 8, &limited(3), 0), Next::End(SearchEnd::Limited(limit)));
    }

    #[test]
    fn steps_grow_and_failures_are_repeated() {
        let rate = search(SearchVariable::Rate);
        let per_s = |runs: &[(f64, bool)]| {
            let runs: Vec<_> =
                runs.iter().map(|(per_s, holds)| (SearchVariable::Rate.load_from_number(*per_s), *holds)).collect();
            SearchVariable::Rate.load_for_users(load(next(&rate, 6_000, &points(&runs), 0)))
        };
        assert_eq!(per_s(&[]), 100.0);
        assert_eq!(per_s(&[(100.0, true)]), 125.0);
        assert_eq!(per_s(&[(100.0, true), (125.0, true)]), 156.3);
        assert_eq!(per_s(&[(100.0, true), (125.0, true), (156.3, true)]), 234.5);
        assert_eq!(per_s(&[(400.0, false)]), 400.0);
        assert_eq!(per_s(&[(400.0, false), (400.0, false)]), 320.0);
        // If the target reached nearly all of the load, the next rate is lower by a whole step.
        for (reached, expected) in [(390.0, 320.0), (250.0, 246.3), (150.0, 320.0)] {
            let mut points = points(&[(24_000, false), (24_000, false)]);
            points[1].per_s = reached;
            assert_eq!(SearchVariable::Rate.load_for_users(load(next(&rate, 6_000, &points, 0))), expected);
        }
    }

    #[test]
    fn lone_failures_are_repeated_first() {
        let rate = search(SearchVariable::Rate);
        let per_s = |runs: &[(f64, bool)]| {
            let runs: Vec<_> =
                runs.iter().map(|(per_s, holds)| (SearchVariable::Rate.load_from_number(*per_s), *holds)).collect();
            let mut points = points(&runs);
            points.iter_mut().for_each(|point| point.per_s = SearchVariable::Rate.load_for_users(point.load));
            let number = |points: &[Point]| SearchVariable::Rate.load_for_users(load(next(&rate, 6_000, points, 9)));
            let usual = number(&points);
            // A run without responses was disturbed.
            points.last_mut().unwrap().per_s = 0.0;
            [usual, number(&points)]
        };
        let mut runs = vec![(50.0, true), (62.5, false)];
        // The next run may fail as well, so that there is more than a single failure.
        assert_eq!(per_s(&runs)[1], 62.5);
        for _ in 0..2 {
            let [next, _] = per_s(&runs);
            assert!(50.0 < next && next < 62.5, "{next}");
            runs.push((next, true));
        }
        assert_eq!(per_s(&runs)[0], 62.5);
        let [twice, _] = per_s(&[&runs[..], &[(62.5, false)]].concat());
        assert!(50.0 < twice && twice < 62.5, "{twice}");
        // A load that held when repeated was no limit: the upward steps continue to grow.
        for next in [62.5, 93.8, 187.6] {
            assert_eq!(per_s(&runs)[0], next);
            runs.push((next, true));
        }
        // Failures before the first success may be due to a slower target.
        let mut cold = vec![(90.0, false), (90.0, false), (65.0, false), (65.0, true), (75.0, true)];
        assert_eq!(per_s(&cold)[0], 90.0);
        let [warm, _] = per_s(&[&cold[..], &[(90.0, false)]].concat());
        assert!(75.0 < warm && warm < 90.0, "{warm}");
        cold.push((90.0, true));
        assert_eq!(per_s(&cold)[0], 135.0);
    }

    #[test]
    fn targets_are_dead_without_any_response() {
        let rate = search(SearchVariable::Rate);
        let silent = |runs: &[(u64, bool)]| {
            let mut points = points(runs);
            let failed = points.iter_mut().filter(|point| !point.holds());
            failed.for_each(|point| (point.fault, point.completed) = (Some(LoadFailure::NoResponse), 0));
            points
        };
        let held = [(6_000, true), (9_000, true), (12_000, false)];
        assert_eq!(load(next(&rate, 6_000, &silent(&held), 0)), 9_000);
        let died = [&held[..], &[(9_000, false)]].concat();
        assert_eq!(next(&rate, 6_000, &silent(&died), 0), Next::End(SearchEnd::Died));
        assert_eq!(load(next(&rate, 6_000, &silent(&[(6_000, false)]), 0)), 6_000);
        assert_eq!(next(&rate, 6_000, &silent(&[(6_000, false); 2]), 0), Next::End(SearchEnd::Died));
    }

    #[test]
    fn a_third_of_the_search_confirms_its_result() {
        let rate = search(SearchVariable::Rate);
        let near = |confirmations: &[(u64, bool)]| {
            let narrow: Vec<_> = (0..40).map(|run| (59_800 + run * 10, run < 20)).collect();
            let mut points = points(&[&narrow[..], confirmations].concat());
            points[40..].iter_mut().for_each(|point| point.confirms = true);
            points
        };
        let Next::Run(step) = next(&rate, 6_000, &near(&[]), 20) else { panic!() };
        assert!(step.confirms && (59_700..60_010).contains(&step.load), "{step:?}");
        assert_eq!(step.last_due_after().as_secs(), 19, "of 60 s: {step:?}");
        // A p99 needs 1,000 responses.
        let (points, elapsed) = (near(&[]), Duration::from_secs(20));
        let confirms = |per_s: f64| {
            let per_s = move |_| per_s;
            let course = SearchProgress { search: &rate, first: 6_000, points: &points, elapsed, per_s: &per_s };
            matches!(course.next(), Next::Run(step) if step.confirms)
        };
        assert_eq!([60.0, 70.0].map(confirms), [false, true]);
        assert_eq!(next(&rate, 6_000, &near(&[(59_900, true)]), 40), Next::End(SearchEnd::Done));
        let Next::Run(lower) = next(&rate, 6_000, &near(&[(59_990, false)]), 30) else { panic!() };
        assert!(lower.confirms && lower.load < 59_990, "{lower:?}");
        // The remaining time is too short for another run.
        assert_eq!(next(&rate, 6_000, &near(&[(59_990, false)]), 50), Next::End(SearchEnd::Unconfirmed));
        let thrice = [(59_990, false), (59_900, false), (59_800, false)];
        assert_eq!(next(&rate, 6_000, &near(&thrice), 30), Next::End(SearchEnd::Unconfirmed));
    }
}
