//! The contents of the files needed by a run: bodies, scripts, certificates.
//!
//! A plan for another machine names each file by its digest; the contents are sent separately. The name of the file is
//! kept for messages only; the file is never opened again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use onrush_text::error_reason;
/// A file needed by a run: its name and its contents, once read or attached. Two are equal if names and contents are
/// equal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Reference", from = "Reference")]
pub struct FileContents {
    /// The file's name as typed; empty if the contents were not in a file.
    pub name: String,
    path: PathBuf,
    /// The expected digest of contents that do not come from the file.
    sha256: Option<String>,
    contents: Option<Arc<[u8]>>,
    /// Ranges of the secrets in the contents, found on first use; clones share the result.
    secrets: Arc<OnceLock<Vec<Range<usize>>>>,
}

/// The name and digest of a file in a plan for another machine.
#[derive(Serialize, Deserialize)]
struct Reference {
    name: String,
    /// The SHA-256 of the contents, in hexadecimal.
    sha256: String,
}

/// A file needed by a run cannot be read. The message names the file and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{role} {name:?}: {reason}")]
pub struct UnreadableFile {
    /// The option that names the file, or a description such as `the body`.
    pub role: &'static str,
    /// The file's name as typed.
    pub name: String,
    /// The reason, in words.
    pub reason: String,
}

impl FileContents {
    /// A file that has not been read yet: only its name is known.
    pub fn unread(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.display().to_string(), path, ..Self::default() }
    }

    /// The given bytes under a file's name.
    pub fn from_bytes(name: &str, contents: Vec<u8>) -> Self {
        let mut file = Self::unread(name);
        file.hold_contents(contents.into());
        file
    }

    /// Reads the file unless its contents are already there; `role` is the option that names it, for messages. The file
    /// of a received plan is never opened: its contents must have been attached.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is longer than `most_mib`, or belongs to a received plan whose contents are missing.
    pub fn read(&mut self, role: &'static str, most_mib: u64) -> Result<(), UnreadableFile> {
        if self.sha256.is_some() {
            return self.contents().map(drop);
        }
        if self.contents.is_none() {
            let unreadable = |reason| UnreadableFile { role, name: self.name.clone(), reason };
            self.hold_contents(read_at_most(&self.path, most_mib).map_err(unreadable)?.into());
        }
        Ok(())
    }

    fn hold_contents(&mut self, contents: Arc<[u8]>) {
        (self.contents, self.secrets) = (Some(contents), Arc::default());
    }

    /// Attaches the contents to the file of a received plan. Returns true if they match its digest.
    pub fn attach_contents(&mut self, contents: Arc<[u8]>) -> bool {
        let fits = self.sha256.as_deref().is_some_and(|sha256| sha256 == sha256_hex(&contents));
        if fits {
            self.hold_contents(contents);
        }
        fits
    }

    /// The SHA-256 of the contents, in hexadecimal, which identifies them on other machines; empty if unknown.
    /// Computing it takes about as long as reading the file.
    pub fn sha256(&self) -> String {
        self.sha256.clone().or(self.contents.as_deref().map(sha256_hex)).unwrap_or_default()
    }

    /// The contents.
    ///
    /// # Errors
    ///
    /// If they were neither read nor attached.
    pub fn contents(&self) -> Result<&[u8], UnreadableFile> {
        self.held().map(|contents| &**contents)
    }

    /// The contents, shared with callers that keep them.
    ///
    /// # Errors
    ///
    /// As for [`FileContents::contents`].
    pub fn shared(&self) -> Result<Arc<[u8]>, UnreadableFile> {
        self.held().cloned()
    }

    /// The ranges that `find` finds in the contents; empty if there are no contents. `find` takes long and is called
    /// only once.
    pub(crate) fn secrets(&self, find: impl FnOnce(&[u8]) -> Vec<Range<usize>>) -> &[Range<usize>] {
        let Some(contents) = &self.contents else { return &[] };
        self.secrets.get_or_init(|| find(contents))
    }

    fn held(&self) -> Result<&Arc<[u8]>, UnreadableFile> {
        let missing = || UnreadableFile {
            role: "the file",
            name: self.name.clone(),
            reason: "its contents are missing from the plan".to_owned(),
        };
        self.contents.as_ref().ok_or_else(missing)
    }
}

impl PartialEq for FileContents {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.sha256() == other.sha256()
    }
}

impl Eq for FileContents {}

impl From<FileContents> for Reference {
    fn from(file: FileContents) -> Self {
        Self { sha256: file.sha256(), name: file.name }
    }
}

impl From<Reference> for FileContents {
    fn from(Reference { name, sha256 }: Reference) -> Self {
        Self { name, sha256: Some(sha256), ..Self::default() }
    }
}

/// Current paths of the files brought from another machine, by their names there.
static BROUGHT: OnceLock<BTreeMap<PathBuf, PathBuf>> = OnceLock::new();

thread_local! {
    /// Files read while [`record_reads`] runs.
    static READ: RefCell<Option<BTreeMap<PathBuf, Vec<u8>>>> = const { RefCell::new(None) };
}

/// Sets the current paths of files named on the machine where the command line was typed. Later calls have no effect.
pub fn set_brought_files(files: BTreeMap<PathBuf, PathBuf>) {
    let _ = BROUGHT.set(files);
}

/// The current path of a file brought from another machine; `None`: it was not brought.
pub fn brought_path(name: &Path) -> Option<&'static Path> {
    Some(BROUGHT.get()?.get(name)?)
}

/// Does some work on this thread. Returns the result, and the contents of the files read meanwhile, by name.
pub fn record_reads<T>(work: impl FnOnce() -> T) -> (T, BTreeMap<PathBuf, Vec<u8>>) {
    READ.set(Some(BTreeMap::new()));
    let done = work();
    (done, READ.take().unwrap_or_default())
}

/// Records the reading of a file while [`record_reads`] runs.
pub fn note_read(name: &Path, contents: &[u8]) {
    READ.with_borrow_mut(|read| {
        if let Some(read) = read {
            read.insert(name.to_owned(), contents.to_owned());
        }
    });
}

/// The bytes of a file of at most `most_mib` MiB. A file may be endless, so at most one byte more is read.
///
/// # Errors
///
/// The reason, in words, why the file cannot be read or is too long.
pub fn read_at_most(path: &Path, most_mib: u64) -> Result<Vec<u8>, String> {
    let most = most_mib << 20;
    let mut contents = Vec::new();
    let file = File::open(brought_path(path).unwrap_or(path));
    match file.and_then(|file| file.take(most + 1).read_to_end(&mut contents)) {
        Err(error) => Err(error_reason(&error)),
        Ok(_) if contents.len() as u64 > most => Err(format!("it is longer than {most_mib} MiB")),
        Ok(_) => {
            note_read(path, &contents);
            Ok(contents)
        }
    }
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_read_once_and_keep_their_digest() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("body");
        std::fs::write(&path, "abc").unwrap();
        let mut file = FileContents::unread(&path);
        assert!(file.contents().is_err());
        file.read("the file", 1).unwrap();
        std::fs::write(&path, "changed").unwrap();
        file.read("the file", 1).unwrap();
        assert_eq!(file.contents(), Ok(&b"abc"[..]));
        assert_eq!(file.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mut elsewhere: FileContents = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(elsewhere, file);
        assert!(elsewhere.read("the file", 1).is_err(), "a file of that name here is another one");
        assert!(!elsewhere.attach_contents(Arc::from(*b"changed")) && elsewhere.contents().is_err());
        assert!(elsewhere.attach_contents(Arc::from(*b"abc")));
        assert_eq!(elsewhere.contents(), Ok(&b"abc"[..]));
    }

    #[test]
    fn reads_are_noted_while_requested() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| scratch.path().join(name));
        std::fs::write(&one, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        read_at_most(&other, 1).unwrap();
        let (done, read) = record_reads(|| read_at_most(&one, 1).unwrap());
        assert_eq!((done, read), (b"1".to_vec(), BTreeMap::from([(one, b"1".to_vec())])));
        read_at_most(&other, 1).unwrap();
        assert!(record_reads(|| ()).1.is_empty());
    }

    #[test]
    fn unreadable_and_endless_files_are_refused_by_name() {
        let refused =
            |path: &str, most_mib| FileContents::unread(path).read("--key", most_mib).unwrap_err().to_string();
        assert_eq!(refused("/nonexistent", 9), "--key \"/nonexistent\": No such file or directory");
        assert_eq!(refused("/", 9), "--key \"/\": Is a directory");
        assert!(refused("/dev/zero", 1).ends_with("\"/dev/zero\": it is longer than 1 MiB"));
    }
}
