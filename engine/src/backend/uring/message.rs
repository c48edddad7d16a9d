//! Bytes in several places, as the kernel reads of them.

use std::ptr;

/// Where the bytes are. The kernel reads it when the operation is handed over.
pub struct Message {
    header: libc::msghdr,
    /// What the header points to.
    _places: Box<[libc::iovec]>,
}

impl Message {
    /// For these bytes, none of which the kernel changes.
    pub fn of(slices: Vec<&[u8]>) -> Box<Self> {
        let place = |slice: &[u8]| libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        let mut places: Box<[libc::iovec]> = slices.into_iter().map(place).collect();
        let header = libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: places.as_mut_ptr(),
            msg_iovlen: places.len(),
            msg_control: ptr::null_mut(),
            msg_controllen: 0,
            msg_flags: 0,
        };
        Box::new(Self { header, _places: places })
    }

    /// What an operation points to.
    pub fn header(&self) -> *const libc::msghdr {
        &raw const self.header
    }
}
