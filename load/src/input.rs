//! Reads the files that a run needs into its plan. Afterwards no file is opened for input.
//!
//! A run in a pod finds its files under other paths than those of the command line, which [`set_brought_files`] sets. The
//! machine that sends a run there records what it reads: [`record_reads`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use onrush_plan::limits::{PEM_MAX_MIB, SCRIPT_MAX_MIB};
use onrush_plan::{FileContents, Plan, UnreadableFile};
use onrush_text::error_reason;

/// Reads the files of a plan that the command line only names: the script and those of TLS.
///
/// # Errors
///
/// If a file cannot be read.
pub fn read_files(plan: &mut Plan) -> Result<(), UnreadableFile> {
    if let Some(script) = &mut plan.script {
        read(&mut script.file, "--script", SCRIPT_MAX_MIB)?;
    }
    let Some(tls) = &mut plan.tls else { return Ok(()) };
    tls.roots.iter_mut().try_for_each(|file| read(file, "--cacert", PEM_MAX_MIB))?;
    tls.identity.iter_mut().try_for_each(|identity| {
        read(&mut identity.certificates, "--cert", PEM_MAX_MIB)?;
        identity.key.iter_mut().try_for_each(|file| read(file, "--key", PEM_MAX_MIB))
    })
}

/// Reads the file unless its contents are already there; `role` is the option that names it, for messages. The file of
/// a received plan is never opened: its contents must have been attached.
///
/// # Errors
///
/// If the file cannot be read, is longer than `most_mib`, or belongs to a received plan whose contents are missing.
pub fn read(file: &mut FileContents, role: &'static str, most_mib: u64) -> Result<(), UnreadableFile> {
    if let Some(path) = file.unread_path() {
        let unreadable = |reason| UnreadableFile { role, name: file.name.clone(), reason };
        let contents = read_at_most(path, most_mib).map_err(unreadable)?;
        file.hold_contents(contents.into());
    }
    file.contents().map(drop)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn contents_are_read_once_and_keep_their_digest() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("body");
        fs::write(&path, "abc").unwrap();
        let mut file = FileContents::unread(&path);
        assert!(file.contents().is_err());
        read(&mut file, "the file", 1).unwrap();
        fs::write(&path, "changed").unwrap();
        read(&mut file, "the file", 1).unwrap();
        assert_eq!(file.contents(), Ok(&b"abc"[..]));
        assert_eq!(file.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mut elsewhere: FileContents = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(elsewhere, file);
        assert!(read(&mut elsewhere, "the file", 1).is_err(), "a file of that name here is another one");
        assert!(!elsewhere.attach_contents(Arc::from(*b"changed")) && elsewhere.contents().is_err());
        assert!(elsewhere.attach_contents(Arc::from(*b"abc")));
        assert_eq!(elsewhere.contents(), Ok(&b"abc"[..]));
    }

    #[test]
    fn reads_are_noted_while_requested() {
        let scratch = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| scratch.path().join(name));
        fs::write(&one, "1").unwrap();
        fs::write(&other, "2").unwrap();
        read_at_most(&other, 1).unwrap();
        let (done, read) = record_reads(|| read_at_most(&one, 1).unwrap());
        assert_eq!((done, read), (b"1".to_vec(), BTreeMap::from([(one, b"1".to_vec())])));
        read_at_most(&other, 1).unwrap();
        assert!(record_reads(|| ()).1.is_empty());
    }

    #[test]
    fn unreadable_and_endless_files_are_refused_by_name() {
        let refused =
            |path: &str, most_mib| read(&mut FileContents::unread(path), "--key", most_mib).unwrap_err().to_string();
        assert_eq!(refused("/nonexistent", 9), "--key \"/nonexistent\": No such file or directory");
        assert_eq!(refused("/", 9), "--key \"/\": Is a directory");
        assert!(refused("/dev/zero", 1).ends_with("\"/dev/zero\": it is longer than 1 MiB"));
    }
}
