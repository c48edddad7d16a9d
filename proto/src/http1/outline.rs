//! Where the requests lie in bytes that somebody else wrote.

use std::ops::Range;

use super::Answer;

/// One complete request among given bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Where its bytes lie.
    pub range: Range<usize>,
    /// How many of the last of them are the body.
    pub body_length: usize,
    /// What its method says about the body of the answer.
    pub answer: Answer,
}

/// What is wrong with bytes that should be requests, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at {line}:{column}")]
pub struct Malformed {
    /// What is wrong, in the words of wrk.
    pub reason: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The byte in that line, from 1.
    pub column: usize,
}

/// Finds the requests in `bytes`, which must be one or more complete ones and nothing else, and appends them to `found`.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn outline(bytes: &[u8], found: &mut Vec<Outline>) -> Result<(), Malformed> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4);
    if end != Some(bytes.len()) {
        return Err(Malformed { reason: "incomplete request", line: 1, column: 1 });
    }
    found.push(Outline { range: 0..bytes.len(), body_length: 0, answer: Answer::Usual });
    Ok(())
}
