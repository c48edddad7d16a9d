//! The socket options of connections.

use serde::{Deserialize, Serialize};

use super::limits::BUFFER_MAX;

/// The options of every connection's socket; `None`: the kernel's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// The size of the receive buffer in bytes, before the kernel doubles it for its own needs.
    pub rcvbuf: Option<u32>,
    /// The size of the send buffer in bytes, before the kernel doubles it.
    pub sndbuf: Option<u32>,
    /// The congestion control, under the kernel's name.
    pub congestion: Option<String>,
    /// True to read the buffer sizes even if none was set, because an experiment varies host settings.
    pub reads_sizes: bool,
}

impl SocketOptions {
    /// Longest name of a congestion control, in bytes (`TCP_CA_NAME_MAX`, without the terminating zero).
    pub const NAME_MAX: usize = 15;

    /// True if a string can be the name of a congestion control.
    pub fn is_name(text: &str) -> bool {
        (1..=Self::NAME_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// The contradiction in the options, if there is one.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let is_size = |bytes: u32| (1..=BUFFER_MAX).contains(&u64::from(bytes));
        if ![self.rcvbuf, self.sndbuf].into_iter().flatten().all(is_size) {
            return Some("the kernel does not support that size of a connection's buffer");
        }
        let is_nameless = self.congestion.as_deref().is_some_and(|name| !Self::is_name(name));
        is_nameless.then_some("no congestion control can have that name")
    }
}
