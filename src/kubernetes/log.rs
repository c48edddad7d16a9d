//! The lines about results in a coordinator's log, among the lines for users.
//!
//! Each has a random mark, so that no target and no script can forge such a line.

use std::io;
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_plan::token::Token;
use serde::{Deserialize, Serialize};

/// Start of each line, before the mark.
const SPEAKER: &str = "onrush-kubernetes";
/// Hexadecimal digits of a random mark: 128 bits.
const MARK: usize = 32;
/// Bytes per line. Lines of a log are cut at 16 KiB.
const PIECE: usize = 3 << 10;

/// Start of the machine-readable lines of one run, and of no other line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct LineMark(pub String);

impl LineMark {
    /// Draws a random mark.
    ///
    /// # Errors
    ///
    /// If the kernel provides no random numbers.
    pub fn draw_random() -> io::Result<Self> {
        let mut digits = Token::draw_secret()?;
        digits.truncate(MARK);
        Ok(Self(digits))
    }
}

/// A machine-readable line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// Start of a result with this many pieces.
    File(ResultDigest, usize),
    /// A compressed piece of a result.
    Piece(Vec<u8>),
    /// A result waits for collection. The program with this path sends it.
    Waiting(ResultDigest, String),
    /// The run has ended with this exit code. The number of named results follows.
    Exit(u8, usize),
}

/// A damaged line with the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnreadableLine;

/// Name and checksum of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultDigest {
    /// Name of the file.
    pub name: String,
    /// SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

impl LogLine {
    /// Formats a result and its pieces, one line each.
    pub fn format_result(mark: &LineMark, sum: ResultDigest, compressed: &[u8]) -> String {
        let pieces = compressed.chunks(PIECE);
        let file = Self::File(sum, pieces.len()).to_marked_line(mark);
        pieces.map(|piece| Self::Piece(piece.to_vec())).fold(file, |lines, piece| lines + &piece.to_marked_line(mark))
    }

    /// Parses a line of the log; `None` for a line without the mark.
    ///
    /// # Errors
    ///
    /// If a line with the mark is damaged.
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

    /// The line with its line end.
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

/// True if a result may have this name: one that stays in the given folder, is visible there, and fits in a line.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_last = Path::new(name).file_name().is_some_and(|last| last == name);
    is_last && !name.starts_with('.') && !name.contains(char::is_control)
}

fn field<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let (field, rest) = text.split_once(' ')?;
    Some((field.parse().ok()?, rest))
}
