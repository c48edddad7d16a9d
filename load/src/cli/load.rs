//! How much load, and for how long: the options, and the resulting [`Load`] and [`Stop`].

use std::time::Duration;

use onrush_plan::limits::{CONNECTIONS_MAX, REQUESTS_MAX, THREADS_MAX, UNTIL_CAP};
use onrush_plan::{Http, Load, Stop, StopTerm};
use onrush_text::units::format_duration_exact;

use super::condition;
use super::draft::PlanDraft;
use super::flag::Origin::{Wrk, WrkCmm};
use super::flag::{Flag, flag, put};
use super::flags;
use super::probe::{DraftProbe, parse_probe};
use super::refusal::PlanRefusal;
use super::values::{AT_LEAST_ONE, Value};

/// The default number of connections.
pub const CONNECTIONS: u64 = 10;
const THREADS: u64 = 2;
const DURATION: Duration = Duration::from_secs(10);

pub(super) const OPTIONS: &[Flag] = &[
    flag("-c, --connections N", |draft, value| put(&mut draft.load.connections, value.count(CONNECTIONS_MAX)))
        .common()
        .from(Wrk)
        .swept_as("-c")
        .help("connections to keep open, all threads together (10)")
        .reference(
            "Connections kept open by all threads together: 10 by default, at most 1,000,000.",
            "onrush -c 400 http://127.0.0.1:8080/",
        ),
    flag("-d, --duration T", |draft, value| put(&mut draft.load.duration, parse_duration(value)))
        .common()
        .from(Wrk)
        .help("how long the run lasts (10s)")
        .reference(
            "Length of the run: 10 seconds by default, unless `-n` or `--until` is given. At most 366 days.",
            "onrush -d 1.5s http://127.0.0.1:8080/",
        ),
    flag("-t, --threads N", |draft, value| put(&mut draft.load.threads, value.count(THREADS_MAX)))
        .common()
        .from(Wrk)
        .swept_as("-t")
        .help("threads that share the connections (2)\n(1 if there is only one connection)")
        .reference(
            "Threads that share the connections: 2 by default, 1 for a single connection. At most 1024 and at most \
             `-c`.",
            "onrush -t 4 -c 400 http://127.0.0.1:8080/",
        ),
    flag("-n, --requests N", |draft, value| put(&mut draft.load.requests, value.count(REQUESTS_MAX)))
        .common()
        .help("send exactly N requests, without a time limit;\nwith -d too, whichever is reached first ends the run")
        .reference(
            "Sends exactly N requests. Without `-d` there is no time limit. With a rate, N requests are due, plus \
             those left over from a [warm-up](report.md#the-warm-up).",
            "onrush -n 10k -c 100 http://127.0.0.1:8080/",
        ),
    flag("--until LIST", |draft, value| {
        let text = value.lossy();
        draft.load.until = condition::parse_stop_terms(&text).map_err(|flaw| value.wrong(flaw.shown(&text)))?;
        Ok(())
    })
    .excludes(&[("stages", "a changing load has no steady figures")])
    .help("end the run once the figures are this precise, with\n95 % confidence: 'p99+-2%,rate+-1%' (5m at most)")
    .reference(
        "Ends the run once the figures are this precise, with 95 % confidence ([grammar](conditions.md), \
         [method](statistics.md#how-long-is-long-enough)). A run takes at least 20 seconds; without `-d` or \
         `-n` it ends after 5 minutes.\n\n\
         ```\n\
         $ onrush -c 10 --until 'p99+-2%,rate+-1%' http://127.0.0.1:8080/\n\
         ```",
        "",
    ),
    flag("--probe WHAT", |draft, value| put(&mut draft.load.probe, parse_probe(value)))
        .one_of(&["off", "up"])
        .help(
            "what follows a closed loop to find out its limit: off,\n\
             or the longest time to go on with half as many in\n\
             flight (a fifth of -d, if that is 10s or more), or up\n\
             or up:T, with half as many more",
        )
        .reference(
            "Controls [the probe](measuring.md#the-probe) after a run without a rate.\n\n\
             | value | probe |\n\
             |---|---|\n\
             | `off` | none |\n\
             | `3s` | takes at most this time |\n\
             | `up`, `up:3s` | keeps half as many *more* in flight, so that the verdict can advise a number |\n\n\
             With a value, the probe also follows runs with a script or body. Not with a rate, stages, \
             `--requests-per-connection`, searches or experiments; with a script neither `up` nor `-c 1`.\n\n\
             ```\n\
             $ onrush -c 16 -d 20s --probe up http://127.0.0.1:8080/\n\
             ```",
            "",
        ),
    flag("--warmup T", |draft, value| put(&mut draft.load.warmup, value.time()))
        .common()
        .help("put load on the target for T, then begin to measure;\n-d and -n count from then on")
        .reference(
            "Loads the target for this time before [measuring begins](report.md#the-warm-up).",
            "onrush --warmup 200ms http://127.0.0.1:8080/",
        ),
    flag("-D, --delay-stats T", |draft, value| put(&mut draft.load.warmup, value.time()))
        .from(WrkCmm)
        .help("wrk-cmm's name for --warmup; uses its layout")
        .reference(
            "wrk-cmm's name for `--warmup`. The report uses wrk-cmm's layout.",
            "onrush -D 1s http://127.0.0.1:8080/",
        ),
];

/// The options on the load, as typed.
#[derive(Debug, Default)]
pub struct LoadDraft {
    /// `--connections`.
    pub connections: Option<u64>,
    /// `--threads`.
    pub threads: Option<u64>,
    /// `--duration`.
    pub duration: Option<Duration>,
    pub(super) requests: Option<u64>,
    pub(super) until: Vec<StopTerm>,
    /// `--probe`.
    pub probe: Option<DraftProbe>,
    pub(super) warmup: Option<Duration>,
}

/// From this number of threads on, somebody may have meant seconds.
const SECONDS_MIN: u64 = 5;

impl LoadDraft {
    /// Refuses zeros, which wrk does before it reads the URL; natively counts are never zero here.
    pub(super) fn check_nothing_is_zero(&self) -> Result<(), PlanRefusal> {
        if self.threads == Some(0) {
            return Err(flags::named("threads").wrong("0", AT_LEAST_ONE));
        }
        if self.duration == Some(Duration::ZERO) {
            return Err(flags::named("duration").wrong("0", "must be longer than 0; try 10s"));
        }
        Ok(())
    }
}

impl PlanDraft {
    /// The load. Natively the default number of threads is at most the number of connections.
    pub(super) fn to_load(&self) -> Result<Load, PlanRefusal> {
        let staged = self.pace.most_connections();
        let given_twice = [("connections", self.load.connections), ("max-inflight", self.pace.max_inflight)];
        if let Some((one, _)) = given_twice.iter().find(|(_, number)| staged.is_some() && number.is_some()) {
            let reason = "the stages set how many connections there are";
            return Err(PlanRefusal::both(format_args!("--{one}"), "--stages c=", reason));
        }
        let connections = staged.map_or(self.load.connections.unwrap_or(CONNECTIONS), u64::from);
        let is_compat = self.dialect.is_compat();
        // Each thread sends its own part of the rate, so it needs a connection whenever there are any.
        let fewest = self.pace.fewest_connections().map_or(connections, u64::from);
        let threads = self.load.threads.unwrap_or(if is_compat { THREADS } else { THREADS.min(fewest) });
        if connections < threads && is_compat && fewest == connections {
            return Err(PlanRefusal::Wrk("number of connections must be >= threads".to_owned()));
        }
        if fewest < threads {
            // The -t of ab is a duration, and that of hey a timeout.
            let may_be_time = threads >= SECONDS_MIN && self.load.duration.is_none();
            let time = if may_be_time { "; if it is a time, write -d or --give-up" } else { "" };
            let why = match fewest < connections {
                true => format!(": with a rate every thread needs a connection, and --stages c= goes down to {fewest}"),
                false => format!(", the number of connections; every thread needs one{time}"),
            };
            return Err(flags::named("threads").wrong(threads.to_string(), format_args!("at most {fewest}{why}")));
        }
        let max_inflight = self.pace.max_inflight.unwrap_or(connections);
        if max_inflight < connections {
            let least = format!("the run starts with {connections} connections (-c); write {connections} or more");
            return Err(flags::named("max-inflight").wrong(max_inflight.to_string(), least));
        }
        // All of them fit 32 bits: see the limits.
        let [threads, connections, max_inflight] = [threads, connections, max_inflight].map(|count| count as u32);
        Ok(Load { threads, connections, max_inflight })
    }

    /// The limits at which the run ends.
    pub(super) fn to_stop(&self) -> Stop {
        match (self.is_once(), self.load.duration, self.load.requests) {
            (true, ..) => Stop { duration: None, requests: Some(1) },
            (false, None, None) => {
                let most = if self.load.until.is_empty() { DURATION } else { UNTIL_CAP };
                Stop { duration: Some(most), requests: None }
            }
            (false, duration, requests) => Stop { duration, requests },
        }
    }

    /// A warning about a `-D` that may be meant as h2load's duration.
    pub(super) fn delay_stats_warning(&self, http: &Http) -> Option<String> {
        let is_doubtful = self.has("delay-stats") && http.may_be_http2() && self.load.duration.is_none();
        let time = format_duration_exact(self.load.warmup.filter(|_| is_doubtful)?);
        Some(format!("-D {time} is the warm-up, as in wrk-cmm; if you mean h2load's -D, write -d {time}"))
    }

    /// A warning about fewer requests than connections, if both were typed.
    pub(super) fn few_requests_warning(&self) -> Option<String> {
        let (requests, connections) = self.load.requests.zip(self.load.connections)?;
        let is_meant = requests >= connections || self.is_once() || self.load.warmup.is_some();
        let senders =
            if requests == 1 { "1 connection sends".to_owned() } else { format!("{requests} connections send") };
        (!is_meant).then(|| format!("-n {requests} is less than -c {connections}: at most {senders} a request"))
    }
}

/// Parses a duration. Natively a text that looks like data is taken for the `-d` of other tools.
fn parse_duration(value: Value) -> Result<Duration, PlanRefusal> {
    let text = value.lossy();
    if !value.dialect.is_compat() && (text.contains('=') || text.starts_with(['{', '[', '@', '<'])) {
        let reason = "not a time; onrush's option for the -d of curl, hey and oha is --body";
        return Err(value.wrong(reason));
    }
    value.time()
}
