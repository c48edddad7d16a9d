//! The order of notes, and how many are printed.

use super::Note;
use crate::run::Until;

/// Maximum number of lines of notes, examples included.
const LINES_MAX: usize = 8;

/// How important a note is, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// The result does not show what was asked for.
    Worthless,
    /// Something failed.
    Failure,
    /// Good to know.
    Hint,
}

impl Note {
    /// Whether it was said before the run, so that only files need it.
    pub fn was_announced(&self) -> bool {
        matches!(self, Self::FewerConnections { announced: true, .. })
    }

    fn weight(&self) -> Weight {
        match self {
            Self::Idle { .. }
            | Self::Hanging { .. }
            | Self::Behind(_)
            | Self::Signal { .. }
            | Self::NeverBegun
            | Self::StayedAway { .. }
            | Self::TooFewRequests { .. }
            | Self::FewerConnections { .. }
            | Self::Capped(_)
            | Self::NothingAnswered(_)
            | Self::NothingSent(_)
            | Self::NoAnswer(_)
            | Self::ExpectsTls { .. }
            | Self::Stalled { .. }
            | Self::Suspended { .. } => Weight::Worthless,
            Self::Failure(failure) if failure.is_ours() => Weight::Worthless,
            Self::Failure(_)
            | Self::Found(_)
            | Self::Lost(_)
            | Self::Crowded(_)
            | Self::Until { until: Until { reached: false, .. }, .. }
            | Self::Late { .. }
            | Self::TooLate { .. }
            | Self::Uncertain(_)
            | Self::Silences { .. }
            | Self::Unavailable { .. }
            | Self::Answer { .. }
            | Self::Statuses { .. } => Weight::Failure,
            Self::Dropped { .. }
            | Self::FirstOfBatch { .. }
            | Self::Until { .. }
            | Self::Carried { .. }
            | Self::Interim { .. }
            | Self::Sliced { .. }
            | Self::IdleClosed { .. }
            | Self::Clamped { .. }
            | Self::PausesUnread
            | Self::CutBodies { .. }
            | Self::Resumed { .. }
            | Self::Rewritten { .. } => Weight::Hint,
        }
    }

    /// Whether it puts the result as a whole in doubt; such notes come first.
    pub fn is_doubt(&self) -> bool {
        self.weight() == Weight::Worthless
    }

    /// An example, where there is one.
    pub fn example(&self) -> Option<String> {
        match self {
            Self::Failure(failure) => failure.example(),
            _ => None,
        }
    }

    /// The note and its example in one line.
    pub fn in_full(&self) -> String {
        match self {
            Self::Failure(failure) => failure.in_full(),
            _ => self.to_string(),
        }
    }

    /// Whether a figure in the document says the same thing.
    pub fn is_a_figure(&self) -> bool {
        matches!(self, Self::Rewritten { .. })
    }
}

/// Sorts by importance; equally important notes keep their order.
pub(super) fn in_order(mut notes: Vec<Note>) -> Vec<Note> {
    notes.sort_by_key(Note::weight);
    notes
}

/// The notes that were not said before the run, one per line after `note: `, with any example below; in colour if
/// requested. Without `all`, notes beyond a few lines are only counted.
pub fn lines(notes: &[Note], all: bool, colour: bool) -> String {
    let (before, after) = if colour { ("\x1b[1;33m", "\x1b[0m") } else { ("", "") };
    let notes: Vec<&Note> = notes.iter().filter(|note| !note.was_announced()).collect();
    let shown = if all { notes.len() } else { fitting(&notes) };
    let mut lines = String::new();
    for note in &notes[..shown] {
        lines.push_str(&format!("{before}note:{after} {note}\n"));
        lines.extend(note.example().map(|example| format!("      {example}\n")));
    }
    match notes.len() - shown {
        0 => {}
        1 => lines.push_str(&format!("{before}note:{after} 1 more note; -v prints it\n")),
        more => lines.push_str(&format!("{before}note:{after} {more} more notes; -v prints them\n")),
    }
    lines
}

/// How many of the first notes fit.
fn fitting(notes: &[&Note]) -> usize {
    let mut lines = 0;
    let fits = |note: &&&Note| {
        lines += 1 + usize::from(note.example().is_some());
        lines <= LINES_MAX
    };
    notes.iter().take_while(fits).count()
}
