//! HPACK, the compression of header fields (RFC 7541).
//!
//! Decoding uses all of it. Encoding uses nothing that depends on the connection, so that a request is encoded once.

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
