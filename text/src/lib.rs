//! Text for people: numbers with units, untrusted bytes made safe for a terminal, the operating system's reasons.

mod escape;
mod reason;
pub mod units;

pub use escape::{escape, in_markdown, misleads, printable, printable_lines};
pub use reason::reason;
