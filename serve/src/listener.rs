//! The listening sockets, one per thread.
//!
//! Connections are accepted elsewhere.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, getsockname, listen, socket_with};

use super::{ServeConfig, describe_error};

/// Opens a listening socket for every thread. Returns the sockets and their common address.
///
/// # Errors
///
/// Fails if the address cannot be used; the message gives the address and the remedy.
pub(super) fn bind_listeners(config: &ServeConfig) -> io::Result<(Vec<OwnedFd>, SocketAddr)> {
    let explained = |errno| explain_bind_error(errno, config.address);
    let shared = config.threads > 1;
    if shared {
        // Sockets that share a port would also silently share it with a second server. This probe does not share, so it
        // fails if the port is in use.
        open_listener(config.address, false).map_err(explained)?;
    }
    let first = open_listener(config.address, shared).map_err(explained)?;
    let address = getsockname(&first).and_then(SocketAddr::try_from)?;
    let mut listeners = vec![first];
    for _ in 1..config.threads {
        listeners.push(open_listener(address, shared).map_err(explained)?);
    }
    for listener in &listeners {
        listen(listener, BACKLOG).map_err(explained)?;
    }
    Ok((listeners, address))
}

/// Length of the backlog: a load generator opens thousands of connections at once.
const BACKLOG: i32 = 4096;

/// Opens a socket bound to the address. The kernel distributes connections among `shared` sockets.
fn open_listener(address: SocketAddr, shared: bool) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    set_socket_reuseport(&socket, shared)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

fn explain_bind_error(errno: Errno, address: SocketAddr) -> io::Error {
    let text = match errno {
        Errno::ADDRINUSE => format!("{address} is already in use; choose another address or port with --addr"),
        Errno::ADDRNOTAVAIL => {
            format!("{address} is not an address of this machine; choose another address with --addr")
        }
        Errno::ACCESS => format!("{address} needs more privileges; choose a port of 1024 or above with --addr"),
        other => format!("cannot listen on {address}: {}", describe_error(other.into())),
    };
    io::Error::new(io::Error::from(errno).kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve_config(address: &str, threads: usize) -> ServeConfig {
        ServeConfig { address: address.parse().unwrap(), threads, tls: false }
    }

    #[test]
    fn occupied_addresses_are_refused_with_remedy() {
        for first_threads in [1, 2] {
            let (_listeners, address) = bind_listeners(&serve_config("127.0.0.1:0", first_threads)).unwrap();
            for second_threads in [1, 2] {
                let error = bind_listeners(&ServeConfig { address, threads: second_threads, tls: false }).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
                let text = format!("{address} is already in use; choose another address or port with --addr");
                assert_eq!(error.to_string(), text);
            }
        }
    }

    #[test]
    fn foreign_addresses_are_refused_by_name() {
        let error = bind_listeners(&serve_config("192.0.2.1:8080", 1)).unwrap_err();
        let text = "192.0.2.1:8080 is not an address of this machine; choose another address with --addr";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn all_threads_listen_on_one_port() {
        let (listeners, address) = bind_listeners(&serve_config("127.0.0.1:0", 3)).unwrap();
        assert_eq!(listeners.len(), 3);
        assert_ne!(address.port(), 0);
        for listener in &listeners {
            assert_eq!(getsockname(listener).and_then(SocketAddr::try_from), Ok(address));
        }
    }
}
