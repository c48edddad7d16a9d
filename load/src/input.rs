//! Reads the files that a run needs into its plan. Afterwards no file is opened for input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use onrush_plan::limits::{PEM_MAX_MIB, SCRIPT_MAX_MIB};
use onrush_plan::{FileContents, Plan, UnreadableFile};
use onrush_text::error_reason;

/// The files that a command line names. Usually they are where it says, and what is read is not kept.
#[derive(Debug, Default)]
pub struct InputFiles {
    /// Current paths of files brought from another machine, by their names in the command line.
    brought: BTreeMap<PathBuf, PathBuf>,
    /// Contents of the files read, by name, if they are to be sent to another machine.
    read: Option<RefCell<BTreeMap<PathBuf, Vec<u8>>>>,
}

impl InputFiles {
    /// Files brought from another machine: their current paths, by their names in the command line.
    pub fn brought(files: BTreeMap<PathBuf, PathBuf>) -> Self {
        Self { brought: files, read: None }
    }

    /// Files whose contents are kept when they are read.
    pub fn kept() -> Self {
        Self { read: Some(RefCell::default()), ..Self::default() }
    }

    /// The kept contents, by name.
    pub fn into_kept(self) -> BTreeMap<PathBuf, Vec<u8>> {
        self.read.map(RefCell::into_inner).unwrap_or_default()
    }

    /// Reads the files of a plan that the command line only names: the script and those of TLS.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read_files(&self, plan: &mut Plan) -> Result<(), UnreadableFile> {
        if let Some(script) = &mut plan.script {
            self.read(&mut script.file, "--script", SCRIPT_MAX_MIB)?;
        }
        let Some(tls) = &mut plan.tls else { return Ok(()) };
        tls.roots.iter_mut().try_for_each(|file| self.read(file, "--cacert", PEM_MAX_MIB))?;
        tls.identity.iter_mut().try_for_each(|identity| {
            self.read(&mut identity.certificates, "--cert", PEM_MAX_MIB)?;
            identity.key.iter_mut().try_for_each(|file| self.read(file, "--key", PEM_MAX_MIB))
        })
    }

    /// Reads the file unless its contents are already there; `role` is the option that names it, for messages. The file
    /// of a received plan is never opened: its contents must have been attached.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is longer than `most_mib`, or belongs to a received plan whose contents are missing.
    pub fn read(&self, file: &mut FileContents, role: &'static str, most_mib: u64) -> Result<(), UnreadableFile> {
        if let Some(path) = file.unread_path() {
            let contents = read_at_most(self.brought_path(path).unwrap_or(path), most_mib)
                .map_err(|reason| UnreadableFile { role, name: file.name.clone(), reason })?;
            self.keep(path, &contents);
            file.hold_contents(contents.into());
        }
        file.contents().map(drop)
    }

    /// The current path of a file brought from another machine; `None` if it was not brought.
    pub fn brought_path(&self, name: &Path) -> Option<&Path> {
        self.brought.get(name).map(PathBuf::as_path)
    }

    /// Keeps the contents of a file if they are to be sent.
    pub fn keep(&self, name: &Path, contents: &[u8]) {
        if let Some(read) = &self.read {
            read.borrow_mut().insert(name.to_owned(), contents.to_owned());
        }
    }
}

/// The bytes of a file of at most `most_mib` MiB. A file may be endless, so at most one byte more is read.
///
/// # Errors
///
/// The reason, in words, why the file cannot be read or is too long.
pub fn read_at_most(path: &Path, most_mib: u64) -> Result<Vec<u8>, String> {
    let most = most_mib << 20;
    let mut contents = Vec::new();
    match File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut contents)) {
        Err(error) => Err(error_reason(&error)),
        Ok(_) if contents.len() as u64 > most => Err(format!("it is longer than {most_mib} MiB")),
        Ok(_) => Ok(contents),
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
        InputFiles::default().read(&mut file, "the file", 1).unwrap();
        fs::write(&path, "changed").unwrap();
        InputFiles::default().read(&mut file, "the file", 1).unwrap();
        assert_eq!(file.contents(), Ok(&b"abc"[..]));
        assert_eq!(file.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let mut elsewhere: FileContents = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(elsewhere, file);
        assert!(
            InputFiles::default().read(&mut elsewhere, "the file", 1).is_err(),
            "a file of that name here is another one"
        );
        assert!(!elsewhere.attach_contents(Arc::from(*b"changed")) && elsewhere.contents().is_err());
        assert!(elsewhere.attach_contents(Arc::from(*b"abc")));
        assert_eq!(elsewhere.contents(), Ok(&b"abc"[..]));
    }

    #[test]
    fn brought_files_are_read_and_kept_by_name() {
        let scratch = tempfile::tempdir().unwrap();
        let there = scratch.path().join("there");
        fs::write(&there, "1").unwrap();
        let name = PathBuf::from("/nonexistent");
        let files = InputFiles { brought: BTreeMap::from([(name.clone(), there)]), ..InputFiles::kept() };
        let mut file = FileContents::unread(&name);
        files.read(&mut file, "the file", 1).unwrap();
        assert_eq!(file.contents(), Ok(&b"1"[..]));
        assert_eq!(files.into_kept(), BTreeMap::from([(name, b"1".to_vec())]));
    }

    #[test]
    fn unreadable_and_endless_files_are_refused_by_name() {
        let refused = |path: &str, most_mib| {
            InputFiles::default().read(&mut FileContents::unread(path), "--key", most_mib).unwrap_err().to_string()
        };
        assert_eq!(refused("/nonexistent", 9), "--key \"/nonexistent\": No such file or directory");
        assert_eq!(refused("/", 9), "--key \"/\": Is a directory");
        assert!(refused("/dev/zero", 1).ends_with("\"/dev/zero\": it is longer than 1 MiB"));
    }
}
