//! Bytes in several places, in the kernel's format.

use std::mem::MaybeUninit;

/// Places of the bytes. The kernel reads the list when the operation is submitted.
pub struct Message {
    header: libc::msghdr,
    /// Kept alive for the header, which points to it.
    _places: Box<[libc::iovec]>,
}

impl Message {
    /// A message of these bytes, which the kernel does not change.
    pub fn of(slices: Vec<&[u8]>) -> Box<Self> {
        let place = |slice: &[u8]| libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        let mut places: Box<[libc::iovec]> = slices.into_iter().map(place).collect();
        // SAFETY: every field may be zero, and musl's padding fields must be.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        header.msg_iov = places.as_mut_ptr();
        header.msg_iovlen = places.len() as _;
        Box::new(Self { header, _places: places })
    }

    /// Header pointer for an operation; valid as long as `self`.
    pub fn header(&self) -> *const libc::msghdr {
        &raw const self.header
    }
}
