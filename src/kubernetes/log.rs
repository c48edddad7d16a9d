//! The lines of a coordinator's log about its results, among the lines for people.
//!
//! They have a mark that was drawn for the run: whatever a target or a script makes the log say, it cannot write such a
//! line.

use std::io;
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_plan::token::Token;
use serde::{Deserialize, Serialize};

/// Beginning of each line, before the mark.
const SPEAKER: &str = "onrush-kubernetes";
/// How many hexadecimal digits of a drawn secret a mark has: 128 bits.
const MARK: usize = 32;
/// How many bytes a line holds: the lines of a log are cut at 16 KiB.
const PIECE: usize = 3 << 10;

/// Beginning of the lines of one run that are for programs, and of no other line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct LineMark(pub String);

impl LineMark {
    /// A new one.
    ///
    /// # Errors
    ///
    /// If the kernel gives no random numbers.
    pub fn draw() -> io::Result<Self> {
        let mut digits = Token::draw()?;
        digits.truncate(MARK);
        Ok(Self(digits))
    }
}

/// One of these lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LogLine {
    /// A result begins, in so many pieces.
    File(ResultDigest, usize),
    /// A piece of it, compressed.
    Piece(Vec<u8>),
    /// A result waits to be fetched, by the program with this path.
    Waiting(ResultDigest, String),
    /// The run has ended with this exit code, and so many results were named.
    Exit(u8, usize),
}

/// A line that has the mark and is not as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnreadableLine;

/// A result by its name, and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResultDigest {
    /// The name of the file.
    pub name: String,
    /// The SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
}

impl LogLine {
    /// A result and its pieces, each as a line.
    pub fn of_file(mark: &LineMark, sum: ResultDigest, compressed: &[u8]) -> String {
        let pieces = compressed.chunks(PIECE);
        let file = Self::File(sum, pieces.len()).marked(mark);
        pieces.map(|piece| Self::Piece(piece.to_vec())).fold(file, |lines, piece| lines + &piece.marked(mark))
    }

    /// Reads a line of a log; `None` if it is one for people.
    ///
    /// # Errors
    ///
    /// If it has the mark and is not as it was written.
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

    /// The line, with its end.
    pub fn marked(&self, LineMark(mark): &LineMark) -> String {
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
        is_name(name).then(|| Self { name: name.to_owned(), sha256: sha256.to_owned() })
    }
}

/// True if a result can have this name: it is written into the folder that was named, and nowhere else, is seen there,
/// and fits in a line.
pub(super) fn is_name(name: &str) -> bool {
    let is_last = Path::new(name).file_name().is_some_and(|last| last == name);
    is_last && !name.starts_with('.') && !name.contains(char::is_control)
}

fn field<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let (field, rest) = text.split_once(' ')?;
    Some((field.parse().ok()?, rest))
}
