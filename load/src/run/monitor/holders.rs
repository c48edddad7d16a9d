//! Finds the processes that hold a socket, through their file descriptors.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::proc;

/// A resumable search for the processes that hold sockets.
#[derive(Debug, Default)]
pub struct Holders {
    inodes: HashSet<u64>,
    /// The inspected processes.
    seen: HashSet<u32>,
    /// True if some processes could not be inspected for lack of permission.
    pub were_denied: bool,
    /// True if all processes were inspected.
    pub are_complete: bool,
}

impl Holders {
    /// Continues the search until `is_over` returns true, or starts anew if `inodes` has changed. Returns the newly
    /// found processes that hold one of these sockets. Skips this process, and process 1, which may hold sockets for
    /// others.
    pub fn search_processes(&mut self, inodes: HashSet<u64>, is_over: &dyn Fn() -> bool) -> Vec<u32> {
        if inodes.is_empty() {
            return Vec::new();
        }
        if self.inodes != inodes {
            *self = Self { inodes, ..Self::default() };
        }
        // Without `/proc`, no process is visible.
        let processes = proc::numeric_entries("/proc").unwrap_or_default();
        let own = std::process::id();
        self.seen.retain(|process| processes.binary_search_by(|other| process.cmp(other)).is_ok());
        let mut found = Vec::new();
        for process in processes.into_iter().filter(|&process| process != 1 && process != own) {
            if self.seen.contains(&process) {
                continue;
            }
            if is_over() {
                self.are_complete = false;
                return found;
            }
            match self.holds_socket(process) {
                Ok(true) => found.push(process),
                Ok(false) => {}
                Err(error) => self.were_denied |= error.kind() == io::ErrorKind::PermissionDenied,
            }
            self.seen.insert(process);
        }
        self.are_complete = true;
        found
    }

    fn holds_socket(&self, process: u32) -> io::Result<bool> {
        Ok(socket_inodes_of(&process.to_string())?.any(|inode| self.inodes.contains(&inode)))
    }
}

/// Inodes of the sockets held by a process, given by number or `self`.
///
/// # Errors
///
/// Fails if the descriptors of the process cannot be read.
pub fn socket_inodes_of(process: &str) -> io::Result<impl Iterator<Item = u64> + use<>> {
    let directory = fs::read_dir(format!("/proc/{process}/fd"))?;
    Ok(directory.filter_map(|entry| parse_socket_inode(&fs::read_link(entry.ok()?.path()).ok()?)))
}

/// The inode, if the descriptor is a socket.
fn parse_socket_inode(link: &Path) -> Option<u64> {
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::process::Command;

    use super::*;

    #[test]
    fn descriptors_of_sockets_name_their_inodes() {
        let table = [("socket:[123]", Some(123)), ("pipe:[123]", None), ("/socket:[1]", None), ("socket:[x]", None)];
        for (link, expected) in table {
            assert_eq!(parse_socket_inode(Path::new(link)), expected, "{link}");
        }
    }

    #[test]
    fn inherited_sockets_belong_to_their_holder() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = format!("/proc/self/fd/{}", listener.as_raw_fd());
        let inodes = || HashSet::from([parse_socket_inode(&fs::read_link(&link).unwrap()).unwrap()]);
        let mut holders = Holders::default();
        assert!(holders.search_processes(inodes(), &|| true).is_empty() && !holders.are_complete, "no time");
        assert!(holders.search_processes(inodes(), &|| false).is_empty() && holders.are_complete, "only this process");
        let mut child =
            Command::new("sleep").arg("60").stdin(OwnedFd::from(listener.try_clone().unwrap())).spawn().unwrap();
        let found = holders.search_processes(inodes(), &|| false);
        assert_eq!(found, [child.id()], "it was started since the last search");
        assert!(holders.search_processes(inodes(), &|| false).is_empty(), "it was found before");
        assert!(holders.search_processes(HashSet::from([1]), &|| false).is_empty());
        assert_eq!(holders.search_processes(inodes(), &|| false), found, "it is another search");
        assert!(holders.search_processes(HashSet::new(), &|| false).is_empty());
        child.kill().and_then(|()| child.wait()).unwrap();
    }
}
