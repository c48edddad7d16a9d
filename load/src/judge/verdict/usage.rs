//! The utilization line of `-v`.

use super::words::{format_count, format_number, format_percent};
use crate::record::evidence::{Evidence, Load, Places, Target, Thread};

/// Maximum number of threads listed one by one.
const LISTED: usize = 4;

/// A line on threads, connections and, if visible, the target.
pub fn usage_line(evidence: &Evidence) -> String {
    let parts = [
        thread_usage(&evidence.generator.threads),
        Some(connection_usage(&evidence.load)),
        target_usage(evidence.target.as_ref()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn thread_usage(threads: &[Thread]) -> Option<String> {
    let busiest = threads.iter().max_by(|one, other| one.busy.total_cmp(&other.busy))?;
    let words = |thread: &Thread| {
        let worked = format_percent(thread.worked());
        let script = if thread.script > 0.0 {
            format!(" ({} in the script)", format_percent(thread.script))
        } else {
            String::new()
        };
        let queued = thread
            .queued
            .map_or(String::new(), |queued| format!(" and waited for a processor {}", format_percent(queued)));
        format!("worked {worked} of the time{script}{queued}")
    };
    Some(match threads {
        [only] => format!("onrush's thread {}", words(only)),
        few if few.len() <= LISTED => {
            let each = (1..).zip(few).map(|(thread, it): (usize, _)| format!("onrush's thread {thread} {}", words(it)));
            each.collect::<Vec<_>>().join(", ")
        }
        many => format!("the busiest of onrush's {} threads {}", many.len(), words(busiest)),
    })
}

fn connection_usage(load: &Load) -> String {
    let Places { never_established, waiting, connecting, pausing, leaving, done } = load.places;
    let places = [
        (load.hanging as f64, "requests hung at the end"),
        (never_established, "were never established"),
        (waiting, "waited to reconnect"),
        (connecting, "were connecting"),
        (pausing, "paused"),
        (leaving, "waited to be closed"),
        (done, "had nothing left to send"),
    ];
    // Skips states that would print as 0.
    let places = places
        .into_iter()
        .filter(|(mean, _)| *mean >= 0.05)
        .map(|(mean, what)| format!("{} {what}", format_number(mean)));
    let in_flight = format!(
        "on {}, {} requests were in flight",
        format_count(load.connections, "connection"),
        format_number(load.in_flight)
    );
    std::iter::once(in_flight).chain(places).collect::<Vec<_>>().join(", ")
}

fn target_usage(target: Option<&Target>) -> Option<String> {
    let Target { name, busiest_thread, cpus_used, cpus_allowed, queued, .. } = target?;
    let queued = queued
        .map_or(String::new(), |queued| format!(", one waited for a processor {} of the time", format_percent(queued)));
    Some(format!(
        "{name} used {} of {} processors, its busiest thread worked {} of the time{queued}",
        format_number(*cpus_used),
        format_number(*cpus_allowed),
        format_percent(*busiest_thread)
    ))
}
