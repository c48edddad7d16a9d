//! The files a result is written into: tried before the run, written after it under another name, then renamed, so
//! that nobody ever finds half a result. The one that is written while the run lasts has its name from the beginning.
//!
//! Each file has a thread of its own, for a write may take as long as somebody takes to read it. Nobody waits for a file
//! longer than they said they would; what became of each is known at any moment ([`Fates`]).

mod fates;
mod place;

pub use fates::{Account, Fates};

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use thiserror::Error;

use super::export;
use super::result::Document;
use crate::plan::{Kind, Output};
use crate::reason::reason;
use crate::run::{self, Second};
use place::{Place, directory};

/// Lines that wait to be written, at most: twenty minutes of them.
const LINES_MAX: usize = 1200;

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("--output {path:?}: {reason}")]
pub struct Unwritable {
    path: PathBuf,
    reason: String,
}

/// The files of a run that can be written, as far as that is known.
pub struct Files {
    /// The files that are written at the end: which ones they are, their form and their place.
    whole: Vec<(usize, Kind, Place)>,
    streams: Vec<Stream>,
    fates: Fates,
}

/// A file that is written while the run lasts.
struct Stream {
    index: usize,
    /// Lines for the thread that writes them; `None` until the first.
    lines: Option<SyncSender<String>>,
    /// Until then.
    idle: Option<Idle>,
}

/// A file into which nothing was written yet.
struct Idle {
    place: Place,
    /// `None`: it is opened when the first line comes, as that may take a while.
    file: Option<(File, bool)>,
}

impl Drop for Idle {
    fn drop(&mut self) {
        if self.file.as_ref().is_some_and(|(_, is_new)| *is_new) {
            self.place.remove();
        }
    }
}

impl Files {
    /// Makes sure that each file can be written. `is_private`: nobody but their owner may read them.
    ///
    /// # Errors
    ///
    /// The first one that cannot.
    pub fn open(outputs: &[Output], is_private: bool) -> Result<Self, Unwritable> {
        let (mut whole, mut streams, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (index, Output { path, kind }) in outputs.iter().enumerate() {
            let refuse = |error: io::Error| Unwritable { path: path.clone(), reason: words(&error, path) };
            let place = Place::of(path, is_private).map_err(refuse)?;
            if let Some(earlier) = places.iter().position(|earlier: &Place| earlier.is_one_with(&place)) {
                let reason = format!("it is the same file as {:?}; leave one of the two out", outputs[earlier].path);
                return Err(Unwritable { path: path.clone(), reason });
            }
            places.push(place.clone());
            if *kind == Kind::Lines {
                let file = place.open().map_err(refuse)?;
                streams.push(Stream { index, lines: None, idle: Some(Idle { place, file }) });
            } else {
                place.probe().map_err(refuse)?;
                whole.push((index, *kind, place));
            }
        }
        Ok(Self { whole, streams, fates: Fates::of(outputs.iter().map(|output| output.path.as_path())) })
    }

    /// What becomes of them.
    pub fn fates(&self) -> &Fates {
        &self.fates
    }

    /// Has a row written into the files that are written while the run lasts. What goes wrong is said at the end: a test is
    /// not stopped by its files, nor held up.
    pub fn second(&mut self, second: &Second) {
        let line = if self.streams.is_empty() { String::new() } else { export::line(second) };
        self.streams.iter_mut().for_each(|stream| stream.write(&line, &self.fates));
    }

    /// Has all files written, which goes on when this returns: [`Fates::wait`] tells when they are.
    pub fn write(mut self, document: &Document) {
        for (index, kind, place) in self.whole {
            let text = export::render(kind, document).map_err(|corrupt| corrupt.to_string());
            let fates = self.fates.clone();
            if place.is_special() {
                fates.begin(index);
            }
            let write = move || {
                let publish = |put: &mut dyn FnMut() -> io::Result<()>| fates.publish(index, put);
                let written = text.and_then(|text| place.write(&text, publish).map_err(|error| place.words(&error)));
                fates.settle(index, written.err());
            };
            if let Err(error) = run::beside("file", write) {
                self.fates.settle(index, Some(format!("there can be no thread to write it: {error}")));
            }
        }
        for stream in &mut self.streams {
            stream.finish(&self.fates);
        }
    }
}

impl Stream {
    fn write(&mut self, line: &str, fates: &Fates) {
        if let Some(idle) = self.idle.take() {
            self.begin(idle, fates);
        }
        if self.lines.as_ref().is_some_and(|lines| lines.try_send(line.to_owned()).is_err()) {
            fates.settle(self.index, Some("it is read so slowly that rows were left out".to_owned()));
            self.lines = None;
        }
    }

    /// Starts the thread that writes.
    fn begin(&mut self, mut idle: Idle, fates: &Fates) {
        let (sender, lines) = sync_channel(LINES_MAX);
        let (index, settled, place, file) = (self.index, fates.clone(), idle.place.clone(), idle.file.take());
        fates.begin(index);
        let write = move || {
            let opened = file.map_or_else(|| place.open_special(), |(file, _)| file.set_len(0).map(|()| file));
            let written = opened.and_then(|file| write_lines(file, &lines));
            let written = written.and_then(|()| settled.publish(index, &mut || Ok(())));
            settled.settle(index, written.err().map(|error| place.words(&error)));
        };
        match run::beside("lines", write) {
            Ok(()) => self.lines = Some(sender),
            Err(error) => fates.settle(index, Some(format!("there can be no thread to write it: {error}"))),
        }
    }

    /// There are no more lines.
    fn finish(&mut self, fates: &Fates) {
        if let Some(idle) = self.idle.take() {
            self.begin(idle, fates);
        }
        self.lines = None;
    }
}

/// Writes lines until there are no more.
fn write_lines(mut file: File, lines: &Receiver<String>) -> io::Result<()> {
    let mut length = 0;
    for line in lines {
        file.write_all(line.as_bytes()).inspect_err(|_| {
            // Whoever reads the file finds whole lines only; where it cannot be cut it is no regular file.
            let _ = file.set_len(length);
        })?;
        length += line.len() as u64;
    }
    Ok(())
}

impl Place {
    fn words(&self, error: &io::Error) -> String {
        words(error, self.path())
    }
}

/// What went wrong, and what to do about it where that is known.
fn words(error: &io::Error, path: &Path) -> String {
    let directory = directory(path);
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
        io::ErrorKind::BrokenPipe => "whoever read it has gone".to_owned(),
        _ => reason(error),
    }
}

/// Waits for files as long as that is worth it.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The files that are not complete, as errors.
pub fn unwritable(fates: &Fates) -> Vec<Unwritable> {
    fates.failures().into_iter().map(|(path, reason)| Unwritable { path, reason }).collect()
}
