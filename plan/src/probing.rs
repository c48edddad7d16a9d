//! The probe that may follow a closed loop.

use std::time::Duration;

use super::Plan;

/// A probe after a run, which finds out what limited it by another number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Whether that is half as many more, instead of a quarter fewer.
    pub up: bool,
    /// The longest it may take.
    pub time: Duration,
}

impl Probing {
    /// Why no probe can follow the run of a plan.
    pub fn obstacle(plan: &Plan) -> Option<&'static str> {
        let obstacles = [
            (plan.once, "--once sends a single request"),
            (plan.dialect.is_compat(), "the tool that is imitated has no such probe"),
            (plan.schedule.is_some(), "with a rate, what is due and what has ended tells whether the target kept up"),
            (plan.levels.is_some(), "stages vary the connections already"),
            (plan.script.is_some(), "the requests of a script would have to begin again"),
            (plan.requests_per_connection.is_some(), "connections that are replaced cannot wait"),
        ];
        obstacles.into_iter().find_map(|(is_there, why)| is_there.then_some(why))
    }

    /// The other number of requests in flight after a run with `connections`; `None`: there is none.
    pub fn other(&self, connections: u32) -> Option<u32> {
        let other =
            if self.up { connections + connections.div_ceil(2) } else { connections / 4 * 3 + connections % 4 * 3 / 4 };
        (other > 0 && other != connections).then_some(other)
    }
}
