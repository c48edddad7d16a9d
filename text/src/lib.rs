//! Text for people: numbers with units, untrusted bytes made safe for a terminal, names in natural order, the operating
//! system's error messages.

#![forbid(unsafe_code)]

pub mod csv;
mod escape;
pub mod order;
mod reason;
pub mod units;

pub use escape::{escape, escape_controls, escape_controls_in_lines, escape_markdown, is_misleading};
pub use reason::error_reason;
