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
    // Only who may take io_uring asks the kernel for it: there are filters that kill whoever does.
    let (name, reason) = match io {
        Io::Sim(_) => (Sim::NAME, "asked for with --io; time is virtual".to_owned()),
        Io::Epoll => (Epoll::NAME, ASKED_FOR.to_owned()),
        Io::Uring => match Uring::probe() {
            Ok(()) => (Uring::NAME, ASKED_FOR.to_owned()),
            Err(reason) => return Err(Unavailable { name: Uring::NAME, reason }),
        },
        Io::Auto => match Uring::probe() {
            Ok(()) => (Uring::NAME, "the kernel allows io_uring".to_owned()),
            Err(reason) => (Epoll::NAME, reason),
        },
    };
    Ok(Choice { name, reason })
}

const ASKED_FOR: &str = "asked for with --io";
