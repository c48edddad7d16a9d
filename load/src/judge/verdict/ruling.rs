//! The conclusion of a rule.

use crate::record::NoteId;
use onrush_plan::LimitedBy;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub limited_by: LimitedBy,
    /// The verdict in one clause.
    pub summary: String,
    /// The reason for the verdict, with figures.
    pub reason: String,
    pub advice: Option<String>,
    /// Notes to leave out because they would repeat the verdict.
    pub says: &'static [NoteId],
}

impl Ruling {
    pub(super) fn saying(self, says: &'static [NoteId]) -> Self {
        Self { says, ..self }
    }
}

pub(super) fn make_ruling(
    limited_by: LimitedBy,
    summary: impl Into<String>,
    reason: String,
    advice: &str,
) -> Option<Ruling> {
    let advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
    Some(Ruling { limited_by, summary: summary.into(), reason, advice, says: &[] })
}

pub(super) fn unclear_ruling(summary: &str, reason: String, advice: Option<String>) -> Ruling {
    Ruling { limited_by: LimitedBy::Unclear, summary: summary.to_owned(), reason, advice, says: &[] }
}
