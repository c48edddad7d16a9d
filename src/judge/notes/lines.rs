//! How notes are printed after a run, and how many.

use onrush_text::units::time_us;

use crate::record::Note;

/// Maximum number of lines of notes, examples included.
const LINES_MAX: usize = 8;

/// The notes that were not said before the run, one per line after `note: `, with any example below; in colour if
/// requested. Without `all`, notes beyond a few lines are only counted; with it, the mean that wrk would have printed, if
/// given, comes last.
pub fn lines(notes: &[Note], wrk_mean_us: Option<f64>, all: bool, colour: bool) -> String {
    let (before, after) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    let notes: Vec<&Note> = notes.iter().filter(|note| !note.was_announced).collect();
    let shown = if all { notes.len() } else { fitting(&notes) };
    let mut lines = String::new();
    for note in &notes[..shown] {
        match &note.lines {
            None => lines.push_str(&format!("{before}note:{after} {}\n", note.text)),
            Some([sentence, example]) => {
                lines.push_str(&format!("{before}note:{after} {sentence}\n      {example}\n"));
            }
        }
    }
    match notes.len() - shown {
        0 => {}
        1 => lines.push_str(&format!("{before}note:{after} 1 more note; -v prints it\n")),
        more => lines.push_str(&format!("{before}note:{after} {more} more notes; -v prints them\n")),
    }
    if let Some(mean_us) = wrk_mean_us.filter(|_| all) {
        let mean = time_us(mean_us);
        lines.push_str(&format!(
            "{before}note:{after} latency as measured; wrk would print Avg {mean}: see docs/measuring.md\n"
        ));
    }
    lines
}

/// How many of the first notes fit.
fn fitting(notes: &[&Note]) -> usize {
    let mut lines = 0;
    let fits = |note: &&&Note| {
        lines += 1 + usize::from(note.lines.is_some());
        lines <= LINES_MAX
    };
    notes.iter().take_while(fits).count()
}
