//! The place of an output file. Links are followed, the new file is written beside the old one until it is complete, and
//! takes over its owner and mode.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Fates;

/// Links that lead to links, at most; as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// The mode of a file that may hold secrets.
const PRIVATE: u32 = 0o600;

/// The mode of any other new file, before the umask.
const USUAL: u32 = 0o666;

/// Where a file is to be.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its path, through all links.
    path: PathBuf,
    /// Whether something other than a regular file is there, a device for instance: it is written into, not replaced.
    is_special: bool,
    /// Whether only its owner may read it.
    is_private: bool,
}

impl Place {
    /// The place that a path leads to, whether or not something is there.
    ///
    /// # Errors
    ///
    /// When it is a directory, or cannot be looked at.
    pub fn of(path: &Path, is_private: bool) -> io::Result<Self> {
        let path = follow(path)?;
        let is_special = match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) => !there.is_file(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        Ok(Self { path, is_special, is_private })
    }

    /// Its path, through all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something other than a regular file is there.
    pub fn is_special(&self) -> bool {
        self.is_special
    }

    /// Whether another place is the same file; a device may be named twice.
    pub fn is_one_with(&self, other: &Self) -> bool {
        let whole = |path: &Path| {
            let directory = fs::canonicalize(directory(path)).unwrap_or_default();
            directory.join(path.file_name().unwrap_or_default())
        };
        !self.is_special && whole(&self.path) == whole(&other.path)
    }

    /// Which of the program's own streams goes there too, so that one would overwrite or run into the other. A device takes
    /// both.
    pub fn standard_stream(&self) -> Option<&'static str> {
        let there = fs::metadata(&self.path).ok().filter(|there| !there.file_type().is_char_device())?;
        let (output, error) = (io::stdout(), io::stderr());
        let streams = [("standard output", output.as_fd()), ("standard error", error.as_fd())];
        let goes_there = |stream: BorrowedFd| {
            let stream = stream.try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
            stream.is_ok_and(|stream| is_same(&stream, &there))
        };
        streams.into_iter().find(|(_, stream)| goes_there(*stream)).map(|(name, _)| name)
    }

    /// Makes sure that it can be written, and leaves no trace.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn probe(&self) -> io::Result<()> {
        if self.is_special {
            return Ok(());
        }
        if self.path.exists() {
            // A file that may not be written could be replaced, but is not meant to be.
            OpenOptions::new().write(true).open(&self.path)?;
        }
        self.temporary().map(drop)
    }

    /// Writes the whole file, which is the one of that index. No other process ever finds half of it: what was there before is there
    /// until the new one is complete. (What is no regular file is written into, which may take as long as its reader does.)
    ///
    /// # Errors
    ///
    /// Why it could not be written; what was there before still is.
    pub fn write(&self, content: &[u8], fates: &Fates, index: usize) -> io::Result<()> {
        if self.is_special {
            self.open_special()?.write_all(content)?;
            return fates.publish(index, &mut || Ok(()));
        }
        let mut file = fates.temporary(index, || self.temporary())?;
        file.write_all(content)?;
        // A full disk may only show now.
        file.as_file().sync_all()?;
        let mut file = Some(file);
        fates.publish(index, &mut || match file.take() {
            Some(file) => file.persist(&self.path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        })
    }

    /// Opens the file to be written while the run lasts; what is in it stays there for now. `None`: something other than a
    /// regular file, which may only open when it gets a reader. Also says whether the file is new.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn open(&self) -> io::Result<Option<(File, bool)>> {
        if self.is_special {
            return Ok(None);
        }
        let is_new = !self.path.exists();
        let mode = if self.is_private { PRIVATE } else { USUAL };
        // If another process cuts it meanwhile, what follows leaves no hole.
        let file = OpenOptions::new().append(true).create(true).mode(mode).open(&self.path)?;
        Ok(Some((file, is_new)))
    }

    /// Makes what [`Place::open`] opened an empty file, which only its owner may read if it may hold secrets.
    ///
    /// # Errors
    ///
    /// Why it cannot be.
    pub fn empty(&self, file: &File) -> io::Result<()> {
        if self.is_private {
            file.set_permissions(Permissions::from_mode(PRIVATE))?;
        }
        file.set_len(0)
    }

    /// Opens what is no regular file; that may take until it gets a reader.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn open_special(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(&self.path)
    }

    /// What another process has done to the file while `length` bytes were written into it; `None`: nothing.
    pub fn tampering(&self, file: &File, length: u64) -> Option<String> {
        let (own, there) = (file.metadata().ok()?, fs::metadata(&self.path));
        match there {
            _ if own.nlink() == 0 => Some("another process removed it while the test ran".to_owned()),
            Ok(there) if !is_same(&own, &there) => Some("another process replaced it while the test ran".to_owned()),
            Err(_) => Some("another process moved it while the test ran".to_owned()),
            Ok(_) if own.len() != length => Some(format!(
                "another process wrote into it or cut it while the test ran: it has {} bytes instead of {length}",
                own.len()
            )),
            Ok(_) => None,
        }
    }

    /// A file in the same directory with a name of its own, gone when it is dropped.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        let mode = if self.is_private { PRIVATE } else { USUAL };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".onrush-").suffix(".part").permissions(Permissions::from_mode(mode));
        let file = builder.tempfile_in(directory(&self.path))?;
        if let Ok(old) = fs::metadata(&self.path) {
            // Only an administrator can give a file away; for everybody else it is theirs anyway.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            let mode = if self.is_private { PRIVATE } else { old.permissions().mode() };
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(file)
    }
}

/// The directory that a file is in.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Where a path leads through all links, the last of which may lead to nothing.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // Only the kernel can follow the links in /proc that lead to pipes.
        let is_special = fs::metadata(&path).is_ok_and(|there| !there.is_file());
        if is_special || !fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
            return Ok(path);
        }
        path = directory(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::from(rustix::io::Errno::LOOP))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::plan::{Kind, Output};

    fn fates(path: &Path) -> Fates {
        Fates::of(&[Output { path: path.to_owned(), kind: Kind::Json }])
    }

    fn write(path: &Path, is_private: bool) -> io::Result<()> {
        Place::of(path, is_private)?.write(b"new", &fates(path), 0)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn links_are_followed_wherever_they_lead() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir(at("there")).unwrap();
        symlink("there/file", at("dangling")).unwrap();
        symlink("dangling", at("twice")).unwrap();
        for _ in 0..2 {
            write(&at("twice"), false).unwrap();
            assert_eq!(fs::read_to_string(at("there/file")).unwrap(), "new");
            assert!(fs::symlink_metadata(at("dangling")).unwrap().is_symlink());
        }
        symlink("circle", at("circle")).unwrap();
        assert!(write(&at("circle"), false).is_err());
        assert_eq!(Place::of(&at("there"), false).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn the_mode_of_what_was_there_is_kept_and_secrets_are_private() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        for (before, is_private, after) in [(0o600, false, 0o600), (0o664, false, 0o664), (0o644, true, 0o600)] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            write(&path, is_private).unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (after, "new"));
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            let place = Place::of(&path, is_private).unwrap();
            let (file, _) = place.open().unwrap().unwrap();
            assert_eq!(mode(&path), before, "nothing is changed before there is a line");
            place.empty(&file).unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (after, ""));
            fs::remove_file(&path).unwrap();
        }
        write(&path, true).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_an_earlier_run_left_behind_is_in_nobodys_way() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        let place = Place::of(&path, false).unwrap();
        // As a run leaves it that is killed: every name it may have had is taken, or the one with this process's number.
        fs::write(scratch.path().join(format!(".x.json.{}.part", std::process::id())), "").unwrap();
        let _left = place.temporary().unwrap();
        place.probe().unwrap();
        write(&path, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn what_was_there_stays_until_all_of_the_new_is() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        fs::write(&path, "old").unwrap();
        let place = Place::of(&path, false).unwrap();
        let fates = fates(&path);
        fates.give_up();
        assert!(place.write(b"new", &fates, 0).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
