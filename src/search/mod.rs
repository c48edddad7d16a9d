//! Searches for the highest load at which a condition holds, with one run after the other.
//!
//! A [`Point`] judges one run. From all points, [`Bracket`] gives the two loads that enclose the limit and [`interval`]
//! its 95 % interval; [`next`] chooses the load to try and [`length`] for how long. [`Limit`] says what was the limit
//! if it was not the target. All of these are pure functions: nothing here runs, waits, prints or reads a clock.
//! [`words`] has the lines for the user, and [`Document`] is the search as a file.

mod bracket;
mod document;
mod ended;
mod fit;
mod length;
mod limit;
mod point;
#[cfg(test)]
mod simulation;
mod strategy;
pub mod words;

pub use bracket::{Bracket, doubted};
pub use document::Document;
pub use ended::Ended;
pub use fit::{AGAINST_MAX, contradicting, interval, is_inconclusive};
pub use length::{length, needed, warm_up};
pub use limit::Limit;
pub use point::{Fault, Measured, Point, WINDOWS, Window};
pub use strategy::{limited, next};
