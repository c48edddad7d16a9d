//! Descriptions of failures: why a run could not start or was cut short, and the rows of the ledger.
//!
//! `row` describes a row of the ledger and its remedy; `errno`, `tls`, `proxy` and `check` describe its causes.

mod check;
mod errno;
mod proxy;
mod row;
mod tls;

pub use check::describe_failed_check as failed_check;
pub use errno::{describe_errno as errno_words, errno_meaning};
pub use row::{
    EXPECTS_TLS, Failure, describe_cause, describe_row_cause, file_limit_message, is_local_exhaustion, wrk_error_class,
};
pub use tls::handshake_lines;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use onrush_plan::Plan;
use onrush_stats::{Cause, FailureRow, Phase};
use onrush_text::{escape, units};
use rustix::io::Errno;

use crate::run::{Breakdown, Outcome, Shortage, Waiting, host};
use crate::script::Exit;

/// The sentence on a run that could not start because no server accepted a first connection. `address` and `cause` are
/// those of the last attempt.
pub fn start_refusal(plan: &Plan, outcome: &Outcome, address: SocketAddr, cause: Cause) -> String {
    let rows = outcome.totals.ledger.rows();
    let is_about_tls = rows.iter().any(|row| (row.phase, row.cause) == (Phase::Tls, cause));
    let peer = peer_name(plan, address, is_about_tls);
    match cause {
        Cause::Errno(number) if errno::known_errno(number) == Some(Errno::CONNREFUSED) => {
            format!("unable to connect to {peer}: {}: nothing listens there", errno::describe_errno(number))
        }
        Cause::Proxy(failure) => format!("no tunnel through {peer}: {}", proxy::proxy_failure_sentence(failure)),
        Cause::Tls(failure) => {
            let row = rows.iter().find(|row| row.cause == cause);
            let example = row.map_or(&[][..], |row| &row.example);
            let sentence = tls::tls_failure_sentence(failure, example, row::offered_versions(plan));
            format!("TLS handshake with {peer} failed: {sentence}")
        }
        Cause::Unanswered if is_about_tls => tls::unanswered_handshake_message(&peer),
        Cause::Protocol(_) | Cause::Status(_) => other_protocol_message(plan, outcome, address, cause),
        _ => connect_failure_message(plan, outcome, address, is_about_tls, cause),
    }
}

/// The sentence on a target that answers every request in another protocol, with the remedy.
fn other_protocol_message(plan: &Plan, outcome: &Outcome, address: SocketAddr, cause: Cause) -> String {
    // TLS and tunnels end behind the proxy.
    let is_behind =
        plan.tls.is_some() || plan.connect.proxy.as_ref().is_some_and(|it| it.tunnel_request(&plan.target).is_some());
    let peer = peer_name(plan, address, is_behind);
    if let Cause::Status(status) = cause {
        return format!("{peer} answers every request with status {status}: {EXPECTS_TLS}");
    }
    let found = outcome.totals.ledger.rows().iter().find(|row| row.cause == cause).cloned();
    let row = found.unwrap_or(FailureRow {
        phase: Phase::Head,
        cause,
        count: 1,
        first_tenth: 0,
        last_tenth: 0,
        example: Vec::new(),
    });
    let failure = Failure::from_row(plan, outcome, &row);
    let remedy = failure.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
    let received = if row.example.is_empty() { String::new() } else { format!(" (\"{}\")", escape(&row.example)) };
    format!(
        "{peer} does not answer in {}: {}{received}{remedy}",
        failure.expected_protocol(),
        describe_cause(cause, plan)
    )
}

/// The sentence on a connection that could not be established, with the remedy.
fn connect_failure_message(
    plan: &Plan,
    outcome: &Outcome,
    address: SocketAddr,
    is_about_tls: bool,
    cause: Cause,
) -> String {
    let phase = if is_about_tls { Phase::Tls } else { Phase::Connect };
    let example = address.to_string().into_bytes();
    let row = FailureRow { phase, cause, count: 1, first_tenth: 0, last_tenth: 0, example };
    let failure = Failure { shortage: outcome.descriptors, ..Failure::from_row(plan, outcome, &row) };
    let remedy = failure.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
    let peer = peer_name(plan, address, is_about_tls);
    let why = describe_cause(cause, plan);
    if is_about_tls {
        return format!("TLS handshake with {peer} failed: {why}{remedy}");
    }
    format!("unable to connect to {peer}: {why}{remedy}")
}

/// The name of the peer of a connection to `address`.
fn peer_name(plan: &Plan, address: SocketAddr, is_about_tls: bool) -> String {
    match (&plan.connect.unix, &plan.connect.proxy) {
        (Some(path), _) => path.display().to_string(),
        // TLS runs with the target behind the proxy.
        (None, Some(_)) if is_about_tls => plan.target.authority(),
        (None, Some(_)) => format!("the proxy {address}"),
        (None, None) => address.to_string(),
    }
}

/// The line printed while a run waits for its target.
pub fn waiting_line(plan: &Plan, waiting: &Waiting) -> String {
    let peer = peer_name(plan, waiting.address, matches!(waiting.cause, Cause::Tls(_)));
    let why = match waiting.cause {
        Cause::Errno(number) => errno_meaning(number),
        cause => describe_cause(cause, plan),
    };
    format!("onrush: waiting for {peer} ({why}), up to {}", units::format_duration_spaced(waiting.limit))
}

/// A sentence for each script function in which threads did not return in time, so that measurements are missing.
pub fn stuck_thread_lines(outcome: &Outcome) -> Vec<String> {
    sentences_on_stuck(&outcome.stuck, |they| format!("what {they} measured last is missing from the report"))
}

/// A sentence for each script function in which threads have been stuck since the end of the run. The report is
/// complete, but `done` was not called.
pub fn late_stuck_thread_lines(outcome: &Outcome) -> Vec<String> {
    sentences_on_stuck(&outcome.stuck_after, |_| {
        "the report is complete, but a done() of the script was not called".to_owned()
    })
}

fn sentences_on_stuck(stuck: &[(usize, &'static str)], missing: impl Fn(&str) -> String) -> Vec<String> {
    let mut threads_in: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for &(thread, callback) in stuck {
        threads_in.entry(callback).or_default().push(thread.to_string());
    }
    let sentence = |(callback, threads): (&str, Vec<String>)| {
        let (threads, are, they) = match &threads[..] {
            [thread] => (format!("thread {thread}"), "is", "it"),
            _ => (format!("threads {}", threads.join(", ")), "are", "they"),
        };
        let missing = missing(they);
        format!(
            "{threads} {are} still in the script's {callback}() more than a second after {they} should have ended: \
             {missing}; look for an endless loop or a blocking call in {callback}()"
        )
    };
    threads_in.into_iter().map(sentence).collect()
}

/// The sentence on threads ended by the script.
pub fn ended_by_script_message(outcome: &Outcome) -> String {
    let threads = units::format_count(outcome.workers.len() as u64, "thread");
    format!("the script ended {} of {threads} before the run was over", outcome.stopped.len())
}

/// The reasons why a run is incomplete: it was cut short, or threads or machines are missing. `None` for a complete
/// run.
pub fn incompleteness_reason(outcome: &Outcome) -> Option<String> {
    let breakdown = outcome.breakdown.as_ref().map(|breakdown| match breakdown {
        Breakdown::Script(words) => words.clone(),
        Breakdown::Exit(code) => Exit(*code).to_string(),
        Breakdown::Bug(thread) => thread_panic_message(*thread),
    });
    let lost = outcome.machines.iter().filter_map(|machine| machine.lost.clone());
    let reasons: Vec<String> = breakdown.into_iter().chain(stuck_thread_lines(outcome)).chain(lost).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The sentence on a thread (numbered from 1) that panicked because of a bug in onrush.
pub fn thread_panic_message(thread: usize) -> String {
    format!(
        "thread {thread} died because of the bug named above; the report ends there, without the thread's last tenth \
         of a second"
    )
}

/// The note printed before a run that has too few open files or local ports for its connections; `None` if there are
/// enough. `ports`: the number of local ports, if too small.
pub fn shortage_note(plan: &Plan, shortage: Option<Shortage>, ports: Option<u64>) -> Option<String> {
    let connections = units::format_count(u64::from(plan.load.connections), "connection");
    let room = host::connections_within_limit(plan, shortage).zip(shortage);
    let (there_are, more_ports) = (|ports| units::format_thousands(ports), row::MORE_PORTS);
    match (room, ports) {
        (None, None) => None,
        (None, Some(ports)) => Some(format!(
            "note: {connections} need as many local ports, but there are only {}; {more_ports}",
            there_are(ports)
        )),
        (Some((room, shortage)), ports) => {
            // Without room for a connection on each thread, other things may lack file descriptors as well.
            let is_known = shortage.hard >= host::descriptors_needed(room, plan.load.threads);
            let is_fewer = is_known && room < plan.load.connections;
            let (room, files) =
                (units::format_thousands(u64::from(room)), file_limit_message(shortage.needed, shortage.hard));
            let ports =
                ports.map(|ports| format!("; there are only {} local ports, too; {more_ports}", there_are(ports)));
            let fewer = if is_fewer { format!("running with {room} of {connections}: ") } else { String::new() };
            Some(format!("note: {fewer}{files}{}", ports.unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;

    use super::*;
    use crate::fixtures::plan;

    #[test]
    fn missing_files_and_ports_are_one_line() {
        let native = plan(Dialect::Native, "http://h/", 10, 2, 100_000);
        let files = Some(Shortage { needed: 100_036, hard: 20_000 });
        assert_eq!(shortage_note(&native, None, None), None);
        let said = |files, ports| shortage_note(&native, files, ports).unwrap_or_default();
        let (limit, ports) = (
            "note: running with 19,964 of 100,000 connections: the limit is 20,000 open files, but 100,036 are needed; \
             'sudo prlimit --pid $$ --nofile=100036' raises the limit",
            "use more source addresses (-b) or more addresses of the target, or widen net.ipv4.ip_local_port_range",
        );
        assert_eq!(said(files, None), limit);
        assert_eq!(said(files, Some(28_232)), format!("{limit}; there are only 28,232 local ports, too; {ports}"));
        let alone = "note: 100,000 connections need as many local ports, but there are only 28,232; ";
        assert_eq!(said(None, Some(28_232)), format!("{alone}{ports}"));
        // Each thread has at least one connection, with or without room for it.
        let few = plan(Dialect::Native, "http://h/", 10, 8, 8);
        let limit =
            "note: the limit is 12 open files, but 56 are needed; 'sudo prlimit --pid $$ --nofile=56' raises the limit";
        assert_eq!(shortage_note(&few, Some(Shortage { needed: 56, hard: 12 }), None).as_deref(), Some(limit));
        let none = "note: the limit is 5 open files, but 100,036 are needed; 'sudo prlimit --pid $$ --nofile=100036' \
                    raises the limit";
        assert_eq!(said(Some(Shortage { needed: 100_036, hard: 5 }), None), none);
        // wrk tries all connections and counts the errors.
        let as_wrk = plan(Dialect::Wrk, "http://h/", 10, 2, 100_000);
        assert_eq!(shortage_note(&as_wrk, files, None), None);
    }
}
