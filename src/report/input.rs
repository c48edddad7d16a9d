//! The bytes of an input file: plain or compressed, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{anyhow, ensure};
use flate2::read::MultiGzDecoder;

use crate::reason::reason;

/// No result is longer, in bytes, by far.
const LENGTH_MAX: u64 = 256 << 20;

/// How a gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a file, or standard input for `-`. What gzip has compressed is what was in it.
///
/// # Errors
///
/// When it cannot be read, or is too long.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = |error: io::Error| anyhow!("{path:?} cannot be read: {}", reason(&error));
    let bytes = if path == Path::new("-") { limited(io::stdin()) } else { File::open(path).and_then(limited) };
    let mut bytes = bytes.map_err(failed)?;
    if bytes.starts_with(&GZIP) {
        bytes = limited(MultiGzDecoder::new(&bytes[..])).map_err(failed)?;
    }
    ensure!(bytes.len() as u64 <= LENGTH_MAX, "{path:?} is no result of onrush: none is longer than 256 MiB");
    Ok(bytes)
}

/// What there is to read, up to one byte more than there may be.
fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LENGTH_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
