//! The folder of an experiment. It is written after every run, so that no result is lost.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::host::Host;
use crate::reason::reason;
use crate::report::printable;

/// The names of the files in it that are not results.
pub const PLAN: &str = "plan.toml";
const HOST: &str = "host.json";
const JOURNAL: &str = "journal";
/// The first responses of the targets.
pub const TARGETS: &str = "targets.json";
/// Copies of the files that belong to the experiment.
const ATTACHED: &str = "attached";

/// How an experiment was begun: what must be the same when it is continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// What all results of the experiment have in common.
    pub id: String,
    /// When it was begun: RFC 3339, UTC.
    pub at: String,
    /// The version of onrush.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's identifier of the boot.
    pub boot: String,
    /// The SHA-256 of the experiment, secrets and materials included.
    pub digest: String,
    /// Whether secrets were left out, so that the original file or command line is needed to continue.
    pub redacted: bool,
    /// The SHA-256 of every file that runs need, by its name.
    pub materials: BTreeMap<String, String>,
}

/// The part of a plan file that records how the experiment was begun.
#[derive(Serialize, Deserialize)]
struct Begun {
    made: Made,
}

/// The folder of an experiment, to which only this process writes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    journal: File,
    /// Whether only its owner may read it.
    is_private: bool,
}

impl Folder {
    /// Creates a new folder.
    ///
    /// # Errors
    ///
    /// When it exists already or cannot be created.
    pub fn create(path: &Path, is_private: bool) -> anyhow::Result<Self> {
        match fs::DirBuilder::new().mode(if is_private { 0o700 } else { 0o777 }).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!(
                    "{0} already exists; choose another folder (--out), or continue it (--resume {0})",
                    path.display()
                )
            }
            Err(error) => bail!("the folder {} cannot be created: {}", path.display(), reason(&error)),
        }
        Self::open(path, is_private)
    }

    /// Opens the folder of an experiment that is to be continued.
    ///
    /// # Errors
    ///
    /// When it is not the folder of an experiment, or another process writes to it.
    pub fn resume(path: &Path, is_private: bool) -> anyhow::Result<(Self, Made)> {
        let plan = fs::read_to_string(path.join(PLAN)).ok();
        let begun = plan.and_then(|plan| toml::from_str::<Begun>(&plan).ok());
        let missing = || anyhow!("{} is not the folder of an experiment: it has no valid {PLAN}", path.display());
        let made = begun.ok_or_else(missing)?.made;
        Ok((Self::open(path, is_private)?, made))
    }

    fn open(path: &Path, is_private: bool) -> anyhow::Result<Self> {
        let journal = path.join(JOURNAL);
        let file = OpenOptions::new().create(true).append(true).open(&journal);
        let file = file.map_err(|error| unwritable(&journal, &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), journal: file, is_private }),
            Err(Errno::WOULDBLOCK) => bail!("another onrush is writing to {}; wait until it ends", path.display()),
            Err(error) => bail!("{} cannot be locked: {}", journal.display(), reason(&error.into())),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the files of an experiment that begins.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or a file to be attached cannot be read.
    pub fn begin(&self, made: &Made, plan: &str, host: &Host, attached: &[PathBuf]) -> anyhow::Result<()> {
        let mut content = serde_json::to_vec_pretty(host)?;
        content.push(b'\n');
        self.write(HOST, &content)?;
        for path in attached {
            let name = path.file_name().ok_or_else(|| anyhow!("attach: {} has no name", path.display()))?;
            fs::create_dir_all(self.path.join(ATTACHED)).context("the folder for attached files cannot be created")?;
            let content = fs::read(path).map_err(|error| unattachable(path, &error))?;
            let name = name.to_string_lossy();
            let names = (1_u32..).map(|number| match number {
                1 => format!("{ATTACHED}/{name}"),
                _ => format!("{ATTACHED}/{number}-{name}"),
            });
            // Files from different folders may have the same name.
            let vacant = names.into_iter().find(|name| !self.has(name)).unwrap_or_default();
            self.write(&vacant, &content)?;
        }
        // Written last: this file makes the folder that of an experiment.
        let made = toml::to_string(&Begun { made: made.clone() })?;
        self.write(PLAN, format!("{plan}\n{made}").as_bytes())
    }

    /// Removes it if it has nothing but what every experiment begins with; returns whether it did.
    pub fn discard(&self) -> bool {
        let is_bare = |entry: io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| {
                [PLAN, HOST, JOURNAL, TARGETS, ATTACHED].iter().any(|name| entry.file_name() == *name)
            })
        };
        let is_bare = fs::read_dir(&self.path).is_ok_and(|mut entries| entries.all(is_bare));
        is_bare && fs::remove_dir_all(&self.path).is_ok()
    }

    /// Whether it has a file with this name.
    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// The first unused name of this form: `begin.kind-1`, `begin.kind-2` and so on.
    pub fn vacant(&self, begin: &str, kind: &str) -> String {
        let mut names = (1_u32..).map(|number| format!("{begin}.{kind}-{number}"));
        names.find(|name| !self.has(&format!("{name}.json"))).unwrap_or_default()
    }

    /// Renames a file, if it exists.
    ///
    /// # Errors
    ///
    /// When it cannot be renamed.
    pub fn rename(&self, from: &str, to: &str) -> anyhow::Result<()> {
        match fs::rename(self.path.join(from), self.path.join(to)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                bail!("{} cannot be renamed: {}", self.path.join(from).display(), reason(&error))
            }
            _ => Ok(()),
        }
    }

    /// The path of a file for the output of a hook or a target's command; such files have their own folder.
    pub fn output(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.path.join("output");
        fs::create_dir_all(&folder)?;
        Ok(folder.join(name))
    }

    /// Writes a file atomically: a reader finds all of it or nothing.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.path.join(name);
        let directory = path.parent().unwrap_or(&self.path);
        let written = || {
            let usual = fs::Permissions::from_mode(if self.is_private { 0o600 } else { 0o666 });
            let mut file = tempfile::Builder::new().permissions(usual).tempfile_in(directory)?;
            file.write_all(content)?;
            // A full disk may show only here.
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        written().map_err(|error| unwritable(&path, &error))
    }

    /// Adds a line to the journal.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn log(&self, what: &str) -> anyhow::Result<()> {
        let at = OffsetDateTime::now_utc().format(&Rfc3339)?;
        let line = format!("{at} {}\n", printable(what));
        let written = (&self.journal).write_all(line.as_bytes());
        written.map_err(|error| unwritable(&self.path.join(JOURNAL), &error))
    }
}

/// Why a file in a folder cannot be written.
fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("{} cannot be written: {}", path.display(), reason(error))
}

/// Why a file cannot be attached to an experiment.
pub fn unattachable(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("attach: {} cannot be read: {}", path.display(), reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_result_goes_and_one_with_anything_else_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let begun = |name: &str| {
            let folder = Folder::create(&scratch.path().join(name), false).unwrap();
            [PLAN, HOST, TARGETS].iter().for_each(|name| folder.write(name, b"{}").unwrap());
            folder
        };
        let (bare, kept) = (begun("bare"), begun("kept"));
        fs::write(kept.output("hook.txt").unwrap(), "why").unwrap();
        assert!(bare.discard() && !bare.path().exists());
        assert!(!kept.discard() && kept.has(PLAN));
        fs::remove_dir_all(kept.path().join("output")).unwrap();
        assert!(kept.discard() && !kept.path().exists());
    }

    #[test]
    fn a_folder_is_made_once_and_written_by_one_at_a_time() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x");
        let folder = Folder::create(&path, false).unwrap();
        folder.write("a.json", b"1").unwrap();
        assert!(folder.has("a.json") && fs::read(path.join("a.json")).unwrap() == b"1");
        assert_eq!(folder.vacant("a", "failed"), "a.failed-1");
        assert!(Folder::create(&path, false).unwrap_err().to_string().contains("already exists"));
        assert!(Folder::resume(&path, false).unwrap_err().to_string().contains("is not the folder of an experiment"));
        assert!(Folder::open(&path, false).unwrap_err().to_string().contains("another onrush is writing"));
        drop(folder);
        // A process that another test is just starting may hold the lock for a moment.
        let mut opened = (0..500).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            Folder::open(&path, false)
        });
        assert!(opened.any(|folder| folder.is_ok()));
        assert!(Folder::create(&path.join("no/x"), false).unwrap_err().to_string().contains("No such file"));
    }
}
