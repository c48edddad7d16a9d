//! The conclusion of a rule.

use crate::record::NoteId;
use onrush_plan::LimitedBy;

/// The conclusion of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub limited_by: LimitedBy,
    /// The finding of a probe, in short.
    pub summary: Option<String>,
    pub reason: String,
    pub advice: Option<String>,
    /// The notes that would say it again.
    pub says: &'static [NoteId],
}

impl Ruling {
    pub(super) fn saying(self, says: &'static [NoteId]) -> Self {
        Self { says, ..self }
    }

    pub(super) fn in_short(self, summary: String) -> Self {
        Self { summary: Some(summary), ..self }
    }
}

pub(super) fn ruling(limited_by: LimitedBy, reason: String, advice: &str) -> Option<Ruling> {
    let advice = Some(advice.to_owned()).filter(|advice| !advice.is_empty());
    Some(Ruling { limited_by, summary: None, reason, advice, says: &[] })
}

pub(super) fn unclear_with(reason: String, advice: Option<String>) -> Ruling {
    Ruling { limited_by: LimitedBy::Unclear, summary: None, reason, advice, says: &[] }
}
