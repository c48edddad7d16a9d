//! First lines of a report: the run, its length, and its load.

use std::time::Duration;

use onrush_plan::machines::Machines;
use onrush_plan::secrets::{self, KnownSecrets};
use onrush_plan::{Dialect, Plan, Stop};
use onrush_text::escape_controls;
use onrush_text::units::{self, format_count};

use crate::record::{self, Document};

/// The lines printed before the run; `room`: number of connections that fit under the open-file limit, if it is too
/// low.
pub fn opening(plan: &Plan, room: Option<u32>) -> String {
    // Reports are passed around like files. wrk's report shows the URL as typed.
    let url = match plan.dialect.is_compat() {
        true => plan.target.typed.clone(),
        false => KnownSecrets::from_plan(plan).redact_typed(&plan.target.typed, secrets::redact_url),
    };
    let schedule = plan.schedule.as_ref().filter(|_| !plan.dialect.is_compat()).map(record::Schedule::of);
    let head = format!("Running {} test @ {url}", end_condition(plan.stop));
    let http2 = http2_line(record::AskedHttp2::of(&plan.http), plan.http.versions.len() > 1, plan.script.is_some());
    let list = plan.list.as_ref().map(|list| list_line(list.length, list.order.name(), &list.file.name));
    let load = first_lines(&head, plan.load.threads.into(), plan.load.connections.into(), room.map(u64::from));
    // A machine without a request to send does not take part.
    let has_part = |machines: &Machines| u64::from(machines.count).min(plan.stop.requests.unwrap_or(u64::MAX));
    let machines = machines_line(plan.output.machines.as_ref().map_or(0, has_part));
    load + &machines + &list.unwrap_or_default() + &http2 + &rate_line(schedule.as_ref(), "")
}

/// The first lines of the text for a document: onrush's if it is the report of an onrush run, otherwise wrk's.
/// `is_report`: the form is [`ReportForm::Report`](super::form::ReportForm::Report).
pub fn for_document(document: &Document, is_report: bool) -> String {
    let plan = &document.plan;
    let url = escape_controls(&plan.url);
    let is_native = is_report && document.imitates(Dialect::Native);
    let may_be_http1 = plan.tls.as_ref().is_some_and(|tls| tls.alpn.len() > 1);
    let http2 = http2_line(plan.http2.filter(|_| is_native), may_be_http1, plan.script.is_some());
    let schedule = plan.schedule.as_ref().filter(|_| is_native);
    let list = plan.list.as_ref().filter(|_| is_native);
    let list = list.map_or(String::new(), |list| list_line(list.requests, &list.order, &list.path));
    if let Some(sources) = document.sources.as_ref().filter(|sources| sources.count > 1) {
        let lasted = document.elapsed();
        let head = match is_native {
            true => format!(
                "Sum of {} over {} @ {url}",
                format_count(sources.count, "run"),
                units::format_us(microseconds(lasted))
            ),
            false => format!("Running {} test @ {url}", units::format_duration(round_duration(lasted))),
        };
        let threads = sources.threads();
        return first_lines(&head, threads, document.connections.asked, None)
            + &list
            + &http2
            + &rate_line(schedule, " each");
    }
    // A century is longer than any run, and does not overflow a `Duration`.
    let duration = plan.duration_s.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 3e9)));
    let head = format!("Running {} test @ {url}", end_condition(Stop { duration, requests: plan.requests }));
    let machines = if is_native { machines_line(document.machines.len() as u64) } else { String::new() };
    let room = document.connections.shortage.and_then(|shortage| shortage.room);
    let load = first_lines(&head, plan.threads.into(), plan.connections.into(), room);
    load + &machines + &list + &http2 + &rate_line(schedule, "")
}

/// Limit of a run: its duration or its number of requests.
fn end_condition(stop: Stop) -> String {
    match stop {
        Stop { duration: None, requests: Some(requests) } => format!("{requests} requests"),
        Stop { duration, .. } => units::format_duration(duration.unwrap_or_default()),
    }
}

/// The first line, and the line about threads and connections, of which there are at most `room`.
fn first_lines(head: &str, threads: u64, asked: u64, room: Option<u64>) -> String {
    let connections = room.unwrap_or(asked);
    let of = if connections < asked { format!(" of the {asked} asked for") } else { String::new() };
    format!("{head}\n  {threads} threads and {connections} connections{of}\n")
}

/// The line about several machines, which share the connections. Each machine has all the threads.
fn machines_line(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "  run by 1 machine\n".to_owned(),
        _ => format!("  run by {count} machines, each with up to that many threads\n"),
    }
}

/// The line about a list of requests.
fn list_line(length: u64, order: &str, file: &str) -> String {
    let order = match order {
        "shuffle" => "in an order drawn at random",
        "weighted" => "drawn by weight",
        _ => "one after the other",
    };
    format!("  {} from {}, {order}\n", format_count(length, "request"), escape_controls(file))
}

/// The line about HTTP/2, which wrk does not have. `may_be_http1`: the server chooses. With a script, the number of
/// streams that its batches need is not known yet.
fn http2_line(asked: Option<record::AskedHttp2>, may_be_http1: bool, has_script: bool) -> String {
    let line = |asked: record::AskedHttp2| {
        let versions = if may_be_http1 { "HTTP/2 or HTTP/1.1" } else { "HTTP/2" };
        let streams = match asked.streams {
            None if has_script => String::new(),
            None | Some(1) => ", 1 stream on each connection".to_owned(),
            Some(streams) => format!(", up to {} on each connection", format_count(streams.into(), "stream")),
        };
        format!("  {versions}{streams}\n")
    };
    asked.map_or(String::new(), line)
}

/// The line that marks a report with a rate, in which latency is defined differently.
fn rate_line(schedule: Option<&record::Schedule>, each: &str) -> String {
    let line = |it: &record::Schedule| {
        format!("  {} requests/s{each}, latency counted from when each request was due\n", it.asked())
    };
    schedule.map_or(String::new(), line)
}

/// Duration of several runs, rounded as on a command line.
fn round_duration(lasted: Duration) -> Duration {
    match lasted.as_secs() {
        0 => Duration::from_millis((lasted.as_secs_f64() * 1e3).round() as u64),
        _ => Duration::from_secs(lasted.as_secs_f64().round() as u64),
    }
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64
}
