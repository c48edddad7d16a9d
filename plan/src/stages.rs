//! The stages of a run: the times between which its rate, or its number of connections, changes in one way.

use std::time::Duration;

use super::Plan;

/// A stage of a run, which has its own row in results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunStage {
    /// When it begins, since measuring began.
    pub from: Duration,
    /// When it ends, likewise.
    pub until: Duration,
    /// The requests per second at its beginning and at its end; `None`: there is no rate.
    pub per_s: Option<(f64, f64)>,
    /// The connections at its beginning and at its end; `None`: their number does not follow stages.
    pub connections: Option<(u32, u32)>,
}

/// A span in which something changes evenly, from one value to another.
#[derive(Clone, Copy)]
struct Ramp {
    from: Duration,
    until: Duration,
    values: (f64, f64),
}

impl Ramp {
    /// The value at a time, from its beginning to its end.
    fn at(&self, time: Duration) -> f64 {
        let share = (time - self.from).as_secs_f64() / (self.until - self.from).as_secs_f64();
        self.values.0 + (self.values.1 - self.values.0) * share
    }

    /// The values at the beginning and the end of a stage, if it is part of this.
    fn of(ramps: &[Self], from: Duration, until: Duration) -> Option<(f64, f64)> {
        let ramp = ramps.iter().find(|ramp| ramp.from <= from && until <= ramp.until)?;
        Some((ramp.at(from), ramp.at(until)))
    }
}

impl Plan {
    /// The stages of the run, in order; none if there are fewer than two. Where rate and connections have stages, a new
    /// one begins wherever either does.
    pub fn stages(&self) -> Vec<RunStage> {
        let rates = self.schedule.iter().flat_map(|schedule| &schedule.stages);
        let rates =
            ramps(rates.filter_map(|stage| Some((stage.length?, (stage.from.per_second(), stage.to.per_second())))));
        let levels = self.levels.iter().flat_map(|levels| &levels.stages);
        let levels = ramps(levels.map(|level| (level.length, (f64::from(level.from), f64::from(level.to)))));
        let mut ends: Vec<Duration> = rates.iter().chain(&levels).map(|ramp| ramp.until).collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.len() < 2 {
            return Vec::new();
        }
        let mut from = Duration::ZERO;
        let stages = ends.into_iter().map(|until| RunStage {
            from: std::mem::replace(&mut from, until),
            until,
            per_s: None,
            connections: None,
        });
        let asked = stages.map(|stage| RunStage {
            per_s: Ramp::of(&rates, stage.from, stage.until),
            connections: Ramp::of(&levels, stage.from, stage.until)
                .map(|(from, to)| (from.round() as u32, to.round() as u32)),
            ..stage
        });
        asked.collect()
    }
}

/// Ramps one after the other, each with its length and its values.
fn ramps(stages: impl Iterator<Item = (Duration, (f64, f64))>) -> Vec<Ramp> {
    let mut from = Duration::ZERO;
    let ramps = stages.map(|(length, values)| {
        let until = from.saturating_add(length);
        Ramp { from: std::mem::replace(&mut from, until), until, values }
    });
    ramps.filter(|ramp| ramp.from < ramp.until).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::{Level, Levels};
    use crate::schedule::{Rate, Stage};
    use crate::{Dialect, Part, fixtures};

    #[test]
    fn a_stage_begins_wherever_rate_or_connections_change_their_course() {
        let s = Duration::from_secs;
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 10, 1, 8);
        let mut schedule = fixtures::schedule(1);
        let rate = |per_s| Rate::from_per_second(per_s).unwrap();
        schedule.stages = vec![Stage { length: Some(s(10)), from: rate(100), to: rate(200) }];
        plan.schedule = Some(schedule);
        assert_eq!(plan.stages(), [], "one stage is the run");
        let level = |length, from, to| Level { length: s(length), from, to };
        plan.levels = Some(Levels { stages: vec![level(4, 2, 2), level(6, 2, 8)], part: Part::WHOLE });
        let stage = |from, until, per_s, connections| RunStage { from: s(from), until: s(until), per_s, connections };
        let stages =
            [stage(0, 4, Some((100.0, 140.0)), Some((2, 2))), stage(4, 10, Some((140.0, 200.0)), Some((2, 8)))];
        assert_eq!(plan.stages(), stages);
        plan.schedule = None;
        assert!(plan.stages().iter().all(|stage| stage.per_s.is_none()));
    }
}
