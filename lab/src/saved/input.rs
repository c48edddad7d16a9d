//! Reads input: a file, plain or compressed, or standard input.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anyhow::{anyhow, ensure};
use flate2::read::MultiGzDecoder;

use onrush_plan::limits::RESULT_MAX_MIB;
use onrush_text::error_reason;

/// Maximum length of an input in bytes, both as stored and decompressed.
const LENGTH_MAX: u64 = RESULT_MAX_MIB << 20;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a file, or standard input for `-`. Gzip is recognized by its first bytes and decompressed.
///
/// # Errors
///
/// Fails if the input cannot be read or decompressed, or is too long.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::IsADirectory => anyhow!("{path:?} is a folder; name the result files in it"),
        ErrorKind::UnexpectedEof => {
            anyhow!(
                "{path:?} cannot be read: the compressed data are truncated; use a complete copy, or repeat the run"
            )
        }
        _ => anyhow!("{path:?} cannot be read: {}", error_reason(&error)),
    };
    let bytes =
        if path == Path::new("-") { read_limited(io::stdin()) } else { File::open(path).and_then(read_limited) };
    let mut bytes = bytes.map_err(failed)?;
    if bytes.starts_with(&GZIP) {
        bytes = read_limited(MultiGzDecoder::new(&bytes[..])).map_err(failed)?;
    }
    ensure!(bytes.len() as u64 <= LENGTH_MAX, "{path:?} is longer than {RESULT_MAX_MIB} MiB, the limit for results");
    Ok(bytes)
}

/// Returns the text of a result unchanged if it is short enough to be read again.
///
/// # Errors
///
/// Otherwise, returns a message with its length and the remedy.
pub fn check_readable(result: String) -> Result<String, String> {
    if result.len() as u64 <= LENGTH_MAX {
        return Ok(result);
    }
    let mib = (result.len() as u64).div_ceil(1 << 20);
    Err(format!(
        "the result would have {mib} MiB, more than the {RESULT_MAX_MIB} MiB that onrush reads; merge fewer files"
    ))
}

/// Reads everything, but at most one byte more than [`LENGTH_MAX`], which shows that the input is
/// too long.
fn read_limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LENGTH_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
