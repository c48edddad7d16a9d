//! The work of a row, and the target that it is put on.

use super::nginx;

/// Where onrush writes a result file, from the root of the repository.
pub const RESULT: &str = "target/bench/result.json";

/// Work for a generator.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The target.
    pub target: Target,
    /// The path.
    pub path: &'static str,
    /// Further options of onrush and wrk, such as a script. Paths of files start at the root of the repository.
    pub options: &'static [&'static str],
    /// The options of [`Without`](super::contender::Contender::Without) instead.
    pub without: &'static [&'static str],
    /// The length of the response bodies.
    pub body_bytes: u64,
    /// Threads of the generator.
    pub threads: u32,
    /// Connections, all threads together.
    pub connections: u32,
    /// Requests per second, for contenders that hold a rate; the others send as fast as they can.
    pub rate: u32,
    /// How long a round lasts.
    pub seconds: u32,
    /// Whether generator and target have a processor each.
    pub pinned: bool,
}

/// The target of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The bare server: as fast as possible, and never changed by work on onrush.
    Bare,
    /// `onrush serve`.
    Serve,
    /// nginx, over TLS.
    Tls,
    /// A target that responds once that many connections have sent a request.
    Gate(u32),
}

impl Target {
    /// Why it is not available, if so.
    pub fn missing(self) -> Option<String> {
        if self == Self::Tls { nginx::missing() } else { None }
    }
}
