//! The extra connection to every address that compatible runs make before the start, as the imitated tools do.

use std::net::SocketAddr;
use std::time::Duration;

use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::{Dialer, dialer};
use onrush_plan::{ConnectOptions, Io, Plan};
use rustix::io::Errno;
use thiserror::Error;

use super::Interrupt;
use crate::resolve::Addresses;

/// Timeout for the connection to an address. The imitated tools wait as long as the kernel does, about two minutes.
const PROBE_PATIENCE: Duration = Duration::from_secs(30);

/// No address accepted a connection.
#[derive(Debug, Error)]
#[error("unable to connect to {host}:{service} {reason}")]
pub struct Unreachable {
    host: String,
    service: String,
    reason: String,
}

/// Connects to each address, from the last to the first as the imitated tools do, and closes the connection. Returns
/// the addresses that accepted, in the original order.
///
/// # Errors
///
/// Fails if no address accepted, with the reason of the last one tried, or if a scenario cannot be read.
pub fn find_reachable_addresses(
    plan: &Plan,
    addresses: &Addresses,
    interrupt: &Interrupt,
) -> anyhow::Result<Addresses> {
    let scenario = match &plan.io {
        Io::Sim(path) => Some(Scenario::read(path)?),
        Io::Auto | Io::Uring | Io::Epoll => None,
    };
    // The imitated tools do not bind this connection.
    let mut dialer = Dialer::new(&ConnectOptions { sources: None, ..plan.connect.clone() }, 0)?;
    let mut accepts = |address: SocketAddr| match &scenario {
        Some(scenario) => scenario.probe(address),
        None => dialer::try_connect(&mut dialer, address, PROBE_PATIENCE, &|| interrupt.is_requested()),
    };
    let (mut accepting, mut reason) = (Vec::new(), String::new());
    for &address in addresses.0.iter().rev() {
        match accepts(address) {
            Ok(()) => accepting.insert(0, address),
            // A peer that resets the connection had accepted it.
            Err(Errno::CONNRESET) => accepting.insert(0, address),
            Err(errno) => reason = onrush_text::error_reason(&errno.into()),
        }
    }
    if accepting.is_empty() {
        let proxy = plan.connect.proxy.as_ref().map(|proxy| (proxy.host.clone(), proxy.port.to_string()));
        let (host, service) = proxy.unwrap_or_else(|| (plan.target.host.clone(), plan.target.service()));
        return Err(Unreachable { host, service, reason }.into());
    }
    Ok(Addresses(accepting))
}
