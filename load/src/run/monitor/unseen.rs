//! Reasons why facts about a target or the machine could not be observed.

use std::fmt;
use std::io;

use rustix::io::Errno;

use onrush_text::error_reason;

/// A fact that could not be observed, with the reason; shown as `what: why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unobserved {
    /// The target is on another machine.
    Remote,
    /// Nothing listens on the target's address.
    NoListener,
    /// Connections to a listening socket end elsewhere, for instance in a container.
    Forwarded,
    /// The kernel does not report sockets.
    Sockets(Errno),
    /// The kernel does not report the target's end of connections.
    Connections(Errno),
    /// The processes that hold the listening sockets belong to another user.
    Denied,
    /// The processes that hold the listening sockets are not visible here.
    NoProcess,
    /// Time ran out before all processes were searched for the listening sockets.
    Unsearched,
    /// The time stolen from this machine's processors.
    Stolen,
    /// The overflows of accept queues.
    Overflows,
    /// The limits of the target's control group.
    TargetGroup,
    /// The limits of the generator's control group.
    OwnGroup,
}

impl Unobserved {
    /// The error that the sockets cannot be observed, for this reason.
    pub fn from_socket_error(error: &io::Error) -> Self {
        Self::Sockets(Errno::from_io_error(error).unwrap_or(Errno::IO))
    }
}

impl fmt::Display for Unobserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote => f.write_str("the target: not on this machine"),
            Self::NoListener => f.write_str("the target: nothing listens there in this network namespace"),
            Self::Forwarded => {
                f.write_str("the target: its connections are forwarded and end outside this network namespace")
            }
            Self::Sockets(errno) => write!(f, "the target's listening sockets: {}", error_reason(&(*errno).into())),
            Self::Connections(errno) => {
                write!(f, "the target's end of connections: {}", error_reason(&(*errno).into()))
            }
            Self::Denied => f.write_str("the target's processes: only their owner and root can see their sockets"),
            Self::NoProcess => f.write_str("the target's processes: none visible here holds the listening socket"),
            Self::Unsearched => f.write_str("some of the target's processes: the search ran out of time"),
            Self::Stolen => f.write_str("time taken by the hypervisor: '/proc/stat' cannot be read"),
            Self::Overflows => f.write_str("overflows of accept queues: '/proc/net/netstat' cannot be read"),
            Self::TargetGroup => f.write_str("limits of the target's control group: not visible here"),
            Self::OwnGroup => f.write_str("throttling of the generator: its control group is not visible here"),
        }
    }
}
