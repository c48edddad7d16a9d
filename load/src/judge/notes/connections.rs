//! Notes on the number of connections established and on their buffers.

use onrush_plan::Partition;
use onrush_plan::levels::{self, ConnectionLevels};
use onrush_text::units::{format_count, format_thousands};
use rustix::io::Errno;

use super::facts::{NoteFacts, duration};
use crate::failure::{errno_words, file_limit_message};
use crate::record::{Buffer, Document, Ended, Level, Note, NoteId, Shortage};

/// In nanoseconds. A stage that needs a connection for less time may end before the connection is established.
const OPENING_NS: u64 = 1_000_000_000;

/// The notes on buffers that the kernel made smaller than requested.
pub fn capped_buffers(document: &Document) -> Vec<Note> {
    let Some(sockets) = &document.sockets else { return Vec::new() };
    let both = [("--rcvbuf", "net.core.rmem_max", sockets.rcvbuf), ("--sndbuf", "net.core.wmem_max", sockets.sndbuf)];
    let note = |(option, setting, buffer): (_, _, Option<Buffer>)| {
        let buffer = buffer?;
        // The kernel doubles the requested size.
        let (requested, given) = (buffer.requested?, buffer.effective_min / 2);
        let text = || capped_line(option, setting, requested, given);
        (given < requested).then(|| Note::doubt(NoteId::BufferCapped, text()))
    };
    both.into_iter().filter_map(note).collect()
}

/// The note on a run with fewer connections than requested; `None` if there were enough, or if the missing ones were
/// not needed.
pub fn fewer_connections(facts: &NoteFacts<'_>) -> Option<Note> {
    let Document { connections, plan, errors, ended, .. } = facts.document;
    let (opened, shortage) = (connections.established, connections.shortage);
    // With stages, count only connections that had enough time to open.
    let least_ns = OPENING_NS.min(facts.elapsed_ns).max(1);
    let stages = plan.connection_stages.as_deref();
    let asked =
        stages.map_or(plan.connections, |stages| planned_connections(stages).most_held_for(least_ns, facts.elapsed_ns));
    let asked = u64::from(asked);
    // Each machine with room for too few connections has its own note.
    let machines = &facts.document.machines;
    let asked = if machines.is_empty() { asked } else { asked.min(machines.iter().map(|it| it.connections).sum()) };
    // Each kind of failure has its own note.
    let failures = errors.connect > 0;
    // If all requests completed before every connection was established, the missing ones were not needed.
    let is_moot = *ended == Some(Ended::Requests) && !failures && shortage.is_none();
    let room = shortage.and_then(|shortage| shortage.room);
    let is_full = room.is_some_and(|room| opened >= room);
    // A lack of room was reported before the run, but does not explain an even smaller number.
    let asked = if is_full { asked } else { room.map_or(asked, |room| asked.min(room)) };
    if opened >= asked || is_moot || plan.once {
        return None;
    }
    let shortage = shortage.filter(|_| is_full || ran_out_of_files(facts.document));
    let text = fewer_line(opened, asked, shortage.as_ref(), failures, stages.is_some());
    Some(Note { was_announced: room == Some(opened), ..Note::doubt(NoteId::FewerConnections, text) })
}

/// The planned number of connections over time.
fn planned_connections(stages: &[Level]) -> ConnectionLevels {
    let level =
        |level: &Level| levels::ConnectionLevel { length: duration(level.length_s), from: level.from, to: level.to };
    ConnectionLevels { stages: stages.iter().map(level).collect(), part: Partition::WHOLE }
}

/// True if a connection could not be opened for lack of a file descriptor.
fn ran_out_of_files(document: &Document) -> bool {
    let causes = [Errno::MFILE, Errno::NFILE].map(|errno| errno_words(errno.raw_os_error()));
    document.ledger.iter().any(|row| causes.contains(&row.cause))
}

fn capped_line(option: &str, setting: &str, requested: u32, given: u32) -> String {
    let (given, wanted) = (format_thousands(u64::from(given)), format_thousands(u64::from(requested)));
    format!(
        "{option}: connections had {given} bytes, not {wanted}: {setting} allows no more; \
         'sysctl -w {setting}={requested}' raises it"
    )
}

fn fewer_line(opened: u64, asked: u64, shortage: Option<&Shortage>, failures: bool, staged: bool) -> String {
    let is_one = asked == 1;
    let asked = format_count(asked, "connection");
    // Counts connections requested at the same time, for long enough to be established.
    let (the, so_far) = if staged { ("the ", " that the stages had asked for so far") } else { ("", "") };
    let count = match opened {
        _ if is_one => format!("the connection{so_far} was not"),
        0 => format!("none of the {asked}{so_far} was"),
        _ => format!("only {} of {the}{asked}{so_far} were", format_thousands(opened)),
    };
    let why = match shortage {
        Some(shortage) => format!(": {}", file_limit_message(shortage.needed, shortage.allowed)),
        None if failures || staged => String::new(),
        None => " before the run ended".to_owned(),
    };
    format!("{count} established{why}")
}
