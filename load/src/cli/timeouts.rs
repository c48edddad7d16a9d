//! When a request is too slow.

use std::time::Duration;

use onrush_plan::limits::{GIVE_UP_MIN, GIVE_UP_TIMEOUTS};
use onrush_text::units::format_duration_exact;

use super::draft::PlanDraft;
use super::flag::Origin::Wrk;
use super::flag::{Flag, flag, put};

const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) const OPTIONS: &[Flag] = &[
    flag("-T, --timeout T", |draft, value| put(&mut draft.timeouts.timeout, value.time()))
        .common()
        .from(Wrk)
        .help("count requests that take longer as timed out (2s)\n(0: never)")
        .reference(
            "Requests that take longer count as timed out. They stay in flight, and their latency is recorded when the \
             response arrives. 2 seconds by default; 0 disables the count.",
            "onrush --timeout 500ms http://127.0.0.1:8080/",
        ),
    flag("--give-up T", |draft, value| put(&mut draft.timeouts.give_up, value.time()))
        .native_only("never abandons a request")
        .help("abandon a request and its connection after T\n(the larger of 30s and 5 x timeout; 0: never)")
        .reference(
            "Requests that take longer are abandoned and their connections replaced (over HTTP/2, only the stream is \
             reset). Default: the larger of 30 seconds and five times `--timeout`; with `--once`, an explicit \
             `--timeout`. 0 means never.",
            "onrush --give-up 5s http://127.0.0.1:8080/",
        ),
];

/// The options on slow requests, as typed.
#[derive(Debug, Default)]
pub(super) struct TimeoutsDraft {
    timeout: Option<Duration>,
    give_up: Option<Duration>,
}

impl PlanDraft {
    /// The time after which a request counts as timed out, and the time after which it is abandoned. In wrk zero makes
    /// every response late, and no request is abandoned unless nothing else would end the run; natively zero switches
    /// either off. With `--once`, an explicit `--timeout` also abandons the request.
    pub(super) fn to_timeouts(&self, warnings: &mut Vec<String>) -> (Option<Duration>, Option<Duration>) {
        let typed = &self.timeouts;
        let timeout = typed.timeout.unwrap_or(TIMEOUT);
        // A single request that is late has nothing left to show but that.
        let only_timeout = typed.timeout.filter(|timeout| self.is_once() && !timeout.is_zero());
        if self.dialect.is_compat() {
            // wrk has neither option, and such a run might never end if no request were ever abandoned.
            let never_ends = self.is_once() || (self.load.requests.is_some() && self.load.duration.is_none());
            return (Some(timeout), only_timeout.or(never_ends.then_some(GIVE_UP_MIN)));
        }
        let give_up = typed.give_up.or(only_timeout).unwrap_or(GIVE_UP_MIN.max(timeout * GIVE_UP_TIMEOUTS));
        let unless_zero = |time: Duration| (!time.is_zero()).then_some(time);
        let (timeout, give_up) = (unless_zero(timeout), unless_zero(give_up));
        if let (Some(timeout), Some(give_up)) = (timeout, give_up)
            && give_up < timeout
            && !self.is_once()
        {
            let default = if typed.timeout.is_none() { " (the default)" } else { "" };
            let [give_up, timeout] = [give_up, timeout].map(format_duration_exact);
            warnings.push(format!(
                "--give-up {give_up} is less than --timeout {timeout}{default}: a request is abandoned before it can \
                 time out"
            ));
        }
        (timeout, give_up)
    }
}
