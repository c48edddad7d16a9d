//! Adds up several documents: no percentile is ever averaged.
//!
//! The sum does not depend on the order in which the documents are given: they are added in the order in which their
//! runs began.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use onrush_stats::Corrupt;

use super::count_per_second;
use super::counts::add_counts;
use super::distribution::{figure, total};
use super::named::Named;
use super::open_loop::percentiles_us;
use super::runs;
use super::sources::{Segment, nanos};
use super::{
    Agreed, Connections, Distribution, Document, InFlight, Latency, LedgerRow, Note, OfName, OpenLoop, Phases,
    RequestLog, Requests, Script, Sockets, Source, Sources, StageRow, Thread, ThreadRates, Tls, Unavailable, Wrk2,
    axis,
};
use crate::figures::estimate::PercentileEstimates;

impl Document {
    /// The sum of these documents, which must be in the order of [`in_order`](super::in_order). Runs at the same time
    /// add their rates; runs one after another add their times. What is decided about a sum is not in it:
    /// [`judge_sum`](crate::judge::judge_sum) adds and judges.
    ///
    /// # Errors
    ///
    /// When one of them breaks what [`Document::check`] checks.
    pub fn sum(named: &[Named<'_>]) -> Result<Self, Corrupt> {
        let documents: Vec<&Self> = named.iter().map(|named| named.document).collect();
        let [first, others @ ..] = &documents[..] else { return Err(Corrupt::Count) };
        let mut sum = (*first).clone();
        sum.latency = Latency::sum(&documents)?;
        sum.censored = total(documents.iter().filter_map(|document| document.censored.as_ref()))?;
        sum.phases = Phases::sum(&documents)?;
        let of_each: Vec<Sources> =
            named.iter().map(|named| Sources::of(named.name, named.document)).collect::<Result<_, _>>()?;
        let sources = Sources::all(&of_each);
        let is_alone = others.is_empty();
        others.iter().for_each(|other| sum.add(other));
        if !is_alone {
            sum.threads = threads(&documents, &of_each);
            sum.script = Script::sum(&documents, &sources);
            sum.ledger.sort_by(|one, other| one.place().partial_cmp(&other.place()).unwrap_or(Ordering::Equal));
            sum.tls.iter_mut().for_each(|tls| tls.negotiated.sort_by(|one, other| one.is().cmp(&other.is())));
        }
        let of_runs = documents.iter().zip(&of_each);
        sum.notes = of_runs.flat_map(|(document, sources)| own_notes(document, sources, is_alone)).collect();
        if !is_alone {
            sources.sort(&mut sum.notes);
        }
        sum.incomplete = sources.incomplete();
        let segments = sources.segments();
        let lasted_ns: u128 = segments.iter().map(Segment::length_ns).sum();
        sum.duration_s = lasted_ns as f64 / 1e9;
        sum.in_flight = InFlight::sum(&documents, lasted_ns);
        sum.thread_rates = ThreadRates::sum(&documents)?;
        sum.rate_per_s = count_per_second(documents.iter().map(|document| document.counted()).sum(), sum.duration_s);
        sum.connections.asked = sources.most(|run| run.asked).max(sum.connections.asked);
        sum.connections.established = sources.most(|run| run.established).max(sum.connections.established);
        sum.open_loop = OpenLoop::sum(&documents, sum.latency.scheduled.as_ref(), sum.duration_s)?;
        if let Some(open_loop) = &mut sum.open_loop {
            open_loop.due_per_s = count_per_second(sum.requests.due.unwrap_or_default(), sum.duration_s);
            open_loop.sent_per_s = count_per_second(sum.requests.started, sum.duration_s);
        }
        sum.stages = StageRow::sum(&documents, &sources)?;
        sum.names = OfName::sum(&documents)?;
        sum.request_log = RequestLog::sum(&documents);
        sum.sockets = Sockets::sum(&documents);
        sum.timeline = axis::rows(documents.iter().copied(), &segments)?;
        sum.notes.splice(0..0, sources.note());
        sum.sources = Some(sources);
        (sum.evidence, sum.unseen) = runs::evidence(&sum)?;
        Ok(sum)
    }

    /// Adds everything that is a plain count. Each field is named, so that a new one cannot silently keep the first
    /// document's value.
    fn add(&mut self, other: &Self) {
        let Self {
            // Tool, host and plan are those of the first; different plans have a note.
            schema: _,
            tool: _,
            host: _,
            command: _,
            plan: _,
            labels,
            started_at,
            suspended_s,
            interrupted,
            requests,
            bytes_received,
            bytes_sent,
            connections,
            status,
            errors,
            ledger,
            tls,
            http2,
            shown: _,
            lost_threads,
            location,
            expects_tls,
            batch,
            pauses,
            pauses_unread,
            // Computed from all of them together.
            duration_s: _,
            incomplete: _,
            sources: _,
            rate_per_s: _,
            in_flight: _,
            latency: _,
            open_loop: _,
            phases: _,
            censored: _,
            timeline: _,
            threads: _,
            // Those of one run.
            machines: _,
            thread_rates: _,
            script: _,
            stages: _,
            names: _,
            request_log: _,
            sockets: _,
            notes: _,
            evidence: _,
            unseen: _,
            // The verdict and the gates are decided anew by `judge::sum`, and what ended a run is about that alone.
            verdict: _,
            gates: _,
            until: _,
            experiment: _,
            ended: _,
            addresses: _,
            stopped_threads: _,
        } = other;
        self.verdict = None;
        self.gates.clear();
        self.until = None;
        self.ended = None;
        self.addresses = None;
        self.machines.clear();
        self.stopped_threads.clear();
        self.lost_threads += lost_threads;
        self.location = self.location.take().into_iter().chain(location.clone()).min();
        self.expects_tls &= expects_tls;
        self.batch = self.batch.max(*batch);
        self.pauses |= pauses;
        self.pauses_unread |= pauses_unread;
        self.experiment = None;
        self.labels.retain(|key, level| labels.get(key) == Some(level));
        self.suspended_s = (nanos(self.suspended_s) + nanos(*suspended_s)) as f64 / 1e9;
        self.interrupted |= interrupted;
        self.requests.add(*requests);
        self.bytes_received += bytes_received;
        self.bytes_sent += bytes_sent;
        self.connections.add(*connections);
        add_counts(&mut self.status, status);
        self.errors += *errors;
        let later_us = started_at.0 - self.started_at.0;
        ledger.iter().for_each(|row| add_row(&mut self.ledger, row.later(later_us)));
        if let Some(theirs) = http2 {
            self.http2.get_or_insert_default().add(theirs);
        }
        match (&mut self.tls, tls) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
    }
}

/// The notes of a document, except the one about its own runs. In a sum each begins with the name of its run.
fn own_notes(document: &Document, sources: &Sources, is_alone: bool) -> Vec<Note> {
    let about_runs = sources.note();
    let own = document.notes.iter().filter(|note| Some(*note) != about_runs.as_ref());
    own.map(|note| Note { text: of_run(sources, is_alone, note.text.clone()), ..note.clone() }).collect()
}

/// The threads of all documents, in the order of their runs.
fn threads(documents: &[&Document], of_each: &[Sources]) -> Vec<Thread> {
    let mut groups: Vec<(&Source, &[Thread])> = Vec::new();
    for (document, sources) in documents.iter().zip(of_each) {
        let mut left = &document.threads[..];
        for run in &sources.files {
            let (own, others) = left.split_at(run.threads as usize);
            groups.push((run, own));
            left = others;
        }
    }
    groups.sort_by(|(one, _), (other, _)| one.place().cmp(&other.place()));
    groups.into_iter().flat_map(|(_, threads)| threads).cloned().collect()
}

/// A sentence preceded by the name of its run, which a sum that is added has already.
fn of_run(sources: &Sources, is_alone: bool, sentence: String) -> String {
    match &sources.files[..] {
        [run] if !is_alone => format!("{}: {sentence}", run.name),
        _ => sentence,
    }
}

impl Latency {
    fn sum(documents: &[&Document]) -> Result<Self, Corrupt> {
        let service = total(documents.iter().map(|document| &document.latency.service))?;
        Ok(Self {
            service: service.ok_or(Corrupt::Count)?,
            clamped: documents.iter().map(|document| document.latency.clamped).sum(),
            scheduled: all(documents, |document| document.latency.scheduled.as_ref())?,
            by_class: by_class(documents)?,
            batch: total(documents.iter().filter_map(|document| document.latency.batch.as_ref()))?,
            // wrk's mean over several runs cannot be computed from a sum.
            wrk_mean_us: if let [only] = documents { only.latency.wrk_mean_us } else { None },
            wrk: all(documents, |document| document.latency.wrk.as_ref())?,
            // Runs of different lengths have no common spacing: their rewritten latencies are added.
            wrk_spacing_us: if let [only] = documents { only.latency.wrk_spacing_us } else { None },
            wrk2: Wrk2::sum(documents)?,
        })
    }
}

impl OpenLoop {
    /// `None` if one is of a closed loop. The caller computes the rates from the requests.
    fn sum(documents: &[&Document], scheduled: Option<&Distribution>, lasted_s: f64) -> Result<Option<Self>, Corrupt> {
        let parts: Option<Vec<&Self>> = documents.iter().map(|document| document.open_loop.as_ref()).collect();
        let (Some(parts), Some(scheduled)) = (parts, scheduled) else { return Ok(None) };
        let Some(lateness) = total(parts.iter().map(|part| &part.lateness))? else { return Ok(None) };
        let censored = total(parts.iter().filter_map(|part| part.censored.as_ref()))?;
        let later = total(parts.iter().filter_map(|part| part.later.as_ref()))?;
        let open = total(parts.iter().filter_map(|part| part.open.as_ref()))?;
        let entered = total(parts.iter().filter_map(|part| part.entered.as_ref()))?;
        let untimestamped = parts.iter().filter_map(|part| part.untimestamped).reduce(|sum, part| sum + part);
        let mut percents: Vec<_> = parts.iter().flat_map(|part| part.percentiles_us.keys().copied()).collect();
        percents.sort_unstable();
        percents.dedup();
        let (due_per_s, sent_per_s, none) = (0.0, 0.0, BTreeMap::new());
        let asked = |of: fn(&Self) -> f64| {
            if let [only] = parts[..] {
                return of(only);
            }
            // As whole thousandths of requests, so that the sum of sums is the same.
            let thousandths = |(it, part): (&&Document, &&Self)| (of(part) * it.duration_s * 1e3).round();
            let asked: f64 = documents.iter().zip(&parts).map(thousandths).sum();
            if lasted_s > 0.0 { asked / 1e3 / lasted_s } else { 0.0 }
        };
        let unavailable = Unavailable::sum(documents, lasted_s)?;
        let mut sum = Self {
            due_per_s,
            sent_per_s,
            asked_per_s: asked(|part| part.asked_per_s),
            asked_by_end_per_s: asked(|part| part.asked_by_end_per_s),
            lateness,
            run_on_s: parts.iter().map(|part| part.run_on_s).fold(0.0, f64::max),
            later,
            later_failed: parts.iter().map(|part| part.later_failed).sum(),
            later_dropped: parts.iter().map(|part| part.later_dropped).sum(),
            censored,
            open,
            unsteady: parts.iter().any(|part| part.unsteady),
            entered,
            unavailable,
            untimestamped,
            all_busy_s: total_s(&parts, |part| part.all_busy_s),
            all_busy_max_s: parts.iter().map(|part| part.all_busy_max_s).fold(0.0, f64::max),
            paused_s: total_s(&parts, |part| part.paused_s),
            held_back: parts.iter().map(|part| part.held_back).sum(),
            percentiles_us: none,
        };
        let failed = documents.iter().map(|document| document.requests.failed()).sum();
        sum.percentiles_us = percentiles_us(&PercentileEstimates::new(sum.due(scheduled.values()?, failed)?), percents);
        Ok(Some(sum))
    }
}

/// The total of a time, in whole nanoseconds.
fn total_s(parts: &[&OpenLoop], of: fn(&OpenLoop) -> f64) -> f64 {
    parts.iter().map(|part| nanos(of(part))).sum::<u64>() as f64 / 1e9
}

impl Phases {
    /// `None` if one has none: a sum without some of the requests would be meaningless.
    fn sum(documents: &[&Document]) -> Result<Option<Self>, Corrupt> {
        let of = |view: fn(&Self) -> &Distribution| all(documents, |document| document.phases.as_ref().map(view));
        let connect = of(|it| &it.connect)?;
        let tls = total(documents.iter().filter_map(|document| document.phases.as_ref()?.tls.as_ref()))?;
        let ttfb = of(|it| &it.ttfb)?;
        let ttlb = of(|it| &it.ttlb)?;
        let (Some(connect), Some(ttfb), Some(ttlb)) = (connect, ttfb, ttlb) else { return Ok(None) };
        Ok(Some(Self { connect, tls, ttfb, ttlb }))
    }
}

/// The sums by the class of the status; none if a document lacks them that has such statuses: it imitated a tool.
fn by_class(documents: &[&Document]) -> Result<BTreeMap<String, Distribution>, Corrupt> {
    let lacks = |document: &&Document| {
        document.latency.by_class.is_empty() && document.status.range(300..600).any(|(_, count)| *count > 0)
    };
    if documents.iter().any(lacks) {
        return Ok(BTreeMap::new());
    }
    let classes = documents.iter().flat_map(|document| document.latency.by_class.keys());
    let classes: BTreeSet<&String> = classes.collect();
    let sum = |class: &String| {
        let sum = total(documents.iter().filter_map(|document| document.latency.by_class.get(class)))?;
        Ok(sum.map(|sum| (class.clone(), sum)))
    };
    classes.into_iter().filter_map(|class| sum(class).transpose()).collect()
}

/// The sum of a view that all documents have.
fn all<'a>(
    documents: &[&'a Document],
    view: impl Fn(&'a Document) -> Option<&'a Distribution>,
) -> Result<Option<Distribution>, Corrupt> {
    let views: Option<Vec<&Distribution>> = documents.iter().map(|document| view(document)).collect();
    total(views.into_iter().flatten())
}

impl LedgerRow {
    /// What orders the rows of a sum.
    fn place(&self) -> (f64, &str, &str) {
        (self.first_s, &self.phase, &self.cause)
    }

    /// The row with times relative to a start `later_us` microseconds earlier, to the microsecond, so that nothing is
    /// rounded again in a sum of sums.
    fn later(&self, later_us: u64) -> Self {
        let later = |seconds: f64| ((seconds * 1e6).round() + later_us as f64) / 1e6;
        Self { first_s: later(self.first_s), last_s: later(self.last_s), ..self.clone() }
    }
}

impl Tls {
    fn add(&mut self, other: &Self) {
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        for theirs in &other.negotiated {
            match self.negotiated.iter_mut().find(|mine| mine.is() == theirs.is()) {
                Some(mine) => mine.connections += theirs.connections,
                None => self.negotiated.push(theirs.clone()),
            }
        }
    }
}

impl Agreed {
    /// What was negotiated.
    fn is(&self) -> (&str, &str, Option<&str>, Option<&str>) {
        (&self.version, &self.suite, self.group.as_deref(), self.protocol.as_deref())
    }
}

impl Script {
    /// The share in the time of all threads; `None` if one has no script, or its time is unknown.
    fn sum(documents: &[&Document], sources: &Sources) -> Option<Self> {
        documents.iter().all(|document| document.script.is_some()).then_some(())?;
        let spent = documents.iter().flat_map(|document| &document.threads).map(|thread| thread.script_s.map(nanos));
        let spent_ns: u64 = spent.sum::<Option<u64>>()?;
        let of_run = |run: &Source| u128::from(run.threads) * u128::from(nanos(run.duration_s));
        let all_ns: u128 = sources.files.iter().map(of_run).sum();
        let share = if all_ns > 0 { spent_ns as f64 / all_ns as f64 } else { 0.0 };
        Some(Self { share: figure(share.min(1.0)) })
    }
}

impl Requests {
    fn add(&mut self, other: Self) {
        let Self {
            started,
            completed,
            unsuccessful,
            early,
            timeout,
            abandoned,
            open,
            open_late,
            unknown,
            carried,
            returned,
            interim,
            cut_responses,
            due,
            due_before,
            late,
            dropped,
            unsent,
        } = other;
        self.started += started;
        self.completed += completed;
        self.unsuccessful += unsuccessful;
        self.early += early;
        self.timeout += timeout;
        self.abandoned += abandoned;
        self.open += open;
        self.open_late += open_late;
        self.unknown += unknown;
        self.carried += carried;
        self.returned += returned;
        self.interim += interim;
        self.cut_responses += cut_responses;
        self.due = both(self.due, due);
        self.due_before = both(self.due_before, due_before);
        self.late = both(self.late, late);
        self.dropped = both(self.dropped, dropped);
        self.unsent = both(self.unsent, unsent);
    }
}

impl Connections {
    /// Adds the counts. The highest numbers at one time depend on when the runs took place.
    fn add(&mut self, other: Self) {
        self.asked = self.asked.max(other.asked);
        self.established = self.established.max(other.established);
        self.opened += other.opened;
        self.closed_first = both(self.closed_first, other.closed_first);
        self.idle_closed = both(self.idle_closed, other.idle_closed);
        self.shortage = None;
    }
}

/// The sum of two optional counts.
fn both(mine: Option<u64>, theirs: Option<u64>) -> Option<u64> {
    mine.into_iter().chain(theirs).reduce(|one, other| one + other)
}

fn add_row(ledger: &mut Vec<LedgerRow>, row: LedgerRow) {
    match ledger.iter_mut().find(|known| (&known.phase, &known.cause) == (&row.phase, &row.cause)) {
        Some(known) => {
            known.count += row.count;
            // The smallest example, whichever row comes first; of those without any, the smallest advice.
            let rank = |it: &LedgerRow| (it.example.is_none(), it.example.clone(), it.advice.clone());
            if rank(&row) < rank(known) {
                known.example = row.example;
                (known.example_is, known.advice) = (row.example_is, row.advice);
            }
            known.first_s = known.first_s.min(row.first_s);
            known.last_s = known.last_s.max(row.last_s);
        }
        None => ledger.push(row),
    }
}

#[cfg(test)]
mod tests;
