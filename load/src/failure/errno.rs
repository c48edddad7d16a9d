//! Descriptions of the operating system's error numbers.

use rustix::io::Errno;

/// Number, name and meaning of an error.
type NamedErrno = (Errno, &'static str, &'static str);

/// Errors that a load generator encounters, grouped by remedy.
const KNOWN: [&[NamedErrno]; 8] = [REFUSED, CLOSED, ROUTES, PORTS, FILES, MEMORY, FORBIDDEN, FAMILY];
const REFUSED: &[NamedErrno] = &[(Errno::CONNREFUSED, "ECONNREFUSED", "connection refused")];
const CLOSED: &[NamedErrno] = &[
    (Errno::CONNRESET, "ECONNRESET", "connection reset by the server"),
    (Errno::CONNABORTED, "ECONNABORTED", "connection aborted"),
    (Errno::PIPE, "EPIPE", "connection already closed by the server"),
];
const ROUTES: &[NamedErrno] = &[
    (Errno::TIMEDOUT, "ETIMEDOUT", "no response from the host"),
    (Errno::NETUNREACH, "ENETUNREACH", "no route to the network"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH", "no route to the host"),
];
const PORTS: &[NamedErrno] = &[
    (Errno::ADDRNOTAVAIL, "EADDRNOTAVAIL", "no local port left"),
    (Errno::ADDRINUSE, "EADDRINUSE", "local address in use"),
];
const FILES: &[NamedErrno] =
    &[(Errno::MFILE, "EMFILE", "too many open files"), (Errno::NFILE, "ENFILE", "too many open files system-wide")];
const MEMORY: &[NamedErrno] =
    &[(Errno::NOBUFS, "ENOBUFS", "no buffer space available"), (Errno::NOMEM, "ENOMEM", "out of memory")];
const FORBIDDEN: &[NamedErrno] = &[
    (Errno::ACCESS, "EACCES", "permission denied"),
    (Errno::PERM, "EPERM", "operation not permitted, perhaps by a firewall"),
];
const FAMILY: &[NamedErrno] = &[(Errno::AFNOSUPPORT, "EAFNOSUPPORT", "address family not supported")];

/// The error with this number; `None` if the table does not contain it.
pub fn known_errno(number: i32) -> Option<Errno> {
    find_errno(number).map(|&(errno, ..)| errno)
}

/// Meaning and name of an error: `connection refused (ECONNREFUSED)`. For an unknown number, the
/// system's text.
pub fn describe_errno(number: i32) -> String {
    match find_errno(number) {
        Some((_, name, words)) => format!("{words} ({name})"),
        // The standard library's text ends in "(os error N)".
        None => std::io::Error::from_raw_os_error(number).to_string(),
    }
}

/// Meaning of an error without its name: `connection refused`.
pub fn errno_meaning(number: i32) -> String {
    find_errno(number).map_or_else(|| describe_errno(number), |(_, _, words)| (*words).to_owned())
}

fn find_errno(number: i32) -> Option<&'static NamedErrno> {
    KNOWN.into_iter().flatten().find(|(errno, ..)| errno.raw_os_error() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_errnos_have_plain_words_and_names() {
        assert_eq!(describe_errno(111), "connection refused (ECONNREFUSED)");
        assert_eq!(describe_errno(24), "too many open files (EMFILE)");
        assert_eq!(errno_meaning(111), "connection refused");
        assert_eq!(known_errno(24), Some(Errno::MFILE));
    }

    #[test]
    fn other_errnos_have_the_systems_words() {
        assert_eq!(known_errno(28), None);
        assert!(describe_errno(28).ends_with("(os error 28)"), "{}", describe_errno(28));
    }
}
