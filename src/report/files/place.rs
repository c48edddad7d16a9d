//! Where a file goes: through links, beside what is there until it is whole, and with the owner and mode of what was there.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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
    /// Whether nobody but its owner may read it.
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

    /// Writes the whole file. Nobody ever finds half of it: what was there before is there until `publish` has called what
    /// it is given. (What is no regular file is written into, which may take as long as its reader does.)
    ///
    /// # Errors
    ///
    /// Why it could not be written; what was there before still is.
    pub fn write(
        &self,
        text: &str,
        publish: impl FnOnce(&mut dyn FnMut() -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.is_special {
            OpenOptions::new().write(true).open(&self.path)?.write_all(text.as_bytes())?;
            return publish(&mut || Ok(()));
        }
        let mut file = self.temporary()?;
        file.write_all(text.as_bytes())?;
        // A full disk may only show now.
        file.as_file().sync_all()?;
        let mut file = Some(file);
        publish(&mut || match file.take() {
            Some(file) => file.persist(&self.path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        })
    }

    /// Opens the file to be written while the run lasts; what is in it stays there for now. `None`: something other than a
    /// regular file, which may only open when somebody reads it. Also says whether the file is new.
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
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(&self.path)?;
        Ok(Some((file, is_new)))
    }

    /// Opens what is no regular file; that may take as long as it takes somebody to read it.
    ///
    /// # Errors
    ///
    /// Why it cannot be written.
    pub fn open_special(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(&self.path)
    }

    /// Takes a new file away in which nothing was written.
    pub fn remove(&self) {
        // If it cannot be removed, it is there and empty: nothing is lost.
        let _ = fs::remove_file(&self.path);
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

/// Where a path leads through all links, the last of which may lead to nothing.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
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

    fn write(path: &Path, is_private: bool) -> io::Result<()> {
        Place::of(path, is_private)?.write("new", |persist| persist())
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
        let refused = place.write("new", |_| Err(io::ErrorKind::Interrupted.into()));
        assert!(refused.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
