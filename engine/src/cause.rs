//! Phase and cause of an error: from protocol errors and error numbers to rows of the ledger.

use onrush_proto::ResponsePart;
use onrush_stats::{Cause, Phase};
use rustix::io::Errno;

use super::open_request::OpenRequest;

/// The phase in which a peer's mistake is recorded.
pub fn phase_of(part: ResponsePart) -> Phase {
    match part {
        ResponsePart::Head => Phase::Head,
        ResponsePart::Body => Phase::Body,
    }
}

/// The phase in which a request's transport failure is recorded: the body once a status has arrived, otherwise the
/// head.
pub fn phase_of_transport(request: &OpenRequest) -> Phase {
    if request.status.is_some() { Phase::Body } else { Phase::Head }
}

/// The cause of an error number. [`Cause::Kernel`]: the kernel refused an operation; neither a peer nor the network can
/// cause it.
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

/// True if this machine lacks the means to connect (descriptors, memory, local ports): the error says nothing about the
/// address.
pub fn is_local(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::ADDRNOTAVAIL)
}
