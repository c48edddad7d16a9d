//! The destination of an output file, with links followed. A complete new file replaces the old one, whose owner and
//! mode it inherits; until then, it is written under another name in the same folder.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::FileStates;

/// Maximum length of a chain of links, as in the kernel.
const LINKS_MAX: usize = 40;

/// The mode of a file that may hold secrets.
const PRIVATE: u32 = 0o600;

/// The mode of any other new file, before the umask.
const USUAL: u32 = 0o666;

/// The destination of an output file.
#[derive(Clone, Debug)]
pub struct FileDestination {
    /// Path after following all links.
    path: PathBuf,
    /// True for anything but a regular file, such as a device, which is written to instead of replaced.
    is_special: bool,
    /// True if only the owner may read the file.
    is_private: bool,
}

impl FileDestination {
    /// Finds the destination of a path, which need not exist. `is_private`: only the owner may read the file.
    ///
    /// # Errors
    ///
    /// Fails if the path is a directory, or if its metadata cannot be read.
    pub fn for_path(path: &Path, is_private: bool) -> io::Result<Self> {
        let path = follow_links(path)?;
        let is_special = match fs::metadata(&path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) => !there.is_file(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        Ok(Self { path, is_special, is_private })
    }

    /// The path after following all links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True for anything but a regular file, such as a pipe or a device.
    pub fn is_special(&self) -> bool {
        self.is_special
    }

    /// True if both destinations are the same regular file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let whole = |path: &Path| {
            let directory = fs::canonicalize(parent_directory(path)).unwrap_or_default();
            directory.join(path.file_name().unwrap_or_default())
        };
        !self.is_special && whole(&self.path) == whole(&other.path)
    }

    /// The standard stream of this program that goes to the same destination, where its output would overwrite the file
    /// or mix with it. Character devices, such as terminals, are allowed.
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

    /// Checks that the file can be written, without leaving a trace. Pipes and devices are not opened.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file cannot be written.
    pub fn check_writable(&self) -> io::Result<()> {
        if self.is_special {
            return Ok(());
        }
        if self.path.exists() {
            // A read-only file could be replaced, but that is not what its owner wants.
            OpenOptions::new().write(true).open(&self.path)?;
        }
        self.create_temporary().map(drop)
    }

    /// Writes file `index` as a whole. No other process ever sees a part of it: the previous file remains until the new
    /// one is complete. Anything but a regular file is written directly, which blocks for as long as its reader does
    /// not read.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file could not be written. A previous regular file is then unchanged.
    pub fn write(&self, content: &[u8], states: &FileStates, index: usize) -> io::Result<()> {
        if self.is_special {
            self.open_special()?.write_all(content)?;
            return states.publish(index, &mut || Ok(()));
        }
        let mut file = states.create_temporary(index, || self.create_temporary())?;
        file.write_all(content)?;
        // Only now may a full disk be reported.
        file.as_file().sync_all()?;
        let mut file = Some(file);
        states.publish(index, &mut || match file.take() {
            Some(file) => file.persist(&self.path).map(drop).map_err(|error| error.error),
            None => Ok(()),
        })
    }

    /// Opens the file in order to write it during the run, without changing its content yet. True if the file is new.
    /// `None` for anything but a regular file: opening that may block until it has a reader.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file cannot be written.
    pub fn open(&self) -> io::Result<Option<(File, bool)>> {
        if self.is_special {
            return Ok(None);
        }
        let is_new = !self.path.exists();
        let mode = if self.is_private { PRIVATE } else { USUAL };
        // Appending leaves no hole if another process truncates the file.
        let file = OpenOptions::new().append(true).create(true).mode(mode).open(&self.path)?;
        Ok(Some((file, is_new)))
    }

    /// Empties the file opened by [`Self::open`], and makes it readable only by its owner if it may contain secrets.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file could not be emptied.
    pub fn empty(&self, file: &File) -> io::Result<()> {
        if self.is_private {
            file.set_permissions(Permissions::from_mode(PRIVATE))?;
        }
        file.set_len(0)
    }

    /// Opens anything but a regular file. This may block until the file has a reader.
    ///
    /// # Errors
    ///
    /// Returns the reason why the file cannot be written.
    pub fn open_special(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(&self.path)
    }

    /// Describes what another process did to the file while `length` bytes were written to it; `None` if the file is as
    /// written.
    pub fn describe_tampering(&self, file: &File, length: u64) -> Option<String> {
        let (own, there) = (file.metadata().ok()?, fs::metadata(&self.path));
        match there {
            _ if own.nlink() == 0 => Some("another process removed the file during the test".to_owned()),
            Ok(there) if !is_same(&own, &there) => Some("another process replaced the file during the test".to_owned()),
            Err(_) => Some("another process moved the file during the test".to_owned()),
            Ok(_) if own.len() != length => Some(format!(
                "another process wrote to or truncated the file during the test: {} bytes instead of {length}",
                own.len()
            )),
            Ok(_) => None,
        }
    }

    /// Creates a temporary file in the destination's directory, which is removed when dropped.
    fn create_temporary(&self) -> io::Result<NamedTempFile> {
        let mode = if self.is_private { PRIVATE } else { USUAL };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".onrush-").suffix(".part").permissions(Permissions::from_mode(mode));
        let file = builder.tempfile_in(parent_directory(&self.path))?;
        if let Ok(old) = fs::metadata(&self.path) {
            // Only root can change the owner; any other user owns the file anyway.
            let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
            let mode = if self.is_private { PRIVATE } else { old.permissions().mode() };
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(file)
    }
}

/// The directory that contains a file; `.` for a mere name.
pub fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Follows all links of a path. The last link may be dangling.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // Only the kernel can follow links in /proc that lead to pipes.
        let is_special = fs::metadata(&path).is_ok_and(|there| !there.is_file());
        if is_special || !fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
            return Ok(path);
        }
        path = parent_directory(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::from(rustix::io::Errno::LOOP))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use onrush_plan::{Output, OutputKind};

    use super::*;

    fn states(path: &Path) -> FileStates {
        FileStates::new(&[Output { path: path.to_owned(), kind: OutputKind::Json }])
    }

    fn write(path: &Path, is_private: bool) -> io::Result<()> {
        FileDestination::for_path(path, is_private)?.write(b"new", &states(path), 0)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn links_are_followed_to_the_end() {
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
        assert_eq!(FileDestination::for_path(&at("there"), false).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn file_modes_are_kept_and_secrets_private() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        for (before, is_private, after) in [(0o600, false, 0o600), (0o664, false, 0o664), (0o644, true, 0o600)] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            write(&path, is_private).unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (after, "new"));
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            let destination = FileDestination::for_path(&path, is_private).unwrap();
            let (file, _) = destination.open().unwrap().unwrap();
            assert_eq!(mode(&path), before, "nothing changes before the first line");
            destination.empty(&file).unwrap();
            assert_eq!((mode(&path), fs::read_to_string(&path).unwrap().as_str()), (after, ""));
            fs::remove_file(&path).unwrap();
        }
        write(&path, true).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn leftover_temporary_files_are_harmless() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        let destination = FileDestination::for_path(&path, false).unwrap();
        // Leftovers of a killed run: its temporary file, and one named after this process.
        fs::write(scratch.path().join(format!(".x.json.{}.part", std::process::id())), "").unwrap();
        let _left = destination.create_temporary().unwrap();
        destination.check_writable().unwrap();
        write(&path, false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn old_files_stay_until_the_new_is_complete() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        fs::write(&path, "old").unwrap();
        let destination = FileDestination::for_path(&path, false).unwrap();
        let states = states(&path);
        states.abandon_incomplete();
        assert!(destination.write(b"new", &states, 0).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing else is left behind");
    }
}
