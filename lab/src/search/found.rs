//! Result of a search: one conclusion from all runs, for the output, the document and the exit code.

use std::time::Duration;

use onrush_plan::search::{Search, SearchVariable};

use super::strategy::{WIDE, is_exact};
use super::{
    Alone, ClientLimit, ClosedLoop, LimitFit, LoadFailure, Point, SearchEnd, Starvation, highest_confirmed_load,
    responses_needed,
};

/// Result of a search. Loads are counted in the unit of the points.
#[derive(Clone, Debug)]
pub struct SearchResult<'a> {
    /// Why the search ended.
    pub ended: SearchEnd,
    /// Finding, with the load.
    pub kind: ResultKind,
    /// Interval of the limit. `None` if no load held, if none failed, or if loads are counted and the limit is known
    /// exactly.
    pub interval: Option<(f64, f64)>,
    /// The lowest failed run above the load found or, if no load was found, of all runs.
    pub beyond: Option<&'a Point>,
    /// Runs that contradict the others, probably because they were disturbed.
    pub contradicting: Vec<&'a Point>,
    /// The worst starvation during failed runs.
    pub starved: Starvation,
    /// Longest time without a response in a contradicting run.
    pub silent: Duration,
    /// Largest number of failed connects in a contradicting run.
    pub unconnected: u64,
    /// The closed loop before the first run, if the objective held there but at no lower load.
    pub look: Option<ClosedLoop>,
}

/// Findings of a search about the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// The highest confirmed load.
    Highest(u64),
    /// The limit is unknown but is at least this load: the highest that held in a run and lies within the interval. No
    /// long run confirms it.
    AtLeast(u64),
    /// Every load held, up to this one.
    All(u64),
    /// No load held, down to this one.
    None(u64),
    /// No load can hold: even single requests took too long.
    Never(Alone),
    /// No run has a result.
    Unknown,
}

/// The result is inconclusive if at least one run in this many contradicts the others ...
const CONTRADICTING_MAX: usize = 3;
/// ... and at least this many runs do. A single run may have been disturbed.
const CONTRADICTING_MIN: usize = 2;

/// Failed runs required to conclude that no load holds.
const FAILED_MIN: usize = 2;

/// The stated confidence holds only for searches with at least this time, and with this multiple of the responses that
/// the objective needs. In other searches, the limit is outside the interval more often.
const CONFIDENT: Duration = Duration::from_secs(60);
const CONFIDENT_TIMES: f64 = 5.0;

/// True if a search with these runs and this end justifies stating the confidence of its interval.
pub(super) fn is_confident(search: &Search, points: &[Point], ended: SearchEnd) -> bool {
    let responses: u64 = points.iter().filter(|point| point.is_clean()).map(|point| point.completed).sum();
    let is_enough = responses as f64 >= CONFIDENT_TIMES * responses_needed(&search.objective);
    search.budget >= CONFIDENT && !matches!(ended, SearchEnd::Signal | SearchEnd::Lost) && is_enough
}

impl<'a> SearchResult<'a> {
    /// Draws the conclusion from the runs. `look` is the closed loop from which the first rate was derived.
    pub fn new(over: SearchVariable, points: &'a [Point], look: Option<ClosedLoop>, ended: SearchEnd) -> Self {
        if let SearchEnd::Hopeless(alone) = ended {
            return Self::from_hopelessness(alone, points);
        }
        let clean = || points.iter().filter(|point| point.is_clean());
        let held = clean().filter(|point| point.holds()).map(|point| point.load).max();
        let failed = || clean().filter(|point| !point.holds());
        let fit = LimitFit::from_points(points);
        let is_spoilt = matches!(ended, SearchEnd::Died | SearchEnd::Limited(_));
        let cold = points.iter().filter(|point| point.fault == Some(LoadFailure::Limited(ClientLimit::Cold)));
        let others = points.iter().filter(|point| fit.as_ref().is_some_and(|fit| fit.contradicts(point)));
        let contradicting: Vec<&Point> = cold.chain(others).collect();
        // Disturbed runs may have led to the wrong load being confirmed, while higher ones held.
        let known =
            fit.as_ref().filter(|_| !contradicting.is_empty()).and_then(|fit| highest_probable_success(points, fit));
        let is_outdone = |load: u64| known.is_some_and(|known| known as f64 > load as f64 * WIDE);
        let kind = match (highest_confirmed_load(points), held, failed().map(|point| point.load).min()) {
            (_, None, None) => ResultKind::Unknown,
            (Some(load), ..) if !is_spoilt && !is_outdone(load) => ResultKind::Highest(load),
            (_, Some(load), None) if !is_spoilt => ResultKind::All(load),
            (_, None, Some(load)) => ResultKind::None(load),
            (_, Some(load), _) => ResultKind::AtLeast(
                fit.as_ref().map_or(load, |fit| highest_probable_success(points, fit).unwrap_or(load)),
            ),
        };
        let above = match kind {
            ResultKind::Highest(load) | ResultKind::AtLeast(load) => load,
            _ => 0,
        };
        let beyond = failed().filter(|point| point.load > above).min_by_key(|point| point.load);
        // Contradicted failures bound nothing. The interval includes the confirmed load.
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
            ResultKind::None(load) => {
                over == SearchVariable::Rate && look.holds && look.per_s > over.load_for_users(load)
            }
            _ => false,
        });
        let silent = contradicting.iter().map(|point| point.silent).max().unwrap_or_default();
        let unconnected = contradicting.iter().map(|point| point.unconnected).max().unwrap_or_default();
        Self { ended, look, kind, interval, beyond, contradicting, starved, silent, unconnected }
    }

    /// The conclusion that no load can hold, unless the runs cast doubt on it ([`Alone::is_hopeless`]).
    fn from_hopelessness(alone: Alone, points: &'a [Point]) -> Self {
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

    /// True if so many runs contradict the others that the result is in doubt.
    pub fn is_contradicted(&self, points: &[Point]) -> bool {
        let contradicting = self.contradicting.len();
        contradicting >= CONTRADICTING_MIN && contradicting * CONTRADICTING_MAX >= points.len()
    }

    /// True if it is certain that none of the tried loads holds. A single run may have been disturbed.
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

    /// True if the search, unless a signal ended it, left its question open.
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

    /// True if there is evidence that some load holds after all.
    fn is_doubted(&self) -> bool {
        self.starved.matters() || self.look.is_some()
    }
}

/// The highest load that held and is probably below the limit.
fn highest_probable_success(points: &[Point], fit: &LimitFit) -> Option<u64> {
    let (_, high) = fit.interval();
    let held = points.iter().filter(|point| point.holds() && point.load as f64 <= high);
    held.map(|point| point.load).max()
}

/// The last run that was to confirm a load, if that run failed.
pub(super) fn failed_confirmation(points: &[Point]) -> Option<&Point> {
    let failed = |point: &&Point| point.confirms && point.is_clean() && !point.holds();
    points.iter().rev().find(failed).filter(|point| point.fault != Some(LoadFailure::NoResponse))
}
