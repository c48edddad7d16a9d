//! The folder of an experiment, which is updated after each run, so that no result is lost.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow, bail};
use onrush_load::files;
use onrush_load::input::read_at_most;
use onrush_load::record::json;
use onrush_plan::experiment::PLAN;
use onrush_plan::limits::{ATTACHED_MAX_MIB, PLAN_MAX_MIB};
use onrush_text::error_reason;
use onrush_text::escape_controls;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::host::LabHost;

/// Names of the files in the folder that are not results.
const HOST: &str = "host.json";
const JOURNAL: &str = "journal";
/// Name of the file with the first responses of the targets.
pub const TARGETS: &str = "targets.json";
/// Name of the folder with copies of attached files.
const ATTACHED: &str = "attached";

/// Prefix and suffix of the names of unfinished files.
const UNFINISHED: (&str, &str) = (".onrush-", ".part");

/// Facts recorded when an experiment starts. They must still be true when it is continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentOrigin {
    /// Id that all results of the experiment have in common.
    pub id: String,
    /// Start of the experiment: RFC 3339, UTC.
    pub at: String,
    /// Version of onrush that started the experiment.
    pub version: String,
    /// Release of the kernel; empty if unknown.
    pub kernel: String,
    /// The kernel's boot id, which changes with each restart; empty if unknown.
    pub boot: String,
    /// SHA-256 of the experiment, with its secrets and the digests of its files, but without the number of rounds,
    /// which may grow when the experiment is continued.
    pub digest: String,
    /// True if commands or secrets were left out of the stored plan. Continuing then needs the original file or command
    /// line.
    pub redacted: bool,
    /// SHA-256 of each file that the runs need, by name.
    pub materials: BTreeMap<String, String>,
}

/// The part of the stored plan that records the start of the experiment.
#[derive(Serialize, Deserialize)]
struct Begun {
    made: ExperimentOrigin,
}

/// The temporary name of the file that is being written, if any. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct UnfinishedFile(Arc<Mutex<Option<PathBuf>>>);

impl UnfinishedFile {
    /// Removes the unfinished file before the process ends. Keeps the lock, so that writers never continue.
    pub fn abandon(&self) {
        let mut unfinished = self.lock();
        // A leftover does no harm: nothing reads it.
        unfinished.take().map(fs::remove_file);
        mem::forget(unfinished);
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of an experiment, locked against other processes.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    unfinished: UnfinishedFile,
    /// The opened directory. If the path leads to another directory later, that one is not used.
    opened: File,
    journal: File,
    /// True if only the owner may read the folder.
    is_private: bool,
}

/// The reason why a new folder was not created: its name is in use.
#[derive(Debug, Error)]
#[error("{name} already exists; choose another folder (--out), or continue it (--resume {name})", name = .path.display())]
pub struct FolderExists {
    path: PathBuf,
}

impl Folder {
    /// Creates a new folder and locks it. `is_private`: only the owner may read it.
    ///
    /// # Errors
    ///
    /// Fails with [`FolderExists`] if the name is in use, otherwise with the reason why the folder cannot be created.
    pub fn create(path: &Path, is_private: bool) -> anyhow::Result<Self> {
        match fs::DirBuilder::new().mode(if is_private { 0o700 } else { 0o777 }).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                bail!(FolderExists { path: path.to_owned() })
            }
            Err(error) => {
                bail!("the folder {} cannot be created: {}", path.display(), files::describe_write_error(&error, path))
            }
        }
        Self::open(path, is_private)
    }

    /// Opens and locks the folder of an experiment that is to be continued, and reads the facts about its start.
    /// `is_private`: only the owner may read files written from now on.
    ///
    /// # Errors
    ///
    /// Fails if the folder is not that of an experiment, or if another process is using it.
    pub fn resume(path: &Path, is_private: bool) -> anyhow::Result<(Self, ExperimentOrigin)> {
        let missing = || anyhow!("{} is not the folder of an experiment: {PLAN} is missing or invalid", path.display());
        let kept = path.join(PLAN);
        // Opening a pipe would block.
        if fs::metadata(&kept).is_ok_and(|there| !there.is_file()) {
            bail!(
                "{} is not a regular file, as the plan of an experiment must be; choose another folder",
                kept.display()
            );
        }
        let begun = || {
            let plan = read_at_most(&kept, PLAN_MAX_MIB).ok()?;
            toml::from_str::<Begun>(str::from_utf8(&plan).ok()?).ok()
        };
        begun().ok_or_else(missing)?;
        let folder = Self::open(path, is_private)?;
        // Reads the file again, now that no other process writes to the folder.
        let made = begun().ok_or_else(missing)?.made;
        folder.current_path()?;
        folder.remove_unfinished();
        Ok((folder, made))
    }

    fn open(path: &Path, is_private: bool) -> anyhow::Result<Self> {
        let opened = File::open(path);
        let opened =
            opened.map_err(|error| anyhow!("{} cannot be opened: {}", path.display(), error_reason(&error)))?;
        let journal = path.join(JOURNAL);
        // Neither blocks on a pipe nor follows a link: the lines belong in this folder.
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
        let file = OpenOptions::new().create(true).append(true).custom_flags(flags).open(&journal);
        let is_file = file.as_ref().map_or(fs::symlink_metadata(&journal), File::metadata).map(|there| there.is_file());
        if !is_file.unwrap_or(true) {
            bail!("{} is not a regular file; move the file away", journal.display());
        }
        let file = file.map_err(|error| unwritable(&journal, &error))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                unfinished: UnfinishedFile::default(),
                opened,
                journal: file,
                is_private,
            }),
            Err(Errno::WOULDBLOCK) => {
                bail!("another onrush is writing to {}; wait until it ends", path.display())
            }
            Err(error) => bail!("{} cannot be locked: {}", journal.display(), error_reason(&error.into())),
        }
    }

    /// The unfinished file, to be abandoned if a signal ends the process.
    pub fn unfinished(&self) -> UnfinishedFile {
        self.unfinished.clone()
    }

    /// The path for messages. It may lead to another directory by now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for reading and writing.
    ///
    /// # Errors
    ///
    /// Fails if the path no longer leads to the directory that was opened.
    pub fn current_path(&self) -> anyhow::Result<&Path> {
        let identity = |there: Metadata| (there.dev(), there.ino());
        let there = fs::metadata(&self.path).map(identity).ok();
        if there.is_some() && there == self.opened.metadata().map(identity).ok() {
            return Ok(&self.path);
        }
        bail!(
            "{0} was moved, replaced or deleted during the experiment; put it back, and continue with --resume {0}",
            self.path.display()
        )
    }

    /// Removes unfinished files left by a killed onrush.
    fn remove_unfinished(&self) {
        let (begin, end) = UNFINISHED;
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(begin) && name.ends_with(end) {
                // A leftover does no harm: nothing reads it.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Writes the initial files of an experiment, the stored plan last.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn write_initial_files(
        &self,
        made: &ExperimentOrigin,
        plan: &str,
        host: &LabHost,
        attached: &[AttachedFile],
    ) -> anyhow::Result<()> {
        self.write(HOST, (json::pretty(host) + "\n").as_bytes())?;
        for AttachedFile { name, content } in attached {
            let folder = self.current_path()?.join(ATTACHED);
            fs::create_dir_all(folder).context("the folder for attached files cannot be created")?;
            let names = (1_u32..).map(|number| match number {
                1 => format!("{ATTACHED}/{name}"),
                _ => format!("{ATTACHED}/{number}-{name}"),
            });
            // Files from different folders may have equal names.
            let vacant = names.into_iter().find(|name| !self.has_file(name)).unwrap_or_default();
            self.write(&vacant, content)?;
        }
        // Written last, because this file makes the folder that of an experiment.
        let made = toml::to_string(&Begun { made: made.clone() })?;
        self.write(PLAN, format!("{plan}\n{made}").as_bytes())
    }

    /// Removes the folder if it contains nothing but the initial files of an experiment. True if it was removed.
    pub fn remove_if_unused(&self) -> bool {
        let is_bare = |entry: io::Result<fs::DirEntry>| {
            entry.is_ok_and(|entry| {
                [PLAN, HOST, JOURNAL, TARGETS, ATTACHED].iter().any(|name| entry.file_name() == *name)
            })
        };
        let is_bare = fs::read_dir(&self.path).is_ok_and(|mut entries| entries.all(is_bare));
        is_bare && self.current_path().is_ok_and(|path| fs::remove_dir_all(path).is_ok())
    }

    /// True if the folder contains a file with this name.
    pub fn has_file(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// The first unused name of the form `begin.kind-1`, `begin.kind-2` and so on.
    pub fn unused_name(&self, begin: &str, kind: &str) -> String {
        let mut names = (1_u32..).map(|number| format!("{begin}.{kind}-{number}"));
        names.find(|name| !self.has_file(&format!("{name}.json"))).unwrap_or_default()
    }

    /// Renames a file; does nothing if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be renamed.
    pub fn rename(&self, from: &str, to: &str) -> anyhow::Result<()> {
        let here = self.current_path()?;
        match fs::rename(here.join(from), here.join(to)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                bail!("{} cannot be renamed: {}", here.join(from).display(), error_reason(&error))
            }
            _ => Ok(()),
        }
    }

    /// Moves a file out of the way of a new one, to the first unused name of the form `NAME.unreadable-1`. Files with
    /// such names are never read. Returns the new name.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be renamed.
    pub fn set_aside(&self, name: &str) -> anyhow::Result<String> {
        let mut names = (1_u32..).map(|number| format!("{name}.unreadable-{number}"));
        // A dangling link occupies its name as well.
        let is_unused = |name: &String| fs::symlink_metadata(self.path.join(name)).is_err();
        let aside = names.find(is_unused).unwrap_or_default();
        self.rename(name, &aside)?;
        Ok(aside)
    }

    /// The path for the output of a hook or of a target's command. These files are in a folder of their own, which is
    /// created if necessary.
    ///
    /// # Errors
    ///
    /// Fails if that folder cannot be created.
    pub fn output_path(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.current_path()?.join("output");
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        Ok(folder.join(name))
    }

    /// Writes a file atomically: readers see all of it or nothing. A previous file is replaced.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written. The previous file is then unchanged.
    pub fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.current_path()?.join(name);
        let directory = path.parent().unwrap_or(&self.path);
        let (begin, end) = UNFINISHED;
        let written = || {
            let usual = fs::Permissions::from_mode(if self.is_private { 0o600 } else { 0o666 });
            let mut builder = tempfile::Builder::new();
            builder.prefix(begin).suffix(end).permissions(usual);
            let create = |name: &mut Option<PathBuf>| {
                builder.tempfile_in(directory).inspect(|file| *name = Some(file.path().to_owned()))
            };
            let mut file = create(&mut self.unfinished.lock())?;
            file.write_all(content)?;
            // Only now may a full disk be reported.
            file.as_file().sync_all()?;
            let mut unfinished = self.unfinished.lock();
            *unfinished = None;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        written().map_err(|error| unwritable(&path, &error))
    }

    /// Appends a line with the current time to the journal.
    ///
    /// # Errors
    ///
    /// Fails if the line cannot be written.
    pub fn append_to_journal(&self, what: &str) -> anyhow::Result<()> {
        self.current_path()?;
        let at = OffsetDateTime::now_utc().format(&Rfc3339)?;
        let line = format!("{at} {}\n", escape_controls(what));
        let written = (&self.journal).write_all(line.as_bytes());
        written.map_err(|error| unwritable(&self.path.join(JOURNAL), &error))
    }
}

/// The reason why a file in a folder cannot be written.
fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    let why = match error.kind() {
        io::ErrorKind::IsADirectory => "a folder has this name; move the folder away".to_owned(),
        _ => files::describe_write_error(error, path),
    };
    anyhow!("{} cannot be written: {why}", path.display())
}

/// A file that is copied into the folder of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// The file's name, without folders.
    pub name: String,
    /// The file's content.
    pub content: Vec<u8>,
}

impl AttachedFile {
    /// Reads the file. This may never return: some files in `/proc` wait for more data.
    ///
    /// # Errors
    ///
    /// Fails if the file is not a regular one, cannot be read, or is too long.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let refused = |why: &str| anyhow!("attach: {} {why}", path.display());
        let unreadable = |why: String| refused(&format!("cannot be read: {why}"));
        let there = fs::metadata(path).map_err(|error| unreadable(error_reason(&error)))?;
        let name = path.file_name().filter(|_| there.is_file()).ok_or_else(|| refused("is not a regular file"))?;
        let content = read_at_most(path, ATTACHED_MAX_MIB).map_err(unreadable)?;
        Ok(Self { name: name.to_string_lossy().into_owned(), content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_result_folders_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let begun = |name: &str| {
            let folder = Folder::create(&scratch.path().join(name), false).unwrap();
            [PLAN, HOST, TARGETS].iter().for_each(|name| folder.write(name, b"{}").unwrap());
            folder
        };
        let (bare, kept) = (begun("bare"), begun("kept"));
        fs::write(kept.output_path("hook.txt").unwrap(), "why").unwrap();
        assert!(bare.remove_if_unused() && !bare.path().exists());
        assert!(!kept.remove_if_unused() && kept.has_file(PLAN));
        fs::remove_dir_all(kept.path().join("output")).unwrap();
        assert!(kept.remove_if_unused() && !kept.path().exists());
    }

    #[test]
    fn folders_have_one_writer() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x");
        let folder = Folder::create(&path, false).unwrap();
        folder.write("a.json", b"1").unwrap();
        assert!(folder.has_file("a.json") && fs::read(path.join("a.json")).unwrap() == b"1");
        assert_eq!(folder.unused_name("a", "failed"), "a.failed-1");
        assert!(Folder::create(&path, false).unwrap_err().to_string().contains("already exists"));
        assert!(Folder::resume(&path, false).unwrap_err().to_string().contains("is not the folder of an experiment"));
        assert!(Folder::open(&path, false).unwrap_err().to_string().contains("another onrush is writing"));
        drop(folder);
        // The journal is neither waited for nor written elsewhere.
        for make in ["mkfifo journal", "ln -s a.json journal", "mkdir journal"] {
            let status = std::process::Command::new("sh").args(["-c", make]).current_dir(scratch.path()).status();
            assert!(status.unwrap().success());
            let error = Folder::open(scratch.path(), false).unwrap_err().to_string();
            assert!(error.ends_with("/journal is not a regular file; move the file away"), "{error}");
            std::process::Command::new("rm").args(["-r", "journal"]).current_dir(scratch.path()).status().unwrap();
        }
        assert!(std::process::Command::new("mkfifo").arg(scratch.path().join(PLAN)).status().unwrap().success());
        let error = Folder::resume(scratch.path(), false).unwrap_err().to_string();
        assert!(error.contains("/plan.toml is not a regular file"), "{error}");
        // A process just being started by another test may hold the lock for a moment.
        let mut opened = (0..500).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            Folder::open(&path, false)
        });
        assert!(opened.any(|folder| folder.is_ok()));
        assert!(Folder::create(&path.join("no/x"), false).unwrap_err().to_string().contains("there is no directory"));
    }

    #[test]
    fn unreadable_results_are_set_aside() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::create(&scratch.path().join("x"), false).unwrap();
        for number in ["1", "2", "3"] {
            folder.write("a.json", number.as_bytes()).unwrap();
            let aside = folder.set_aside("a.json").unwrap();
            assert_eq!(aside, format!("a.json.unreadable-{number}"));
            assert!(!folder.has_file("a.json"));
        }
        let kept =
            ["1", "2", "3"].map(|number| fs::read(folder.path.join(format!("a.json.unreadable-{number}"))).unwrap());
        assert_eq!(kept, [b"1", b"2", b"3"]);
    }

    #[test]
    fn replaced_folders_are_not_written() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (scratch.path().join("x"), scratch.path().join("y"));
        let folder = Folder::create(&path, false).unwrap();
        fs::rename(&path, &elsewhere).unwrap();
        let refused = |folder: &Folder| {
            let failures = [
                folder.write("a.json", b"1").err(),
                folder.append_to_journal("measured").err(),
                folder.rename("a.json", "b.json").err(),
                folder.output_path("hook.txt").err(),
            ];
            failures.map(|failure| failure.map_or(String::new(), |error| error.to_string()))
        };
        let is_no_longer = |words: &String| words.contains("was moved, replaced or deleted");
        assert!(refused(&folder).iter().all(is_no_longer), "it is gone");
        fs::create_dir(&path).unwrap();
        assert!(refused(&folder).iter().all(is_no_longer), "it is another one");
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        fs::remove_dir(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        assert_eq!(refused(&folder), [""; 4], "it is back");
    }

    #[test]
    fn unfinished_files_are_removed_at_exit() {
        let scratch = tempfile::tempdir().unwrap();
        for index in 0..20 {
            let path = scratch.path().join(index.to_string());
            let folder = Folder::create(&path, false).unwrap();
            let unfinished = folder.unfinished();
            let (began, begun) = std::sync::mpsc::channel();
            // Never joined: the thread waits for the end of the process.
            std::thread::spawn(move || {
                loop {
                    let _ = began.send(());
                    folder.write("a.json", &[b'1'; 100_000]).unwrap();
                }
            });
            begun.recv().unwrap();
            begun.recv().unwrap();
            unfinished.abandon();
            let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["a.json", "journal"], "{index}");
            assert_eq!(fs::metadata(path.join("a.json")).unwrap().len(), 100_000);
        }
    }

    #[test]
    fn leftovers_of_killed_processes_are_removed() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x");
        let folder = Folder::create(&path, false).unwrap();
        for name in [".onrush-AbCdEf.part", ".other.part", "a.json"] {
            fs::write(path.join(name), "").unwrap();
        }
        folder.remove_unfinished();
        let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".other.part", "a.json", "journal"]);
    }
}
