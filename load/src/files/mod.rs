//! The files of a result: checked before the run, written after it under a temporary name, then renamed, so that no
//! other process ever sees half a result. Files written during the run have their final name from the start.
//!
//! Each file has its own thread, because a write may block as long as the reader likes. No wait for a file exceeds the
//! caller's limit. The state of each file is available at any moment ([`FileStates`]).
//!
//! `destination` resolves paths, and `states` tracks the progress of each file. `export` renders the record, `samples`
//! writes the folder of responses, `request_log` the file with one line per request, and `kept` holds files that are
//! written if a signal ends the process.

mod destination;
pub mod export;
mod kept;
mod request_log;
mod samples;
mod states;

pub use kept::KeptFiles;
pub use states::FileStates;

use std::fs::File;
use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use onrush_plan::output::is_compressed;
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Output, OutputKind, Plan};
use onrush_text::error_reason;
use thiserror::Error;

use crate::program::Signals;
use crate::record::Document;
use crate::run::{self, KeepSample, Observer, PassOn, SocketSample, TimelineRow};
use destination::{FileDestination, parent_directory};
use request_log::RequestLogWriter;
use samples::SampleWriter;

/// Maximum number of lines that wait to be written: those of twenty minutes.
const LINES_MAX: usize = 1200;
/// Maximum number of samples that wait to be written, each of up to a megabyte.
const SAMPLES_MAX: usize = 60;

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("{option} {path:?}: {reason}")]
pub struct Unwritable {
    option: &'static str,
    path: PathBuf,
    reason: String,
}

/// The output files of a run, which have been checked as far as possible. Their threads are started before the run,
/// because there may be no memory for them at its end.
pub struct Files {
    whole: Vec<WholeFile>,
    streams: Vec<OutputStream>,
    log: Option<RequestLogWriter>,
    samples: Option<SampleWriter>,
    states: FileStates,
}

/// A file that is written as a whole at the end.
struct WholeFile {
    index: usize,
    kind: OutputKind,
    is_special: bool,
    is_compressed: bool,
    /// Sends the content to the file's thread, or the reason for its absence.
    content: SyncSender<Result<Vec<u8>, String>>,
}

/// A file written during the run.
struct OutputStream {
    index: usize,
    kind: OutputKind,
    states: FileStates,
    has_begun: bool,
    /// Lines for the file's thread. The first one, possibly empty, starts the file.
    lines: Option<SyncSender<String>>,
}

impl Drop for OutputStream {
    fn drop(&mut self) {
        self.states.remove_leftover(self.index);
    }
}

impl Files {
    /// Opens the files of a run after checking that each can be written. A signal that ends the process gives the files
    /// up; it is handled from before the first file, so that it leaves no files behind.
    ///
    /// # Errors
    ///
    /// Fails with the first file that cannot be written.
    pub fn for_plan(plan: &Plan, signals: &Signals) -> Result<Self, Unwritable> {
        let files = Self::open(&plan.output.files(), Some(plan), plan.output.keeps_secrets)?;
        files.states.abandon_before_quitting(signals);
        Ok(files)
    }

    /// Opens files after checking that each can be written. `plan`: the plan of the run to which the files belong, if
    /// any. `is_private`: only the owner may read the files.
    ///
    /// # Errors
    ///
    /// Fails with the first file that cannot be written.
    pub fn open(outputs: &[Output], plan: Option<&Plan>, is_private: bool) -> Result<Self, Unwritable> {
        let states = FileStates::new(outputs);
        let mut whole = Vec::new();
        let mut streams = Vec::new();
        let (mut log, mut samples) = (None, None);
        let mut destinations = Vec::new();
        for (index, output @ Output { path, kind }) in outputs.iter().enumerate() {
            let refuse = |reason: String| Unwritable { option: kind.option(), path: path.clone(), reason };
            if *kind == OutputKind::Samples {
                samples = Some(SampleWriter::open(index, path, &states).map_err(refuse)?);
                continue;
            }
            let destination = FileDestination::for_path(path, is_private)
                .map_err(|error| refuse(describe_write_error(&error, path)))?;
            if let Some(earlier) =
                destinations.iter().position(|earlier: &FileDestination| earlier.is_same_file(&destination))
            {
                let earlier = &outputs[earlier].path;
                return Err(refuse(format!("the same file as {earlier:?}; leave one of the two out")));
            }
            if let Some(stream) = destination.standard_stream() {
                return Err(refuse(format!("{stream} goes to the same file; choose another for one of the two")));
            }
            destinations.push(destination.clone());
            match (kind, plan) {
                (OutputKind::Lines | OutputKind::Sockets, _) => {
                    streams.push(OutputStream::open(index, *kind, destination, &states).map_err(refuse)?);
                }
                (OutputKind::Requests, Some(plan)) => {
                    log = Some(RequestLogWriter::open(index, destination, plan, &states).map_err(refuse)?);
                }
                _ => whole.push(WholeFile::open(index, output, destination, &states).map_err(refuse)?),
            }
        }
        Ok(Self { whole, streams, log, samples, states })
    }

    /// The states of all files, which change while their threads write.
    pub fn states(&self) -> &FileStates {
        &self.states
    }

    /// Sends text to the files written during the run. Failures are reported at the end: a file never stops or delays a
    /// test.
    fn send_to_streams(&mut self, kind: OutputKind, text: impl Fn() -> String) {
        self.streams.iter_mut().filter(|stream| stream.kind == kind).for_each(|stream| stream.write(text()));
    }

    /// Starts writing all files, and returns at once. [`FileStates::wait_until_final`] waits until they are complete.
    pub fn write(self, document: &Document) {
        self.write_texts(|kind| export::render_output(kind, document).map_err(|corrupt| corrupt.to_string()));
    }

    /// Like [`Files::write`], but with the text that `text_of` returns for each kind, or the reason why there is none.
    pub fn write_texts(mut self, text_of: impl Fn(OutputKind) -> Result<String, String>) {
        for WholeFile { index, kind, is_special, is_compressed, content } in self.whole {
            if is_special {
                self.states.record_write_start(index);
            }
            // If the thread no longer exists, it has panicked, and its panic was reported.
            let bytes = |text: String| if is_compressed { compress(&text) } else { text.into_bytes() };
            let _ = content.send(text_of(kind).map(bytes));
        }
        for stream in &mut self.streams {
            if !stream.has_begun {
                stream.write(String::new());
            }
            stream.lines = None;
        }
        if let Some(log) = self.log {
            log.end();
        }
        if let Some(samples) = self.samples {
            samples.end();
        }
    }
}

impl Observer for Files {
    fn on_row(&mut self, second: &TimelineRow) {
        self.send_to_streams(OutputKind::Lines, || export::timeline_line(second));
    }

    fn on_sample(&mut self, sample: &SocketSample) {
        self.send_to_streams(OutputKind::Sockets, || export::samples(sample));
    }

    fn request_log_taker(&mut self) -> Option<PassOn> {
        self.log.as_ref().map(RequestLogWriter::entry_receiver)
    }

    fn sample_taker(&mut self, plan: &Plan) -> Option<KeepSample> {
        self.samples.as_ref().map(|samples| samples.sample_receiver(KnownSecrets::from_plan(plan)))
    }
}

impl WholeFile {
    /// Checks that the file can be written, and starts its thread.
    fn open(index: usize, output: &Output, destination: FileDestination, states: &FileStates) -> Result<Self, String> {
        destination.check_writable().map_err(|error| destination.describe_error(&error))?;
        let (content, contents) = sync_channel::<Result<Vec<u8>, String>>(1);
        let is_special = destination.is_special();
        let states = states.clone();
        spawn_thread("file", move || {
            // If no content is sent, the run never started.
            let Ok(content) = contents.recv() else { return };
            let write = |content: Vec<u8>| {
                destination.write(&content, &states, index).map_err(|error| destination.describe_error(&error))
            };
            states.settle(index, content.and_then(write).err());
        })?;
        Ok(Self { index, kind: output.kind, is_special, is_compressed: is_compressed(&output.path), content })
    }
}

impl OutputStream {
    /// Opens the file without emptying it, and starts its thread.
    fn open(index: usize, kind: OutputKind, destination: FileDestination, states: &FileStates) -> Result<Self, String> {
        let opened = destination.open().map_err(|error| destination.describe_error(&error))?;
        if let Some((_, true)) = opened {
            states.record_new_file(index, destination.path());
        }
        let (sender, lines) = sync_channel(if kind == OutputKind::Sockets { SAMPLES_MAX } else { LINES_MAX });
        let stream = Self { index, kind, states: states.clone(), has_begun: false, lines: Some(sender) };
        let states = states.clone();
        spawn_thread("lines", move || {
            // If no line is sent, the run never started.
            let Ok(first) = lines.recv() else { return };
            let written = write_lines(&destination, opened.map(|(file, _)| file), iter::once(first).chain(lines));
            let publish = || states.publish(index, &mut || Ok(())).map_err(|error| destination.describe_error(&error));
            states.settle(index, written.and_then(|()| publish()).err());
        })?;
        Ok(stream)
    }

    fn write(&mut self, line: String) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.states.record_write_start(self.index);
        }
        if self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_err()) {
            self.states.settle(self.index, Some("the reader is too slow: rows were left out".to_owned()));
            self.lines = None;
        }
    }
}

/// Compresses a result with gzip. Its histograms are compressed already, but names and rows of the timeline are not.
fn compress(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.expect("memory can be written to")
}

fn spawn_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    run::spawn_detached(name, work)
        .map_err(|error| format!("cannot create the thread that writes the file: {}", error_reason(&error)))
}

/// Writes lines until the channel is closed. `file` is the regular file that was opened earlier. Anything else is
/// opened now, which may take a while.
fn write_lines(
    destination: &FileDestination,
    file: Option<File>,
    lines: impl Iterator<Item = String>,
) -> Result<(), String> {
    let is_regular = file.is_some();
    let opened = file.map_or_else(|| destination.open_special(), |file| destination.empty(&file).map(|()| file));
    let mut file = opened.map_err(|error| destination.describe_error(&error))?;
    let mut length = 0;
    for line in lines {
        file.write_all(line.as_bytes()).map_err(|error| {
            // Readers of the file must see only whole lines. Truncating fails only if the file is not a regular one.
            let is_longer = file.metadata().is_ok_and(|there| there.len() > length);
            is_longer.then(|| file.set_len(length));
            destination.describe_error(&error)
        })?;
        length += line.len() as u64;
    }
    let tampering = if is_regular { destination.describe_tampering(&file, length) } else { None };
    tampering.map_or(Ok(()), Err)
}

impl FileDestination {
    fn describe_error(&self, error: &io::Error) -> String {
        describe_write_error(error, self.path())
    }
}

/// The reason why a file or folder cannot be written, with the remedy if one is known.
pub fn describe_write_error(error: &io::Error, path: &Path) -> String {
    let directory = parent_directory(path);
    match error.kind() {
        io::ErrorKind::NotFound if !directory.is_dir() => {
            format!("there is no directory {directory:?}; create it, or choose another")
        }
        io::ErrorKind::NotFound => format!("no file can be created in {directory:?}; choose another"),
        io::ErrorKind::PermissionDenied => "permission denied; choose a path that you may write to".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only; choose another".to_owned(),
        io::ErrorKind::IsADirectory => "this is a directory; name a file in the directory".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full; free some space, or choose another".to_owned(),
        io::ErrorKind::QuotaExceeded => "your disk quota is used up; free some space, or choose another".to_owned(),
        io::ErrorKind::FileTooLarge => "the file exceeds the file-size limit; raise the limit (ulimit -f)".to_owned(),
        io::ErrorKind::InvalidFilename => "the name is too long; choose a shorter one".to_owned(),
        io::ErrorKind::BrokenPipe => "the reader has gone".to_owned(),
        _ => error_reason(error),
    }
}

/// Maximum time to wait for files to be written.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The files that are not complete, as errors with the options that name them.
pub fn unwritable_files(states: &FileStates) -> Vec<Unwritable> {
    let unwritable = |(Output { path, kind }, reason)| Unwritable { option: kind.option(), path, reason };
    states.failures().into_iter().map(unwritable).collect()
}
