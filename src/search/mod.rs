//! Searches (`--find-max`) for the highest load at which a condition holds, with one run after the other.
//!
//! `draft` reads the options, and `runner` makes the runs. A [`Point`] judges one run, and [`Excess`] counts its
//! requests that were too slow. [`Fit`] derives the limit from all points; [`Course::next`] chooses the next run;
//! `length.rs` decides how long it is and when the search is over. [`Limit`] is a limit other than the target,
//! [`Starved`] says who had no processor. All of these are pure functions: nothing but the `runner` runs, waits, prints
//! or reads a clock. [`words`] has the lines for the user, and [`Document`] is the search as a file.

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
pub use ended::Ended;
pub use excess::{Excess, Hopeless, Share};
pub use fit::{Fit, excuse_cold};
pub use found::{Found, Kind};
pub use length::needed;
pub use limit::Limit;
pub use look::Look;
pub use point::{Fault, Measured, Point, WINDOWS, Window, at_first};
pub use starved::Starved;
pub use step::Step;
pub use strategy::{Course, Next, confirmed};

use onrush_plan::Plan;

use crate::cli::{Instead, OfPlan};
use draft::Draft;

/// The search that the options of a run ask for with `--find-max`.
pub const SEARCH: Instead = Instead(|typed| {
    let search = |draft: Draft| -> OfPlan { Box::new(move |plan: Plan| runner::carry_out(&mut draft.of(plan))) };
    Ok(Draft::take(typed)?.map(search))
});
