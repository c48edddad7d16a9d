//! Who limited a run: decided from plain [`Evidence`] that was gathered while it ran.

mod evidence;

pub use evidence::{Evidence, Generator, Latency, Listening, Load, Machine, Network, Target, Thirds, Thread};
