//! Checks that io_uring can be used.

use super::Uring;
use crate::backend::{Clock, Dialer};

impl Uring {
    /// Checks that this process can use everything that [`Uring::new`] needs.
    ///
    /// # Errors
    ///
    /// The reason, worded for the user.
    pub fn probe() -> Result<(), String> {
        Self::new(1, Clock::start(), Dialer::default()).map(drop).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM) if is_switched_off() => {
                "io_uring is disabled here; 'sysctl -w kernel.io_uring_disabled=0' enables it".to_owned()
            }
            Some(libc::EPERM) => "a filter forbids io_uring, as Docker's seccomp profile does".to_owned(),
            Some(libc::ENOSYS) => "this kernel has no io_uring, or a filter hides it".to_owned(),
            Some(libc::EINVAL) => "this kernel's io_uring is older than 6.1".to_owned(),
            _ => format!("io_uring cannot be set up: {error}"),
        })
    }
}

fn is_switched_off() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|value| value.trim() != "0")
}
