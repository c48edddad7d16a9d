//! `wrk.lookup` and `wrk.connect`. Addresses pass through Lua as text, in Rust's format.

use std::ffi::{CStr, CString};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, TcpStream};
use std::time::Duration;

use crate::resolve::{NO_ADDRESS, Unresolvable};

/// Timeout of a test connection. wrk waits for the kernel's timeout of minutes.
const PATIENCE: Duration = Duration::from_secs(10);

/// True if a server accepts a connection at this address within ten seconds; false also if `place` is not an address.
pub fn accepts_connections(place: &str) -> bool {
    let place = place.parse::<SocketAddr>();
    place.is_ok_and(|place| TcpStream::connect_timeout(&place, PATIENCE).is_ok())
}

/// All addresses of a host and a service (name or number), as text, or an error in wrk's words.
pub fn lookup_addresses(host: &str, service: &str) -> Result<Vec<String>, String> {
    match resolve_with_system(host, service) {
        Ok(places) => Ok(places.iter().map(ToString::to_string).collect()),
        Err(reason) => Err(Unresolvable { host: host.to_owned(), service: service.to_owned(), reason }.to_string()),
    }
}

/// Resolves with the system's resolver, which also accepts service names; the standard library accepts only port
/// numbers.
fn resolve_with_system(host: &str, service: &str) -> Result<Vec<SocketAddr>, String> {
    let c_host = CString::new(host).map_err(|_| "the host name contains a NUL byte".to_owned())?;
    let c_service = CString::new(service).map_err(|_| "the service contains a NUL byte".to_owned())?;
    // SAFETY: all fields may be zero, which means no preference.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut list = std::ptr::null_mut();
    // SAFETY: the strings end with NUL, and the pointers are valid for the call.
    let code = unsafe { libc::getaddrinfo(c_host.as_ptr(), c_service.as_ptr(), &hints, &mut list) };
    if code != 0 {
        // SAFETY: the function returns a static string for any number.
        let reason = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
        return Err(reason.to_string_lossy().into_owned());
    }
    let mut places = Vec::new();
    let mut next = list;
    // SAFETY: the call succeeded, so this is a list terminated by a null pointer.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: the address of an entry has the size of its family.
        places.extend(unsafe { entry_address(entry) });
        next = entry.ai_next;
    }
    // SAFETY: the list came from `getaddrinfo` and is not used afterwards.
    unsafe { libc::freeaddrinfo(list) };
    if places.is_empty() { Err(NO_ADDRESS.to_owned()) } else { Ok(places) }
}

/// The IPv4 or IPv6 address of an entry.
///
/// # Safety
///
/// `entry` must come from `getaddrinfo`.
unsafe fn entry_address(entry: &libc::addrinfo) -> Option<SocketAddr> {
    match entry.ai_family {
        libc::AF_INET => {
            // SAFETY: the family implies this type.
            let v4 = unsafe { entry.ai_addr.cast::<libc::sockaddr_in>().as_ref() }?;
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family implies this type.
            let v6 = unsafe { entry.ai_addr.cast::<libc::sockaddr_in6>().as_ref() }?;
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
