//! Which backend a run gets, and why.

use thiserror::Error;

use crate::backend::{Backend, Epoll, Sim, Uring};
use crate::plan::Io;

/// A backend that can be had, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// Why it was taken, for `-v`.
    pub reason: String,
}

/// The backend that was asked for cannot be had.
#[derive(Debug, Error)]
#[error("--io {name}: {reason}; without --io the run takes epoll")]
pub struct Unavailable {
    name: &'static str,
    reason: String,
}

/// The backend for what was asked for: io_uring where the kernel allows it, else epoll.
///
/// # Errors
///
/// When io_uring was asked for by name and cannot be had.
pub fn choose(io: &Io) -> Result<Choice, Unavailable> {
    let asked = |name| Ok(Choice { name, reason: "asked for with --io".to_owned() });
    match (io, Uring::probe()) {
        (Io::Sim(_), _) => Ok(Choice { name: Sim::NAME, reason: "asked for with --io; time is virtual".to_owned() }),
        (Io::Epoll, _) => asked(Epoll::NAME),
        (Io::Uring, Ok(())) => asked(Uring::NAME),
        (Io::Uring, Err(reason)) => Err(Unavailable { name: Uring::NAME, reason }),
        (Io::Auto, Ok(())) => Ok(Choice { name: Uring::NAME, reason: "the kernel allows io_uring".to_owned() }),
        (Io::Auto, Err(reason)) => Ok(Choice { name: Epoll::NAME, reason }),
    }
}
