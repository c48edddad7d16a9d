//! The words for each note.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use onrush_plan::limits::CONNECTIONS_MAX;
use onrush_stats::{BATCHES_MIN, Gap, Unknown};
use onrush_text::escape;
use onrush_text::units::{PERCENT_MIN, counted, exact, listed, share_of, spaced, thousands, time_us};

use super::{
    Behind, Bottleneck, Burst, Capped, Crowded, Flight, Hanging, LateReason, Lost, Note, NothingSent, Places, Remedy,
    Uncertain,
};
use crate::failure::{self, too_few_files};
use crate::figures::NS_PER_US;
use crate::record::STATUSES_NAMED;
use crate::run::{Known, Shortage, Until};

/// The note on a script whose `delay` returned something other than a pause.
const PAUSES_UNREAD: &str =
    "the script's delay() did not always return a number of milliseconds: any other result counts as 0 (no pause)";

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(sentence) => f.write_str(sentence),
            Self::Dropped { address, errno, used } => f.write_str(&dropped_line(*address, *errno, used)),
            Self::NeverBegun => f.write_str("interrupted before anything was sent: there is nothing to report"),
            Self::Signal { elapsed: Duration::ZERO, .. } => {
                f.write_str("interrupted before anything was measured: the warm-up was not over")
            }
            Self::Signal { elapsed, planned } => f.write_str(&interrupted_line(*elapsed, *planned)),
            Self::StayedAway { give_up, started, asked } => f.write_str(&stayed_away_line(*give_up, *started, *asked)),
            Self::TooFewRequests { elapsed, completed, asked, staged } => {
                f.write_str(&too_few_requests_line(*elapsed, *completed, *asked, *staged))
            }
            Self::FirstOfBatch { count } => f.write_str(&first_of_batch_line(*count)),
            Self::Capped(capped) => f.write_str(&capped_line(capped)),
            Self::FewerConnections { opened, asked, shortage, failures, staged, .. } => {
                f.write_str(&fewer_connections_line(*opened, *asked, shortage.as_ref(), *failures, *staged))
            }
            Self::Idle { connections, places, is_scheduled } => {
                f.write_str(&idle_line(*connections, places, *is_scheduled))
            }
            Self::IdleClosed { count } => {
                write!(f, "the server closed idle connections {}; onrush reconnected", counted(*count, "time"))
            }
            Self::Hanging { flight, hanging } => f.write_str(&hanging_line(flight, hanging)),
            Self::Until { until, elapsed, counted } => f.write_str(&until_line(until, *elapsed, *counted)),
            Self::Behind(behind) => f.write_str(&behind_line(behind)),
            Self::Crowded(crowded) => f.write_str(&crowded_line(crowded)),
            Self::Late { late, sent, limit, p99_ns, max_ns, burst, reason } => {
                let line = late_line(*late, *sent, *limit, *p99_ns, *max_ns);
                write!(f, "{line}{}", late_reason(*reason, burst.as_ref()))
            }
            Self::TooLate { dropped, due, in_percentiles } => {
                f.write_str(&too_late_line(*dropped, *due, *in_percentiles))
            }
            Self::Sliced { slice, mean_ns } => f.write_str(&sliced_line(*slice, *mean_ns)),
            Self::Uncertain(uncertain) => f.write_str(&uncertain_line(uncertain)),
            Self::Failure(failure) => write!(f, "{failure}"),
            Self::Lost(lost) => {
                let share = share_of(lost.total(), lost.started, "request");
                write!(f, "{share} got no complete response: {}", lost.endings(None))
            }
            Self::NothingSent(why) => f.write_str(nothing_sent_line(*why)),
            Self::NothingAnswered(lost) if lost.started > 1 => f.write_str(&nothing_answered_line(lost)),
            Self::NothingAnswered(lost) | Self::NoAnswer(lost) => {
                write!(f, "the request got no complete response: {}", lost.endings(Some("it")))
            }
            Self::Silences { longest, count, elapsed_ns } => {
                write!(f, "no response {}", times_line(longest, *count, *elapsed_ns))
            }
            Self::Unavailable { longest, count, elapsed_ns, share, due } => {
                f.write_str(&unavailable_line(longest, *count, *elapsed_ns, *share, *due))
            }
            Self::Stalled { longest, count, elapsed_ns, share, touched, latencies } => {
                let inflated = inflated(*touched, *latencies);
                f.write_str(&stalled_line(longest, *count, *elapsed_ns, *share, &inflated))
            }
            Self::Suspended { lasted } => f.write_str(&suspended_line(*lasted)),
            Self::Answer { status, location } => f.write_str(&answer_line(*status, location.as_deref())),
            Self::Statuses { answers, counts, location } => {
                f.write_str(&statuses_line(*answers, counts, location.as_deref()))
            }
            Self::ExpectsTls { answers } => write!(f, "{} 400: {EXPECTS_TLS}", all_were(*answers)),
            Self::Carried { carried, answers } => f.write_str(&carried_line(*carried, *answers)),
            Self::Interim { count } => f.write_str(&interim_line(*count)),
            Self::Clamped { count } => {
                write!(f, "{} took longer than an hour: recorded as one hour", counted(*count, "response"))
            }
            Self::PausesUnread => f.write_str(PAUSES_UNREAD),
            Self::CutBodies { count } => f.write_str(&cut_bodies_line(*count)),
            Self::Resumed { resumed, handshakes } => f.write_str(&resumed_line(*resumed, *handshakes)),
            Self::Rewritten { mean_us } => f.write_str(&rewritten_line(*mean_us)),
        }
    }
}

impl Lost {
    /// What became of them, each with its number unless `who` they all are; and where it is known, after how long those
    /// ended that did not fail.
    fn endings(&self, who: Option<&str>) -> String {
        let who = |count: u64| who.map_or_else(|| thousands(count), str::to_owned);
        let failed = (self.failed > 0).then(|| format!("{} failed", who(self.failed)));
        let others = [(self.abandoned, "abandoned"), (self.open, "still in flight at the end")];
        let others = others.into_iter().filter(|&(count, _)| count > 0);
        let others: Vec<String> =
            others.map(|(count, ending)| format!("{} {} {ending}", who(count), were(count))).collect();
        let others = (!others.is_empty()).then(|| listed(&others) + &self.ages());
        failed.into_iter().chain(others).collect::<Vec<_>>().join("; ")
    }

    /// How long the abandoned and open ones lasted, where that is known.
    fn ages(&self) -> String {
        let text = |ns: u64| time_us(ns as f64 / NS_PER_US);
        let comma = if self.open > 0 { "," } else { "" };
        match (self.youngest_ns.map(text), self.oldest_ns.map(text)) {
            (Some(youngest), Some(oldest)) if youngest != oldest => format!("{comma} after {youngest} to {oldest}"),
            (Some(_), Some(oldest)) => format!("{comma} after {oldest}"),
            (None, Some(oldest)) => format!("; the longest of these lasted {oldest}"),
            (_, None) => String::new(),
        }
    }
}

fn nothing_answered_line(lost: &Lost) -> String {
    let is_alike = [lost.failed, lost.abandoned, lost.open].contains(&lost.started);
    let endings = lost.endings(is_alike.then_some("all"));
    format!("none of the {} got a complete response: {endings}", counted(lost.started, "request"))
}

/// The verb for this number of things.
fn were(count: u64) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// What to do about responses which say that the port expects TLS.
pub const EXPECTS_TLS: &str = "the server expects TLS at this port; write https://";

/// The beginning of a sentence about all responses.
fn all_were(answers: u64) -> String {
    match answers {
        1 => "the only response was".to_owned(),
        2 => "both responses were".to_owned(),
        _ => format!("all {} responses were", thousands(answers)),
    }
}

fn statuses_line(answers: u64, counts: &[(u16, u64)], location: Option<&str>) -> String {
    let all = all_were(answers);
    let location = location.map(|location| escape(location.as_bytes()));
    match (counts, location) {
        ([(status @ 300..400, _)], Some(location)) => {
            format!("{all} {status} to {location}: you measured the redirect")
        }
        ([(status, _)], _) => format!("{all} {status}: --once shows one in full"),
        (_, location) => {
            let (named, others) = counts.split_at(counts.len().min(STATUSES_NAMED));
            let mut parts: Vec<String> =
                named.iter().map(|&(status, count)| format!("{} {} {status}", thousands(count), were(count))).collect();
            let others: u64 = others.iter().map(|&(_, count)| count).sum();
            parts.extend((others > 0).then(|| format!("{} had other statuses", thousands(others))));
            let redirect = location.map_or(String::new(), |location| format!("; a redirect leads to {location}"));
            format!("of {} responses, {}{redirect}", thousands(answers), listed(&parts))
        }
    }
}

fn answer_line(status: u16, location: Option<&str>) -> String {
    match (status, location.map(|location| escape(location.as_bytes()))) {
        (300..400, Some(location)) => {
            format!("the response was {status} to {location}: a run would measure the redirect")
        }
        (400.., _) => format!("the response was {status}: a run would measure the error page"),
        _ => format!("the response was {status}"),
    }
}

fn dropped_line(address: SocketAddr, errno: i32, used: &[SocketAddr]) -> String {
    let used: Vec<String> = used.iter().map(SocketAddr::to_string).collect();
    let (why, used) = (failure::errno_words(errno), used.join(", "));
    format!("{address} was left out: {why} at the start; the load went to {used}")
}

fn capped_line(&Capped { option, setting, requested, given }: &Capped) -> String {
    let (given, wanted) = (thousands(u64::from(given)), thousands(u64::from(requested)));
    format!(
        "{option}: connections had {given} bytes, not {wanted}: {setting} allows no more; \
         'sysctl -w {setting}={requested}' raises it"
    )
}

/// Time since measuring began.
fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

fn nothing_sent_line(why: NothingSent) -> &'static str {
    match why {
        NothingSent::NotDue => "no request was due while the run was measured: use a longer run or a higher rate",
        NothingSent::Paused => {
            "no request was sent: the script's delay() asked for pauses longer than the run, or longer than the \
             connections stayed open"
        }
        NothingSent::Unable => "no request could be sent",
    }
}

fn times_line(longest: &[Gap], count: usize, elapsed_ns: u64) -> String {
    let text = |gap: &Gap| match gap.until_ns {
        until_ns if until_ns >= elapsed_ns => format!("from {} to the end", seconds(gap.from_ns)),
        until_ns => format!("from {} to {}", seconds(gap.from_ns), seconds(until_ns)),
    };
    let times: Vec<String> = longest.iter().map(text).collect();
    let others = match count - longest.len() {
        0 => String::new(),
        others => format!(" (and in {})", counted(others as u64, "shorter gap")),
    };
    format!("{}{others}", listed(&times))
}

fn unavailable_line(longest: &[Gap], count: usize, elapsed_ns: u64, share: f64, due: u64) -> String {
    let times = times_line(longest, count, elapsed_ns);
    let (percent, were) = (100.0 * share, if due == 1 { "was" } else { "were" });
    let percent = if percent < 0.05 { "less than 0.1 %".to_owned() } else { format!("{percent:.1} %") };
    let due = counted(due, "request");
    let due = match count - longest.len() {
        0 => format!(", while {due} {were} due"),
        _ => format!("; {due} {were} due in these gaps"),
    };
    format!("the target was unavailable for {percent} of the time: no response {times}{due}")
}

/// How many latencies a stall inflated.
fn inflated(touched: f64, latencies: u64) -> String {
    let percent = 100.0 * touched;
    match percent {
        _ if latencies < PERCENT_MIN => {
            let inflated = (touched * latencies as f64).round().max(1.0) as u64;
            format!("the latencies of about {inflated} of {}", counted(latencies, "response"))
        }
        0.95.. => format!("about {percent:.0} % of the latencies"),
        0.05.. => format!("about {percent:.1} % of the latencies"),
        _ => "less than 0.1 % of the latencies".to_owned(),
    }
}

fn stalled_line(longest: &[Gap], count: usize, elapsed_ns: u64, share: f64, inflated: &str) -> String {
    let times = if longest.is_empty() {
        format!("for {:.0} % of the time, in short stalls", 100.0 * share)
    } else {
        times_line(longest, count, elapsed_ns)
    };
    format!(
        "onrush itself was stalled {times}: the process was suspended or got no processor; {inflated} are inflated by it, \
         which is not the server's fault"
    )
}

fn suspended_line(lasted: Duration) -> String {
    let lasted = time_us(lasted.as_nanos() as f64 / NS_PER_US);
    format!(
        "the machine was suspended for {lasted} during the run: no figure includes that time, but connections and \
         responses may have been lost; keep the machine awake and measure again"
    )
}

fn interrupted_line(elapsed: Duration, planned: Option<Duration>) -> String {
    let elapsed = time_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let of = planned.map_or(String::new(), |planned| format!(" of {}", exact(planned)));
    format!("interrupted after {elapsed}{of}: the report covers only that time")
}

fn until_line(until: &Until, elapsed: Duration, is_counted: bool) -> String {
    // A batch lasts at least a second.
    let is_too_short = elapsed < Duration::from_secs(BATCHES_MIN as u64);
    let [after, elapsed] = [until.at, elapsed].map(|time| time_us(time.as_secs_f64() * 1e6));
    let sure = |known: &Known| match known.estimate {
        Ok(estimate) => format!("{} is known to ±{:.2} %", known.term.name(), estimate.half_width * 100.0),
        Err(_) => String::new(),
    };
    let unsure = |known: &Known| match (known.term.name(), known.estimate) {
        (name, Ok(estimate)) => {
            let [is, asked] = [estimate.half_width, known.term.half_width].map(|half_width| half_width * 100.0);
            format!("{name} is known to ±{is:.2} % instead of ±{asked} % (95 % confidence)")
        }
        (name, Err(Unknown::Short)) if is_too_short => {
            format!("the precision of {name} is unknown, because that takes a run of at least {BATCHES_MIN} s")
        }
        (name, Err(Unknown::Short)) => format!(
            "the precision of {name} is unknown, because the run has fewer than {BATCHES_MIN} sections of {}",
            counted(known.completed_min(), "response")
        ),
        (name, Err(Unknown::Dependent)) => {
            format!(
                "the precision of {name} is unknown: it changes so slowly that the run has fewer than \
                 {BATCHES_MIN} independent sections"
            )
        }
    };
    if until.reached {
        let sure: Vec<String> = until.terms.iter().map(sure).collect();
        let sure = listed(&sure);
        return format!("the run ended after {after}, when its figures were precise enough (95 % confidence): {sure}");
    }
    let unsure: Vec<String> = until.terms.iter().filter(|known| !known.is_enough()).map(unsure).collect();
    let remedy = if is_counted { "send more requests (-n)" } else { "measure longer (-d)" };
    format!("--until was not reached in {elapsed}: {}; {remedy}", unsure.join("; "))
}

fn stayed_away_line(give_up: Duration, started: u64, asked: u64) -> String {
    let give_up = exact(give_up);
    let started = thousands(started);
    let asked = counted(asked, "request");
    format!("the target was unreachable for {give_up}: the run ended after {started} of {asked}")
}

fn too_few_requests_line(elapsed: Duration, completed: u64, asked: u64, staged: bool) -> String {
    let elapsed = time_us(elapsed.as_nanos() as f64 / NS_PER_US);
    let completed = thousands(completed);
    let asked = counted(asked, "request");
    let remedy = if staged { "longer stages" } else { "a longer -d" };
    format!("the run ended after {elapsed} with only {completed} of {asked} completed: use {remedy}")
}

fn first_of_batch_line(count: usize) -> String {
    let requests = counted(count as u64, "request");
    format!("this is the first of {requests} that the script sends at once; the others were not sent")
}

fn fewer_connections_line(
    opened: u64,
    asked: u64,
    shortage: Option<&Shortage>,
    failures: bool,
    staged: bool,
) -> String {
    let is_one = asked == 1;
    let asked = counted(asked, "connection");
    // At one time, and for long enough to be established.
    let (the, so_far) = if staged { ("the ", " that the stages had asked for so far") } else { ("", "") };
    let count = match opened {
        _ if is_one => format!("the connection{so_far} was not"),
        0 => format!("none of the {asked}{so_far} was"),
        _ => format!("only {} of {the}{asked}{so_far} were", thousands(opened)),
    };
    let why = match shortage {
        Some(shortage) => format!(": {}", too_few_files(shortage)),
        None if failures || staged => String::new(),
        None => " before the run ended".to_owned(),
    };
    format!("{count} established{why}")
}

fn idle_line(connections: u64, places: &Places, is_scheduled: bool) -> String {
    let Places { busy, never_established, waiting, connecting, pausing, leaving, done } = *places;
    let rest = connections as f64 - done - busy - never_established - waiting - connecting - pausing - leaving;
    let reasons = [
        (never_established, "were never established"),
        (waiting, "were waiting to reconnect"),
        (connecting, "were connecting"),
        (pausing, "were pausing for the script"),
        (leaving, "were waiting for the server to close them"),
        (done, "were not needed"),
        (rest, "were idle between a response and the next request"),
    ];
    // By a schedule, idle connections are there to be used.
    let reasons = reasons.into_iter().take(if is_scheduled { 5 } else { 7 });
    // What is printed as 0.0 is left out.
    let reasons = reasons.filter(|&(mean, _)| mean >= 0.05);
    let reasons: Vec<String> = reasons.map(|(mean, why)| format!("{} {why}", number(mean))).collect();
    let (busy, connections) = (number(busy), thousands(connections));
    if is_scheduled {
        let away = number(never_established + waiting + connecting + pausing + leaving);
        return format!(
            "on average, {away} of {connections} connections were unavailable for sending: {}",
            reasons.join(", ")
        );
    }
    format!("only {busy} of {connections} connections had a request in flight on average: {}", reasons.join(", "))
}

/// A mean number: `7.4`, `5,565`.
fn number(mean: f64) -> String {
    if mean < 99.95 { format!("{mean:.1}") } else { thousands(mean.round() as u64) }
}

fn hanging_line(flight: &Flight, hanging: &Hanging) -> String {
    let requests = counted(hanging.count, "request");
    let they_were = if hanging.count == 1 { "it was" } else { "they were" };
    let age = seconds(hanging.youngest_ns);
    let answers = match hanging.as_slow {
        0 => format!("the slowest response took {}", time_us(flight.slowest_ns as f64 / NS_PER_US)),
        count => format!("only {} took as long", counted(count, "response")),
    };
    let [answered, mean] = [flight.answered, flight.mean].map(number);
    let where_they_count = if flight.is_scheduled {
        "The percentiles count them with their age so far; Avg, Stdev and Max in the Latency row leave them out"
            .to_owned()
    } else {
        format!(
            "The latencies leave them out: on average {mean} requests were in flight, of which only {answered} eventually \
             got a response"
        )
    };
    format!(
        "{requests} had no response by the end of the run, though {they_were} sent at least {age} earlier; {answers}. \
         {where_they_count}"
    )
}

fn behind_line(behind: &Behind) -> String {
    let rate = |per_s: f64| if per_s < 100.0 { format!("{per_s:.2}") } else { thousands(per_s.round() as u64) };
    let why = behind.bottleneck.map(|bottleneck| match bottleneck {
        Bottleneck::Connections(crowded) => match crowded.remedy {
            Remedy::Silence => format!("{} while the target sent no response", busy_words(&crowded)),
            _ => format!("{}; {}", busy_words(&crowded), remedy_words(&crowded)),
        },
        Bottleneck::Threads { threads } => {
            format!("the {} {} always busy; add threads (-t) or machines", counted(threads, "thread"), were(threads))
        }
        Bottleneck::CatchUp(factor) => {
            format!(
                "--catch-up {factor} held the others back; without it, late requests are sent as soon as a connection is free"
            )
        }
    });
    let grows = if behind.grows { ", so latencies grow with the length of the run" } else { "" };
    let waiting = match behind.unsent {
        0 => None,
        1 => Some("1 was still unsent at the end".to_owned()),
        unsent => Some(format!("{} were still unsent at the end{grows}", thousands(unsent))),
    };
    let left_over = (behind.carried > 0).then(|| {
        format!("{} of those due {} left over from the warm-up", thousands(behind.carried), were(behind.carried))
    });
    let only = if behind.sent == 0 { "" } else { "only " };
    let (sent, due) = (thousands(behind.sent), counted(behind.due, "due request"));
    let (were, per_s) = (were(behind.due), rate(behind.sent_per_s));
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let rest: String = [left_over, waiting].into_iter().flatten().map(|part| format!("; {part}")).collect();
    format!("{only}{sent} of {due} {were} sent ({per_s}/s){why}{rest}")
}

fn crowded_line(crowded: &Crowded) -> String {
    let (percent, busy, remedy) = (100.0 * crowded.share, busy_words(crowded), remedy_words(crowded));
    format!("for {percent:.0} % of the run, {busy} while requests were due; {remedy}")
}

fn busy_words(&Crowded { connections, pauses, .. }: &Crowded) -> String {
    let who = match connections {
        None => "all connections were".to_owned(),
        Some(1) => "the connection was".to_owned(),
        Some(connections) => format!("all {} were", counted(connections, "connection")),
    };
    let paused = if pauses { " or pausing for the script" } else { "" };
    format!("{who} busy{paused}")
}

fn remedy_words(&Crowded { connections, remedy, .. }: &Crowded) -> String {
    match remedy {
        Remedy::About(needed) if connections.is_none() => {
            format!("about {} would be needed; raise --stages c=", thousands(needed))
        }
        Remedy::About(needed) => {
            format!("about {} would be needed; use --max-inflight {needed}", thousands(needed))
        }
        Remedy::Target { calm_ns, mean_ns } => {
            let [calm, mean] = [calm_ns, mean_ns].map(|ns| time_us(ns / NS_PER_US));
            format!(
                "responses took {calm} while less than half of the connections were busy, and {mean} on average: requests queue at \
                 the target or on the way to it, so more connections will not help"
            )
        }
        Remedy::Verdict => "more connections may not help: the target was probably the limit".to_owned(),
        Remedy::Silence => "the target sent no response during that time".to_owned(),
        Remedy::Unknown if connections.is_none() => "more connections may help (--stages c=)".to_owned(),
        Remedy::Unknown => "more connections may help (--max-inflight)".to_owned(),
    }
}

fn late_line(late: u64, sent: u64, limit: Duration, p99_ns: Option<u64>, max_ns: u64) -> String {
    let text = |ns: u64| time_us(ns as f64 / NS_PER_US);
    let p99 = p99_ns.map_or(String::new(), |p99_ns| format!("p99 {}, ", text(p99_ns)));
    let share = late as f64 / sent.max(1) as f64 * 100.0;
    let share = if sent < PERCENT_MIN { String::new() } else { format!(" ({share:.2} %)") };
    let (late, sent, limit, max) = (thousands(late), counted(sent, "request"), spaced(limit), text(max_ns));
    format!(
        "{late} of {sent}{share} were sent more than {limit} after they were due (delay of all requests: {p99}max {max}); \
         latencies count from when requests were due, so they include the delay"
    )
}

fn late_reason(reason: Option<LateReason>, burst: Option<&Burst>) -> String {
    let reason = reason.map(|reason| match reason {
        LateReason::Stalled(stalled) => {
            format!("; onrush itself was stalled for {} in all", time_us(stalled.as_secs_f64() * 1e6))
        }
        LateReason::Waited(share) => {
            format!("; a thread of onrush waited for a processor for {:.0} % of the time", share * 100.0)
        }
    });
    let burst = burst.map(|burst| format!("; {}", burst_words(burst)));
    [reason, burst].into_iter().flatten().collect()
}

fn burst_words(&Burst { requests, connections, needed, is_staged }: &Burst) -> String {
    let (requests, connections) = (thousands(requests), counted(connections, "connection"));
    let remedy = match needed {
        CONNECTIONS_MAX.. => "use smaller bursts".to_owned(),
        _ if is_staged => format!("raise --stages c= to {}", thousands(needed)),
        _ => format!("use -c {needed} or --max-inflight {needed}"),
    };
    format!("bursts of {requests} requests met only {connections}: {remedy}")
}

fn too_late_line(dropped: u64, due: u64, in_percentiles: bool) -> String {
    let (dropped, due) = (thousands(dropped), counted(due, "request"));
    let latency = match in_percentiles {
        true => {
            "the mean and the maximum leave them out, and percentiles count each as waiting from its due time to the \
             end of the run"
        }
        false => "no latency includes them",
    };
    format!("{dropped} of {due} were dropped because they would have been sent too late (--max-late); {latency}")
}

fn sliced_line(slice: Duration, mean_ns: f64) -> String {
    let (slice, mean) = (exact(slice), time_us(mean_ns / NS_PER_US));
    format!(
        "sends were grouped into slices of {slice} (--send-slice), which delays each by at most {slice}; the mean \
         lateness, other causes included, is {mean}"
    )
}

fn uncertain_line(Uncertain { percent, between, missing }: &Uncertain) -> String {
    let nth = ordinal(&percent.to_string());
    format!("percentiles from the {nth} up are uncertain; the {nth} is {}", between.because(*missing))
}

/// A number with its ending: `1st`, `50th`, `99.9th`.
fn ordinal(number: &str) -> String {
    let ending = match number.as_bytes() {
        [.., b'1', b'1' | b'2' | b'3'] if !number.contains('.') => "th",
        [.., b'1'] if !number.contains('.') => "st",
        [.., b'2'] if !number.contains('.') => "nd",
        [.., b'3'] if !number.contains('.') => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn carried_line(carried: u64, answers: u64) -> String {
    let (theirs, with) = if carried == 1 {
        ("its response is", "its full latency; use a longer run to make it matter less")
    } else {
        ("their responses are", "their full latency; use a longer run to make them matter less")
    };
    let (were, carried, answers) = (were(carried), counted(carried, "request"), thousands(answers));
    format!(
        "{carried} sent during the warm-up {were} still in flight when measuring began; {theirs} among the {answers} \
         measured, with {with}"
    )
}

fn interim_line(count: u64) -> String {
    let answers = counted(count, "interim response");
    format!("{answers} (1xx) came before the final ones: the time to first byte is that of the final response")
}

fn cut_bodies_line(count: u64) -> String {
    let bodies = if count == 1 { "body" } else { "bodies" };
    let count = thousands(count);
    format!(
        "the script saw only the beginning of {count} {bodies}: all bodies being received share 256 MiB; use fewer \
         connections (-c), or drop the third parameter of response()"
    )
}

fn resumed_line(resumed: u64, handshakes: u64) -> String {
    let (resumed, handshakes) = (thousands(resumed), counted(handshakes, "TLS handshake"));
    format!(
        "{resumed} of {handshakes} resumed an earlier session, which costs less than the full handshake of a new client: \
         --tls-resume off makes all of them full"
    )
}

fn rewritten_line(mean_us: f64) -> String {
    format!("latency as measured; wrk would print Avg {}: see docs/measuring.md", time_us(mean_us))
}
