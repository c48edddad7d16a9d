//! Programs called by the benchmarks: detection and installation.

use std::env;
use std::io;
use std::process::Command;

/// True if a directory of the search path contains a file with this name. The `Makefile` adds the directories of
/// administrative programs to the path.
pub fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Installs missing programs from Debian. On a terminal, it asks first; otherwise it only names the missing ones.
///
/// # Errors
///
/// If the shell cannot be started.
pub fn provide<'a>(programs: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
    Command::new(crate::root().join(".ci/provide")).args(programs).status().map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A directory with programs that replace Debian's and log their calls.
    struct Debian(PathBuf);

    impl Debian {
        fn new(name: &str, apt_get: &str) -> Self {
            let root = env::temp_dir().join(format!("onrush-xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            let debian = Self(root);
            debian.program("apt-get", apt_get);
            debian.program("systemctl", "");
            debian
        }

        /// A program that logs its name, its arguments and whether the policy forbids services, then continues with
        /// `rest`.
        fn program(&self, name: &str, rest: &str) {
            let (log, policy) = (self.0.join("log"), self.policy());
            let (log, policy) = (log.display(), policy.display());
            let text = format!(
                "#!/bin/sh\nif [ -x {policy} ]; then {policy}; denied=$?; fi\n\
                 echo {name} \"$@\" \"policy=${{denied-none}}\" >>{log}\n{rest}\n"
            );
            fs::write(self.0.join(name), text).unwrap();
            fs::set_permissions(self.0.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn policy(&self) -> PathBuf {
            self.0.join("policy-rc.d")
        }

        /// Installs the package nginx. Returns true if that succeeded, and the log.
        fn install(&self) -> (bool, String) {
            let mut command = Command::new(crate::root().join(".ci/provide"));
            command.args(["--as-root", "nginx"]).env("POLICY", self.policy());
            command.env("PATH", format!("{}:/usr/bin:/bin", self.0.display()));
            let is_good = command.status().unwrap().success();
            (is_good, fs::read_to_string(self.0.join("log")).unwrap())
        }
    }

    impl Drop for Debian {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const INSTALL: &str = "apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=120 nginx policy=101\n";

    #[test]
    fn services_are_denied_only_while_apt_get_runs() {
        let debian = Debian::new("plain", "");
        let (is_good, log) = debian.install();
        assert!(is_good);
        let disable = "systemctl --quiet is-enabled nginx policy=101\nsystemctl --quiet disable nginx policy=101\n";
        assert_eq!(log, format!("{INSTALL}{disable}"));
        assert!(!debian.policy().exists());
    }

    #[test]
    fn package_lists_refresh_after_failure() {
        let debian = Debian::new("failing", "[ \"$1\" = update ]");
        let (is_good, log) = debian.install();
        assert!(!is_good);
        assert_eq!(log, format!("{INSTALL}apt-get update policy=101\n{INSTALL}"));
        assert!(!debian.policy().exists());
    }

    #[test]
    fn policies_are_removed_after_signals() {
        let debian = Debian::new("interrupted", "kill -TERM $PPID");
        let (is_good, log) = debian.install();
        assert!(!is_good);
        assert_eq!(log, INSTALL);
        assert!(!debian.policy().exists());
    }

    #[test]
    fn administrator_policies_are_kept() {
        let debian = Debian::new("administered", "");
        fs::write(debian.policy(), "#!/bin/sh\nexit 104\n").unwrap();
        fs::set_permissions(debian.policy(), fs::Permissions::from_mode(0o755)).unwrap();
        let (is_good, log) = debian.install();
        assert!(is_good);
        assert!(log.starts_with(&INSTALL.replace("policy=101", "policy=104")), "{log}");
        assert_eq!(fs::read_to_string(debian.policy()).unwrap(), "#!/bin/sh\nexit 104\n");
    }
}
