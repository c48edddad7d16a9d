//! Decides the course of a probe tick by tick: how many requests are in flight, for how long, and what follows from the
//! counts. Reads no clock and sends nothing.
//!
//! Side A of the comparison is the last part of the run, side B the probe. A run too short for a comparison is repeated
//! first, for half of the probe.
//!
//! 1. Half as many requests in flight as in the run. Surplus requests are answered first. This part is not counted:
//!    with constant service times, responses keep the old rate until the last surplus request is answered.
//! 2. Up to four looks at the elasticity. The first decisive look ends the phase.
//! 3. If halving the requests in flight halved the rate, three quarters, if time permits. With 24 workers and 27 in
//!    flight, the rate is nearly proportional between half and all, although more requests in flight would gain
//!    nothing.
//! 4. All requests again, briefly, to see whether the target has changed in the meantime.
//!
//! The length follows from the rate of the run and its variation. If even the longest probe could not decide, nothing
//! is sent.

use crate::run::Elasticity;

use super::rate::{BATCHES_MIN, Bursts, LOOKS, MeasuredRate, elasticity, half_width, has_drifted};

const FOLLOWS: f64 = Elasticity::FOLLOWS;
const STAYS: f64 = Elasticity::STAYS;
/// Share of a probe reserved for the final check.
const CHECK: f64 = 1.0 / 12.0;
/// The check takes this fraction of the elapsed probe ...
const CHECK_PART: u64 = 4;
/// ... but at least and at most this many ticks.
const CHECK_MIN: u64 = BATCHES_MIN as u64;
const CHECK_MAX: u64 = 40;
/// An interval is close to a limit if it extends beyond it by no more than this.
const NEAR: f64 = 0.2;
/// Minimum number of ticks before the first look.
const FIRST: f64 = 8.0;

/// The run that a probe follows, and what the probe may do.
#[derive(Clone, Copy, Debug)]
pub struct BaselineRun {
    /// Requests in flight and rate in the last part of the run.
    pub run: MeasuredRate,
    /// Number of requests in flight during the probe.
    pub other: u32,
    /// Maximum length of the probe, in ticks.
    pub ticks: u64,
}

impl BaselineRun {
    /// Bursts to be expected with the other number of requests in flight.
    fn bursts(&self) -> Bursts {
        self.run.bursts_with(self.other, self.other.saturating_sub(self.run.in_flight))
    }
}

/// Work done by the workers up to the end of a tick.
pub struct TickCounts<'a> {
    /// The current tick, counted from an arbitrary origin.
    pub tick: u64,
    /// Number of requests in flight.
    pub in_flight: u64,
    /// Returns the responses in each completed tick from the given tick on.
    pub ticks: &'a dyn Fn(u64) -> &'a [f64],
}

/// Next step of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// Continue as before.
    Wait,
    /// Limit the requests in flight to this number.
    Limit(u32),
    /// Stop the probe.
    End,
}

/// Too little time for an answer. Holds the number of ticks that would be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unaffordable(pub u64);

/// State of a probe.
#[derive(Clone, Debug)]
enum CourseState {
    /// The requests in flight are decreasing, or rates are settling until this tick.
    Settling {
        in_flight: u32,
        until: u64,
    },
    /// Repeats the load of the run, from this tick on, for this many ticks.
    Repeating {
        from: u64,
        ticks: u64,
    },
    /// Responses count from this tick on. `looks` holds the remaining looks in ticks, the next one last.
    Counting {
        in_flight: u32,
        from: u64,
        looks: Vec<u64>,
    },
    /// The final check.
    Checking {
        from: u64,
        ticks: u64,
    },
    Over,
}

/// The course of a probe so far, and its next step.
#[derive(Clone, Debug)]
pub struct ProbeCourse {
    base: BaselineRun,
    /// Ticks for which the load of the run is to be repeated; `None` once the repetition has started.
    repeats: Option<u64>,
    /// Rate of the run, if the run was repeated.
    before: Option<MeasuredRate>,
    /// Tick by which the probe ends at the latest.
    end: u64,
    state: CourseState,
    /// Rates with other numbers of requests in flight, in order of measurement, each with its elasticity relative to
    /// the run.
    pub rates: Vec<(MeasuredRate, Elasticity)>,
    /// The ticks over which the rates were measured, including a repetition of the run.
    pub windows: Vec<ProbeWindow>,
    /// Rate of the final check, which repeats the load of the run.
    pub check: Option<MeasuredRate>,
}

/// A period with one number of requests in flight.
#[derive(Clone, Copy, Debug)]
pub struct ProbeWindow {
    /// Number of requests in flight.
    pub in_flight: u32,
    /// The first tick.
    pub from: u64,
    /// Number of ticks.
    pub ticks: u64,
}

impl ProbeCourse {
    /// Starts a course at this tick, with `in_flight` requests in flight.
    ///
    /// # Errors
    ///
    /// Fails with [`Unaffordable`] if the time budget is too short for an answer.
    pub fn start(base: BaselineRun, tick: u64, in_flight: u64) -> Result<Self, Unaffordable> {
        let fits = |ticks: u64, surely: f64| {
            let repeats = repetition_ticks(&base, ticks);
            let fit = |(base, ticks): (BaselineRun, u64)| can_decide(&base, ticks, surely);
            if fit((base, ticks)) {
                Some(None)
            } else {
                fit(expected_repetition(&base, ticks, repeats)).then_some(Some(repeats))
            }
        };
        let Some(repeats) = fits(base.ticks, 0.0) else {
            let mut needed = base.ticks.max(1);
            // Advise a length with which a probe most likely decides.
            while fits(needed, 1.0).is_none() && needed < u64::from(u32::MAX) {
                needed += needed.div_ceil(20);
            }
            return Err(Unaffordable(needed));
        };
        let end = tick + base.ticks;
        let mut course = Self {
            base,
            repeats,
            before: None,
            end,
            state: CourseState::Over,
            rates: Vec::new(),
            windows: Vec::new(),
            check: None,
        };
        course.state = course.settling_state(course.initial_in_flight(), tick, in_flight);
        Ok(course)
    }

    /// Number of requests in flight with which the probe starts.
    pub fn initial_in_flight(&self) -> u32 {
        if self.repeats.is_some() { self.base.run.in_flight } else { self.base.other }
    }

    fn settling_state(&self, in_flight: u32, tick: u64, now: u64) -> CourseState {
        // With constant service times, requests sent at once are answered at once.
        let settles = if now < in_flight.into() { self.base.run.cycle().ceil() as u64 } else { 0 };
        CourseState::Settling { in_flight, until: tick + settles }
    }

    /// Decides the next step after each tick. Until the first call, [`ProbeCourse::initial_in_flight`] applies.
    pub fn next_step(&mut self, look: &TickCounts<'_>) -> ProbeStep {
        match &mut self.state {
            CourseState::Settling { in_flight, until } => {
                let in_flight = *in_flight;
                if look.in_flight > u64::from(in_flight) || look.tick < *until {
                    let is_late = look.tick + CHECK_MIN >= self.end;
                    return if is_late { self.finish() } else { ProbeStep::Wait };
                }
                let from = look.tick + 1;
                if let Some(ticks) = self.repeats.take() {
                    self.state = CourseState::Repeating { from, ticks };
                    return ProbeStep::Wait;
                }
                let Some(looks) = self.look_schedule(in_flight, from) else { return self.start_check(look.tick) };
                self.state = CourseState::Counting { in_flight, from, looks };
                ProbeStep::Wait
            }
            CourseState::Repeating { from, ticks } => {
                let seen = (look.ticks)(*from);
                if seen.len() < *ticks as usize && look.tick < self.end {
                    return ProbeStep::Wait;
                }
                let in_flight = self.base.run.in_flight;
                let Some(run) = MeasuredRate::from_end_of_run(seen, in_flight) else { return self.finish() };
                let from = *from + (seen.len() - run.ticks) as u64;
                self.windows.push(ProbeWindow { in_flight, from, ticks: run.ticks as u64 });
                self.before = Some(std::mem::replace(&mut self.base.run, run));
                if self.has_drifted() {
                    return self.finish();
                }
                self.state = self.settling_state(self.base.other, look.tick, in_flight.into());
                ProbeStep::Limit(self.base.other)
            }
            CourseState::Counting { in_flight, from, looks } => {
                let ticks = (look.ticks)(*from);
                let Some(next) = looks.last().copied().filter(|&next| ticks.len() as u64 >= next) else {
                    // A worker that reports nothing delays the probe no longer than this.
                    return if look.tick >= self.end { self.finish() } else { ProbeStep::Wait };
                };
                looks.pop();
                let (in_flight, from, left) = (*in_flight, *from, looks.len());
                let rate = MeasuredRate::from_ticks(&ticks[..next as usize], in_flight, self.bursts(in_flight));
                let Some(rate) = rate.map(|rate| rate.with_minimum_dispersion(&self.base.run)) else {
                    return if left == 0 { self.start_check(look.tick) } else { ProbeStep::Wait };
                };
                let elasticity = elasticity(&self.base.run, &rate, LOOKS - 1 - left);
                if left == 0 || is_decisive(&elasticity) || self.needs_closer_window(&elasticity, look.tick) {
                    let window = ProbeWindow { in_flight, from, ticks: next };
                    self.rates.push((rate, elasticity));
                    self.windows.push(window);
                    let is_clear = is_decisive(&elasticity) && elasticity.low <= FOLLOWS;
                    return if is_clear { self.start_check(look.tick) } else { self.start_closer_window(look.tick) };
                }
                ProbeStep::Wait
            }
            CourseState::Checking { from, ticks } => {
                let seen = (look.ticks)(*from);
                if seen.len() < *ticks as usize && look.tick < self.end {
                    return ProbeStep::Wait;
                }
                let in_flight = self.base.run.in_flight;
                self.check = MeasuredRate::from_ticks(seen, in_flight, self.bursts(in_flight));
                self.finish()
            }
            CourseState::Over => ProbeStep::End,
        }
    }

    /// Returns an earlier and a later rate with all requests in flight if the two differ by a fifth, and by more than
    /// chance.
    pub fn drifted_rates(&self) -> Option<[MeasuredRate; 2]> {
        let run = self.base.run;
        let pairs = [self.before.map(|before| [before, run]), self.check.map(|check| [run, check])];
        pairs.into_iter().flatten().find(|[before, later]| has_drifted(before, later))
    }

    /// True if the rate of the target has drifted, see [`Self::drifted_rates`].
    pub fn has_drifted(&self) -> bool {
        self.drifted_rates().is_some()
    }

    /// The last decisive comparison, whose numbers of requests in flight are closest; if none is decisive, the first
    /// comparison.
    pub fn result(&self) -> Option<(MeasuredRate, Elasticity)> {
        let decided = self.rates.iter().rev().find(|(_, elasticity)| is_decisive(elasticity));
        decided.or(self.rates.first()).copied()
    }

    fn finish(&mut self) -> ProbeStep {
        self.state = CourseState::Over;
        ProbeStep::End
    }

    /// Continues with three quarters in flight, if time permits.
    fn start_closer_window(&mut self, tick: u64) -> ProbeStep {
        let Some(closer) = self.closer_in_flight() else { return self.start_check(tick) };
        let until = tick + self.settling_ticks();
        if self.look_schedule(closer, until + 1).is_none() {
            return self.start_check(tick);
        }
        self.state = CourseState::Settling { in_flight: closer, until };
        ProbeStep::Limit(closer)
    }

    /// Three quarters of the requests in flight, once.
    fn closer_in_flight(&self) -> Option<u32> {
        let all = self.base.run.in_flight;
        let closer = all - all / 4;
        (self.rates.len() == 1 && self.base.other < closer && closer < all).then_some(closer)
    }

    /// True if the elasticity is so close to a limit that three quarters in flight reveal more, and time permits.
    fn needs_closer_window(&self, elasticity: &Elasticity, tick: u64) -> bool {
        let &Elasticity { value, low, high } = elasticity;
        let is_close = |limit: f64| low < limit && limit < high && (value - limit).abs() < (high - low) / 4.0;
        let is_between = low > STAYS - NEAR && high < FOLLOWS + NEAR;
        let all = self.base.run.in_flight;
        let closer = all - all / 4;
        let may = self.rates.is_empty() && self.base.other < closer && closer < all;
        let until = tick + (f64::from(self.base.other) / self.base.run.per_tick).ceil() as u64;
        may && is_between && (is_close(STAYS) || is_close(FOLLOWS)) && self.look_schedule(closer, until + 1).is_some()
    }

    /// Starts the final check.
    fn start_check(&mut self, tick: u64) -> ProbeStep {
        let from = tick + 1 + self.settling_ticks();
        let passed = self.base.ticks - self.end.saturating_sub(tick);
        let ticks = self.end.saturating_sub(from).min((passed / CHECK_PART).clamp(CHECK_MIN, CHECK_MAX));
        if ticks < CHECK_MIN {
            return self.finish();
        }
        self.state = CourseState::Checking { from, ticks };
        ProbeStep::Limit(self.base.run.in_flight)
    }

    /// Ticks until the rate has followed an increase of the requests in flight: one cycle of the previous window. Zero
    /// if the rate does not follow.
    fn settling_ticks(&self) -> u64 {
        let settles = |(rate, elasticity): &(MeasuredRate, Elasticity)| {
            if elasticity.high < STAYS { 0 } else { rate.cycle().ceil() as u64 }
        };
        self.rates.last().map_or(0, settles)
    }

    /// Bursts to be expected once this many requests are in flight.
    fn bursts(&self, in_flight: u32) -> Bursts {
        let before = self.rates.last().map_or(self.base.run.in_flight, |(rate, _)| rate.in_flight);
        self.base.run.bursts_with(in_flight, in_flight.saturating_sub(before))
    }

    /// Schedule of looks, in ticks, the first look last. `None` if there is too little time.
    fn look_schedule(&self, in_flight: u32, from: u64) -> Option<Vec<u64>> {
        let bursts = self.bursts(in_flight);
        let left = self.end.saturating_sub(from + check_ticks(self.base.ticks)) as f64;
        let left = bursts.whole_cycles(left);
        let half_width =
            |ticks: f64, look: usize, more: f64| expected_half_width(&self.base, in_flight, bursts, ticks, look, more);
        if left < FIRST || half_width(left, LOOKS - 1, 0.0) >= STAYS {
            return None;
        }
        let mut sure = FIRST;
        while sure < left && half_width(sure, 0, 0.0) >= STAYS {
            sure *= 1.1;
        }
        // Short windows may vary more than the run suggests: the looks in between are evenly spaced, up to a factor of
        // two.
        let factor = (left / sure.min(left)).powf(1.0 / (LOOKS - 1) as f64).min(2.0);
        let looks = (0..LOOKS - 1).map(|look| sure * factor.powi(look as i32)).chain([left]);
        let whole = |look: f64| bursts.whole_cycles(look.clamp(FIRST, left)).max(FIRST).round() as u64;
        let mut looks: Vec<u64> = looks.map(whole).collect();
        looks.dedup();
        looks.reverse();
        Some(looks)
    }
}

/// True if the interval contains neither limit: the rate follows, does not follow, or lies clearly in between.
pub fn is_decisive(elasticity: &Elasticity) -> bool {
    let &Elasticity { low, high, .. } = elasticity;
    low > FOLLOWS || high < STAYS || low > STAYS && high < FOLLOWS
}

/// True if a probe of this length can decide after this run, with `surely` additional standard errors.
fn can_decide(base: &BaselineRun, ticks: u64, surely: f64) -> bool {
    let bursts = base.bursts();
    let left = ticks.saturating_sub(check_ticks(ticks) + drain_ticks(base, base.other)) as f64;
    let left = bursts.whole_cycles(left);
    left >= FIRST && expected_half_width(base, base.other, bursts, left, LOOKS - 1, surely) < STAYS
}

/// Number of ticks for which the run is repeated: half of the counted ticks.
fn repetition_ticks(base: &BaselineRun, ticks: u64) -> u64 {
    let left = ticks.saturating_sub(check_ticks(ticks) + drain_ticks(base, base.other));
    base.run.bursts.whole_cycles(left as f64 / 2.0).round() as u64
}

/// The expected repeated run, and the remaining ticks.
fn expected_repetition(base: &BaselineRun, ticks: u64, repeats: u64) -> (BaselineRun, u64) {
    let MeasuredRate { in_flight, per_tick, bursts, .. } = base.run;
    let run = base.run.with_capped_dispersion().expected_in_window(in_flight, per_tick, repeats as f64, bursts);
    (BaselineRun { run, ..*base }, ticks - repeats)
}

/// Expected half-width of the interval at a look if the rate does not follow the requests in flight, with `more`
/// additional standard errors.
fn expected_half_width(base: &BaselineRun, in_flight: u32, bursts: Bursts, ticks: f64, look: usize, more: f64) -> f64 {
    let other = base.run.expected_in_window(in_flight, base.run.per_tick, ticks, bursts);
    half_width(&base.run, &other, look, more)
}

/// Number of ticks until `other` requests are in flight. To reduce them, every connection is answered once, and every
/// second one sends again at once. To increase them, the additional requests are sent.
fn drain_ticks(base: &BaselineRun, other: u32) -> u64 {
    let MeasuredRate { in_flight, per_tick, .. } = base.run;
    let answered = if other < in_flight { in_flight } else { other - in_flight };
    (f64::from(answered) / per_tick).ceil().min(1e9) as u64
}

/// Ticks of the final check in a probe of this length.
fn check_ticks(ticks: u64) -> u64 {
    ((ticks as f64 * CHECK) as u64).clamp(CHECK_MIN, CHECK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_workers_do_not_block_the_probe() {
        let run = MeasuredRate::from_ticks(&[10.0; 400], 8, Bursts { cycle: 0.8, size: 8.0 }).unwrap();
        let mut course = ProbeCourse::start(BaselineRun { run, other: 4, ticks: 200 }, 1_000, 8).unwrap();
        for tick in 1_001..1_200 {
            let order = course.next_step(&TickCounts { tick, in_flight: 4, ticks: &|_| &[] });
            assert_eq!(order, ProbeStep::Wait, "{tick}");
        }
        assert_eq!(course.next_step(&TickCounts { tick: 1_200, in_flight: 4, ticks: &|_| &[] }), ProbeStep::End);
        assert!(course.result().is_none());
    }

    #[test]
    fn too_little_time_names_the_time_needed() {
        // Two per tick on average, with the variance of a Poisson process.
        let mut random = onrush_plan::Random::new(1);
        let counts: Vec<f64> = (0..400).map(|_| random.below(6) as f64 * 0.8).collect();
        let bursts = Bursts { cycle: 4.0, size: 8.0 };
        let run = MeasuredRate::from_ticks(&counts, 8, bursts).unwrap();
        let begin = |ticks| ProbeCourse::start(BaselineRun { run, other: 4, ticks }, 0, 8).map(|_| ());
        let Err(Unaffordable(needed)) = begin(20) else { panic!("20 ticks are too short") };
        assert!((100..1_000).contains(&needed), "{needed}");
        assert_eq!(begin(needed), Ok(()));
        let few = MeasuredRate::from_ticks(&counts[..20], 8, bursts).unwrap();
        let course = ProbeCourse::start(BaselineRun { run: few, other: 4, ticks: 1_000 }, 0, 8).unwrap();
        assert_eq!(course.initial_in_flight(), 8, "a run of few responses is repeated");
    }
}
