//! Notes on the machines of a run: losses, limits, and differences.

use std::collections::BTreeSet;
use std::time::Duration;

use onrush_text::units::{format_count, format_percentage, format_us};

use super::format_seconds;
use crate::failure::file_limit_message;
use crate::record::{Document, Machine, Note, NoteId, Shortage, Weight};

/// A machine is far away if its round trip is at least this many times the shortest one, and at least this long.
const FAR_TIMES: f64 = 5.0;
const FAR: Duration = Duration::from_millis(2);
/// A machine that started at least this late is named.
const LATE: Duration = Duration::from_millis(1);
/// A machine gets a note if it ended at least this much earlier than the others, in seconds and as a share of the run.
const SHORT_S: f64 = 0.2;
const SHORT: f64 = 0.05;
/// Maximum number of machines named in a note.
const NAMED: usize = 5;

pub(super) fn machine_notes(document: &Document) -> Vec<Note> {
    let machines = &document.machines;
    let mut notes: Vec<Note> = machines.iter().filter_map(|machine| lost_machine(document, machine)).collect();
    notes.extend((1..).zip(machines).filter_map(too_few_files_note));
    notes.extend((1..).zip(machines).filter_map(machine_limit));
    notes.extend((1..).zip(machines).filter_map(late_machine));
    notes.extend((1..).zip(machines).filter_map(|machine| short_machine(document, machine)));
    notes.extend(differing_machines("kernels", machines, |machine| &machine.kernel));
    notes.extend(differing_machines("kernel interfaces", machines, |machine| &machine.backend));
    notes.extend(far_machines(machines));
    notes
}

fn machine_note(id: NoteId, weight: Weight, text: String) -> Note {
    Note { id, weight, text, lines: None, was_announced: false }
}

/// The note on a lost machine and its missing data.
fn lost_machine(document: &Document, machine: &Machine) -> Option<Note> {
    let why = machine.lost.as_ref()?;
    let missing = match format_seconds((machine.duration_s * 1e9) as u64) {
        // If the machine sent its final report, no data was lost.
        end if machine.busiest.is_some() => format!("from {end} on, its part of the load was missing"),
        _ if document.duration_s == 0.0 => "the run ended with it, before measuring began".to_owned(),
        _ if machine.duration_s == 0.0 => "nothing it did is in the result".to_owned(),
        _ if document.plan.duration_s.is_some_and(|planned_s| machine.duration_s >= planned_s) => {
            "everything it measured has arrived, except its final report".to_owned()
        }
        end => format!("what it did from {end} on is missing"),
    };
    Some(machine_note(NoteId::MachineLost, Weight::Doubt, format!("{why}; {missing}")))
}

/// The note on a machine whose limit on open files is too low for its part.
fn too_few_files_note((number, machine): (usize, &Machine)) -> Option<Note> {
    let Shortage { needed, allowed, .. } = machine.shortage?;
    let connections = format_count(machine.connections, "connection");
    let text = format!(
        "machine {number} ({}) had room for only {connections}: there, {}",
        machine.name,
        file_limit_message(needed, allowed)
    );
    Some(machine_note(NoteId::FewerConnections, Weight::Doubt, text))
}

/// The note on a machine that was the limit of its part.
fn machine_limit((number, machine): (usize, &Machine)) -> Option<Note> {
    let words = machine.limit.as_ref()?;
    let busy =
        machine.busiest.map(|busy| format!(" (busiest thread {} busy)", format_percentage(busy))).unwrap_or_default();
    let text = format!("machine {number} ({}) was itself the limit of its part{busy}: {words}", machine.name);
    Some(machine_note(NoteId::MachineLimit, Weight::Doubt, text))
}

/// The note on a machine that measured later than the others.
fn late_machine((number, machine): (usize, &Machine)) -> Option<Note> {
    let late = machine.late_s.filter(|late_s| *late_s >= LATE.as_secs_f64())?;
    let text = format!(
        "machine {number} ({}) began to measure {} after the others: its start order came late, or it was stopped; its \
         figures are shifted by as much",
        machine.name,
        format_us(late * 1e6)
    );
    Some(machine_note(NoteId::MachineLate, Weight::Doubt, text))
}

/// The note on a machine that stopped measuring before the others without being lost. A machine that has sent its part
/// of `-n`, or was ended by its script, is not early.
fn short_machine(document: &Document, (number, machine): (usize, &Machine)) -> Option<Note> {
    let missing_s = document.duration_s - machine.duration_s;
    let is_short = missing_s >= SHORT_S.max(document.duration_s * SHORT);
    if !is_short || machine.lost.is_some() || document.plan.requests.is_some() || document.script.is_some() {
        return None;
    }
    let [until, of] = [machine.duration_s, document.duration_s].map(|length_s| format_seconds((length_s * 1e9) as u64));
    let text = format!(
        "machine {number} ({}) measured only until {until} of {of}: it was probably stopped, and its part of the load \
         was missing from then on",
        machine.name
    );
    Some(machine_note(NoteId::MachineLate, Weight::Doubt, text))
}

/// The note on a property (named `what`) in which machines differ.
fn differing_machines(what: &str, machines: &[Machine], of: fn(&Machine) -> &String) -> Option<Note> {
    let all: BTreeSet<&String> = machines.iter().map(of).collect();
    let named: Vec<&str> = all.iter().map(|it| it.as_str()).take(NAMED).collect();
    let text =
        format!("the machines have different {what}: {}; their latencies may differ for that reason", named.join(", "));
    (all.len() > 1).then(|| machine_note(NoteId::MachinesDiffer, Weight::Hint, text))
}

/// The note on machines that are far from the coordinator.
fn far_machines(machines: &[Machine]) -> Option<Note> {
    // The round trip of a lost machine is unknown.
    let known = machines.iter().map(|machine| machine.round_trip_s).filter(|trip_s| *trip_s > 0.0);
    let nearest = known.fold(f64::INFINITY, f64::min);
    let is_far =
        |machine: &Machine| machine.round_trip_s >= FAR.as_secs_f64() && machine.round_trip_s >= FAR_TIMES * nearest;
    let far: Vec<String> = (1..)
        .zip(machines)
        .filter(|(_, machine)| is_far(machine))
        .map(|(number, machine)| {
            format!("machine {number} ({}) {}", machine.name, format_us(machine.round_trip_s * 1e6))
        })
        .take(NAMED)
        .collect();
    let text = format!(
        "far from the coordinator: {} there and back; they began up to half of that early or late, and may be as far from \
         the target",
        far.join(", ")
    );
    (!far.is_empty()).then(|| machine_note(NoteId::MachineFar, Weight::Hint, text))
}
