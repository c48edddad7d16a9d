//! The stages of a run: the times between which its rate, or its number of connections, changes in one way.

use std::time::Duration;

use super::Plan;

/// A tenth of a second in nanoseconds. Stages start and end on tenths, because measurements are handed over in tenths.
const TENTH_NS: u128 = 100_000_000;

/// A stage of a run, with a separate row in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStage {
    /// Start of the stage, counted from the start of measuring.
    pub from: Duration,
    /// End of the stage, counted from the start of measuring.
    pub until: Duration,
}

impl Plan {
    /// The stages of the run, in order; empty if there are fewer than two. If both rate and connections have stages, a
    /// new stage begins wherever one of either does. Times are rounded up to tenths of a second; a stage within a
    /// single tenth gets no row.
    pub fn stages(&self) -> Vec<RunStage> {
        let rates = self.schedule.iter().flat_map(|schedule| &schedule.stages);
        let levels = self.levels.iter().flat_map(|levels| &levels.stages);
        let mut ends = stage_ends(rates.filter_map(|stage| stage.length));
        ends.extend(stage_ends(levels.map(|level| level.length)));
        ends.sort_unstable();
        ends.dedup();
        let mut from = Duration::ZERO;
        let stages = ends.into_iter().filter(|until| !until.is_zero());
        let stages: Vec<RunStage> =
            stages.map(|until| RunStage { from: std::mem::replace(&mut from, until), until }).collect();
        if stages.len() < 2 { Vec::new() } else { stages }
    }
}

/// Ends of consecutive stages of these lengths.
fn stage_ends(lengths: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let ends = lengths.scan(Duration::ZERO, |end, length| {
        *end = end.saturating_add(length);
        Some(*end)
    });
    ends.map(|end| Duration::from_millis((end.as_nanos().div_ceil(TENTH_NS) * 100) as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::{ConnectionLevel, ConnectionLevels};
    use crate::schedule::{Rate, Stage};
    use crate::{Dialect, Partition, fixtures};

    #[test]
    fn stages_begin_where_rate_or_connections_change() {
        let ms = Duration::from_millis;
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 10, 1, 8);
        let mut schedule = fixtures::schedule(1);
        let rate = |per_s| Rate::from_per_second(per_s).unwrap();
        schedule.stages = vec![Stage { length: Some(ms(10_000)), from: rate(100), to: rate(200) }];
        plan.schedule = Some(schedule);
        assert_eq!(plan.stages(), [], "one stage is the run");
        let level = |length, from, to| ConnectionLevel { length: ms(length), from, to };
        let levels = |stages| Some(ConnectionLevels { stages, part: Partition::WHOLE });
        plan.levels = levels(vec![level(4_000, 2, 2), level(6_000, 2, 8)]);
        let stage = |from, until| RunStage { from: ms(from), until: ms(until) };
        assert_eq!(plan.stages(), [stage(0, 4_000), stage(4_000, 10_000)]);
        plan.levels = levels(vec![level(3_930, 2, 2), level(20, 2, 8), level(6_050, 8, 8)]);
        assert_eq!(plan.stages(), [stage(0, 4_000), stage(4_000, 10_000)], "20 ms within a tenth of a second");
    }
}
