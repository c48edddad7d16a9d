//! Journal of changed settings: one line of JSON per step, written before the step.
//!
//! Each network namespace has a file. The process that changes settings locks the file, and removes it after restoring
//! them. An unlocked journal with changes was left by a killed process.

use std::fs::TryLockError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use onrush_text::error_reason;
use serde::{Deserialize, Serialize};

use super::change::SettingChange;
use super::here::KernelNamespace;
use super::name::SettingName;
use super::refusal::SysctlRefusal;

/// A locked journal.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The boot and the network namespace in which the changes were made.
    pub here: KernelNamespace,
    /// ID of the process that made the changes.
    pub pid: u32,
    /// The changes, each with its setting, in the order in which the settings were first changed.
    pub changes: Vec<SettingChange>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum JournalLine {
    /// The first line: process, boot and namespace of the changes.
    Lab { boot: String, namespace: String, pid: u32 },
    /// A setting is about to be changed.
    Change { name: String, old: String, intended: String },
    /// A setting was changed, and now has this value.
    Became { name: String, value: String },
}

impl Journal {
    /// Opens or creates the journal of a network namespace, and locks it.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be opened, belongs to another user, or is locked by another process.
    pub fn open(directory: &Path, namespace: &str) -> Result<Self, SysctlRefusal> {
        match DirBuilder::new().mode(0o755).create(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refusal(directory, &error)),
            _ => {}
        }
        let path = path(directory, namespace);
        Self::lock(&path, true).map_err(|error| error.refusal(&path))
    }

    /// Opens and locks the existing journal of a network namespace; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be opened, belongs to another user, or is locked by another process.
    pub fn existing(directory: &Path, namespace: &str) -> Result<Option<Self>, SysctlRefusal> {
        let path = path(directory, namespace);
        match Self::lock(&path, false) {
            Err(Unlocked::System(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            locked => locked.map(Some).map_err(|error| error.refusal(&path)),
        }
    }

    fn lock(path: &Path, creates: bool) -> Result<Self, Unlocked> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(creates).mode(0o644).custom_flags(libc::O_NOFOLLOW);
            let mut file = options.open(path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text)?;
                    return Err(Unlocked::Held(parse(&text).map(|record| record.pid)));
                }
                locked => locked?,
            }
            // The previous owner of the lock may have removed the file before we got the lock.
            let ours = file.metadata()?;
            if fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
                // No other user may decide what root restores.
                let is_own = ours.uid() == rustix::process::geteuid().as_raw();
                return if is_own { Ok(Self { path: path.to_owned(), file }) } else { Err(Unlocked::Foreign) };
            }
        }
    }

    /// Reads all of the journal; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or is not a journal.
    pub fn read(&mut self) -> Result<Option<Record>, SysctlRefusal> {
        let mut text = String::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_string(&mut text));
        read.map_err(|error| refusal(&self.path, &error))?;
        if text.is_empty() {
            return Ok(None);
        }
        parse(&text).map(Some).ok_or_else(|| self.damaged())
    }

    /// The refusal to use a journal that cannot be trusted.
    pub fn damaged(&self) -> SysctlRefusal {
        SysctlRefusal::Damaged(self.path.display().to_string())
    }

    /// Empties the journal and starts it again, in the name of this process.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be written.
    pub fn restart(&mut self, here: &KernelNamespace) -> Result<(), SysctlRefusal> {
        self.file.set_len(0).map_err(|error| refusal(&self.path, &error))?;
        let KernelNamespace { boot, namespace } = here.clone();
        self.append(&JournalLine::Lab { boot, namespace, pid: process::id() })
    }

    /// Records that a setting is about to be changed.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be written. The setting must not be changed in that case.
    pub fn record_intent(&mut self, name: &SettingName, old: &str, intended: &str) -> Result<(), SysctlRefusal> {
        self.append(&JournalLine::Change { name: name.to_string(), old: old.to_owned(), intended: intended.to_owned() })
    }

    /// Records that a setting was changed, and now has this value.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be written.
    pub fn record_value(&mut self, name: &SettingName, value: &str) -> Result<(), SysctlRefusal> {
        self.append(&JournalLine::Became { name: name.to_string(), value: value.to_owned() })
    }

    /// Removes the journal, because there is nothing to restore.
    ///
    /// # Errors
    ///
    /// Fails if the journal cannot be removed.
    pub fn remove(&self) -> Result<(), SysctlRefusal> {
        fs::remove_file(&self.path).map_err(|error| refusal(&self.path, &error))
    }

    fn append(&mut self, line: &JournalLine) -> Result<(), SysctlRefusal> {
        let written = serde_json::to_string(line).map_err(io::Error::from).and_then(|line| {
            let end = self.file.seek(SeekFrom::End(0))?;
            let written = self.file.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.sync_data());
            if written.is_err() {
                // The next line must not follow an incomplete one.
                self.file.set_len(end)?;
            }
            written
        });
        written.map_err(|error| refusal(&self.path, &error))
    }
}

/// Why a journal could not be locked.
enum Unlocked {
    /// Another process has locked it.
    Held(Option<u32>),
    /// The file belongs to another user.
    Foreign,
    System(io::Error),
}

impl From<io::Error> for Unlocked {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<TryLockError> for Unlocked {
    fn from(error: TryLockError) -> Self {
        Self::System(error.into())
    }
}

impl Unlocked {
    fn refusal(self, path: &Path) -> SysctlRefusal {
        match self {
            Self::Held(pid) => SysctlRefusal::Held(pid),
            Self::Foreign => {
                let reason = "owned by another user".to_owned();
                SysctlRefusal::Journal { path: path.display().to_string(), reason }
            }
            Self::System(error) => refusal(path, &error),
        }
    }
}

fn path(directory: &Path, namespace: &str) -> PathBuf {
    directory.join(format!("{namespace}.journal"))
}

fn refusal(path: &Path, error: &io::Error) -> SysctlRefusal {
    SysctlRefusal::Journal { path: path.display().to_string(), reason: error_reason(error) }
}

/// Parses a journal. An incomplete last line is ignored: its change was not made.
fn parse(text: &str) -> Option<Record> {
    let whole = &text[..=text.rfind('\n')?];
    let mut lines = whole.lines().map(serde_json::from_str);
    let JournalLine::Lab { boot, namespace, pid } = lines.next()?.ok()? else { return None };
    let mut changes: Vec<SettingChange> = Vec::new();
    for line in lines {
        match line.ok()? {
            JournalLine::Lab { .. } => return None,
            JournalLine::Change { name, old, intended } => {
                let name = SettingName::parse(&name).ok()?;
                match changes.iter_mut().find(|change| change.name == name) {
                    Some(change) => change.record_intent(&intended),
                    None => changes.push(SettingChange::new(name, old, &intended)),
                }
            }
            JournalLine::Became { name, value } => {
                let name = SettingName::parse(&name).ok()?;
                changes.iter_mut().find(|change| change.name == name)?.record_value(&value);
            }
        }
    }
    Some(Record { here: KernelNamespace { boot, namespace }, pid, changes })
}
