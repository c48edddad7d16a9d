//! Reads and writes settings, which are files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use onrush_text::error_reason;
use strsim::damerau_levenshtein;

use super::name::{SettingName, swap_separators};
use super::refusal::SysctlRefusal;

/// Directory of the settings: `/proc/sys`, or a similar directory in tests.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The settings of this kernel, as far as this process can see them.
    pub fn host() -> Self {
        Self::at("/proc/sys")
    }

    /// The settings in a directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Value of a setting, without the final line ending.
    ///
    /// # Errors
    ///
    /// Fails if the setting does not exist, or is unreadable and so could not be restored.
    pub fn read(&self, name: &SettingName) -> Result<String, SysctlRefusal> {
        let unreadable = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.unknown_setting(name),
            _ => SysctlRefusal::System { name: name.to_string(), reason: error_reason(error) },
        };
        let path = self.path(name);
        let metadata = fs::metadata(&path).map_err(|error| unreadable(&error))?;
        if metadata.is_dir() {
            return Err(SysctlRefusal::Group(name.to_string()));
        }
        if metadata.permissions().mode() & ANYBODY_READS == 0 {
            return Err(SysctlRefusal::WriteOnly(name.to_string()));
        }
        let value = fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
        Ok(value.trim_end_matches('\n').to_owned())
    }

    /// Writes a value to a setting.
    ///
    /// # Errors
    ///
    /// Fails if the change is not permitted, or the kernel rejects the value.
    pub fn write(&self, name: &SettingName, value: &str) -> Result<(), SysctlRefusal> {
        // A single call, because the kernel interprets each write as a complete value.
        let open = OpenOptions::new().write(true).truncate(true).open(self.path(name));
        let written = open.and_then(|mut file| file.write_all(format!("{value}\n").as_bytes()));
        written.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => write_refusal(name, &error),
            _ => {
                SysctlRefusal::Refused { name: name.to_string(), value: value.to_owned(), reason: error_reason(&error) }
            }
        })
    }

    /// Checks that this process may change a setting, without changing it.
    ///
    /// # Errors
    ///
    /// Fails if the change is not permitted, with the permission it needs.
    pub fn check(&self, name: &SettingName) -> Result<(), SysctlRefusal> {
        let path = self.path(name);
        let is_fixed = |metadata: fs::Metadata| metadata.permissions().mode() & ANYBODY_WRITES == 0;
        if fs::metadata(&path).is_ok_and(is_fixed) {
            return Err(SysctlRefusal::ReadOnly(name.to_string()));
        }
        OpenOptions::new().write(true).open(path).map_err(|error| write_refusal(name, &error)).map(drop)
    }

    fn path(&self, name: &SettingName) -> PathBuf {
        self.root.join(name.path())
    }

    /// The refusal of an unknown name, with the most similar known ones.
    fn unknown_setting(&self, name: &SettingName) -> SysctlRefusal {
        let parts: Vec<&str> = name.path().split('/').collect();
        let known = (1..parts.len()).take_while(|&n| self.root.join(parts[..n].join("/")).is_dir()).last().unwrap_or(0);
        let group = parts[..known].join("/");
        let missing = parts[known];
        let mut nearest = names_in(&self.root.join(&group));
        nearest.sort_by_cached_key(|near| (damerau_levenshtein(near, missing), near.clone()));
        nearest.truncate(NEAREST);
        let within = if group.is_empty() { String::new() } else { format!(" in {}", swap_separators(&group)) };
        let near = format!("nearest{within}: {}", nearest.join(", "));
        SysctlRefusal::Unknown { name: name.to_string(), near }
    }
}

/// Why a setting cannot be written.
fn write_refusal(name: &SettingName, error: &io::Error) -> SysctlRefusal {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            SysctlRefusal::NotPermitted { name: name.to_string(), takes: name.required_permission() }
        }
        io::ErrorKind::ReadOnlyFilesystem => SysctlRefusal::Mounted(name.to_string()),
        _ => SysctlRefusal::System { name: name.to_string(), reason: error_reason(error) },
    }
}

/// Normalises a value for comparison: the kernel separates numbers with tabs, people use spaces.
pub(super) fn normalised(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).map(|name| swap_separators(&name)).collect()
}

/// Number of names that a refusal suggests.
const NEAREST: usize = 3;
/// Mode bits for reading.
const ANYBODY_READS: u32 = 0o444;
/// Mode bits for writing.
const ANYBODY_WRITES: u32 = 0o222;
