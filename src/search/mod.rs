//! The highest load under which a condition holds, found by runs that follow one another.
//!
//! A [`Point`] is what one run says about its load. [`Bracket`] is what all of them say, [`next`] which load is to be
//! tried, [`length`] for how long, [`interval`] between which loads the limit is, and [`Limit`] what else than the target it was. All of it is a pure function of the
//! points: nothing here runs, waits, prints or reads a clock. [`words`] has the lines that are shown, [`Document`] is the
//! search as a file.

mod bracket;
mod document;
mod fit;
mod length;
mod limit;
mod point;
#[cfg(test)]
mod simulation;
mod strategy;
pub mod words;

pub use bracket::Bracket;
pub use document::{Document, Ended};
pub use fit::interval;
pub use length::{length, needed, warm_up};
pub use limit::Limit;
pub use point::{Fault, Measured, Point, WINDOWS, Window};
pub use strategy::{limited, next};
