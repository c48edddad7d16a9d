//! Rules on missing connections, idle connections, and the accept queue.

use super::ruling::{Ruling, make_ruling};
use super::words::{format_count, format_number, format_percent};
use crate::record::NoteId;
use crate::record::evidence::{Evidence, Listening, Load, Places};
use onrush_plan::LimitedBy;

/// Missing connections matter if they are at least this share of the number requested.
const MISSING: f64 = 0.05;
/// Idle connections were the limit if they idled for at least this share of the time.
const UNUSED: f64 = 0.5;
/// The notes on missing connections.
const MISSED: &[NoteId] = &[NoteId::FewerConnections, NoteId::Idle];

pub(super) fn rule_on_ports(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    (load.without_port > 0 && misses_connections(load)).then_some(())?;
    let reason = format!(
        "{} failed, and {} of {} were missing on average",
        format_count(load.without_port, "connection attempt"),
        format_number(load.missing),
        format_count(load.connections, "connection")
    );
    let advice = "use more source addresses (-b), or widen net.ipv4.ip_local_port_range";
    Some(make_ruling(LimitedBy::Ports, "onrush ran out of local ports", reason, advice)?.saying(MISSED))
}

/// Connections that idled for half of the time, because they paused for the script or waited for the server to close
/// them. A silent target may have had nothing to answer.
pub(super) fn rule_on_idle_connections(Evidence { load, .. }: &Evidence) -> Option<Ruling> {
    let idle = load.idle.filter(|idle| load.asked_per_s.is_none() && *idle >= UNUSED)?;
    let (why, advice) = match load.places {
        Places { pausing, leaving, .. } if leaving > pausing => ("they waited for the server to close them", ""),
        Places { pausing, .. } if pausing > 0.0 => ("they paused for the script", " or shorter pauses"),
        _ => return None,
    };
    let reason = format!("for {} of the time {why}", format_percent(idle));
    Some(
        make_ruling(
            LimitedBy::Connections,
            "idle connections are the limit",
            reason,
            &format!("use more connections (-c){advice}"),
        )?
        .saying(&[NoteId::Idle]),
    )
}

pub(super) fn rule_on_accept_queue(Evidence { load, target, .. }: &Evidence) -> Option<Ruling> {
    let listening =
        target.as_ref()?.listening.filter(|listening| misses_connections(load) && is_accept_queue_full(listening))?;
    let overflows = listening.overflows.filter(|overflows| *overflows > 0);
    let overflows =
        overflows.map_or(String::new(), |overflows| format!(" and overflowed {}", format_count(overflows, "time")));
    let reason = format!(
        "its accept queue of {} was full{overflows}, and {} of {} were missing on average",
        format_number(f64::from(listening.limit)),
        format_number(load.missing),
        format_count(load.connections, "connection")
    );
    let advice = "raise its backlog and net.core.somaxconn, or have it accept faster";
    Some(make_ruling(LimitedBy::Target, "the target accepts connections too slowly", reason, advice)?.saying(MISSED))
}

/// True if an accept queue was seen full. Overflows alone may concern another server, because the kernel counts those
/// of all servers together.
pub(super) fn is_accept_queue_full(listening: &Listening) -> bool {
    listening.waiting_max > 0 && listening.waiting_max >= listening.limit
}

/// True if a notable share of the requested connections was missing.
fn misses_connections(load: &Load) -> bool {
    load.missing >= MISSING * load.connections as f64
}
