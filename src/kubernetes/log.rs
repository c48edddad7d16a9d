//! The lines by which a coordinator's log tells what becomes of its results, among those for people.

use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// What each of them begins with.
const MARK: &str = "onrush-kubernetes: ";
/// How many bytes a line holds: the lines of a log are cut at 16 KiB.
const PIECE: usize = 3 << 10;

/// One of these lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A result begins, in so many pieces.
    File(Sum, usize),
    /// A piece of it, compressed.
    Piece(Vec<u8>),
    /// A result waits to be fetched, by the program with this path.
    Waiting(Sum, String),
    /// The run has ended with this exit code; all results were named.
    Exit(u8),
}

/// A result by its name, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    /// The name of the file.
    pub name: String,
    /// The SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
}

impl Line {
    /// A result and its pieces, each as a line.
    pub fn of_file(sum: Sum, compressed: &[u8]) -> String {
        let pieces = compressed.chunks(PIECE);
        let file = Self::File(sum, pieces.len()).to_string();
        pieces.map(|piece| Self::Piece(piece.to_vec())).fold(file, |lines, piece| lines + &piece.to_string())
    }

    /// Reads a line of a log; `None` if it is one for people.
    pub fn read(line: &str) -> Option<Self> {
        let (what, rest) = line.strip_prefix(MARK)?.split_once(' ')?;
        match what {
            "file" => {
                let (pieces, rest) = field(rest)?;
                Some(Self::File(Sum::read(rest)?, pieces))
            }
            "piece" => STANDARD.decode(rest).ok().map(Self::Piece),
            "waiting" => {
                let (program, rest) = field(rest)?;
                Some(Self::Waiting(Sum::read(rest)?, program))
            }
            "exit" => rest.parse().ok().map(Self::Exit),
            _ => None,
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(Sum { name, sha256 }, pieces) => writeln!(f, "{MARK}file {pieces} {sha256} {name}"),
            Self::Piece(bytes) => writeln!(f, "{MARK}piece {}", STANDARD.encode(bytes)),
            Self::Waiting(Sum { name, sha256 }, program) => writeln!(f, "{MARK}waiting {program} {sha256} {name}"),
            Self::Exit(code) => writeln!(f, "{MARK}exit {code}"),
        }
    }
}

impl Sum {
    /// A name from a log may be anybody's: only one that is written into the folder, and nowhere else, is one.
    fn read(text: &str) -> Option<Self> {
        let (sha256, name) = text.split_once(' ')?;
        let is_name = Path::new(name).file_name().is_some_and(|last| last == name) && !name.starts_with('.');
        is_name.then(|| Self { name: name.to_owned(), sha256: sha256.to_owned() })
    }
}

fn field<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let (field, rest) = text.split_once(' ')?;
    Some((field.parse().ok()?, rest))
}
