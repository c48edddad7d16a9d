//! The Huffman code of strings (RFC 7541, 5.2 and appendix B).
//!
//! The code is canonical: shorter codes come first, and codes of equal length follow the order of their symbols. So the
//! lengths define it completely, and the tables for both directions are computed from them at compile time.

/// The code lengths in bits, by symbol; EOS is the last one.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

/// The end-of-string symbol, which must not be sent.
const EOS: usize = 256;

/// The code of each symbol, in its lowest bits.
const CODES: [u32; 257] = {
    let mut codes = [0; 257];
    let mut next = 0;
    let mut length = 1;
    while length <= 30 {
        next <<= 1;
        let mut symbol = 0;
        while symbol < codes.len() {
            if LENGTHS[symbol] == length {
                codes[symbol] = next;
                next += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    codes
};

/// Number of inner nodes of the code tree: the number of byte values, because the tree has one leaf more.
const NODES: usize = 256;

/// The children of each inner node, 0 being the root: an inner node, or [`NODES`] more than a symbol.
const TREE: [[u16; 2]; NODES] = {
    let mut tree = [[0; 2]; NODES];
    let mut nodes = 1;
    let mut symbol = 0;
    while symbol < LENGTHS.len() {
        let mut node = 0;
        let mut left = LENGTHS[symbol];
        while left > 0 {
            left -= 1;
            let bit = (CODES[symbol] >> left & 1) as usize;
            if left == 0 {
                tree[node][bit] = (NODES + symbol) as u16;
            } else {
                if tree[node][bit] == 0 {
                    tree[node][bit] = nodes;
                    nodes += 1;
                }
                node = tree[node][bit] as usize;
            }
        }
        symbol += 1;
    }
    tree
};

/// Effect of four bits at a node.
#[derive(Clone, Copy)]
struct Transition {
    /// The next node.
    node: u8,
    /// The completed symbol; no code is so short that four bits complete two.
    symbol: u8,
    kind: TransitionKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransitionKind {
    /// No symbol is completed.
    Inner,
    /// A symbol is completed.
    Symbol,
    /// EOS is completed.
    Error,
}

/// Effects of each four bits at each node.
const STEPS: [[Transition; 16]; NODES] = {
    let mut steps = [[Transition { node: 0, symbol: 0, kind: TransitionKind::Inner }; 16]; NODES];
    let mut start = 0;
    while start < NODES {
        let mut bits = 0;
        while bits < 16 {
            let mut node = start;
            let mut left = 4;
            while left > 0 {
                left -= 1;
                let next = TREE[node][bits >> left & 1] as usize;
                node = if next < NODES { next } else { 0 };
                if next == NODES + EOS {
                    steps[start][bits].kind = TransitionKind::Error;
                } else if next >= NODES && !matches!(steps[start][bits].kind, TransitionKind::Error) {
                    steps[start][bits].symbol = (next - NODES) as u8;
                    steps[start][bits].kind = TransitionKind::Symbol;
                }
            }
            steps[start][bits].node = node as u8;
            bits += 1;
        }
        start += 1;
    }
    steps
};

/// The nodes at which a string may end: fewer than eight bits after a symbol, all of them ones.
const ENDS: [bool; NODES] = {
    let mut ends = [false; NODES];
    let mut node = 0;
    let mut bits = 0;
    while bits < 8 {
        ends[node] = true;
        node = TREE[node][1] as usize;
        bits += 1;
    }
    ends
};

/// The tables in memory.
static DECODE: [[Transition; 16]; NODES] = STEPS;

/// Appends the decoded string. Returns true if it was well-formed.
pub(super) fn decode(bytes: &[u8], text: &mut Vec<u8>) -> bool {
    let mut node = 0;
    for &byte in bytes {
        for bits in [byte >> 4, byte & 15] {
            let step = DECODE[usize::from(node)][usize::from(bits)];
            match step.kind {
                TransitionKind::Inner => {}
                TransitionKind::Symbol => text.push(step.symbol),
                TransitionKind::Error => return false,
            }
            node = step.node;
        }
    }
    ENDS[usize::from(node)]
}

/// Number of bytes of the encoded string.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded string.
pub(super) fn encode(text: &[u8], bytes: &mut Vec<u8>) {
    let mut pending = 0_u64;
    let mut bits = 0;
    for &byte in text {
        let (code, length) = (CODES[usize::from(byte)], LENGTHS[usize::from(byte)]);
        pending = pending << length | u64::from(code);
        bits += u32::from(length);
        while bits >= 8 {
            bits -= 8;
            bytes.push((pending >> bits) as u8);
        }
    }
    if bits > 0 {
        let ones = 8 - bits;
        bytes.push((pending << ones) as u8 | ((1 << ones) - 1) as u8);
    }
}
