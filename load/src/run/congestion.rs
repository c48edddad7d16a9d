//! Checks before the run that the kernel supports the plan's congestion control.

use onrush_engine::backend::socket;
use onrush_plan::{Io, Plan};
use onrush_text::error_reason;
use rustix::io::Errno;
use thiserror::Error;

use super::host;
use crate::resolve::Addresses;

/// The kernel rejects the plan's congestion control.
#[derive(Debug, Error)]
#[error("--congestion {name:?}: {why}")]
pub struct BadCongestion {
    name: String,
    why: String,
}

/// Checks that connections can use the plan's congestion control, if the plan sets one. Checks nothing in simulations.
pub(super) fn check_congestion_control(plan: &Plan, addresses: &Addresses) -> Result<(), BadCongestion> {
    let wanted = plan.connect.socket.congestion.as_deref().filter(|_| !matches!(plan.io, Io::Sim(_)));
    let Some((name, address)) = wanted.zip(addresses.0.first()) else { return Ok(()) };
    socket::try_congestion(address.ip(), name).map_err(|errno| {
        let listed = |setting| host::read_sysctl(setting).unwrap_or_else(|| format!("those of {setting}"));
        let why = match errno {
            Errno::NOENT => {
                let available = listed("net.ipv4.tcp_available_congestion_control");
                format!("not available in this kernel; load its module, or use one of: {available}")
            }
            Errno::PERM => {
                let allowed = listed("net.ipv4.tcp_allowed_congestion_control");
                format!("needs CAP_NET_ADMIN; without it, use one of: {allowed}")
            }
            errno => error_reason(&errno.into()),
        };
        BadCongestion { name: name.to_owned(), why }
    })
}
