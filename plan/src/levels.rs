//! The number of connections over time: plain data, and a pure function of it.
//!
//! As with a schedule, the stages describe the whole run, however many threads and machines take part: connection k
//! belongs to part k mod n of n. No clock is read: times count from the planned start of measuring.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::limits::{CONNECTIONS_MAX, TIME_MAX};
use super::part::Partition;

/// The number of connections over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionLevels {
    /// The stages in order, at least one. The warm-up uses the initial number of the first stage. After the last stage,
    /// its final number remains.
    pub stages: Vec<ConnectionLevel>,
    /// The part of the connections opened here.
    pub part: Partition,
}

/// A stage in which the number of connections is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionLevel {
    /// The length of the stage, not zero.
    pub length: Duration,
    /// Number of connections at the beginning.
    pub from: u32,
    /// Number of connections at the end.
    pub to: u32,
}

impl ConnectionLevels {
    /// The planned number of connections here, this many nanoseconds after the planned start of measuring, and the time
    /// at which it may change next; [`u64::MAX`]: never.
    pub fn connections_at(&self, since_ns: u64) -> (u32, u64) {
        let mut begin_ns = 0;
        for stage in &self.stages {
            let end_ns = begin_ns + stage.length_ns();
            if since_ns < end_ns {
                let here = self.part_of_total(stage.connections_at(since_ns - begin_ns));
                let change_ns =
                    self.next_total(here, *stage).map_or(end_ns, |total| begin_ns + stage.time_of_total_ns(total));
                return (here, change_ns.min(end_ns));
            }
            begin_ns = end_ns;
        }
        (self.part_of_total(self.stages.last().map_or(0, |last| last.to)), u64::MAX)
    }

    /// The planned number of connections of the whole run at two times of one stage, counted from the planned start of
    /// measuring.
    pub fn connections_between(&self, from: Duration, until: Duration) -> (u32, u32) {
        let mut begin = Duration::ZERO;
        for stage in &self.stages {
            let end = begin + stage.length;
            if from < end {
                let at = |time: Duration| stage.connections_at((time.min(end) - begin).as_nanos() as u64);
                return (at(from), at(until));
            }
            begin = end;
        }
        let last = self.stages.last().map_or(0, |last| last.to);
        (last, last)
    }

    /// The largest number of connections such that at least as many are planned for `least_ns` nanoseconds without a
    /// break, before `until_ns` nanoseconds after the planned start of measuring.
    pub fn most_held_for(&self, least_ns: u64, until_ns: u64) -> u32 {
        let (mut most, mut beyond) = (0, self.most_in_whole_run() + 1);
        while beyond - most > 1 {
            let middle = most + (beyond - most) / 2;
            *(if self.longest_with_ns(middle, until_ns) >= least_ns { &mut most } else { &mut beyond }) = middle;
        }
        self.part_of_total(most)
    }

    /// The longest time without a break, in nanoseconds, for which at least `total` connections are planned in the
    /// whole run, before `until_ns`.
    fn longest_with_ns(&self, total: u32, until_ns: u64) -> u64 {
        let mut begin_ns = 0;
        let mut since_ns = 0;
        let mut longest_ns = 0;
        for stage in &self.stages {
            let end_ns = begin_ns + stage.length_ns();
            // A stage contains at most one such time, which may continue from the previous stage.
            since_ns = if stage.from >= total { since_ns } else { begin_ns + stage.first_time_with_ns(total) };
            let last_ns = if stage.to >= total { end_ns } else { begin_ns + stage.first_time_below_ns(total) };
            longest_ns = longest_ns.max(last_ns.min(until_ns).saturating_sub(since_ns));
            since_ns = if last_ns == end_ns { since_ns } else { end_ns };
            begin_ns = end_ns;
        }
        longest_ns
    }

    /// Total time, between two moments, for which no connections are planned here; all in nanoseconds after the planned
    /// start of measuring.
    pub fn time_without_connections_ns(&self, from_ns: u64, until_ns: u64) -> u64 {
        self.times_without_connections(from_ns, until_ns)
            .into_iter()
            .map(|(from_ns, until_ns)| until_ns - from_ns)
            .sum()
    }

    /// The periods between two moments in which no connections are planned here: start and end of each, in nanoseconds
    /// after the planned start of measuring, in order.
    pub fn times_without_connections(&self, from_ns: u64, until_ns: u64) -> Vec<(u64, u64)> {
        let (mut at_ns, mut empty) = (from_ns, Vec::new());
        while at_ns < until_ns {
            let (here, change_ns) = self.connections_at(at_ns);
            let next_ns = change_ns.min(until_ns);
            empty.extend((here == 0).then_some((at_ns, next_ns)));
            at_ns = next_ns;
        }
        empty
    }

    /// The share of one of several machines or threads.
    pub fn share(&self, index: u32, parts: u32) -> Self {
        Self { part: self.part.part_of_part(Partition::new(index, parts)), stages: self.stages.clone() }
    }

    /// The length of all stages together.
    pub fn length(&self) -> Duration {
        self.stages.iter().map(|stage| stage.length).sum()
    }

    /// The largest planned number of connections here.
    pub fn most_here(&self) -> u32 {
        self.part_of_total(self.most_in_whole_run())
    }

    /// The contradiction in stages read from a plan, if there is one.
    pub fn contradiction(&self) -> Option<&'static str> {
        let most = self.most_in_whole_run();
        if most == 0 || u64::from(most) > CONNECTIONS_MAX {
            return Some("the stages have no connections, or too many");
        }
        if self.stages.iter().any(|stage| stage.length.is_zero()) {
            return Some("a stage of connections has no length");
        }
        let total = self.stages.iter().try_fold(Duration::ZERO, |sum, stage| sum.checked_add(stage.length));
        if total.is_none_or(|total| total > TIME_MAX) {
            return Some("the stages of connections are too long");
        }
        self.part.contradiction()
    }

    /// The largest planned number of connections of the whole run.
    fn most_in_whole_run(&self) -> u32 {
        self.stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or(0)
    }

    /// The number of connections opened here out of `total` in the whole run.
    fn part_of_total(&self, total: u32) -> u32 {
        let Partition { index, of } = self.part;
        ((u64::from(total) + of - 1 - index) / of) as u32
    }

    /// The next total in a stage at which the number here differs from `here`.
    fn next_total(&self, here: u32, stage: ConnectionLevel) -> Option<u32> {
        let Partition { index, of } = self.part;
        let total = match stage.from < stage.to {
            true => (u64::from(here) * of + index + 1).min(u64::from(u32::MAX)) as u32,
            false => {
                u64::from(here.checked_sub(1)?).saturating_mul(of).saturating_add(index).min(u64::from(u32::MAX)) as u32
            }
        };
        (stage.from.min(stage.to)..=stage.from.max(stage.to)).contains(&total).then_some(total)
    }
}

impl ConnectionLevel {
    fn length_ns(&self) -> u64 {
        self.length.as_nanos() as u64
    }

    /// Number of connections this many nanoseconds after the beginning of the stage: linear, rounded to a whole number.
    fn connections_at(&self, at_ns: u64) -> u32 {
        let (length_ns, change) = (u128::from(self.length_ns()), u128::from(self.from.abs_diff(self.to)));
        let changed = ((2 * change * u128::from(at_ns) + length_ns) / (2 * length_ns)) as u32;
        if self.from < self.to { self.from + changed } else { self.from - changed }
    }

    /// Time at which a stage that begins with fewer connections first has at least `total`; the end of the stage if it
    /// never does.
    fn first_time_with_ns(&self, total: u32) -> u64 {
        if self.to < total { self.length_ns() } else { self.time_of_total_ns(total) }
    }

    /// Time at which a stage that ends with fewer connections than `total` first has fewer.
    fn first_time_below_ns(&self, total: u32) -> u64 {
        if self.from < total { 0 } else { self.time_of_total_ns(total - 1) }
    }

    /// Time at which the stage reaches `total`, a number between those at its ends, in nanoseconds after its beginning.
    fn time_of_total_ns(&self, total: u32) -> u64 {
        let (length_ns, change) = (u128::from(self.length_ns()), u128::from(self.from.abs_diff(self.to)));
        let changed = u128::from(self.from.abs_diff(total));
        if changed == 0 { 0 } else { ((2 * changed - 1) * length_ns).div_ceil(2 * change) as u64 }
    }
}

#[cfg(test)]
mod tests;
