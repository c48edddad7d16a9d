//! When received bytes came, by the kernel's word.
//!
//! An armed receive asks for more than bytes: in front of them the kernel writes what it knows about them, and once a
//! socket was told to [`tell_arrivals`], that is the moment when the last of them came in (or of what came with them). So a
//! latency is no longer for our looking late.

use std::os::fd::OwnedFd;

use crate::backend::socket::set_option;

/// What the kernel fills in first: four numbers of `struct io_uring_recvmsg_out`.
const HEADER: usize = 16;
/// Which of them is the length of the control message.
const CONTROL_LENGTH: usize = 4;
/// The control message: its own header, and the moment.
const CONTROL: usize = size_of::<libc::cmsghdr>() + size_of::<libc::timespec>();
/// How much stands in front of the bytes.
pub const PREFACE: usize = HEADER + CONTROL;

/// What armed receives ask for.
struct Form(libc::msghdr);

// SAFETY: nobody writes to it, and it points to nothing.
unsafe impl Sync for Form {}

static FORM: Form = Form(libc::msghdr {
    msg_name: std::ptr::null_mut(),
    msg_namelen: 0,
    msg_iov: std::ptr::null_mut(),
    msg_iovlen: 0,
    msg_control: std::ptr::null_mut(),
    msg_controllen: CONTROL,
    msg_flags: 0,
});

/// What armed receives ask for, as the kernel reads it.
pub fn form() -> *const libc::msghdr {
    &raw const FORM.0
}

/// Has the kernel say from now on when bytes came.
pub fn tell_arrivals(fd: &OwnedFd) {
    // Where it fails the kernel says nothing.
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
}

/// The moment in a preface as 64-bit systems write it, in nanoseconds of the wall clock; `None`: the kernel does not say.
pub fn arrival_ns(preface: &[u8]) -> Option<u64> {
    let (header, control) = preface.split_at_checked(HEADER)?;
    let (length, (level, kind)) = (word(header, CONTROL_LENGTH)?, (word(control, 8)?, word(control, 12)?));
    let is_moment =
        length as usize >= CONTROL && level == libc::SOL_SOCKET as u32 && kind == libc::SCM_TIMESTAMPNS as u32;
    let (seconds, ns) = (number(control, 16)?, number(control, 24)?);
    is_moment.then(|| seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_where_there_is_one() {
        let header: [u32; 4] = [0, CONTROL as u32, 13, 0];
        let control: [u32; 8] = [32, 0, libc::SOL_SOCKET as u32, libc::SCM_TIMESTAMPNS as u32, 7, 0, 5, 0];
        let preface = |header: &[u32; 4], control: &[u32; 8]| -> Vec<u8> {
            header.iter().chain(control).flat_map(|word| word.to_ne_bytes()).collect()
        };
        let whole = preface(&header, &control);
        assert_eq!(whole.len(), PREFACE);
        assert_eq!(arrival_ns(&whole), Some(7_000_000_005));
        assert_eq!(arrival_ns(&whole[..PREFACE - 1]), None);
        assert_eq!(arrival_ns(&preface(&[0, 0, 13, 0], &control)), None, "the kernel wrote none");
        assert_eq!(arrival_ns(&preface(&header, &[32, 0, 1, 2, 7, 0, 5, 0])), None, "it wrote something else");
    }
}
