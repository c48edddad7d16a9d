//! Finds the connections of the run: the sockets of this process that are connected to the target or proxy.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;

use onrush_plan::filter::States;
use rustix::io::Errno;

use super::reading::{EXTENSIONS, filter_subject, socket_inode};
use super::reservoir::Reservoir;
use crate::run::diag;
use crate::run::monitor;

/// The connections of the run. Other processes may also be connected to the target, so sockets are recognised by the
/// inodes of this process's descriptors. Reading those takes longer than taking a sample.
#[derive(Debug)]
pub struct OwnConnections {
    addresses: Vec<(IpAddr, u16)>,
    /// Sockets of the last sample by inode; true if they belong to this process.
    known: HashMap<u32, bool>,
}

impl OwnConnections {
    /// Selects connections to these addresses.
    pub fn new(addresses: &[SocketAddr]) -> Self {
        let ends = addresses.iter().map(|address| (address.ip(), address.port())).collect();
        Self { addresses: ends, known: HashMap::new() }
    }

    /// Offers all connections of the run to the reservoir. Fails with the kernel's error.
    pub fn offer_connections(&mut self, reservoir: &mut Reservoir) -> Result<(), Errno> {
        let (mut known, mut new) = (HashMap::new(), Vec::new());
        let ports: HashSet<(bool, u16)> = self.addresses.iter().map(|(ip, port)| (ip.is_ipv6(), *port)).collect();
        for (v6, port) in ports {
            diag::dump_socket_messages(EXTENSIONS, v6, States::USUAL.0, [0, port], |body| {
                let is_there = filter_subject(body).is_some_and(|socket| self.is_destination(socket.peer));
                // A socket without an owning process is about to disappear.
                let inode = socket_inode(body).filter(|inode| is_there && *inode != 0);
                match inode.map(|inode| (inode, self.known.get(&inode))) {
                    None => {}
                    Some((inode, None)) => new.push((inode, body.to_vec())),
                    Some((inode, Some(&is_own))) => {
                        known.insert(inode, is_own);
                        if is_own {
                            reservoir.offer_socket(body);
                        }
                    }
                }
                ControlFlow::Continue(())
            })?;
        }
        if !new.is_empty() {
            // Without `/proc`, no socket can be recognised as another process's and left out.
            let own: Option<HashSet<u64>> = monitor::socket_inodes_of("self").ok().map(Iterator::collect);
            for (inode, body) in new {
                let is_own = own.as_ref().is_none_or(|own| own.contains(&inode.into()));
                known.insert(inode, is_own);
                if is_own {
                    reservoir.offer_socket(&body);
                }
            }
        }
        self.known = known;
        Ok(())
    }

    fn is_destination(&self, peer: SocketAddr) -> bool {
        // No socket is connected to `0.0.0.0`: the kernel substitutes a local address.
        let is_it = |(ip, port): &(IpAddr, u16)| (ip.is_unspecified() || *ip == peer.ip()) && *port == peer.port();
        self.addresses.iter().any(is_it)
    }
}
