//! The probe that may follow a closed loop.

use std::time::Duration;

use super::Plan;

/// A probe after a run: finds the run's limit with a different number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// True to try half as many more requests in flight, instead of half as many.
    pub up: bool,
    /// Longest time that the probe may take.
    pub time: Duration,
}

impl Probing {
    /// The reason why no probe can follow the run of a plan; `None` if one can.
    pub fn reason_against(plan: &Plan) -> Option<&'static str> {
        let obstacles = [
            (plan.once, "--once sends a single request"),
            (plan.schedule.is_some(), "with a rate, due and completed requests tell whether the target kept up"),
            (plan.levels.is_some(), "stages vary the connections already"),
            (plan.requests_per_connection.is_some(), "connections that are replaced cannot wait"),
        ];
        obstacles.into_iter().find_map(|(is_there, why)| is_there.then_some(why))
    }

    /// True if the probe needs more connections than the plan's run had, which only a separate run can open. With a
    /// single request in flight, no smaller number can be tried.
    pub fn needs_more_connections(&self, in_flight: u32) -> bool {
        self.up || in_flight == 1
    }

    /// The number of requests in flight that the probe tries after a run with `in_flight`: half as many, or half as
    /// many more.
    pub fn other_in_flight(&self, in_flight: u32) -> u32 {
        if self.needs_more_connections(in_flight) {
            in_flight.saturating_add(in_flight.div_ceil(2))
        } else {
            in_flight / 2
        }
    }

    /// True if the workers of a plan must stay after its run because a probe will go on with their connections.
    pub fn keeps_workers(plan: &Plan) -> bool {
        let probing = plan.output.probing.filter(|_| Self::reason_against(plan).is_none());
        probing.is_some_and(|probing| !probing.needs_more_connections(plan.in_flight_max()))
    }
}
