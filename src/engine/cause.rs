//! In which phase something went wrong, and why: from protocols and error numbers to rows of the ledger.

use onrush_proto::Part;
use rustix::io::Errno;

use super::open_request::OpenRequest;
use crate::stats::{Cause, Phase};

/// The phase in which a peer's mistake shows.
pub fn phase_of(part: Part) -> Phase {
    match part {
        Part::Head => Phase::Head,
        Part::Body => Phase::Body,
    }
}

/// The phase in which the transport failed a request.
pub fn phase_of_transport(request: &OpenRequest) -> Phase {
    if request.status.is_some() { Phase::Body } else { Phase::Head }
}

/// The cause that an error number stands for. No peer and no network leads to the numbers of the first kind: the kernel
/// did not carry out what it was asked for.
pub fn cause_of(errno: Errno) -> Cause {
    match errno {
        Errno::AGAIN
        | Errno::BADF
        | Errno::FAULT
        | Errno::INVAL
        | Errno::NOBUFS
        | Errno::NOMEM
        | Errno::NOSYS
        | Errno::NOTSOCK
        | Errno::OPNOTSUPP
        | Errno::OVERFLOW => Cause::Kernel(errno.raw_os_error()),
        _ => Cause::Errno(errno.raw_os_error()),
    }
}

/// Whether an error lies on this machine and says nothing about the address.
pub fn is_local(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
}
