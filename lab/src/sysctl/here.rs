//! Identifies the settings that this process may change: those of this boot and network namespace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use onrush_engine::backend::socket;

/// Identifies a boot of the kernel and a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelNamespace {
    /// The kernel's boot identifier.
    pub boot: String,
    /// The network namespace, as part of a file name: its cookie, which is unique until the next boot. Linux before
    /// 5.14 has no cookie; there it is the inode number, which a later namespace may reuse.
    pub namespace: String,
}

impl KernelNamespace {
    /// Reads which boot and network namespace this process belongs to.
    ///
    /// # Errors
    ///
    /// Fails if `/proc` cannot be read.
    pub fn read() -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let namespace = match socket::network_namespace_cookie() {
            Ok(cookie) => format!("netns-{cookie}"),
            Err(_) => format!("netns-inode-{}", fs::metadata("/proc/self/ns/net")?.ino()),
        };
        Ok(Self { boot, namespace })
    }
}
