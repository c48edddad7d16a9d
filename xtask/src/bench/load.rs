//! The work that a row asks for, and what it is put on.

use super::nginx;

/// Where onrush writes a result file, from the root of the repository.
pub const RESULT: &str = "target/bench/result.json";

/// Work for a generator.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// What it is put on.
    pub target: Target,
    /// The path.
    pub path: &'static str,
    /// What onrush and wrk are told besides, such as a script. Files are found from the root of the repository.
    pub options: &'static [&'static str],
    /// What [`Without`](super::contender::Contender::Without) is told instead.
    pub without: &'static [&'static str],
    /// The length of the answers' bodies.
    pub body_bytes: u64,
    /// Threads of the generator.
    pub threads: u32,
    /// Connections, all threads together.
    pub connections: u32,
    /// Requests per second, for those who hold a rate; the others ask as fast as they can.
    pub rate: u32,
    /// How long a round lasts.
    pub seconds: u32,
    /// Whether generator and target have a processor each.
    pub pinned: bool,
}

/// What a load is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The bare server: as fast as can be, and never changed by work on onrush.
    Bare,
    /// `onrush serve`.
    Serve,
    /// nginx, over TLS.
    Tls,
    /// Answers when that many connections have asked.
    Gate(u32),
}

impl Target {
    /// Why it cannot be had, if it cannot.
    pub fn missing(self) -> Option<String> {
        if self == Self::Tls { nginx::missing() } else { None }
    }
}
