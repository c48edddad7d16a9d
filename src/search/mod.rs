//! Searches (`--find-max`) for the highest load at which a condition holds, with one run after the other.
//!
//! `draft` reads the options, and `runner` makes the runs. A [`Point`] judges one run, and [`SlowExcess`] counts its
//! requests that were too slow. [`LimitFit`] derives the limit from all points; [`SearchProgress::next`]
//! chooses the next run;
//! `length.rs` decides how long it is and when the search is over. [`ClientLimit`] is a limit other than the target, [`Starvation`] says who had no processor. All of these are pure functions: nothing but
//! the `runner` runs, waits, prints
//! or reads a clock. [`words`] has the lines for the user, and [`Document`] is the
//! search as a file.

mod alone;
mod document;
mod draft;
mod ended;
pub mod errors;
mod excess;
mod fit;
mod found;
mod length;
mod limit;
mod look;
mod point;
mod runner;
#[cfg(test)]
mod simulation;
mod starved;
mod step;
mod strategy;
pub mod words;

pub use alone::Alone;
pub use document::Document;
pub use ended::SearchEnd;
pub use excess::{Hopeless, PartCounts, SlowExcess};
pub use fit::{LimitFit, excuse_cold};
pub use found::{ResultKind, SearchResult};
pub use length::needed;
pub use limit::ClientLimit;
pub use look::ClosedLoop;
pub use point::{LoadFailure, MeasuredRun, Point, WINDOWS, Window, at_first};
pub use starved::Starvation;
pub use step::PlannedRun;
pub use strategy::{Next, SearchProgress, confirmed};

use onrush_plan::Plan;

use crate::cli::{InsteadOfRun, PlanAction};
use draft::Draft;

/// The search that the options of a run ask for with `--find-max`.
pub const SEARCH: InsteadOfRun = InsteadOfRun(|typed| {
    let search =
        |draft: Draft| -> PlanAction { Box::new(move |plan: Plan| runner::carry_out(&mut draft.with_plan(plan))) };
    Ok(Draft::take(typed)?.map(search))
});
