//! Sends the measurements of a part of the run to the coordinator.

use std::time::{Duration, Instant};

use onrush_engine::WorkerEnd;
use onrush_plan::{LimitedBy, Plan};
use onrush_stats::Totals;

use crate::judge::JudgedRun;
use crate::program::guard;
use crate::record::VERDICT_MIN;
use crate::resolve::Addresses;
use crate::run::machines::message::{CoordinatorMessage, Done, RowSums, WorkerMessage, WorkerSetup};
use crate::run::machines::worker_client::{WorkerClient, WorkerCommand};
use crate::run::{self, Breakdown, Choice, Interrupt, Observer, Outcome, RunEnd, nanos};

/// Maximum length of a reason that is forwarded, in bytes: a script may raise any error, but messages are limited.
const REASON_MAX: usize = 64 << 10;

/// Truncates a reason that is too long to be forwarded.
pub(super) fn truncate_reason(mut reason: String) -> String {
    if reason.len() > REASON_MAX {
        let end = (0..=REASON_MAX).rfind(|at| reason.is_char_boundary(*at)).unwrap_or(0);
        reason.truncate(end);
        reason.push('…');
    }
    reason
}

/// An observer that sends the measurements of a part, and its end, to the coordinator.
pub(super) struct Forwarder<'a> {
    member: &'a WorkerClient,
    plan: &'a Plan,
    row: Duration,
    interrupt: &'a Interrupt,
    prepared: WorkerSetup,
    sum: RowSums,
    ends: Vec<Option<WorkerEnd>>,
    has_begun: bool,
    /// How late the order to start arrived.
    late: Duration,
}

impl<'a> Forwarder<'a> {
    /// Creates a forwarder for a part of a run that is about to start.
    pub fn new(member: &'a WorkerClient, plan: &'a Plan, row: Duration, interrupt: &'a Interrupt) -> Self {
        let system = rustix::system::uname();
        let prepared = WorkerSetup {
            name: member.name.clone(),
            threads: plan.load.threads,
            kernel: system.release().to_string_lossy().into_owned(),
            processors: std::thread::available_parallelism().map_or(0, |processors| processors.get() as u32),
            ..WorkerSetup::default()
        };
        let ends = (0..plan.load.threads).map(|_| None).collect();
        Self {
            member,
            plan,
            row,
            interrupt,
            prepared,
            sum: RowSums::default(),
            ends,
            has_begun: false,
            late: Duration::ZERO,
        }
    }

    /// True if the part has started.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Reports the end of the part, with its results; does nothing if the part has not started.
    pub fn report_end(self, outcome: &Outcome) {
        if !self.has_begun {
            return;
        }
        let Self { member, plan, sum, ends, late, .. } = self;
        let judged = guard(|| JudgedRun::from_outcome(plan, outcome)).ok();
        let of_generator = judged.as_ref().map(|judged| &judged.document.verdict).and_then(|verdict| {
            // A shorter part is not conclusive.
            let verdict = verdict.as_ref().filter(|_| outcome.elapsed >= VERDICT_MIN)?;
            let is_ours = [LimitedBy::GeneratorCpu, LimitedBy::GeneratorScript, LimitedBy::Ports];
            is_ours
                .contains(&verdict.limited_by)
                .then(|| (verdict.limited_by.name().to_owned(), verdict.reason.clone()))
        });
        let done = Done {
            ends,
            shares: outcome.workers.clone(),
            stuck: outcome
                .stuck
                .iter()
                .map(|(thread, callback)| (*thread as u32 - 1, (*callback).to_owned()))
                .collect(),
            breakdown: outcome.breakdown.clone().map(|breakdown| match breakdown {
                Breakdown::Script(words) => Breakdown::Script(truncate_reason(words)),
                breakdown => breakdown,
            }),
            ended: outcome.ended,
            late_ns: nanos(late + outcome.delayed),
            elapsed_ns: nanos(outcome.elapsed),
            suspended_ns: nanos(outcome.suspended),
            beside_ns: outcome.beside.map(nanos),
            connections: outcome.most_connections(plan),
            shortage: outcome.descriptors,
            batch: outcome.batch as u64,
            limit: of_generator,
            sum,
        };
        member.send_report(WorkerMessage::Done(Box::new(done)));
    }

    /// Reports that an error ended the part, with what was measured until then.
    pub fn report_failure(self, error: &anyhow::Error) {
        let Self { member, plan, sum, ends, late, .. } = self;
        let done = Done {
            ends,
            breakdown: Some(Breakdown::Script(truncate_reason(format!("{error:#}")))),
            ended: RunEnd::Signal,
            late_ns: nanos(late),
            connections: plan.load.max_inflight.into(),
            batch: 1,
            sum,
            ..Done::default()
        };
        member.send_report(WorkerMessage::Done(Box::new(done)));
    }
}

impl Observer for Forwarder<'_> {
    fn on_resolved(&mut self, choice: &Choice, addresses: &Addresses) {
        self.prepared.backend = (choice.name.to_owned(), choice.reason.clone());
        self.prepared.addresses.clone_from(&addresses.0);
    }

    fn on_ready(&mut self) -> Option<Instant> {
        // Check before anything is sent that the target is reachable.
        let addresses = Addresses(self.prepared.addresses.clone());
        if let Err(error) = run::reach::find_reachable_addresses(self.plan, &addresses, self.interrupt) {
            self.member
                .send_report(WorkerMessage::Unprepared { reason: truncate_reason(error.to_string()), is_wrong: false });
            return None;
        }
        self.member.send_report(WorkerMessage::Prepared(self.prepared.clone()));
        match self.member.next_command(self.interrupt)? {
            WorkerCommand::Order(CoordinatorMessage::Start(at_ns)) => {
                self.has_begun = true;
                let start = self.member.origin + Duration::from_nanos(at_ns);
                self.late = start.elapsed();
                Some(start)
            }
            // The next read of an order reports why there is none.
            WorkerCommand::Order(_) | WorkerCommand::Lost(_) => None,
        }
    }

    fn full_row_length(&self) -> Option<Duration> {
        Some(self.row)
    }

    fn on_full_row(&mut self, row: &Totals) {
        let number = self.sum.rows;
        self.sum.add_row(row);
        self.member.send_report(WorkerMessage::Row { number, totals: Box::new(row.clone()) });
    }

    fn on_worker_ended(&mut self, worker: usize, end: &WorkerEnd) {
        self.ends[worker] = Some(end.without_bulk_data());
    }

    fn is_enough(&self) -> bool {
        self.member.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::machines::message::PROVEN_MAX;

    #[test]
    fn long_reasons_fit_in_a_message() {
        assert_eq!(truncate_reason("no more".to_owned()), "no more");
        let long = truncate_reason("é".repeat(40 << 20));
        assert!(long.len() < PROVEN_MAX / 100 && long.ends_with("é…"), "{}", long.len());
    }
}
