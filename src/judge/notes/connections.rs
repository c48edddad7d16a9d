//! Notes on connections: how many were established, and with which buffers.

use onrush_plan::Plan;
use onrush_stats::Cause;
use onrush_stats::buffers::Sizes;
use onrush_text::units::{counted, thousands};
use rustix::io::Errno;

use crate::failure::too_few_files;
use crate::record::{Note, NoteId};
use crate::run::{Ended, Outcome, Shortage, host, nanos};

/// Connections that stages ask for only this long, in nanoseconds, may not be established before they are no longer
/// wanted.
const OPENING_NS: u64 = 1_000_000_000;

/// The buffers that the kernel made smaller than requested.
pub fn capped(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    let (asked, had) = (&plan.way.socket, outcome.buffers);
    let both = [
        ("--rcvbuf", "net.core.rmem_max", asked.rcvbuf, had.rcvbuf),
        ("--sndbuf", "net.core.wmem_max", asked.sndbuf, had.sndbuf),
    ];
    let note = |(option, setting, requested, had): (_, _, Option<u32>, Option<Sizes>)| {
        // The kernel doubles the requested size.
        let (requested, given) = (requested?, had?.min / 2);
        let text = || capped_line(option, setting, requested, given);
        (given < requested).then(|| Note::doubt(NoteId::BufferCapped, text()))
    };
    both.into_iter().filter_map(note).collect()
}

/// The note on a run with fewer connections than asked for.
pub fn fewer(plan: &Plan, outcome: &Outcome) -> Option<Note> {
    let opened = outcome.totals.counters.slots_opened;
    let elapsed_ns = nanos(outcome.elapsed);
    // With stages, only connections that there was time to open count.
    let least_ns = OPENING_NS.min(elapsed_ns).max(1);
    let asked = plan.levels.as_ref().map_or(plan.load.connections, |levels| levels.most_for(least_ns, elapsed_ns));
    let asked = u64::from(asked);
    // Each kind of failure has its own note.
    let failures = outcome.totals.ledger.totals().connect > 0;
    // All requests completed before every connection was established: the others were not needed.
    let is_moot = outcome.ended == Ended::Requests && !failures && outcome.descriptors.is_none();
    let room = host::room(plan, outcome.descriptors).map(u64::from);
    let is_full = room.is_some_and(|room| opened >= room);
    // That there was no room for more was said before the run, and is not why even fewer were established.
    let asked = if is_full { asked } else { room.map_or(asked, |room| asked.min(room)) };
    if opened >= asked || is_moot || plan.once {
        return None;
    }
    let shortage = outcome.descriptors.filter(|_| is_full || ran_out_of_files(outcome));
    let text = fewer_line(opened, asked, shortage.as_ref(), failures, plan.levels.is_some());
    Some(Note { was_announced: room == Some(opened), ..Note::doubt(NoteId::FewerConnections, text) })
}

/// Whether a connection could not be opened for lack of a file descriptor.
fn ran_out_of_files(outcome: &Outcome) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(|errno| Cause::Errno(errno.raw_os_error()));
    outcome.totals.ledger.rows().iter().any(|row| codes.contains(&row.cause))
}

fn capped_line(option: &str, setting: &str, requested: u32, given: u32) -> String {
    let (given, wanted) = (thousands(u64::from(given)), thousands(u64::from(requested)));
    format!(
        "{option}: connections had {given} bytes, not {wanted}: {setting} allows no more; \
         'sysctl -w {setting}={requested}' raises it"
    )
}

fn fewer_line(opened: u64, asked: u64, shortage: Option<&Shortage>, failures: bool, staged: bool) -> String {
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
