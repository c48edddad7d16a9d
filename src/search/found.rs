//! The result of a search: one conclusion from all its runs, for the line, the document and the exit code.

use std::time::Duration;

use onrush_plan::search::{Search, SearchVariable};

use super::strategy::{WIDE, is_exact};
use super::{Alone, ClientLimit, ClosedLoop, LimitFit, LoadFailure, Point, SearchEnd, Starvation, confirmed, needed};

/// The result of a search. Loads are in the unit of the points.
#[derive(Clone, Debug)]
pub struct SearchResult<'a> {
    /// How the search ended.
    pub ended: SearchEnd,
    /// Kind of result.
    pub kind: ResultKind,
    /// The interval of the limit; `None`: no load held, none failed, or loads are counted and the limit is known
    /// exactly.
    pub interval: Option<(f64, f64)>,
    /// The lowest run that failed above the load that was found, or of all.
    pub beyond: Option<&'a Point>,
    /// The runs that the others contradict.
    pub contradicting: Vec<&'a Point>,
    /// Who waited for a processor in runs that failed.
    pub starved: Starvation,
    /// Signs in runs that contradict the others: the time without a response, and the number of failed connects, each
    /// at its worst.
    pub silent: Duration,
    /// See above.
    pub unconnected: u64,
    /// The closed loop, if the objective held in it while no lower load did.
    pub look: Option<ClosedLoop>,
}

/// The kinds of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The highest load that a long run has confirmed.
    Highest(u64),
    /// The limit of the target is unknown, but not below this load: the highest that held in a run, without a long run
    /// to confirm it, within the interval of the limit, if there is one.
    AtLeast(u64),
    /// Every load held, up to this one.
    All(u64),
    /// No load held, down to this one.
    None(u64),
    /// No load can hold: even one request at a time took too long.
    Never(Alone),
    /// No run has a result.
    Unknown,
}

/// From this share of all runs on, one in three, contradicting runs leave no conclusion.
const CONTRADICTING_MAX: usize = 3;
/// A single run may have been disturbed.
const CONTRADICTING_MIN: usize = 2;

/// Failed runs that it takes to say that no load holds.
const FAILED_MIN: usize = 2;

/// The interval has its confidence in a search that may take this long, and had this many times the responses that its
/// objective needs: in others, the limit is outside of it more often.
const CONFIDENT: Duration = Duration::from_secs(60);
const CONFIDENT_TIMES: f64 = 5.0;

/// True if a search with these runs that ended like this shows enough for that confidence.
pub(super) fn is_confident(search: &Search, points: &[Point], ended: SearchEnd) -> bool {
    let responses: u64 = points.iter().filter(|point| point.is_clean()).map(|point| point.completed).sum();
    let is_enough = responses as f64 >= CONFIDENT_TIMES * needed(&search.objective);
    search.budget >= CONFIDENT && !matches!(ended, SearchEnd::Signal | SearchEnd::Lost) && is_enough
}

impl<'a> SearchResult<'a> {
    /// The conclusion; `look`: the closed loop that the first rate comes from.
    pub fn new(over: SearchVariable, points: &'a [Point], look: Option<ClosedLoop>, ended: SearchEnd) -> Self {
        if let SearchEnd::Hopeless(alone) = ended {
            return Self::never(alone, points);
        }
        let clean = || points.iter().filter(|point| point.is_clean());
        let held = clean().filter(|point| point.holds()).map(|point| point.load).max();
        let failed = || clean().filter(|point| !point.holds());
        let fit = LimitFit::from_points(points);
        let is_spoilt = matches!(ended, SearchEnd::Died | SearchEnd::Limited(_));
        let cold = points.iter().filter(|point| point.fault == Some(LoadFailure::Limited(ClientLimit::Cold)));
        let others = points.iter().filter(|point| fit.as_ref().is_some_and(|fit| fit.contradicts(point)));
        let contradicting: Vec<&Point> = cold.chain(others).collect();
        // Where runs were disturbed, the load to confirm may have followed from them: others held at higher ones.
        let known = fit.as_ref().filter(|_| !contradicting.is_empty()).and_then(|fit| sure(points, fit));
        let is_outdone = |load: u64| known.is_some_and(|known| known as f64 > load as f64 * WIDE);
        let kind = match (confirmed(points), held, failed().map(|point| point.load).min()) {
            (_, None, None) => ResultKind::Unknown,
            (Some(load), ..) if !is_spoilt && !is_outdone(load) => ResultKind::Highest(load),
            (_, Some(load), None) if !is_spoilt => ResultKind::All(load),
            (_, None, Some(load)) => ResultKind::None(load),
            (_, Some(load), _) => {
                ResultKind::AtLeast(fit.as_ref().map_or(load, |fit| sure(points, fit).unwrap_or(load)))
            }
        };
        let above = match kind {
            ResultKind::Highest(load) | ResultKind::AtLeast(load) => load,
            _ => 0,
        };
        let beyond = failed().filter(|point| point.load > above).min_by_key(|point| point.load);
        // Failures that others contradict bound nothing. The interval has the load in it that was confirmed.
        let has_failed = failed().any(|point| !contradicting.iter().any(|other| std::ptr::eq(*other, point)));
        let fitted = fit.as_ref().filter(|_| has_failed && !is_exact(over, points));
        let interval = fitted.map(LimitFit::interval).map(|(low, high)| match kind {
            ResultKind::Highest(load) => (low.min(load as f64), high.max(load as f64)),
            _ => (low, high),
        });
        let suspects = contradicting
            .iter()
            .copied()
            .chain(failed().filter(|point| matches!(kind, ResultKind::None(_)) && !point.is_broken_by_errors));
        let starved = Starvation::worst(suspects.map(|point| point.starved));
        let look = look.filter(|look| match kind {
            ResultKind::None(load) => over == SearchVariable::Rate && look.holds && look.per_s > over.number(load),
            _ => false,
        });
        let silent = contradicting.iter().map(|point| point.silent).max().unwrap_or_default();
        let unconnected = contradicting.iter().map(|point| point.unconnected).max().unwrap_or_default();
        Self { ended, look, kind, interval, beyond, contradicting, starved, silent, unconnected }
    }

    /// The conclusion that no load can hold, if the runs cast no doubt on it ([`Alone::is_hopeless`]).
    fn never(alone: Alone, points: &'a [Point]) -> Self {
        Self {
            ended: SearchEnd::Hopeless(alone),
            kind: ResultKind::Never(alone),
            interval: None,
            beyond: points.iter().filter(|point| point.is_clean()).min_by_key(|point| point.load),
            contradicting: Vec::new(),
            starved: Starvation::default(),
            silent: Duration::ZERO,
            unconnected: 0,
            look: None,
        }
    }

    /// True if so many runs contradict one another that the result is in doubt.
    pub fn is_contradicted(&self, points: &[Point]) -> bool {
        let contradicting = self.contradicting.len();
        contradicting >= CONTRADICTING_MIN && contradicting * CONTRADICTING_MAX >= points.len()
    }

    /// True if it is certain that no load that was tried holds: a single run may have been disturbed.
    pub fn is_none(&self, points: &[Point]) -> bool {
        match self.kind {
            ResultKind::Never(_) => true,
            ResultKind::None(_) => {
                let failed = points.iter().filter(|point| point.is_clean()).count();
                !matches!(self.ended, SearchEnd::Limited(_)) && !self.is_doubted() && failed >= FAILED_MIN
            }
            _ => false,
        }
    }

    /// True if the question is still open, and not only because a signal cut the search short.
    pub fn is_inconclusive(&self, points: &[Point]) -> bool {
        match (self.ended, self.kind) {
            (SearchEnd::Died, _) | (_, ResultKind::Never(_)) => false,
            (SearchEnd::Limited(_) | SearchEnd::Lost, _) => true,
            (_, ResultKind::None(_)) if self.is_doubted() => true,
            (_, ResultKind::Highest(_) | ResultKind::All(_)) if self.is_contradicted(points) => true,
            (SearchEnd::Signal, _) => false,
            (SearchEnd::Time, ResultKind::All(_)) => true,
            (_, ResultKind::AtLeast(_) | ResultKind::Unknown) => true,
            (_, ResultKind::None(_)) => !self.is_none(points),
            (_, ResultKind::Highest(_) | ResultKind::All(_)) => false,
        }
    }

    /// True if there is evidence against a result of no load.
    fn is_doubted(&self) -> bool {
        self.starved.matters() || self.look.is_some()
    }
}

/// The highest load that held and is no higher than the limit is likely to be.
fn sure(points: &[Point], fit: &LimitFit) -> Option<u64> {
    let (_, high) = fit.interval();
    let held = points.iter().filter(|point| point.holds() && point.load as f64 <= high);
    held.map(|point| point.load).max()
}

/// The last run that was to confirm a load, if it failed.
pub(super) fn unconfirmed(points: &[Point]) -> Option<&Point> {
    let failed = |point: &&Point| point.confirms && point.is_clean() && !point.holds();
    points.iter().rev().find(failed).filter(|point| point.fault != Some(LoadFailure::NoResponse))
}
