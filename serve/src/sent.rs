//! The result of handing bytes to the kernel.

/// The result of handing bytes to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendResult {
    /// The kernel took all bytes.
    All,
    /// The kernel has no room for the rest; an event will announce when it has.
    Full,
    /// The connection is broken: the client has gone.
    Gone,
}
