//! The format and number of the notes printed after a run.

use onrush_text::units::format_us;

use crate::record::Note;

/// Maximum number of lines of notes, including examples, with [`NoteRoom::Few`].
const LINES_MAX: usize = 8;

/// How many notes may be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteRoom {
    /// All notes.
    All,
    /// Notes of at most eight lines in total, plus a line with the number of omitted notes.
    Few,
    /// This many notes, at least one; the last line ends with the number of omitted notes.
    Lines(usize),
}

/// Formats the notes not yet printed before the run: one per line after `note: `, with any example on the line below,
/// in colour if requested. Notes that do not fit are only counted. The mean that wrk would have printed, if given,
/// comes last, but only with [`NoteRoom::All`].
pub fn format_notes(notes: &[Note], wrk_mean_us: Option<f64>, room: NoteRoom, colour: bool) -> String {
    let (before, after) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    let notes: Vec<&Note> = notes.iter().filter(|note| !note.was_announced).collect();
    let shown = match room {
        NoteRoom::All => notes.len(),
        NoteRoom::Few => count_fitting_notes(&notes),
        NoteRoom::Lines(count) => notes.len().min(count),
    };
    let more = match notes.len() - shown {
        0 => None,
        1 => Some("1 more note; -v prints it".to_owned()),
        more => Some(format!("{more} more notes; -v prints them")),
    };
    let mut lines: Vec<String> = notes[..shown]
        .iter()
        .map(|note| match &note.lines {
            None => format!("{before}note:{after} {}", note.text),
            Some([sentence, example]) => format!("{before}note:{after} {sentence}\n      {example}"),
        })
        .collect();
    match (more, lines.last_mut()) {
        (Some(more), Some(last)) if room != NoteRoom::Few => last.push_str(&format!(" ({more})")),
        (Some(more), _) => lines.push(format!("{before}note:{after} {more}")),
        (None, _) => {}
    }
    if let Some(mean_us) = wrk_mean_us.filter(|_| room == NoteRoom::All) {
        let mean = format_us(mean_us);
        lines.push(format!(
            "{before}note:{after} latency as measured; wrk would print Avg {mean}: see docs/measuring.md"
        ));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Number of leading notes whose lines, with examples, fit into [`LINES_MAX`].
fn count_fitting_notes(notes: &[&Note]) -> usize {
    let mut lines = 0;
    let fits = |note: &&&Note| {
        lines += 1 + usize::from(note.lines.is_some());
        lines <= LINES_MAX
    };
    notes.iter().take_while(fits).count()
}
