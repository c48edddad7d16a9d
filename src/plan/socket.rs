//! What the kernel is told about the sockets of connections.

use serde::{Deserialize, Serialize};

use super::limits::BUFFER_MAX;

/// The options of every connection's socket; what is `None` is left to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// The size of the receive buffer in bytes, before the kernel doubles it for its own needs.
    pub rcvbuf: Option<u32>,
    /// The size of the send buffer, likewise.
    pub sndbuf: Option<u32>,
    /// The congestion control, by the kernel's name.
    pub congestion: Option<String>,
    /// Whether the sizes of the buffers are read although none is asked for, because settings of the host are varied.
    #[serde(default)]
    pub reads_sizes: bool,
}

impl SocketOptions {
    /// The longest name of a congestion control, in bytes (`TCP_CA_NAME_MAX`, without the one that ends it).
    pub const NAME_MAX: usize = 15;

    /// Whether a text can be the name of a congestion control.
    pub fn is_name(text: &str) -> bool {
        (1..=Self::NAME_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// What is wrong with them.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let is_size = |bytes: u32| (1..=BUFFER_MAX).contains(&u64::from(bytes));
        if ![self.rcvbuf, self.sndbuf].into_iter().flatten().all(is_size) {
            return Some("a buffer of a connection has a size that the kernel does not know");
        }
        let is_nameless = self.congestion.as_deref().is_some_and(|name| !Self::is_name(name));
        is_nameless.then_some("no congestion control can have that name")
    }
}
