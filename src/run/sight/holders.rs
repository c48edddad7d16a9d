//! Which processes hold a socket: whoever has a descriptor of it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

use super::proc;

/// Looks for the processes that hold sockets, a part of them at a time.
#[derive(Debug, Default)]
pub struct Holders {
    /// The sockets, by their inodes.
    inodes: HashSet<u64>,
    /// Processes that were looked at.
    seen: HashSet<u32>,
    /// Whether some of them did not show what they hold.
    pub were_denied: bool,
    /// Whether all processes were looked at.
    pub are_complete: bool,
}

impl Holders {
    /// Looks for the processes that hold one of these sockets, until that moment at the latest, and gives those that were
    /// not found before. The first process (which may hold sockets for others) and this one are left out.
    pub fn search(&mut self, inodes: HashSet<u64>, until: Instant) -> Vec<u32> {
        if self.inodes != inodes {
            *self = Self { inodes, ..Self::default() };
        }
        // Without a listening socket or `/proc`, nobody holds any.
        let (Ok(processes), false) = (proc::numbers("/proc"), self.inodes.is_empty()) else { return Vec::new() };
        let own = std::process::id();
        self.seen.retain(|process| processes.binary_search_by(|other| process.cmp(other)).is_ok());
        let mut found = Vec::new();
        for process in processes.into_iter().filter(|&process| process != 1 && process != own) {
            if self.seen.contains(&process) {
                continue;
            }
            if Instant::now() >= until {
                self.are_complete = false;
                return found;
            }
            match self.holds(process) {
                Ok(true) => found.push(process),
                Ok(false) => {}
                Err(error) => self.were_denied |= error.kind() == io::ErrorKind::PermissionDenied,
            }
            self.seen.insert(process);
        }
        self.are_complete = true;
        found
    }

    fn holds(&self, process: u32) -> io::Result<bool> {
        let directory = fs::read_dir(format!("/proc/{process}/fd"))?;
        let mut links = directory.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        Ok(links.any(|link| inode(&link).is_some_and(|inode| self.inodes.contains(&inode))))
    }
}

/// The inode of a descriptor that is a socket.
fn inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_sockets_name_their_inodes() {
        let table = [("socket:[123]", Some(123)), ("pipe:[123]", None), ("/socket:[1]", None), ("socket:[x]", None)];
        for (link, expected) in table {
            assert_eq!(inode(Path::new(link)), expected, "{link}");
        }
    }
}
