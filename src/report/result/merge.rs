//! Several documents as one: everything is added, no percentile is averaged.

use std::collections::BTreeMap;

use super::build::{rate, rows};
use super::{
    Agreed, Connections, Distribution, Document, Latency, LedgerRow, Moment, Phases, Requests, Row, Script, Tls,
};
use crate::stats::Corrupt;
use crate::stats::histogram::HIGHEST;
use crate::stats::timeline::{ROWS_MAX, SECOND_NS, Timeline, bin_of};

impl Document {
    /// Adds another document. Runs that took place at the same time share it; others follow one another.
    ///
    /// # Errors
    ///
    /// When a distribution of either cannot be read.
    pub fn add(&mut self, other: &Self) -> Result<(), Corrupt> {
        self.latency.add(&other.latency)?;
        sum(&mut self.censored, other.censored.as_ref())?;
        match (&mut self.phases, &other.phases) {
            (Some(mine), Some(theirs)) => mine.add(theirs)?,
            // A sum that leaves some requests out would be one of nothing.
            (mine, _) => *mine = None,
        }
        let (started_at, duration_s) =
            together((self.started_at, self.duration_s), (other.started_at, other.duration_s));
        (self.started_at, self.duration_s) = (started_at, duration_s);
        self.requests.add(other.requests);
        self.bytes_received += other.bytes_received;
        self.bytes_sent += other.bytes_sent;
        self.rate_per_s = rate(self.requests.completed, duration_s);
        self.connections.add(other.connections);
        add_counts(&mut self.status, &other.status);
        self.errors += other.errors;
        other.ledger.iter().for_each(|row| add_row(&mut self.ledger, row));
        let mut timeline = timeline(&self.timeline)?;
        timeline += &self::timeline(&other.timeline)?;
        self.timeline = rows(&timeline, None);
        match (&mut self.tls, &other.tls) {
            (Some(mine), Some(theirs)) => mine.add(theirs),
            (mine, theirs) => *mine = mine.take().or_else(|| theirs.clone()),
        }
        self.script = match (self.script, other.script) {
            (Some(mine), Some(theirs)) => Some(mine.together(self.threads.len(), theirs, other.threads.len())),
            (mine, theirs) => mine.or(theirs),
        };
        self.threads.extend(other.threads.iter().cloned());
        let new: Vec<String> = other.notes.iter().filter(|note| !self.notes.contains(note)).cloned().collect();
        self.notes.extend(new);
        Ok(())
    }
}

impl Latency {
    fn add(&mut self, other: &Self) -> Result<(), Corrupt> {
        self.service = self.service.plus(&other.service)?;
        sum(&mut self.batch, other.batch.as_ref())?;
        match (&self.wrk, &other.wrk) {
            (Some(mine), Some(theirs)) => self.wrk = Some(mine.plus(theirs)?),
            _ => self.wrk = None,
        }
        Ok(())
    }
}

impl Phases {
    fn add(&mut self, other: &Self) -> Result<(), Corrupt> {
        self.connect = self.connect.plus(&other.connect)?;
        self.ttfb = self.ttfb.plus(&other.ttfb)?;
        self.ttlb = self.ttlb.plus(&other.ttlb)?;
        sum(&mut self.tls, other.tls.as_ref())
    }
}

impl Tls {
    fn add(&mut self, other: &Self) {
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        for theirs in &other.agreed {
            let is_same = |mine: &&mut Agreed| {
                (&mine.version, &mine.suite, &mine.group) == (&theirs.version, &theirs.suite, &theirs.group)
            };
            match self.agreed.iter_mut().find(is_same) {
                Some(mine) => mine.connections += theirs.connections,
                None => self.agreed.push(theirs.clone()),
            }
        }
    }
}

impl Script {
    /// The share of the time of both groups of threads.
    fn together(self, threads: usize, other: Self, others: usize) -> Self {
        let (mine, theirs) = (threads as f64, others as f64);
        Self { share: (self.share * mine + other.share * theirs) / (mine + theirs).max(1.0) }
    }
}

impl Requests {
    fn add(&mut self, other: Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.timeout += other.timeout;
        self.abandoned += other.abandoned;
        self.open += other.open;
    }
}

impl Connections {
    fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.lived += other.lived;
        self.opened += other.opened;
        self.closed_first = match (self.closed_first, other.closed_first) {
            (Some(mine), Some(theirs)) => Some(mine + theirs),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// Adds what is there.
fn sum(mine: &mut Option<Distribution>, theirs: Option<&Distribution>) -> Result<(), Corrupt> {
    if let Some(theirs) = theirs {
        *mine = Some(match mine {
            Some(mine) => mine.plus(theirs)?,
            None => theirs.clone(),
        });
    }
    Ok(())
}

/// The beginning of the first and the time that either was running.
fn together(one: (Moment, f64), other: (Moment, f64)) -> (Moment, f64) {
    let (first, second) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    let apart_s = (second.0.0 - first.0.0) as f64 / 1e6;
    let shared_s = (first.1 - apart_s).clamp(0.0, second.1);
    (first.0, first.1 + second.1 - shared_s)
}

fn add_counts(mine: &mut BTreeMap<u16, u64>, theirs: &BTreeMap<u16, u64>) {
    for (&key, count) in theirs {
        *mine.entry(key).or_default() += count;
    }
}

fn add_row(ledger: &mut Vec<LedgerRow>, row: &LedgerRow) {
    match ledger.iter_mut().find(|known| (&known.phase, &known.cause) == (&row.phase, &row.cause)) {
        Some(known) => {
            known.count += row.count;
            known.first_s = known.first_s.min(row.first_s);
            known.last_s = known.last_s.max(row.last_s);
        }
        None => ledger.push(row.clone()),
    }
}

/// The time line that these are the rows of: the first begins at zero, and the second tells how long they are.
fn timeline(rows: &[Row]) -> Result<Timeline, Corrupt> {
    let length_s = rows.get(1).map_or(1.0, |second| second.start_s);
    let is_known = |length: &u64| length.is_power_of_two() && *length as f64 == length_s && rows.len() <= ROWS_MAX;
    let length = Some(length_s as u64).filter(is_known);
    let length_ns = length.and_then(|length| length.checked_mul(SECOND_NS)).ok_or(Corrupt::Figures)?;
    let is_ascending = |bins: &[(u16, u64)]| bins.is_sorted_by(|one, next| one.0 < next.0);
    let is_known = |bins: &[(u16, u64)]| bins.last().is_none_or(|(bin, _)| *bin <= bin_of(HIGHEST));
    if !rows.iter().all(|row| is_ascending(&row.latency_bins) && is_known(&row.latency_bins)) {
        return Err(Corrupt::Figures);
    }
    Ok(Timeline { length_ns, rows: rows.iter().map(Row::stretch).collect() })
}
