//! Picks the backend of a run and gives the reason.

use thiserror::Error;

use onrush_engine::backend::{Backend, Epoll, Sim, Uring};
use onrush_plan::Io;

/// An available backend, and the reason it was picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the backend.
    pub name: &'static str,
    /// The reason, for `-v`.
    pub reason: String,
}

/// The requested backend is not available.
#[derive(Debug, Error)]
#[error("--io {name}: {reason}; without --io the run uses epoll: see docs/troubleshooting.md#io_uring-is-not-used")]
pub struct NoBackend {
    name: &'static str,
    reason: String,
}

/// Picks the backend that `--io` names; without it, io_uring if the kernel allows it, else epoll.
///
/// # Errors
///
/// Fails if `--io uring` is not available.
pub fn choose_backend(io: &Io) -> Result<Choice, NoBackend> {
    // Try io_uring only if the run may use it: some seccomp filters kill a process that tries.
    let (name, reason) = match io {
        Io::Sim(_) => (Sim::NAME, "asked for with --io; time is virtual".to_owned()),
        Io::Epoll => (Epoll::NAME, ASKED_FOR.to_owned()),
        Io::Uring => match Uring::probe() {
            Ok(()) => (Uring::NAME, ASKED_FOR.to_owned()),
            Err(reason) => return Err(NoBackend { name: Uring::NAME, reason }),
        },
        Io::Auto => match Uring::probe() {
            Ok(()) => (Uring::NAME, "the kernel allows io_uring".to_owned()),
            Err(reason) => (Epoll::NAME, reason),
        },
    };
    Ok(Choice { name, reason })
}

const ASKED_FOR: &str = "asked for with --io";
