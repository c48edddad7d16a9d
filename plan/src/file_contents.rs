//! The contents of the files needed by a run: bodies, scripts, certificates. No file is opened here.
//!
//! A plan for another machine names each file by its digest; the contents are sent separately. The name of the file is
//! kept for messages only; the file is never opened again.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use thiserror::Error;

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

    /// The path of the file, if it has not been read yet; `None` if the contents are there, or must be attached because
    /// the plan was received.
    pub fn unread_path(&self) -> Option<&Path> {
        (self.sha256.is_none() && self.contents.is_none()).then_some(&*self.path)
    }

    /// Takes the contents that were read from the file.
    pub fn hold_contents(&mut self, contents: Arc<[u8]>) {
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

/// The SHA-256 of `bytes`, in hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
