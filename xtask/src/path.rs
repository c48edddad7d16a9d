//! Finds programs in the search path.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// Debian's directories of programs for administrators, which a user's `PATH` often lacks.
const ADMINISTRATION: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The search path: the tests' own Python, the user's `PATH`, and the directories of administrators' programs.
pub fn search() -> OsString {
    let user = env::var_os("PATH").unwrap_or_default();
    let own = std::iter::once(python().join("bin"));
    let all = own.chain(env::split_paths(&user)).chain(ADMINISTRATION.iter().map(PathBuf::from));
    // Joining fails only for a directory with a colon in its name, and splitting returns none.
    env::join_paths(all).unwrap_or(user)
}

/// The directory of the tests' own Python.
pub fn python() -> PathBuf {
    crate::root().join("target/python")
}

/// Whether there is a program of that name.
pub fn has(program: &str) -> bool {
    is_in(&search(), program)
}

/// Whether one of the directories in `path` has a file called `program`.
fn is_in(path: &OsString, program: &str) -> bool {
    env::split_paths(path).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_program_is_looked_for_in_every_directory() {
        assert!(is_in(&"/nowhere:/bin".into(), "sh"));
        assert!(!is_in(&"/nowhere:/bin".into(), "no-such-program"));
        assert!(env::split_paths(&search()).any(|directory| directory == Path::new("/usr/sbin")));
    }
}
