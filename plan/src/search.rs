//! A search for the highest load under which a condition holds: its variable, its start, and its length.

use std::time::Duration;

use super::schedule::{Rate, Stage};
use super::{Condition, Load, Plan, Stop};

/// A search: a series of runs of one plan under different loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The plan shared by all runs.
    pub plan: Plan,
    /// The condition that must hold for a load to count as reached.
    pub objective: Condition,
    /// The quantity that the search varies.
    pub over: SearchVariable,
    /// Time limit of the whole search.
    pub budget: Duration,
    /// The first load to try, in the unit given at [`SearchVariable`]; `None`: the load that a short closed loop
    /// reaches.
    pub first: Option<u64>,
    /// The highest load to try, in the same unit.
    pub most: u64,
}

/// The quantity that a search varies, and the unit of its loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchVariable {
    /// The rate. A load is the number of requests per minute.
    Rate,
    /// The connections of a closed loop. A load is their number.
    Connections,
    /// The threads of a closed loop. A load is their number.
    Threads,
}

/// Rate above which sends are gathered, in requests per second ...
const GATHERED_ABOVE: f64 = 10_000.0;
/// ... in slices of this length. Sent one by one, they would use so much processor time that onrush would be the limit.
const SLICE: Duration = Duration::from_micros(200);

impl Search {
    /// The run under a load, measured for `length`. After that, the schedule of a search for a rate goes on, uncounted,
    /// until the outcome of all due requests is known. Without a percentile in the objective, the run sends only the
    /// requests due within `length`, and waits up to `drain` for their responses.
    pub fn run_under_load(&self, load: u64, length: Duration, drain: Duration) -> Plan {
        let mut plan = self.plan.clone();
        let threads = plan.load.threads;
        plan.stop = Stop { duration: Some(length), requests: None };
        match self.over {
            SearchVariable::Rate => {
                plan.run_on = plan.needed_run_on([&self.objective]);
                if plan.run_on.is_zero() {
                    // The run ends with its last request: nothing due later is sent, and responses to requests in
                    // flight are awaited.
                    let requests = u128::from(load) * length.as_millis() / (1_000 * u128::from(PER_SECOND));
                    plan.stop = Stop { duration: Some(length + drain), requests: u64::try_from(requests).ok() };
                }
                if let Some(schedule) = &mut plan.schedule {
                    schedule.stages = vec![Stage::open_ended(Rate::from_per_minute(load).unwrap_or_default())];
                    schedule.send_slice = schedule.send_slice.or(self.is_gathered(load).then_some(SLICE));
                }
            }
            SearchVariable::Connections => plan.load = Load::new(threads.min(load as u32), load as u32),
            SearchVariable::Threads => plan.load = Load::new(load as u32, plan.load.connections),
        }
        plan
    }

    /// A closed loop of this length without a warm-up, with the initial threads and connections of the search.
    pub fn initial_closed_loop(&self, length: Duration) -> Plan {
        let Load { threads, connections, .. } = self.plan.load;
        let load = match (self.over, self.first) {
            (SearchVariable::Threads, Some(threads)) => Load::new(threads as u32, connections),
            _ => Load::new(threads, connections),
        };
        let stop = Stop { duration: Some(length), requests: None };
        Plan { load, schedule: None, stop, warmup: Duration::ZERO, ..self.plan.clone() }
    }

    /// True if the search, not the user, gathers the sends of this load in slices.
    pub fn is_gathered(&self, load: u64) -> bool {
        let typed = self.plan.schedule.as_ref().is_some_and(|schedule| schedule.send_slice.is_some());
        self.over == SearchVariable::Rate && self.over.load_for_users(load) > GATHERED_ABOVE && !typed
    }
}

impl SearchVariable {
    /// All variables with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Rate, "rate"), (Self::Connections, "connections"), (Self::Threads, "threads")];

    /// The variable's name, as typed after `--over`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Connections => "connections",
            Self::Threads => "threads",
        }
    }

    /// The lowest load that can be tried.
    pub fn lowest_load(self) -> u64 {
        match self {
            Self::Rate => PER_SECOND,
            Self::Connections | Self::Threads => 1,
        }
    }

    /// A load in the unit shown to users: requests per second, connections, threads.
    pub fn load_for_users(self, load: u64) -> f64 {
        match self {
            Self::Rate => load as f64 / PER_SECOND as f64,
            Self::Connections | Self::Threads => load as f64,
        }
    }

    /// The load nearest to a number in users' units: rates are rounded to three or four digits.
    pub fn load_from_number(self, number: f64) -> u64 {
        match self {
            Self::Rate => {
                let digit = 10f64.powi((number.max(1.0).log10().floor() as i32 - 3).max(-1));
                ((number / digit).round() * digit * PER_SECOND as f64).round() as u64
            }
            Self::Connections | Self::Threads => number.round() as u64,
        }
    }
}

/// Units of load in one request per second: rates are whole numbers per minute.
const PER_SECOND: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;
    use crate::fixtures;

    fn search(over: SearchVariable) -> Search {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 10, 2, 10);
        plan.schedule = (over == SearchVariable::Rate).then(|| fixtures::schedule(1));
        let objective = Condition { terms: Vec::new() };
        Search { plan, objective, over, budget: Duration::from_secs(60), first: Some(4), most: 10 }
    }

    #[test]
    fn high_rates_are_sent_in_slices() {
        let (search, length, drain) =
            (search(SearchVariable::Rate), Duration::from_millis(2_500), Duration::from_secs(6));
        for (per_s, requests, slice) in [(500, 1_250, None), (10_000, 25_000, None), (50_000, 125_000, Some(SLICE))] {
            let plan = search.run_under_load(per_s * PER_SECOND, length, drain);
            let schedule = plan.schedule.unwrap();
            assert_eq!(schedule.stages, [Stage::open_ended(Rate::from_per_second(per_s).unwrap())]);
            assert_eq!(plan.stop, Stop { duration: Some(length + drain), requests: Some(requests) });
            assert_eq!(schedule.send_slice, slice, "{per_s}/s");
        }
        let mut typed = search;
        let slice = Some(Duration::from_millis(1));
        typed.plan.schedule.as_mut().unwrap().send_slice = slice;
        let plan = typed.run_under_load(50_000 * PER_SECOND, length, drain);
        assert_eq!((plan.schedule.unwrap().send_slice, typed.is_gathered(50_000 * PER_SECOND)), (slice, false));
    }

    #[test]
    fn closed_loop_loads_set_connections_or_threads() {
        let second = Duration::from_secs(1);
        let run = |over, load| search(over).run_under_load(load, second, second);
        assert_eq!(run(SearchVariable::Connections, 1).load, Load::new(1, 1));
        assert_eq!(run(SearchVariable::Connections, 7).load, Load::new(2, 7));
        assert_eq!(run(SearchVariable::Threads, 3).load, Load::new(3, 10));
        assert_eq!(run(SearchVariable::Threads, 3).stop, Stop { duration: Some(second), requests: None });
        assert_eq!(search(SearchVariable::Threads).initial_closed_loop(second).load, Load::new(4, 10));
        let first = search(SearchVariable::Rate).initial_closed_loop(second);
        assert_eq!((first.load, first.schedule), (Load::new(2, 10), None));
    }

    #[test]
    fn rates_are_rounded_to_four_digits() {
        for (number, load) in
            [(1.0, 1.0), (1.26, 1.3), (99.96, 100.0), (512.34, 512.3), (2_951.4, 2_951.0), (49_876.0, 49_880.0)]
        {
            let got = SearchVariable::Rate.load_from_number(number);
            assert_eq!(SearchVariable::Rate.load_for_users(got), load, "{number}");
        }
        assert_eq!(
            (SearchVariable::Connections.load_from_number(7.6), SearchVariable::Threads.load_for_users(3)),
            (8, 3.0)
        );
    }
}
