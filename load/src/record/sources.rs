//! The runs in a sum, and when they took place.

use std::collections::HashMap;

use onrush_stats::Gap;
use onrush_text::escape_controls;
use onrush_text::units::{format_count, format_thousands, format_us};
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::{Moment, Note, NoteId, RunFacts};

/// The runs that were added up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Sources {
    /// How many there are.
    pub count: u64,
    /// Each of them, the earliest first.
    pub files: Vec<Source>,
}

/// One of the runs that were added up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Source {
    /// Its file, as it was named.
    pub name: String,
    /// When measuring began.
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "String"))]
    pub started_at: Moment,
    /// How long was measured, in seconds.
    pub duration_s: f64,
    /// Connections asked for.
    pub asked: u64,
    /// How many of them were established.
    pub established: u64,
    /// Threads.
    pub threads: u64,
    /// The boot of its machine, as in `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The facts that a verdict on it rests on, of which those of the sum are made; left out if it has no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Why it broke off, or why something that was measured is missing; left out of a complete run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// What could not be observed of it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
}

/// A span of time in which the same runs took place. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub from_ns: u128,
    pub until_ns: u128,
    /// How many runs took place.
    pub runs: u64,
}

impl Sources {
    /// The runs of a result.
    pub(super) fn from_runs(runs: &[RunFacts]) -> Self {
        let source = |run: &RunFacts| Source {
            name: run.name.clone(),
            started_at: run.started_at,
            duration_s: run.elapsed().as_secs_f64(),
            asked: run.asked,
            established: run.established,
            threads: run.threads.len() as u64,
            boot_id: run.host.boot_id.clone(),
            evidence: run.evidence.clone(),
            incomplete: run.incomplete.clone(),
            unseen: run.unseen.clone(),
        };
        Self { count: runs.len() as u64, files: runs.iter().map(source).collect() }
    }

    /// Why some of them are incomplete; several have each reason behind the name of its run.
    pub(super) fn incomplete(&self) -> Option<String> {
        let is_only = self.files.len() == 1;
        let reason = |run: &Source| match &run.incomplete {
            Some(reason) if !is_only => Some(format!("{}: {reason}", run.name)),
            reason => reason.clone(),
        };
        let reasons: Vec<String> = self.files.iter().filter_map(reason).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Sorts notes that begin with the name of a run in the order of the runs; others come last. Those of runs of one name,
    /// and the others, are sorted by what they say.
    pub(super) fn sort(&self, notes: &mut [Note]) {
        let mut places: HashMap<&str, (usize, bool)> = HashMap::new();
        for (place, run) in self.files.iter().enumerate() {
            places.entry(&run.name).and_modify(|(_, is_only)| *is_only = false).or_insert((place, true));
        }
        notes.sort_by_cached_key(|Note { text, .. }| {
            let place = text.match_indices(": ").find_map(|(at, _)| places.get(&text[..at]));
            let (place, is_only) = place.copied().unwrap_or((usize::MAX, false));
            (place, if is_only { String::new() } else { text.clone() })
        });
    }

    /// The time in which at least one run took place, divided wherever one began or ended.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let mut segments = Vec::new();
        let mut now = Segment::default();
        for (at_ns, begins, _) in self.changes() {
            now.until_ns = at_ns;
            segments.extend((now.runs > 0 && now.from_ns < at_ns).then_some(now));
            now.from_ns = at_ns;
            now.runs = if begins { now.runs + 1 } else { now.runs - 1 };
        }
        if segments.is_empty() {
            // No run had any length.
            let at_ns = self.files.first().map_or(0, Source::began_ns);
            segments.push(Segment { from_ns: at_ns, until_ns: at_ns, runs: 1 });
        }
        segments
    }

    /// When a run began (true) or ended, in order.
    fn changes(&self) -> Vec<(u128, bool, &Source)> {
        let runs = self.files.iter().filter(|run| run.began_ns() < run.ended_ns());
        let ends = |run| [(Source::began_ns(run), true, run), (Source::ended_ns(run), false, run)];
        let mut changes: Vec<(u128, bool, &Source)> = runs.flat_map(ends).collect();
        // Ends come before beginnings at the same moment.
        changes.sort_by_key(|&(at_ns, begins, _)| (at_ns, begins));
        changes
    }

    /// The highest total of a number of the runs at one time.
    pub fn most(&self, of: impl Fn(&Source) -> u64) -> u64 {
        let mut now = 0_u64;
        let totals = self.changes().into_iter().map(|(_, begins, run)| {
            now = if begins { now.saturating_add(of(run)) } else { now.saturating_sub(of(run)) };
            now
        });
        totals.max().unwrap_or(0)
    }

    /// The highest number of threads at one time.
    pub fn threads(&self) -> u64 {
        self.most(|run| run.threads)
    }

    /// When each of them took place, in nanoseconds since the first began.
    pub fn times(&self) -> Vec<Gap> {
        let first_ns = self.files.iter().map(Source::began_ns).min().unwrap_or(0);
        let since = |at_ns: u128| u64::try_from(at_ns - first_ns).unwrap_or(u64::MAX);
        let time = |run: &Source| Gap { from_ns: since(run.began_ns()), until_ns: since(run.ended_ns()) };
        self.files.iter().map(time).collect()
    }

    /// Their names, as far as they are few; `None`: there is only one.
    pub fn names(&self) -> Option<String> {
        const NAMED_MAX: usize = 5;
        let (named, others) = self.files.split_at(self.files.len().min(NAMED_MAX));
        let mut names: Vec<String> = named.iter().map(|run| escape_controls(&run.name)).collect();
        names.extend((!others.is_empty()).then(|| format!("{} more", format_thousands(others.len() as u64))));
        (self.count > 1).then(|| names.join(", "))
    }

    /// The note on when they took place, if there are several.
    pub fn note(&self) -> Option<Note> {
        Some(Note::hint(NoteId::Sum, self.in_words()?))
    }

    /// When they took place, if there are several.
    fn in_words(&self) -> Option<String> {
        let runs = format_count(self.count, "run");
        let segments = self.segments();
        let lasted_us = |segments: &mut dyn Iterator<Item = &Segment>| {
            format_us(segments.map(|segment| segment.length_ns() as f64 / 1e3).sum())
        };
        let most = segments.iter().map(|segment| segment.runs).max().unwrap_or(1);
        match most {
            _ if self.count < 2 => None,
            1 => Some(format!("the sum of {runs}, one after another: their times are added")),
            _ if self.is_at_one_time() => Some(format!("the sum of {runs} at the same time: their rates are added")),
            _ => Some(format!(
                "the sum of {runs}, up to {most} of them at the same time, together for {} of {}: the duration is the time \
                 in which any of them ran",
                lasted_us(&mut segments.iter().filter(|segment| segment.runs > 1)),
                lasted_us(&mut segments.iter())
            )),
        }
    }

    /// Whether every two of them overlap by at least half of the shorter one.
    pub fn is_at_one_time(&self) -> bool {
        let length_ns = |run: &Source| run.ended_ns() - run.began_ns();
        self.files.iter().enumerate().all(|(index, one)| {
            self.files[..index].iter().all(|other| {
                let together_ns =
                    one.ended_ns().min(other.ended_ns()).saturating_sub(one.began_ns().max(other.began_ns()));
                2 * together_ns >= length_ns(one).min(length_ns(other))
            })
        })
    }
}

impl Segment {
    /// How long it lasted.
    pub(super) fn length_ns(&self) -> u128 {
        self.until_ns - self.from_ns
    }
}

impl Source {
    /// When it began, in nanoseconds since 1970.
    pub(super) fn began_ns(&self) -> u128 {
        u128::from(self.started_at.0) * 1_000
    }

    /// When it ended, likewise.
    pub(super) fn ended_ns(&self) -> u128 {
        self.began_ns() + u128::from(nanos(self.duration_s))
    }
}

/// Seconds as whole nanoseconds.
pub(super) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
