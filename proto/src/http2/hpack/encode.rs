//! Encodes fields with the static table only, so that they have the same meaning on every connection.

use super::{huffman, statics};

/// The size update required after a peer shrinks its table (RFC 7541, 4.2). The encoder's table always stays empty.
pub(in crate::http2) const EMPTY_TABLE: u8 = 0x20;

/// Permission for intermediaries to store a field in their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http2) enum Secrecy {
    /// Allowed.
    Open,
    /// Forbidden: a credential could be guessed from the size of later blocks (7.1.3).
    Secret,
}

/// Appends a field.
pub(in crate::http2) fn encode(name: &[u8], value: &[u8], secrecy: Secrecy, block: &mut Vec<u8>) {
    let known = statics::find(name, value);
    if let (Some((index, true)), Secrecy::Open) = (known, secrecy) {
        return integer(0x80, 7, index, block);
    }
    let pattern = if secrecy == Secrecy::Secret { 0x10 } else { 0 };
    integer(pattern, 4, known.map_or(0, |(index, _)| index), block);
    if known.is_none() {
        string(name, block);
    }
    string(value, block);
}

/// Appends an integer whose first bits share a byte with a pattern (5.1).
fn integer(pattern: u8, prefix_bits: u32, integer: usize, block: &mut Vec<u8>) {
    let prefix_max = (1 << prefix_bits) - 1;
    if integer < prefix_max {
        return block.push(pattern | integer as u8);
    }
    block.push(pattern | prefix_max as u8);
    let mut rest = integer - prefix_max;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}

/// Appends a string in its shorter form (5.2).
fn string(text: &[u8], block: &mut Vec<u8>) {
    let length = huffman::encoded_len(text);
    if length < text.len() {
        integer(0x80, 7, length, block);
        huffman::encode(text, block);
    } else {
        integer(0, 7, text.len(), block);
        block.extend_from_slice(text);
    }
}
