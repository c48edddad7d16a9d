//! Every sentence of doubt: what happened to the run, to what, why, and what to do next.
//!
//! A note is plain data until it is printed, one line each. Whatever came from a server is escaped.

use std::cmp::Reverse;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::failure::Failure;
use super::units::{counted, exact, thousands, time_us};
use super::{NS_PER_US, errno, escape, rewritten};
use crate::plan::Plan;
use crate::run::{Ended, Outcome, Shortage, host};
use crate::stats::{Handshakes, Phase, Row, Totals};

/// A script that takes a larger share of the threads' time limits the load.
const SCRIPT_SHARE: f64 = 0.5;
/// A class of statuses other than 2xx is worth a note above this percentage of the answers.
const STATUS_PERCENT: u64 = 1;

/// Resumed TLS handshakes are worth a note above this percentage of the answers.
const RESUMED_PERCENT: u64 = 1;

/// The most statuses that are named in one line.
const STATUSES_NAMED: usize = 6;

/// wrk's mean is worth a note when it differs from the measured one by more than this share.
const REWRITING_SHARE: f64 = 0.2;

/// An open request younger than this, in nanoseconds, is nothing unusual, however quick the answers were.
const USUAL_NS: u64 = 500_000_000;

/// One thing to know about a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// An address refused before the run while another one worked.
    Dropped {
        /// The address that was left out.
        address: SocketAddr,
        /// Its error number.
        errno: i32,
        /// The addresses that took the load.
        used: Vec<SocketAddr>,
    },
    /// A signal ended the run before its time.
    Signal {
        /// How long the run had lasted.
        elapsed: Duration,
    },
    /// The target stayed away and the run was ended.
    StayedAway {
        /// How long it was waited for.
        give_up: Duration,
        /// The requests that were started before.
        started: u64,
        /// The requests that were asked for.
        asked: u64,
    },
    /// Not every connection that was asked for was ever open.
    FewerConnections {
        /// How many were open at least once.
        opened: u64,
        /// How many were asked for.
        asked: u64,
        /// Whether the limit of open files was the reason.
        shortage: Option<Shortage>,
        /// Whether attempts to connect failed; each kind of failure has its own note then.
        failures: bool,
    },
    /// Something went wrong; one note for each row of the ledger but the statuses.
    Failure(Failure),
    /// Some of the requests got no answer.
    Unanswered(Lost),
    /// No request at all was answered.
    NothingAnswered(Lost),
    /// Other answers than 2xx came.
    Statuses {
        /// All answers.
        answers: u64,
        /// Statuses and how often each came, the most frequent first.
        counts: Vec<(u16, u64)>,
        /// Where one of the redirects led, as the server sent it.
        location: Option<String>,
    },
    /// Latencies were too long to be recorded.
    Clamped {
        /// How many.
        count: u64,
    },
    /// The threads spent most of their time inside the script.
    Script {
        /// The share of their time, 0 to 1.
        share: f64,
    },
    /// The script saw only the beginning of some bodies.
    CutBodies {
        /// How many.
        count: u64,
    },
    /// Many TLS handshakes were cheaper than those of new clients.
    Resumed {
        /// How many resumed an earlier session.
        resumed: u64,
        /// All handshakes.
        handshakes: u64,
    },
    /// wrk would have printed another mean.
    Rewritten {
        /// The mean that wrk would print, in microseconds.
        mean_us: f64,
    },
}

/// What became of the requests without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// All requests that were started, answered or not.
    pub started: u64,
    /// Requests that failed; the ledger says how.
    pub failed: u64,
    /// Requests given up.
    pub abandoned: u64,
    /// Requests open at the end of the run; where others were answered, only those that passed `--timeout`.
    pub open: u64,
    /// How long, in nanoseconds, the youngest of those abandoned or open had lasted, where that is known.
    pub youngest_ns: Option<u64>,
    /// How long, in nanoseconds, the oldest of those abandoned or open had lasted.
    pub oldest_ns: Option<u64>,
}

/// Everything there is to say about an outcome; nothing if it is beyond doubt.
pub fn notes(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let used = &outcome.addresses;
    let dropped = outcome.dropped.iter().map(|&(address, errno)| Note::Dropped { address, errno, used: used.clone() });
    let mut rows: Vec<&Row> = outcome.totals.ledger.rows().iter().filter(|row| row.phase != Phase::Status).collect();
    // Which thread's rows were added first is chance, and must not show.
    rows.sort_by_key(|row| (row.phase, Reverse(row.count), row.cause));
    let clamped = outcome.totals.latency.clamped;

    let mut notes: Vec<Note> = dropped.collect();
    notes.extend(early_end(plan, outcome));
    // What a thread that never came back has opened and sent is not known.
    let is_known = outcome.stuck.is_empty();
    notes.extend(fewer_connections(plan, outcome).filter(|_| is_known));
    notes.extend(rows.into_iter().map(|row| Note::Failure(failure(plan, outcome, row))));
    notes.extend(unanswered(outcome).filter(|_| is_known));
    notes.extend(statuses(outcome));
    notes.extend((clamped > 0).then_some(Note::Clamped { count: clamped }));
    notes.extend(script(plan, outcome));
    notes.extend(resumed(outcome));
    notes.extend(rewriting(plan, outcome));
    notes
}

/// Writes the notes, a line each, `note: ` in front; in colour if asked.
pub fn print_notes(notes: &[Note], colour: bool, out: &mut impl io::Write) -> io::Result<()> {
    let (before, after) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    notes.iter().try_for_each(|note| writeln!(out, "{before}note:{after} {note}"))
}

fn early_end(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    match outcome.ended {
        Ended::Signal => Some(Note::Signal { elapsed: outcome.elapsed }),
        Ended::StayedAway => Some(Note::StayedAway {
            give_up: plan.give_up.unwrap_or(outcome.elapsed),
            started: outcome.totals.counters.started,
            asked: plan.stop.requests.unwrap_or_default(),
        }),
        // Whoever could not start says so instead of a report.
        Ended::Duration | Ended::Requests | Ended::Refused { .. } => None,
    }
}

fn fewer_connections(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let (opened, asked) = (outcome.totals.counters.slots_opened, u64::from(plan.load.connections));
    let failures = outcome.totals.ledger.totals().connect > 0;
    // All requests were answered before every connection was there: nobody misses those.
    let is_moot = outcome.ended == Ended::Requests && !failures && outcome.descriptors.is_none();
    (opened < asked && !is_moot).then_some(Note::FewerConnections {
        opened,
        asked,
        shortage: outcome.descriptors,
        failures,
    })
}

fn failure(plan: &Plan, outcome: &Outcome, row: &Row) -> Failure {
    let files_needed = host::needed(plan.load.connections, plan.load.threads);
    let mut row = row.clone();
    if let Some(path) = plan.way.unix.as_ref().filter(|_| row.phase == Phase::Connect) {
        row.example = path.display().to_string().into_bytes();
    }
    Failure {
        throughout: row.first_tenth == 0 && row.last_s() + 0.1 >= outcome.elapsed.as_secs_f64(),
        row,
        timeout: plan.timeout,
        // Where the hard limit is too low another note says what to do.
        others_connected: outcome.totals.counters.connects > 0,
        ports: outcome.ports,
        closed_first: outcome.totals.counters.closed_first,
        files_needed: outcome.descriptors.is_none().then_some(files_needed),
    }
}

fn unanswered(outcome: &Outcome) -> Option<Note> {
    if outcome.elapsed.is_zero() {
        // A run that never began owes no answer.
        return None;
    }
    let counters = &outcome.totals.counters;
    let nothing_answered = counters.completed == 0;
    let censored = outcome.totals.censored.as_deref();
    let open = if nothing_answered { counters.open_at_end } else { counters.open_late_at_end.max(stuck(outcome)) };
    let lost = Lost {
        started: counters.started - counters.returned,
        failed: counters.failed,
        abandoned: counters.abandoned,
        open,
        // Requests that are open and not late are in the distribution too, and are nothing unusual.
        youngest_ns: censored.filter(|_| open == counters.open_at_end).and_then(|censored| censored.min()),
        oldest_ns: censored.and_then(|censored| censored.max()),
    };
    match nothing_answered {
        true => Some(Note::NothingAnswered(lost)),
        false => (lost.total() > 0).then_some(Note::Unanswered(lost)),
    }
}

/// Requests open at the end that have waited so much longer than any answer took that they belong to another story.
fn stuck(outcome: &Outcome) -> u64 {
    let Totals { latency, censored, counters, .. } = &outcome.totals;
    let usual_ns = latency.max().map_or(0, |slowest| slowest * 2).max(USUAL_NS);
    let ages = censored.iter().flat_map(|censored| censored.values());
    let older: u64 = ages.filter(|&(age_ns, _)| age_ns > usual_ns).map(|(_, count)| count).sum();
    older.saturating_sub(counters.abandoned).min(counters.open_at_end)
}

fn statuses(outcome: &Outcome) -> Option<Note> {
    let (answers, statuses) = (outcome.totals.counters.completed, &outcome.totals.statuses);
    let doubtful = |class: u16| class != 2 && statuses.class_total(class) * 100 > answers * STATUS_PERCENT;
    if !(0..10).any(doubtful) {
        return None;
    }
    let mut counts: Vec<(u16, u64)> = statuses.iter().collect();
    counts.sort_by_key(|&(status, count)| (Reverse(count), status));
    Some(Note::Statuses { answers, counts, location: outcome.totals.location.clone() })
}

/// What there is to say about a script beside its own words.
fn script(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let counters = &outcome.totals.counters;
    let share = outcome.script_share(plan);
    let cut = counters.cut_bodies;
    let notes =
        [(share > SCRIPT_SHARE).then_some(Note::Script { share }), (cut > 0).then_some(Note::CutBodies { count: cut })];
    notes.into_iter().flatten().collect()
}

/// Resumed sessions, where handshakes are a part of the load.
fn resumed(outcome: &Outcome) -> Option<Note> {
    let Handshakes { total: handshakes, resumed, .. } = outcome.totals.handshakes;
    let matters = resumed * 100 > outcome.totals.counters.completed * RESUMED_PERCENT;
    matters.then_some(Note::Resumed { resumed, handshakes })
}

fn rewriting(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    if plan.dialect.is_compat() {
        return None;
    }
    let Totals { latency, batch_latency, .. } = &outcome.totals;
    let measured_us = batch_latency.as_deref().unwrap_or(latency).mean()? / NS_PER_US;
    let mean_us = rewritten(plan, outcome).mean_us()?;
    ((mean_us - measured_us).abs() > REWRITING_SHARE * measured_us).then_some(Note::Rewritten { mean_us })
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { address, errno, used } => {
                let used: Vec<String> = used.iter().map(SocketAddr::to_string).collect();
                let (why, used) = (errno::words(*errno), used.join(", "));
                write!(f, "{address} was left out: {why} at the start; the load went to {used}")
            }
            Self::Signal { elapsed: Duration::ZERO } => {
                f.write_str("ended by a signal before anything was measured: the warm-up was not over")
            }
            Self::Signal { elapsed } => {
                let elapsed = time_us(elapsed.as_nanos() as f64 / NS_PER_US);
                write!(f, "ended by a signal after {elapsed}: the report covers only that time")
            }
            Self::StayedAway { give_up, started, asked } => {
                let (give_up, started, asked) = (exact(*give_up), thousands(*started), counted(*asked, "request"));
                write!(f, "the target stayed away for {give_up}: the run ended after {started} of {asked}")
            }
            Self::FewerConnections { opened, asked, shortage, failures } => {
                match opened {
                    0 => write!(f, "none of {} connections lived", thousands(*asked))?,
                    _ => write!(f, "only {} of {} connections lived", thousands(*opened), thousands(*asked))?,
                }
                match shortage {
                    Some(shortage) => write!(f, ": {}", too_few_files(shortage)),
                    None if *failures => Ok(()),
                    None => f.write_str(": the run ended before the others were open"),
                }
            }
            Self::Failure(failure) => write!(f, "{failure}"),
            Self::Unanswered(lost) => {
                let share = lost.total() as f64 / lost.started.max(1) as f64 * 100.0;
                write!(f, "{share:.2} % of {} got no answer: {lost}", counted(lost.started, "request"))
            }
            Self::NothingAnswered(Lost { started: 0, .. }) => {
                f.write_str("nothing was answered: no request could be sent")
            }
            Self::NothingAnswered(lost) => {
                write!(f, "nothing was answered: of {} {lost}", counted(lost.started, "request"))
            }
            Self::Statuses { answers, counts, location } => {
                f.write_str(&statuses_line(*answers, counts, location.as_deref()))
            }
            Self::Clamped { count } => {
                write!(f, "latencies longer than an hour: {}, recorded as one hour", thousands(*count))
            }
            Self::Script { share } => {
                let percent = share * 100.0;
                write!(
                    f,
                    "the threads spent {percent:.0} % of their time inside the script: it limits the load; do less in it, \
                     or add threads (-t)"
                )
            }
            Self::CutBodies { count } => {
                let bodies = if *count == 1 { "body" } else { "bodies" };
                write!(
                    f,
                    "the script saw only the beginning of {} {bodies}: all that are being read at one time share 256 MiB; \
                     use fewer connections (-c), or do without the third parameter of response()",
                    thousands(*count)
                )
            }
            Self::Resumed { resumed, handshakes } => f.write_str(&resumed_line(*resumed, *handshakes)),
            Self::Rewritten { mean_us } => {
                let mean = time_us(*mean_us);
                write!(f, "latency as measured; wrk would print Avg {mean}: see docs/measuring.md")
            }
        }
    }
}

impl Lost {
    fn total(&self) -> u64 {
        self.failed + self.abandoned + self.open
    }

    /// How long those lasted of which that is known.
    fn ages(&self) -> String {
        let text = |ns: u64| time_us(ns as f64 / NS_PER_US);
        match (self.youngest_ns.map(text), self.oldest_ns.map(text)) {
            _ if self.abandoned + self.open == 0 => String::new(),
            (Some(youngest), Some(oldest)) if youngest != oldest => format!(" (after {youngest} to {oldest})"),
            (Some(_), Some(oldest)) => format!(" (after {oldest})"),
            (None, Some(oldest)) => format!(" (after up to {oldest})"),
            (_, None) => String::new(),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fates = [(self.failed, "failed"), (self.abandoned, "abandoned"), (self.open, "still open at the end")];
        let fates = fates.into_iter().filter(|&(count, _)| count > 0);
        let fates: Vec<String> = fates.map(|(count, fate)| format!("{} {fate}", thousands(count))).collect();
        write!(f, "{}{}", fates.join(", "), self.ages())
    }
}

fn statuses_line(answers: u64, counts: &[(u16, u64)], location: Option<&str>) -> String {
    let answers = thousands(answers);
    let location = location.map(|location| escape(location.as_bytes()));
    match (counts, location) {
        ([(status @ 300..400, _)], Some(location)) => {
            format!("all {answers} answers were {status} to {location}: you measured the redirect")
        }
        ([(status, _)], _) => format!("all {answers} answers were {status}: --once shows one in full"),
        (_, location) => {
            let (named, others) = counts.split_at(counts.len().min(STATUSES_NAMED));
            let mut parts: Vec<String> =
                named.iter().map(|&(status, count)| format!("{} × {status}", thousands(count))).collect();
            let others: u64 = others.iter().map(|&(_, count)| count).sum();
            parts.extend((others > 0).then(|| format!("{} × others", thousands(others))));
            let redirect = location.map_or(String::new(), |location| format!("; a redirect leads to {location}"));
            format!("of {answers} answers: {}{redirect}", parts.join(", "))
        }
    }
}

fn resumed_line(resumed: u64, handshakes: u64) -> String {
    let (resumed, handshakes) = (thousands(resumed), counted(handshakes, "TLS handshake"));
    format!(
        "{resumed} of {handshakes} resumed an earlier session, which costs less than a new client does: --tls-resume off \
         has none resumed"
    )
}

fn too_few_files(shortage: &Shortage) -> String {
    let (hard, needed) = (thousands(shortage.hard), thousands(shortage.needed));
    let nofile = shortage.needed;
    format!("{hard} open files are allowed, {needed} needed; 'sudo prlimit --pid $$ --nofile={nofile}' allows them")
}

#[cfg(test)]
mod tests;
