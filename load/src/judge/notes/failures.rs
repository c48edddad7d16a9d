//! Notes on the rows of the ledger: the failure, its count and time, an example, and the remedy.

use std::cmp::Reverse;

use onrush_text::units::{format_count, format_thousands};
use rustix::io::Errno;

use crate::failure::{errno_words, file_limit_message};
use crate::record::{Document, ExampleKind, LedgerRow, Note, NoteId, Weight};

/// Phases covered by other notes.
const HAVE_NOTES: [&str; 2] = ["status", "abandoned"];

/// The notes on failures, most frequent first. Statuses and abandoned requests have notes elsewhere. `is_said`: another
/// note already reports the lack of open files.
pub fn failure_notes(document: &Document, is_said: bool) -> Vec<Note> {
    let mut rows: Vec<&LedgerRow> =
        document.ledger.iter().filter(|row| !HAVE_NOTES.contains(&row.phase.as_str())).collect();
    rows.sort_by_key(|row| Reverse(row.count));
    let said = document.connections.shortage.filter(|_| is_said).map(|it| file_limit_message(it.needed, it.allowed));
    let note = |row| {
        let failure = LedgerFailure { row, document };
        let advice = row.advice.as_ref().filter(|advice| said.as_ref() != Some(advice));
        let weight = if row.ours { Weight::Doubt } else { Weight::Failure };
        let example = failure.example();
        let text = failure.describe_failure(example.as_deref(), advice);
        let lines = example.map(|example| [failure.describe_failure(None, advice), example]);
        Note { lines, ..Note::new(NoteId::Failure, weight, text) }
    };
    rows.into_iter().map(note).collect()
}

/// A row of a document's ledger.
struct LedgerFailure<'a> {
    row: &'a LedgerRow,
    document: &'a Document,
}

impl LedgerFailure<'_> {
    /// The sentence, ending with `example` if given.
    fn describe_failure(&self, example: Option<&str>, advice: Option<&String>) -> String {
        let LedgerRow { phase, cause, count, .. } = self.row;
        let seconds = self.failure_times();
        if self.is_refusal() {
            let by = self.row.example.as_ref().map_or(String::new(), |example| format!(" by {example}"));
            let listens = if self.is_throughout() { "listens" } else { "listened" };
            return format!("{} refused{by}{seconds}: nothing {listens} there", format_count(*count, "connection"));
        }
        let what = match self.document.plan.once {
            true => format!("{}: {cause}", error_class(phase)),
            false => format!("{}: {} × {cause}{seconds}", error_class(phase), format_thousands(*count)),
        };
        let example = match (example, self.row.example_is) {
            (None, _) => String::new(),
            (Some(words), Some(ExampleKind::Detail)) => format!(" ({words})"),
            (Some(words), _) => format!(", {words}"),
        };
        let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
        what + &example + &advice
    }

    /// An example of the failure, unless the sentence names it already or the place does not matter.
    fn example(&self) -> Option<String> {
        let example = self.row.example.as_ref().filter(|_| !self.is_refusal() && !self.row.ours)?;
        Some(match self.row.example_is {
            Some(ExampleKind::Received) => format!("received: \"{example}\""),
            Some(ExampleKind::Detail) => example.clone(),
            None => format!("seen with {example}"),
        })
    }

    fn is_refusal(&self) -> bool {
        self.row.phase == "connect" && self.row.cause == errno_words(Errno::CONNREFUSED.raw_os_error())
    }

    /// True if the failure occurred from the first tenth of a second of the run to the last.
    fn is_throughout(&self) -> bool {
        self.row.first_s == 0.0 && self.row.last_s + 0.1 >= self.document.duration_s
    }

    /// The time of the failure, unless it occurred throughout.
    fn failure_times(&self) -> String {
        let (first_s, last_s) = (self.row.first_s, self.row.last_s);
        if self.is_throughout() {
            String::new()
        } else if first_s == last_s {
            format!(" ({first_s:.1} s into the run)")
        } else {
            format!(" (first {first_s:.1} s, last {last_s:.1} s into the run)")
        }
    }
}

/// wrk's term for the errors of a phase.
fn error_class(phase: &str) -> &str {
    match phase {
        "resolve" | "connect" | "tls" => "connect",
        "send" => "write",
        "head" | "body" => "read",
        other => other,
    }
}
