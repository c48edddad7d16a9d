//! Failures by phase and cause, with their words.

use std::collections::HashMap;

use onrush_plan::Plan;
use onrush_plan::checks::Check;
use onrush_plan::secrets;
use onrush_stats::{Cause, FailureRow, Phase, TlsFailure};
use onrush_text::escape;
use serde::{Deserialize, Serialize};

use super::{ExampleKind, LedgerRow, Moment};
use crate::failure::{Failure, describe_row_cause};
use crate::run::Outcome;

/// Failures of one phase with one cause, of any number of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailureSum {
    /// The phase of a request in which they occurred.
    pub phase: String,
    /// Their cause.
    pub cause: String,
    /// Their number.
    pub count: u64,
    /// The first of them, rounded down to a tenth of its run.
    pub first: Moment,
    /// The last of them, rounded likewise.
    pub last: Moment,
    /// An example: an address, or part of what the server sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The kind of the example; `None` for an address or a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example_is: Option<ExampleKind>,
    /// A remedy, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// True if this machine ran out of something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

impl FailureSum {
    /// The failures of a run in the order of phases.
    pub(super) fn from_outcome(plan: &Plan, outcome: &Outcome, started_at: Moment) -> Vec<Self> {
        // Threads are added in random order.
        let mut rows: Vec<&FailureRow> = outcome.totals.ledger.rows().iter().collect();
        rows.sort_by_key(|row| (row.phase, row.cause));
        rows.into_iter().map(|row| Self::from_row(row, plan, outcome, started_at)).collect()
    }

    fn from_row(row: &FailureRow, plan: &Plan, outcome: &Outcome, started_at: Moment) -> Self {
        let failure = Failure { shortage: outcome.descriptors, ..Failure::from_row(plan, outcome, row) };
        let example = escape(&failure.row.example);
        let moment = |after_s: f64| Moment(started_at.0.saturating_add((after_s * 1e6).round() as u64));
        Self {
            example_is: ExampleKind::of(row.cause).filter(|_| !example.is_empty()),
            advice: failure.remedy().filter(|_| row.phase != Phase::Status),
            ours: failure.is_local_exhaustion(),
            phase: row.phase.name().to_owned(),
            cause: match row.cause {
                // The words contain what was typed.
                Cause::Check(_) => outcome.known.redact_in(&describe_row_cause(row, plan)),
                _ => describe_row_cause(row, plan),
            },
            count: row.count,
            first: moment(row.first_s()),
            last: moment(row.last_s()),
            example: (!example.is_empty()).then(|| match row.cause {
                _ if plan.output.keeps_secrets => example,
                Cause::Check(number) if is_about_secret(plan, number) => secrets::REDACTED.to_owned(),
                _ => secrets::redact_text(&example),
            }),
        }
    }

    /// Adds failures to those with the same phase and cause, and orders all by their first time.
    pub(super) fn add_all(mine: &mut Vec<Self>, theirs: Vec<Self>) {
        let key = |sum: &Self| (sum.phase.clone(), sum.cause.clone());
        let known: HashMap<_, usize> = mine.iter().enumerate().map(|(index, sum)| (key(sum), index)).collect();
        for other in theirs {
            match known.get(&key(&other)) {
                Some(&index) => mine[index].add(other),
                None => mine.push(other),
            }
        }
        mine.sort_by(|one, other| (one.first, &one.phase, &one.cause).cmp(&(other.first, &other.phase, &other.cause)));
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.ours |= other.ours;
        // The smallest example, whichever comes first; of those without one, the smallest advice.
        let rank = |it: &Self| (it.example.is_none(), it.example.clone(), it.advice.clone());
        if rank(&other) < rank(self) {
            (self.example, self.example_is, self.advice) = (other.example, other.example_is, other.advice);
        }
    }
}

/// True if a check is about a header field whose value is a secret.
fn is_about_secret(plan: &Plan, number: u8) -> bool {
    matches!(plan.checks.check_number(number.into()), Some(Check::Header(header)) if secrets::is_secret(&header.name))
}

impl ExampleKind {
    /// The kind of the example of a failure with this cause; `None` for an address or a path.
    fn of(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Protocol(_)
            | Cause::Proxy(_)
            | Cause::Check(_)
            | Cause::GrpcStatus(_)
            | Cause::Tls(TlsFailure::PlainText | TlsFailure::NotTls) => Some(Self::Received),
            Cause::Tls(_) => Some(Self::Detail),
            _ => None,
        }
    }
}

impl LedgerRow {
    /// The figures of these failures; times count from `start`.
    pub(super) fn from_sum(sum: &FailureSum, start: Moment) -> Self {
        let since = |moment: Moment| moment.0.saturating_sub(start.0) as f64 / 1e6;
        let FailureSum { phase, cause, count, first, last, example, example_is, advice, ours } = sum.clone();
        let (first_s, last_s) = (since(first), since(last));
        Self { phase, cause, count, first_s, last_s, example, example_is, advice, ours }
    }
}
