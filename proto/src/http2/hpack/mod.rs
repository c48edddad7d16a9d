//! HPACK, the compression of header fields (RFC 7541).
//!
//! The decoder supports all of it. The encoder uses nothing that depends on the connection, so that a request is
//! encoded once.

mod decode;
mod encode;
mod huffman;
mod statics;
mod table;
#[cfg(test)]
mod tests;

pub(super) use decode::{Decoder, Effects};
pub(super) use encode::{EMPTY_TABLE, Secrecy, encode};
pub(super) use table::{Entry, SIZE_USUAL};
