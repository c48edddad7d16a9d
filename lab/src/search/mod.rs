//! Searches (`--find-max`) for the highest load at which a condition holds, with successive runs.
//!
//! - `draft` reads the options.
//! - `runner` runs, waits, prints and reads the clock. Everything else is a pure function.
//! - A [`Point`] judges one run. [`SlowExcess`] counts its slow requests.
//! - [`LimitFit`] derives the limit from all points.
//! - [`SearchProgress::next`] chooses the next run, and `length.rs` its length.
//! - [`ClientLimit`] is a limit other than the target. [`Starvation`] records waits for a processor.
//! - [`words`] formats the output. [`Document`] is the file.

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
pub use fit::{LimitFit, mark_cold_failures};
pub use found::{ResultKind, SearchResult};
pub use length::responses_needed;
pub use limit::ClientLimit;
pub use look::ClosedLoop;
pub use point::{LoadFailure, MeasuredRun, Point, WINDOWS, Window, runs_before_first_success};
pub use starved::Starvation;
pub use step::PlannedRun;
pub use strategy::{Next, SearchProgress, highest_confirmed_load};

use onrush_load::cli::{InsteadOfRun, PlanAction};
use onrush_plan::Plan;

use draft::Draft;

/// The search requested by `--find-max`.
pub const SEARCH: InsteadOfRun = InsteadOfRun(|plan| {
    let search =
        |draft: Draft| -> PlanAction { Box::new(move |plan: Plan| runner::run_search(&mut draft.with_plan(plan))) };
    Ok(Draft::take_from(plan)?.map(search))
});
