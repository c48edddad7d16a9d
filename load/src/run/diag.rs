//! Queries the kernel for TCP sockets of this network namespace: `sock_diag`, see `linux/inet_diag.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use onrush_stats::TcpInfo;

/// State bit of listening sockets.
pub const LISTEN: u32 = 1 << 10;
/// State bit of established connections.
pub const ESTABLISHED: u32 = 1 << 1;
/// All states except listening.
pub const ANY: u32 = !LISTEN;

/// Numbers of the reply attributes that are parsed.
const INFO: u16 = 2;
const V6_ONLY: u16 = 11;

/// Header lengths of messages, requests and replies.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const ANSWER: usize = 72;

/// The kernel sends at most this many bytes at once.
const BUFFER: usize = 32 * 1024;

/// Identity of a socket, as the kernel writes it: ports, addresses, interface and a unique cookie.
pub type SocketId = [u8; 48];

/// A socket as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketInfo {
    /// True for IPv6, false for IPv4.
    pub v6: bool,
    /// Identity of the socket, by which [`read_sockets`] finds it again.
    pub id: SocketId,
    /// Local address and port; an IPv4-mapped IPv6 address is given as IPv4.
    pub local: SocketAddr,
    /// Remote address and port; an IPv4-mapped IPv6 address is given as IPv4.
    pub peer: SocketAddr,
    /// Listening sockets: length of the accept queue.
    pub waiting: u32,
    /// Listening sockets: limit of the accept queue, the backlog.
    pub limit: u32,
    /// Inode of the socket.
    pub inode: u32,
    /// True if the socket accepts only IPv6.
    pub v6_only: bool,
    /// The socket's `TCP_INFO`, if requested.
    pub info: Option<TcpInfo>,
}

/// Calls `each` for every TCP socket of an address family (IPv6 if `v6`, else IPv4) that is in one of these states (a
/// bit mask) and has these local and remote ports (0 matches any), until `each` breaks. Fails with the kernel's error.
pub fn dump_sockets(
    v6: bool,
    states: u32,
    ports: [u16; 2],
    mut each: impl FnMut(SocketInfo) -> ControlFlow<()>,
) -> Result<(), Errno> {
    dump_socket_messages(0, v6, states, ports, |body| parse_socket(body).map_or(ControlFlow::Continue(()), &mut each))
}

/// Like [`dump_sockets`], but passes the kernel's raw message about each socket. `extensions`: attributes to include,
/// one bit each.
pub fn dump_socket_messages(
    extensions: u8,
    v6: bool,
    states: u32,
    [port, peer_port]: [u16; 2],
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), Errno> {
    const DUMP: u16 = 0x300;
    let mut id = [0; 48];
    id[..2].copy_from_slice(&port.to_be_bytes());
    id[2..4].copy_from_slice(&peer_port.to_be_bytes());
    query_kernel(&encode_request(v6, DUMP, extensions, states, &id), |part| match part {
        Ok(Some(body)) => Ok(each(body)),
        Ok(None) => Ok(ControlFlow::Break(())),
        Err(errno) => Err(errno),
    })
}

/// Calls `each` for every socket of this list (true for IPv6, and its identity) that still exists, with its `TCP_INFO`.
/// Fails with the kernel's error.
pub fn read_sockets(
    sockets: impl IntoIterator<Item = (bool, SocketId)>,
    mut each: impl FnMut(SocketInfo),
) -> Result<(), Errno> {
    let requests: Vec<u8> =
        sockets.into_iter().flat_map(|(v6, id)| encode_request(v6, 0, 1 << (INFO - 1), !0, &id)).collect();
    let mut left = requests.len() / (HEADER + REQUEST);
    if left == 0 {
        return Ok(());
    }
    query_kernel(&requests, |part| {
        match part {
            Ok(Some(body)) => parse_socket(body).into_iter().for_each(&mut each),
            Ok(None) | Err(Errno::NOENT | Errno::STALE) => {}
            Err(errno) => return Err(errno),
        }
        left -= 1;
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })
}

/// Sends requests and calls `each` with the replies until it breaks.
fn query_kernel(
    requests: &[u8],
    mut each: impl FnMut(Result<SocketAttributes<'_>, Errno>) -> Result<ControlFlow<()>, Errno>,
) -> Result<(), Errno> {
    // Each request has its own netlink socket: closing the socket discards the unread rest of the reply.
    let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    sendto(&fd, requests, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut buffer = vec![0; BUFFER];
    loop {
        // The reply is ready as soon as the request is sent.
        let (length, _) = match recv(&fd, &mut buffer[..], RecvFlags::DONTWAIT) {
            Err(Errno::INTR) => continue,
            received => received?,
        };
        for part in split_reply(&buffer[..length]) {
            if each(part)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// Encodes a request for the kernel.
fn encode_request(v6: bool, flags: u16, extensions: u8, states: u32, id: &SocketId) -> Vec<u8> {
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUESTED: u16 = 1;
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    let mut message = Vec::with_capacity(HEADER + REQUEST);
    message.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    message.extend([SOCK_DIAG_BY_FAMILY, REQUESTED | flags].map(u16::to_ne_bytes).as_flattened());
    message.extend([0; 8]);
    message.extend([family as u8, libc::IPPROTO_TCP as u8, extensions, 0]);
    message.extend(states.to_ne_bytes());
    message.extend(id);
    message
}

/// The bytes of a message about a socket; `None` if the reply has ended.
type SocketAttributes<'a> = Option<&'a [u8]>;

/// Splits a reply into messages, up to a truncated one.
fn split_reply(mut bytes: &[u8]) -> impl Iterator<Item = Result<SocketAttributes<'_>, Errno>> {
    const ERROR: u16 = 2;
    const DONE: u16 = 3;
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let (kind, body) = (u16_at(bytes, 4)?, bytes.get(HEADER..length)?);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        let errno = u32_at(body, 0).map_or(libc::EPROTO, |errno| (errno as i32).wrapping_neg());
        Some(match kind {
            DONE if errno <= 0 => Ok(None),
            DONE | ERROR => {
                Err(Errno::from_raw_os_error(if (1..4096).contains(&errno) { errno } else { libc::EPROTO }))
            }
            _ => Ok(Some(body)),
        })
    })
}

/// Parses the message about one socket.
fn parse_socket(body: &[u8]) -> Option<SocketInfo> {
    let (v6, [local, peer]) = parse_endpoints(body)?;
    let mut socket = SocketInfo {
        v6,
        id: body.get(4..52)?.try_into().ok()?,
        // IPv4-mapped IPv6 addresses become IPv4.
        local: SocketAddr::new(local.ip().to_canonical(), local.port()),
        peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()),
        waiting: u32_at(body, 56)?,
        limit: u32_at(body, 60)?,
        inode: u32_at(body, 68)?,
        v6_only: false,
        info: None,
    };
    for (kind, value) in reply_attributes(body) {
        match kind {
            INFO => socket.info = TcpInfo::decode(value),
            V6_ONLY => socket.v6_only = value.first() == Some(&1),
            _ => {}
        }
    }
    Some(socket)
}

/// For the socket in a message: true if it is IPv6, and its local and remote address. `None` if the message is too
/// short.
pub fn parse_endpoints(body: &[u8]) -> Option<(bool, [SocketAddr; 2])> {
    let v6 = match i32::from(*body.first()?) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let id = body.get(4..52)?;
    let address = |port: usize, ip: usize| {
        let ip: IpAddr = match v6 {
            true => Ipv6Addr::from(<[u8; 16]>::try_from(&id[ip..ip + 16]).ok()?).into(),
            false => Ipv4Addr::from(<[u8; 4]>::try_from(&id[ip..ip + 4]).ok()?).into(),
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes([id[port], id[port + 1]])))
    };
    Some((v6, [address(0, 4)?, address(2, 20)?]))
}

/// The attributes in the kernel's message about one socket, each with its number.
pub fn reply_attributes(body: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body.get(ANSWER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(rest, 0)?), u16_at(rest, 2)?);
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit integer in native byte order at this offset; `None` if the bytes end before it does.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use onrush_plan::Random;

    use super::*;

    fn list_sockets(v6: bool, states: u32, ports: [u16; 2]) -> Vec<SocketInfo> {
        let mut sockets = Vec::new();
        let keep = |socket| {
            sockets.push(socket);
            ControlFlow::Continue(())
        };
        dump_sockets(v6, states, ports, keep).unwrap();
        sockets
    }

    #[test]
    fn listeners_and_connections_are_reported() {
        for ip in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let Ok(listener) = TcpListener::bind((ip, 0)) else { continue };
            let (address, v6) = (listener.local_addr().unwrap(), ip.is_ipv6());
            let canonical = SocketAddr::new(ip.to_canonical(), address.port());
            let mut peer = TcpStream::connect(address).unwrap();
            let [socket] = list_sockets(v6, LISTEN, [address.port(), 0])[..] else { panic!("{address}") };
            assert_eq!((socket.local, socket.v6, socket.waiting), (canonical, v6, 1), "{socket:?}");
            assert!(socket.limit >= 1 && socket.inode > 0 && socket.info.is_none(), "{socket:?}");
            let (accepted, peer_address) = listener.accept().unwrap();
            assert_eq!(list_sockets(v6, LISTEN, [address.port(), 0])[0].waiting, 0);
            let [connection] = list_sockets(v6, ESTABLISHED, [address.port(), 0])[..] else { panic!("{address}") };
            assert_eq!((connection.local, connection.peer.port()), (canonical, peer_address.port()));
            let [other] = list_sockets(v6, ESTABLISHED, [0, address.port()])[..] else { panic!("{address}") };
            assert_eq!((other.peer, other.local), (connection.local, connection.peer));
            peer.write_all(b"12345").unwrap();
            let infos = |sockets: &[SocketInfo]| {
                let mut infos = Vec::new();
                let ids = sockets.iter().map(|socket| (socket.v6, socket.id));
                read_sockets(ids, |socket| infos.push((socket.id, socket.info.unwrap().bytes_received))).unwrap();
                infos
            };
            assert_eq!(infos(&[connection, other]), [(connection.id, Some(5)), (other.id, Some(0))]);
            // Closing a socket with unread bytes resets the connection, which then disappears at once.
            drop(accepted);
            assert_eq!(infos(&[connection, connection]), []);
            assert!(list_sockets(v6, ESTABLISHED, [address.port(), 0]).is_empty());
        }
    }

    #[test]
    fn truncated_kernel_replies_are_harmless() {
        let mut random = Random::new(1);
        let mut message: Vec<u8> = (0..256).map(|_| random.below(256) as u8).collect();
        for length in 0..message.len() {
            message[..4].copy_from_slice(&(length as u32).to_ne_bytes());
            for (kind, family) in [(20_u16, libc::AF_INET), (20, libc::AF_INET6), (20, 77), (2, 0), (3, 0)] {
                message[4..6].copy_from_slice(&kind.to_ne_bytes());
                message[HEADER] = family as u8;
                for cut in 0..=length {
                    split_reply(&message[..cut]).filter_map(|part| part.ok()?.and_then(parse_socket)).for_each(|_| ());
                }
            }
        }
        let errno =
            |errno: i32| [20_u32.to_ne_bytes(), 2_u32.to_ne_bytes(), [0; 4], [0; 4], (-errno).to_ne_bytes()].concat();
        assert_eq!(split_reply(&errno(1)).collect::<Vec<_>>(), [Err(Errno::PERM)]);
    }
}
