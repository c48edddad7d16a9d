//! Measures the time of calls into a script without reading the clock twice for each call.

use std::time::Instant;

use onrush_engine::backend::coarse_ns;

/// Number of initial calls that are timed.
const FIRST: u64 = 64;
/// After the initial calls, one call in this many is timed. A prime, to avoid aliasing with periodic scripts.
const TIMED: u64 = 61;
/// A call that takes at least this long on the coarse clock, in nanoseconds, is counted individually, timed or not,
/// because such calls may be rare. At least two ticks of that clock, so that no short call qualifies.
const LONG_NS: u64 = 20_000_000;
/// Maximum number of pending long periods.
const TIMES_MAX: usize = 1024;

/// Estimates the time spent in calls. All initial and long calls are timed; the others are estimated from a sample.
#[derive(Debug, Default)]
pub struct Meter {
    calls: u64,
    /// Time and number of the initial calls, which may be the only ones, and which compile the script.
    first_ns: u64,
    first: u64,
    /// Time and number of the long calls.
    long_ns: u64,
    long: u64,
    /// Time and number of the sampled calls.
    sampled_ns: u64,
    sampled: u64,
    /// Periods inside calls (start, end) on the coarse clock. Each is at least as long as a long call, except perhaps
    /// the last. A call that crosses a tick counts whole ticks, so that calls in close succession form one period.
    times: Vec<(u64, u64)>,
}

/// Start of a call, on the coarse clock and, if the call is timed, on the exact clock.
pub struct CallStart {
    coarse_ns: u64,
    at: Option<Instant>,
}

impl Meter {
    /// Starts a call. Pass the result to [`Self::end_call`]; calls must not be nested.
    pub fn begin_call(&mut self) -> CallStart {
        self.begin_call_at(coarse_ns(), Instant::now)
    }

    /// Ends the call that began with `began`.
    pub fn end_call(&mut self, began: CallStart) {
        self.end_call_at(began, coarse_ns(), Instant::now);
    }

    /// Starts a call; reads the exact clock only if the call is timed.
    fn begin_call_at(&mut self, coarse_ns: u64, exact: impl FnOnce() -> Instant) -> CallStart {
        self.calls += 1;
        let is_timed = self.calls <= FIRST || self.calls.is_multiple_of(TIMED);
        CallStart { coarse_ns, at: is_timed.then(exact) }
    }

    fn end_call_at(&mut self, began: CallStart, coarse_ns: u64, exact: impl FnOnce() -> Instant) {
        if coarse_ns > began.coarse_ns {
            self.record_crossed_tick(began.coarse_ns, coarse_ns);
        }
        let coarse_ns = coarse_ns - began.coarse_ns;
        let timed_ns = began.at.map(|at| (exact() - at).as_nanos() as u64);
        match timed_ns {
            _ if coarse_ns >= LONG_NS => {
                self.long += 1;
                self.long_ns += timed_ns.unwrap_or(coarse_ns);
            }
            Some(timed_ns) if self.calls <= FIRST => {
                self.first += 1;
                self.first_ns += timed_ns;
            }
            Some(timed_ns) => {
                self.sampled += 1;
                self.sampled_ns += timed_ns;
            }
            None => {}
        }
    }

    /// Records a call that crossed a tick of the coarse clock.
    #[cold]
    fn record_crossed_tick(&mut self, from_ns: u64, until_ns: u64) {
        match self.times.last_mut() {
            Some(last) if from_ns <= last.1 => last.1 = until_ns,
            Some(last) if last.1 - last.0 < LONG_NS => *last = (from_ns, until_ns),
            _ => {
                self.times.truncate(TIMES_MAX - 1);
                self.times.push((from_ns, until_ns));
            }
        }
    }

    /// Takes the long periods spent inside calls (start, end) since the last time, in nanoseconds of the monotonic
    /// clock.
    pub fn take_long_periods(&mut self) -> Vec<(u64, u64)> {
        let short = self.times.pop_if(|last| last.1 - last.0 < LONG_NS);
        let long = std::mem::take(&mut self.times);
        self.times.extend(short);
        long
    }

    /// Estimated time spent so far, in nanoseconds. Until another call is timed, calls are assumed to be as long as the
    /// initial ones.
    pub fn spent_ns(&self) -> u64 {
        let others = self.calls.saturating_sub(self.first + self.long);
        let (timed, timed_ns) =
            if self.sampled > 0 { (self.sampled, self.sampled_ns) } else { (self.first, self.first_ns) };
        let others_ns = u128::from(others) * u128::from(timed_ns) / u128::from(timed.max(1));
        self.first_ns + self.long_ns + others_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The estimate after this many calls, as a share of the true time; `length_ns` gives the length of each call,
    /// counted from 1. The coarse clock advances every 4 ms.
    fn estimated_share(calls: u64, length_ns: impl Fn(u64) -> u64) -> f64 {
        let (mut meter, start, mut now_ns) = (Meter::default(), Instant::now(), 0);
        let coarse_ns = |now_ns: u64| now_ns / 4_000_000 * 4_000_000;
        for call in 1..=calls {
            let began = meter.begin_call_at(coarse_ns(now_ns), || start + Duration::from_nanos(now_ns));
            now_ns += length_ns(call);
            meter.end_call_at(began, coarse_ns(now_ns), || start + Duration::from_nanos(now_ns));
        }
        meter.spent_ns() as f64 / now_ns as f64
    }

    #[test]
    fn untimed_calls_count_like_timed_ones() {
        for calls in [1, 64, 65, 100, 121, 122, 130, 10_000] {
            assert_eq!(estimated_share(calls, |_| 1_000_000), 1.0, "{calls} calls");
        }
    }

    #[test]
    fn compiling_calls_are_not_extrapolated() {
        let share = estimated_share(10_000, |call| if call <= 3 { 15_000_000 } else { 1_000 });
        assert!((0.999..1.001).contains(&share), "{share}");
    }

    #[test]
    fn long_first_calls_are_not_extrapolated() {
        let share = estimated_share(110, |call| if call == 1 { 1_000_000_000 } else { 1_000 });
        assert!((0.999..1.001).contains(&share), "{share}");
    }

    #[test]
    fn long_calls_are_timed_exactly() {
        const MS: u64 = 1_000_000;
        let mut meter = Meter::default();
        let mut call = |from_ms: u64, until_ms: u64| {
            let (start, [from_ns, until_ns]) = (Instant::now(), [from_ms, until_ms].map(|ms| ms * MS / 4 * 4));
            let tick = |ns: u64| ns / (4 * MS) * (4 * MS);
            let began = meter.begin_call_at(tick(from_ns), || start);
            meter.end_call_at(began, tick(until_ns), || start + Duration::from_nanos(until_ns - from_ns));
        };
        // Calls that are short, long, a hundred in close succession, and one every other millisecond.
        call(1, 2);
        call(5, 306);
        (0..100).for_each(|n| call(400 + n, 401 + n));
        (0..100).for_each(|n| call(600 + 16 * n, 601 + 16 * n));
        call(3_000, 3_015);
        let in_ms = |times: Vec<(u64, u64)>| times.iter().map(|time| (time.0 / MS, time.1 / MS)).collect::<Vec<_>>();
        assert_eq!(in_ms(meter.take_long_periods()), [(4, 304), (400, 500)]);
        meter.record_crossed_tick(3_012 * MS, 3_024 * MS);
        assert_eq!(in_ms(meter.take_long_periods()), [(3_000, 3_024)], "the last one may go on");
        assert_eq!(in_ms(meter.take_long_periods()), []);
    }

    #[test]
    fn rare_long_calls_count_whichever_calls_are_timed() {
        // One call in a hundred is long, and none of the long ones is timed. The coarse clock is off by less than one
        // tick.
        let share = estimated_share(600, |call| if call > 100 && call % 100 == 1 { 60_000_000 } else { 1_000 });
        assert!((1.0 - 4.0 / 60.0..1.0 + 4.0 / 60.0).contains(&share), "{share}");
    }
}
