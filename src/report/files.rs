//! The files a result is written into: tried before the run, written after it under another name, then renamed, so
//! that nobody ever finds half a result. The one that is written while the run lasts has its name from the beginning.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::export;
use super::result::Document;
use crate::plan::{Kind, Output};
use crate::reason::reason;
use crate::run::Second;

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("--output {path:?}: {reason}")]
pub struct Unwritable {
    path: PathBuf,
    reason: String,
}

/// The files of a run that can be written, as far as that is known.
pub struct Files {
    outputs: Vec<Output>,
    streams: Vec<Stream>,
}

/// A file that is written while the run lasts.
struct Stream {
    path: PathBuf,
    file: File,
    /// The length of what was written whole.
    length: u64,
    /// Why nothing more is written.
    failed: Option<io::Error>,
}

impl Files {
    /// Makes sure that each file can be written.
    ///
    /// # Errors
    ///
    /// The first one that cannot.
    pub fn open(outputs: &[Output]) -> Result<Self, Unwritable> {
        let mut streams = Vec::new();
        for Output { path, kind } in outputs {
            let refuse = |error: io::Error| Unwritable { path: path.clone(), reason: words(&error, path) };
            let place = Place::of(path).map_err(refuse)?;
            if *kind == Kind::Lines {
                let file = File::create(&place.path).map_err(refuse)?;
                streams.push(Stream { path: path.clone(), file, length: 0, failed: None });
            } else {
                place.probe().map_err(refuse)?;
            }
        }
        Ok(Self { outputs: outputs.to_vec(), streams })
    }

    /// Writes what was done in a second. What goes wrong is said at the end: a test is not stopped by its files.
    pub fn second(&mut self, second: &Second) {
        let line = if self.streams.is_empty() { String::new() } else { export::line(second) };
        self.streams.iter_mut().for_each(|stream| stream.write(&line));
    }

    /// Writes all files.
    ///
    /// # Errors
    ///
    /// The first one that could not be written; the others are there.
    pub fn write(self, document: &Document) -> Result<(), Unwritable> {
        let mut failed = None;
        for Output { path, kind } in self.outputs.iter().filter(|output| output.kind != Kind::Lines) {
            let written = match export::render(*kind, document) {
                Ok(text) => Place::of(path).and_then(|place| place.write(&text)).map_err(|error| words(&error, path)),
                Err(corrupt) => Err(corrupt.to_string()),
            };
            let unwritable = |reason| Unwritable { path: path.clone(), reason };
            failed = failed.or(written.map_err(unwritable).err());
        }
        for Stream { path, failed: error, .. } in self.streams {
            let unwritable = error.map(|error| Unwritable { reason: words(&error, &path), path });
            failed = failed.or(unwritable);
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Stream {
    fn write(&mut self, line: &str) {
        if self.failed.is_some() {
            return;
        }
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => self.length += line.len() as u64,
            Err(error) => {
                // Whoever reads the file finds whole lines only; where it cannot be cut it is no regular file.
                let _ = self.file.set_len(self.length);
                self.failed = Some(error);
            }
        }
    }
}

/// Where a file is to be.
struct Place {
    /// Its path, through all links.
    path: PathBuf,
    /// Whether something else than a regular file is there, a device for instance: it is written into, not replaced.
    is_special: bool,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) => Ok(Self { path: fs::canonicalize(path)?, is_special: !there.is_file() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path: path.to_owned(), is_special: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Makes sure that it can be written, and leaves no trace.
    fn probe(&self) -> io::Result<()> {
        if self.is_special {
            return Ok(());
        }
        if self.path.exists() {
            // A file that may not be written could be replaced, but is not meant to be.
            OpenOptions::new().write(true).open(&self.path)?;
        }
        let temporary = self.temporary();
        OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        fs::remove_file(temporary)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        if self.is_special {
            return OpenOptions::new().write(true).open(&self.path)?.write_all(text.as_bytes());
        }
        let temporary = self.temporary();
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            // A full disk may only show now.
            file.sync_all()?;
            fs::rename(&temporary, &self.path)
        };
        write().inspect_err(|_| {
            // If this fails too, there is nothing that could be done about it.
            let _ = fs::remove_file(&temporary);
        })
    }

    /// A name in the same directory that nobody else uses.
    fn temporary(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{}.part", std::process::id()))
    }
}

/// What went wrong, and what to do about it where that is known.
fn words(error: &io::Error, path: &Path) -> String {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match error.kind() {
        io::ErrorKind::NotFound if !directory.is_dir() => {
            format!("there is no directory {directory:?}; make it, or choose another")
        }
        io::ErrorKind::NotFound => format!("no file can be made in {directory:?}; choose another"),
        io::ErrorKind::PermissionDenied => "it may not be written; choose a path of your own".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only; choose another".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; name a file in it".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full; make room, or choose another".to_owned(),
        io::ErrorKind::QuotaExceeded => "your share of the disk is full; make room, or choose another".to_owned(),
        io::ErrorKind::InvalidFilename => "its name is too long; choose a shorter one".to_owned(),
        _ => reason(error),
    }
}
