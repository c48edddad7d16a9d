//! What must be true of every document: its histograms can be read, and its figures do not contradict each other.
//!
//! Every command that reads results refuses a document that breaks one of these identities. docs/output.md promises all of
//! them. In a sum of results with different plans, some parts may cover fewer requests than others.

use onrush_plan::Dialect;
use onrush_plan::checks::is_failure;
use onrush_stats::{Corrupt, Errors};
use thiserror::Error;

use super::{Distribution, Document, Latency, Row, Sources, Thread, axis};

/// How far a percentile may be from the histogram's, as a share: more than the width of a bin.
const PERCENTILE_SLACK: f64 = 0.002;

/// The rounding error of the length of a row, in seconds.
const LENGTH_SLACK_S: f64 = 1e-6;

/// Why a document cannot be what a run measured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// A distribution cannot be read, or the timeline cannot be that of its runs.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// Two figures cannot both be true.
    #[error("its figures contradict each other: {0}")]
    Figures(String),
}

/// A figure with its key, for messages.
type Named<'a> = (&'a str, u128);

impl Document {
    /// Checks that it can be what a run measured, so that it can be shown and added up.
    ///
    /// # Errors
    ///
    /// When a distribution cannot be read, or figures contradict each other.
    pub fn check(&self) -> Result<(), Contradiction> {
        self.distributions().into_iter().try_for_each(distribution)?;
        self.text_latency()?;
        self.thread_rates.values(self.imitates(Dialect::Wrk2))?;
        self.conserved()?;
        self.failures()?;
        self.evidence()?;
        self.counts()?;
        self.rates()?;
        self.rows()?;
        let sources = Sources::of("", self)?;
        if let Some(unavailable) = self.open_loop.as_ref().and_then(|open_loop| open_loop.unavailable.as_ref()) {
            unavailable.check(sources.lasted_s(), self.duration_s)?;
        }
        Ok(axis::check(self)?)
    }

    fn distributions(&self) -> Vec<&Distribution> {
        let Latency {
            service,
            clamped: _,
            scheduled,
            by_class,
            batch,
            wrk,
            wrk_mean_us: _,
            wrk_spacing_us: _,
            wrk2: _,
        } = &self.latency;
        let views = [Some(service), scheduled.as_ref(), batch.as_ref(), wrk.as_ref(), self.censored.as_ref()];
        let of_open_loop = self.open_loop.iter().flat_map(|it| {
            let ages = [&it.later, &it.censored, &it.open, &it.entered];
            ages.map(Option::as_ref).into_iter().chain([Some(&it.lateness)])
        });
        let phases = self.phases.iter();
        let of_phases = phases.flat_map(|it| [Some(&it.connect), it.tls.as_ref(), Some(&it.ttfb), Some(&it.ttlb)]);
        let of_classes = by_class.values().map(Some);
        let of_stages = self.stages.iter().map(|stage| Some(&stage.latency));
        let of_names = self.names.iter().map(|of_name| Some(&of_name.latency));
        views
            .into_iter()
            .chain(of_classes)
            .chain(of_stages)
            .chain(of_names)
            .chain(of_open_loop)
            .chain(of_phases)
            .flatten()
            .collect()
    }

    /// Every request ended in one way.
    fn conserved(&self) -> Result<(), Contradiction> {
        let requests = &self.requests;
        let begun = u128::from(requests.started) + u128::from(requests.carried);
        let ended = total([requests.completed, requests.abandoned, requests.open, requests.unknown]);
        at_most(("requests.completed + abandoned + open + unknown", ended), ("requests.started + carried", begun))?;
        let failures = total([self.errors.read, self.errors.write]);
        if self.incomplete.is_none() {
            equal(("requests.unknown", requests.unknown.into()), ("what a complete run has", 0))?;
            let ended = ("requests.completed + abandoned + open + errors.read + write", ended + failures);
            at_most(("requests.started + carried", begun), ended)?;
            let open = ("requests.abandoned + open", total([requests.abandoned, requests.open]));
            equal(open, ("censored.count", count(self.censored.as_ref())))?;
        }
        if let (Some(_), true) = (&self.open_loop, self.incomplete.is_none()) {
            let due = total([requests.due, requests.due_before].map(Option::unwrap_or_default));
            let became = [Some(requests.started), requests.dropped, requests.unsent].map(Option::unwrap_or_default);
            equal(("requests.due + due_before", due), ("requests.started + dropped + unsent", total(became)))?;
        }
        Ok(())
    }

    /// The statuses and the ledger add up to the totals.
    fn failures(&self) -> Result<(), Contradiction> {
        let all = total(self.status.values().copied());
        equal(("the sum of status", all), ("requests.completed", self.requests.completed.into()))?;
        let Errors { connect, read, write, timeout, status, check, abandoned } = self.errors;
        let expected = self.plan.expected_status();
        let failures = self.status.iter().filter(|(status, _)| is_failure(expected, **status));
        let failures = total(failures.map(|(_, count)| *count));
        equal(("the number of unsuccessful statuses", failures), ("errors.status", status.into()))?;
        let of_completed = ("requests.completed", self.requests.completed.into());
        for (name, part, whole) in [
            ("requests.unsuccessful", self.requests.unsuccessful, of_completed),
            ("requests.early", self.requests.early, of_completed),
            ("requests.open_late", self.requests.open_late, ("requests.open", self.requests.open.into())),
        ] {
            at_most((name, part.into()), whole)?;
        }
        let unsuccessful = ("requests.unsuccessful", u128::from(self.requests.unsuccessful));
        at_most(("errors.status", status.into()), unsuccessful)?;
        at_most(("errors.check", check.into()), unsuccessful)?;
        equal(("requests.timeout", self.requests.timeout.into()), ("errors.timeout", timeout.into()))?;
        equal(("errors.abandoned", abandoned.into()), ("requests.abandoned", self.requests.abandoned.into()))?;
        let in_ledger = |phases: &[&str]| {
            let rows = self.ledger.iter().filter(|row| phases.contains(&row.phase.as_str()));
            total(rows.map(|row| row.count))
        };
        let totals: [(&[&str], &str, u64); 7] = [
            (&["resolve", "connect", "tls"], "errors.connect", connect),
            (&["head", "body"], "errors.read", read),
            (&["send"], "errors.write", write),
            (&["timeout"], "errors.timeout", timeout),
            (&["status"], "errors.status", status),
            (&["check"], "errors.check", check),
            (&["abandoned"], "errors.abandoned", abandoned),
        ];
        for (phases, name, counted) in totals {
            equal(("the part of the ledger", in_ledger(phases)), (name, counted.into()))?;
        }
        Ok(())
    }

    /// What the verdict rests on is about this run.
    fn evidence(&self) -> Result<(), Contradiction> {
        let Some(load) = self.evidence.as_ref().map(|evidence| &evidence.load) else { return Ok(()) };
        let (requests, errors) = (&self.requests, &self.errors);
        for (of_load, of_run) in [
            (("evidence.load.completed", load.completed), ("requests.completed", requests.completed)),
            (("evidence.load.read_errors", load.read_errors), ("errors.read", errors.read)),
            (("evidence.load.timeouts", load.timeouts), ("errors.timeout", errors.timeout)),
            (("evidence.load.abandoned", load.abandoned), ("errors.abandoned", errors.abandoned)),
        ] {
            equal((of_load.0, of_load.1.into()), (of_run.0, of_run.1.into()))?;
        }
        let completed = ("requests.completed", requests.completed.into());
        at_most(("evidence.load.refused", load.refused.into()), completed)?;
        let begun = u128::from(requests.started) + u128::from(requests.carried);
        at_most(("evidence.load.failed", load.failed.unwrap_or(0).into()), ("requests.started + carried", begun))?;
        let failures = ("errors.read + write", total([errors.read, errors.write]));
        at_most(("evidence.load.failed_connections", load.failed_connections().into()), failures)?;
        let unreadable = load.unreadable.as_ref().map_or(0, |unreadable| unreadable.requests);
        at_most(("evidence.load.unreadable.requests", unreadable.into()), ("errors.read", errors.read.into()))?;
        let left = load.left.filter(|_| load.overdue.is_some()).unwrap_or(0).into();
        let unended = total([requests.open, requests.unknown, requests.unsent.unwrap_or(0)]);
        at_most(("evidence.load.left", left), ("requests.open + unknown + unsent", unended))?;
        at_most(("evidence.load.hanging", load.hanging.into()), ("requests.open", requests.open.into()))
    }

    /// Every complete response has one value in each distribution of them; as an imitated tool, some have none.
    fn counts(&self) -> Result<(), Contradiction> {
        let Latency { service, scheduled, .. } = &self.latency;
        let is_native = self.plan.dialect == Dialect::Native.name() && self.sources.is_none();
        let mut views = vec![("latency.service.count", service, is_native)];
        views.extend(scheduled.iter().map(|view| ("latency.scheduled.count", view, true)));
        let phases = self.phases.iter();
        views.extend(
            phases.flat_map(|it| {
                [("phases.ttfb.count", &it.ttfb, is_native), ("phases.ttlb.count", &it.ttlb, is_native)]
            }),
        );
        let completed = ("requests.completed", u128::from(self.requests.completed));
        for (name, view, has_all) in views {
            let counted = (name, u128::from(view.count));
            if has_all { equal(counted, completed)? } else { at_most(counted, completed)? }
        }
        if !self.stages.is_empty() {
            let of_stages = ("the sum of stages.completed", total(self.stages.iter().map(|stage| stage.completed)));
            equal(of_stages, completed)?;
        }
        for (class, view) in &self.latency.by_class {
            let hundreds = class.strip_suffix("xx").and_then(|class| class.parse::<u16>().ok()).unwrap_or_default();
            let statuses = self.status.iter().filter(|(status, _)| **status / 100 == hundreds);
            let of_class = (&*format!("the number of {class} in status"), total(statuses.map(|(_, count)| *count)));
            equal((&format!("latency.by_class.{class}.count"), u128::from(view.count)), of_class)?;
        }
        for (of_name, index) in self.names.iter().zip(0..) {
            let own = (&*format!("names[{index}].completed"), u128::from(of_name.completed));
            equal(own, (&format!("the sum of names[{index}].status"), total(of_name.status.values().copied())))?;
            equal(own, (&format!("names[{index}].latency.count"), u128::from(of_name.latency.count)))?;
            at_most((&format!("names[{index}].unsuccessful"), u128::from(of_name.unsuccessful)), own)?;
        }
        at_most(("the sum of names.completed", total(self.names.iter().map(|it| it.completed))), completed)?;
        let started = ("requests.started", u128::from(self.requests.started));
        let lateness = self.open_loop.as_ref().map(|it| ("open_loop.lateness.count", u128::from(it.lateness.count)));
        lateness.map_or(Ok(()), |lateness| equal(lateness, started))
    }

    /// The rates are counts per second of a time that has passed.
    fn rates(&self) -> Result<(), Contradiction> {
        let requests = &self.requests;
        if self.duration_s <= 0.0 && requests.completed > 0 {
            return Err(Contradiction::Figures(format!(
                "requests.completed is {} and duration_s is {}",
                requests.completed, self.duration_s
            )));
        }
        let fits = |name: &str, rate: f64, least: u64, most: u64| {
            let counted = rate * self.duration_s;
            let slack = 1.0 + most as f64 * 1e-6;
            let is_between = (least as f64 - slack..=most as f64 + slack).contains(&counted);
            let words = || {
                format!(
                    "{name} is {rate} and duration_s is {}, which makes {counted} instead of {most}",
                    self.duration_s
                )
            };
            if is_between { Ok(()) } else { Err(Contradiction::Figures(words())) }
        };
        let least = requests.completed.saturating_sub(requests.carried);
        fits("rate_per_s", self.rate_per_s, least, requests.completed)?;
        if let Some(open_loop) = self.open_loop.as_ref().filter(|_| self.duration_s > 0.0) {
            let due = requests.due.unwrap_or_default();
            fits("open_loop.due_per_s", open_loop.due_per_s, due, due)?;
            fits("open_loop.sent_per_s", open_loop.sent_per_s, requests.started, requests.started)?;
        }
        let stages = self.plan.schedule.iter().flat_map(|schedule| &schedule.stages);
        let negative = stages.flat_map(|stage| [stage.from_per_s, stage.to_per_s]).find(|rate| *rate < 0.0);
        negative.map_or(Ok(()), |rate| Err(Contradiction::Figures(format!("the plan has a rate of {rate}"))))
    }

    /// The rows of the timeline and the threads add up to the totals.
    fn rows(&self) -> Result<(), Contradiction> {
        let rows = &self.timeline;
        let requests = &self.requests;
        let of = |count: fn(&Row) -> u64| total(rows.iter().map(count));
        let errors = |row: &Row| row.errors.unwrap_or_default().total();
        let bins = |bins: &[(u16, u64)]| total(bins.iter().map(|(_, count)| *count));
        let latencies: u128 = rows.iter().map(|row| bins(&row.latency_bins)).sum();
        let pairs = [
            ("requests.started", requests.started, of(|row| row.started)),
            ("requests.completed", requests.completed, of(|row| row.completed)),
            ("bytes_sent", self.bytes_sent, of(|row| row.bytes_sent)),
            ("bytes_received", self.bytes_received, of(|row| row.bytes_received)),
            ("the sum of errors", self.errors.total(), total(rows.iter().map(errors))),
            ("latency.service.count", self.latency.service.count, latencies),
        ];
        for (name, whole, sum) in pairs {
            equal(("the sum in the timeline", sum), (name, whole.into()))?;
        }
        if let (Some(scheduled), Some(_)) = (&self.latency.scheduled, &self.open_loop) {
            let sum: u128 = rows.iter().flat_map(|row| &row.scheduled).map(|it| bins(&it.latency_bins)).sum();
            equal(("the sum in the timeline", sum), ("latency.scheduled.count", scheduled.count.into()))?;
            for (name, whole, sum) in [
                ("requests.late", requests.late, of(|row| row.late.unwrap_or_default())),
                ("requests.dropped", requests.dropped, of(|row| row.dropped.unwrap_or_default())),
            ] {
                equal(("the sum in the timeline", sum), (name, whole.unwrap_or_default().into()))?;
            }
        }
        let lasted_s: f64 = rows.iter().map(|row| row.length_s).sum();
        if (lasted_s - self.duration_s).abs() > LENGTH_SLACK_S * (rows.len() + 1) as f64 {
            return Err(Contradiction::Figures(format!(
                "the rows of the timeline last {lasted_s} s and duration_s is {}",
                self.duration_s
            )));
        }
        if self.incomplete.is_none() && !self.threads.is_empty() {
            let of = |count: fn(&Thread) -> u64| total(self.threads.iter().map(count));
            equal(("the sum over the threads", of(|it| it.started)), ("requests.started", requests.started.into()))?;
            equal(
                ("the sum over the threads", of(|it| it.completed)),
                ("requests.completed", requests.completed.into()),
            )?;
        }
        Ok(())
    }
}

/// The histogram can be read, and has these figures.
fn distribution(view: &Distribution) -> Result<(), Contradiction> {
    let values = view.values()?;
    for (percent, us) in &view.percentiles_us {
        let of_histogram_us = values.percentile(percent.value()) as f64 / 1e3;
        if (us - of_histogram_us).abs() > 0.001 + PERCENTILE_SLACK * of_histogram_us {
            return Err(Contradiction::Figures(format!(
                "a percentile ({percent}) is {us} us, and its histogram has {of_histogram_us} us there"
            )));
        }
    }
    Ok(())
}

fn count(view: Option<&Distribution>) -> u128 {
    view.map_or(0, |view| view.count.into())
}

/// A sum that cannot overflow.
fn total(counts: impl IntoIterator<Item = u64>) -> u128 {
    counts.into_iter().map(u128::from).sum()
}

fn equal(one: Named<'_>, other: Named<'_>) -> Result<(), Contradiction> {
    if one.1 == other.1 { Ok(()) } else { Err(Contradiction::Figures(words(one, other))) }
}

fn at_most(one: Named<'_>, most: Named<'_>) -> Result<(), Contradiction> {
    if one.1 <= most.1 { Ok(()) } else { Err(Contradiction::Figures(words(one, most))) }
}

fn words((one, is): Named<'_>, (other, was): Named<'_>) -> String {
    format!("{one} is {is} and {other} is {was}")
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Unreadable;
    use super::super::tests::{document, scheduled};
    use super::*;

    /// What the check says after one change of a document that it accepts.
    fn said(good: &Document, change: impl FnOnce(&mut Document)) -> String {
        assert_eq!(good.check(), Ok(()));
        let mut changed = good.clone();
        change(&mut changed);
        changed.check().map_or_else(|contradiction| contradiction.to_string(), |()| String::new())
    }

    #[test]
    fn what_is_promised_to_be_equal_is() {
        type Change = fn(&mut Document);
        let (closed, open) = (document(1..=1_000), scheduled(1..=1_000));
        let table: [(&Document, Change, &str); 28] = [
            (&closed, |it| it.requests.unsuccessful = 1_001, "requests.unsuccessful is 1001 and requests.completed"),
            (&closed, |it| it.requests.early = 1_001, "requests.early is 1001 and requests.completed"),
            (
                &closed,
                |it| it.evidence.as_mut().unwrap().load.failed = Some(1_002),
                "evidence.load.failed is 1002 and requests.started + carried is 1000",
            ),
            (
                &closed,
                |it| it.evidence.as_mut().unwrap().load.failed_connections = Some(2),
                "evidence.load.failed_connections is 2 and errors.read + write is 1",
            ),
            (
                &closed,
                |it| {
                    let unreadable = Unreadable { requests: 2, why: String::new() };
                    it.evidence.as_mut().unwrap().load.unreadable = Some(unreadable);
                },
                "evidence.load.unreadable.requests is 2 and errors.read is 1",
            ),
            (&closed, |it| it.requests.open_late = 1, "requests.open_late is 1 and requests.open is 0"),
            (
                &closed,
                |it| {
                    (it.status, it.errors.status) = ([(500, 1_000)].into(), 1_000);
                    it.requests.unsuccessful = 999;
                },
                "errors.status is 1000 and requests.unsuccessful is 999",
            ),
            (&closed, |it| it.requests.completed = 9_000, "requests.completed + abandoned + open + unknown is 9000"),
            (&closed, |it| it.requests.started = 9_000, "requests.started + carried is 9000"),
            (&closed, |it| it.requests.open = 1, "is 1001 and requests.started + carried is 1000"),
            (&closed, |it| it.status = [(200, 9)].into(), "the sum of status is 9 and requests.completed is 1000"),
            (&closed, |it| it.status = [(500, 1_000)].into(), "unsuccessful statuses is 1000 and errors.status is 0"),
            (&closed, |it| it.errors.read = 7, "the part of the ledger is 1 and errors.read is 7"),
            (&closed, |it| it.ledger.clear(), "the part of the ledger is 0 and errors.read is 1"),
            (&closed, |it| it.requests.timeout = 1, "requests.timeout is 1 and errors.timeout is 0"),
            (&closed, |it| it.latency.service = document(1..=9).latency.service, "latency.service.count is 9"),
            (&closed, |it| it.phases.as_mut().unwrap().ttfb = document([1]).latency.service, "phases.ttfb.count is 1"),
            (&closed, |it| it.latency.service.count = 9, "its histogram contradicts the count given beside it"),
            (
                &closed,
                |it| it.latency.service.percentiles_us.values_mut().for_each(|us| *us *= 1.01),
                "a percentile (50) is 506.",
            ),
            (&closed, |it| it.duration_s = 0.0, "requests.completed is 1000 and duration_s is 0"),
            (
                &closed,
                |it| it.duration_s = 2.0,
                "rate_per_s is 1000 and duration_s is 2, which makes 2000 instead of 1000",
            ),
            (&closed, |it| it.rate_per_s = -1.0, "rate_per_s is -1"),
            (&closed, |it| it.bytes_received = 5, "the sum in the timeline is 0 and bytes_received is 5"),
            (&closed, |it| it.timeline.clear(), "the sum in the timeline is 0 and requests.started is 1000"),
            (&closed, |it| it.timeline[0].latency_bins.truncate(1), "and latency.service.count is 1000"),
            (&closed, |it| it.threads[0].completed = 5, "the sum over the threads is 5 and requests.completed is 1000"),
            (&open, |it| it.requests.due = Some(5), "requests.due + due_before is 6"),
            (&open, |it| it.requests.late = Some(5), "the sum in the timeline is 3 and requests.late is 5"),
        ];
        for (good, change, words) in table {
            let said = said(good, change);
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(said(&closed, |it| it.timeline[0].length_s = 0.9).contains("the rows of the timeline last 0.9 s"));
        assert!(said(&open, |it| it.open_loop.as_mut().unwrap().due_per_s = 5.0).contains("open_loop.due_per_s is 5"));
        let rate = said(&open, |it| it.plan.schedule.as_mut().unwrap().stages[0].from_per_s = -5.0);
        assert!(rate.contains("the plan has a rate of -5"), "{rate}");
    }

    #[test]
    fn what_a_lost_thread_had_in_flight_is_unknown_and_has_not_failed() {
        let lost = |it: &mut Document| {
            it.incomplete = Some("a thread never returned".to_owned());
            (it.requests.started, it.requests.unknown) = (it.requests.started + 5, 5);
            it.timeline[0].started += 5;
        };
        assert_eq!(said(&document(1..=1_000), lost), "");
        let mut document = document(1..=1_000);
        let failed = document.requests.failed();
        lost(&mut document);
        assert_eq!((document.requests.failed(), document.requests.errors()), (failed, failed));
        let complete = said(&document, |it| it.incomplete = None);
        assert!(complete.contains("requests.unknown is 5 and what a complete run has is 0"), "{complete}");
    }
}
