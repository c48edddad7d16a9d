//! The lines about results in a coordinator's log, among the lines for users.
//!
//! Each has a random mark, so that no target and no script can forge such a line.

use std::io;
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_load::token::Token;
use serde::{Deserialize, Serialize};

/// Start of each line about results, before the mark.
const SPEAKER: &str = "onrush-kubernetes";
/// Number of hexadecimal digits of a mark: 128 random bits.
const MARK: usize = 32;
/// Number of bytes of a result in a line. Lines of a log are cut at 16 KiB.
const PIECE: usize = 3 << 10;

/// The mark that identifies the machine-readable lines of one run, and that no other line contains.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct LineMark(pub String);

impl LineMark {
    /// Draws a random mark.
    ///
    /// # Errors
    ///
    /// Fails if the kernel provides no random numbers.
    pub fn draw_random() -> io::Result<Self> {
        let mut digits = Token::draw_secret()?;
        digits.truncate(MARK);
        Ok(Self(digits))
    }
}

/// A machine-readable line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// A result, which follows in this many pieces.
    File(ResultDigest, usize),
    /// A piece of the compressed result above.
    Piece(Vec<u8>),
    /// A result that waits in the pod to be fetched, and the path of the program that sends it.
    Waiting(ResultDigest, String),
    /// The run has ended with this exit code, after this many results were named.
    Exit(u8, usize),
}

/// Error: a line has the mark, but is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnreadableLine;

/// Name and checksum of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultDigest {
    /// Name of the result file, without a folder.
    pub name: String,
    /// SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

impl LogLine {
    /// Formats a result as a line, followed by a line for each piece.
    pub fn format_result(mark: &LineMark, sum: ResultDigest, compressed: &[u8]) -> String {
        let pieces = compressed.chunks(PIECE);
        let file = Self::File(sum, pieces.len()).to_marked_line(mark);
        pieces.map(|piece| Self::Piece(piece.to_vec())).fold(file, |lines, piece| lines + &piece.to_marked_line(mark))
    }

    /// Parses a line of the log; `None` for a line without the mark.
    ///
    /// # Errors
    ///
    /// Fails if a line with the mark is damaged.
    pub fn read(mark: &LineMark, line: &str) -> Option<Result<Self, UnreadableLine>> {
        let line = line.strip_prefix(SPEAKER)?.strip_prefix(' ')?.strip_prefix(&mark.0)?.strip_prefix(' ')?;
        Some(Self::parse_marked(line).ok_or(UnreadableLine))
    }

    fn parse_marked(line: &str) -> Option<Self> {
        let (what, rest) = line.split_once(' ')?;
        match what {
            "file" => {
                let (pieces, rest) = field(rest)?;
                Some(Self::File(ResultDigest::read(rest)?, pieces))
            }
            "piece" => STANDARD.decode(rest).ok().map(Self::Piece),
            "waiting" => {
                let (program, rest) = field(rest)?;
                Some(Self::Waiting(ResultDigest::read(rest)?, program))
            }
            "exit" => {
                let (code, results) = field(rest)?;
                Some(Self::Exit(code, results.parse().ok()?))
            }
            _ => None,
        }
    }

    /// The line with the mark and a line ending.
    pub fn to_marked_line(&self, LineMark(mark): &LineMark) -> String {
        let rest = match self {
            Self::File(ResultDigest { name, sha256 }, pieces) => format!("file {pieces} {sha256} {name}"),
            Self::Piece(bytes) => format!("piece {}", STANDARD.encode(bytes)),
            Self::Waiting(ResultDigest { name, sha256 }, program) => format!("waiting {program} {sha256} {name}"),
            Self::Exit(code, results) => format!("exit {code} {results}"),
        };
        format!("{SPEAKER} {mark} {rest}\n")
    }
}

impl ResultDigest {
    fn read(text: &str) -> Option<Self> {
        let (sha256, name) = text.split_once(' ')?;
        is_valid_name(name).then(|| Self { name: name.to_owned(), sha256: sha256.to_owned() })
    }
}

/// True if this may be the name of a result: a file directly in a folder, which is not hidden there, and whose name
/// fits in a line.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_last = Path::new(name).file_name().is_some_and(|last| last == name);
    is_last && !name.starts_with('.') && !name.contains(char::is_control)
}

fn field<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let (field, rest) = text.split_once(' ')?;
    Some((field.parse().ok()?, rest))
}
