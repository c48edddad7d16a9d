//! Installs what the tests and the benchmarks need in addition to Rust: with apt-get, announced, after asking if there
//! is a terminal, and without starting any service.
//!
//! Nothing here makes a run fail. The tests and the benchmarks skip by name what cannot run.

use std::env;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use crate::path;

/// A set of tools that should be installed.
pub struct Wishes {
    /// What needs them, as the beginning of a sentence.
    who: &'static str,
    /// What happens if a tool is missing.
    otherwise: &'static str,
    tools: &'static [Tool],
}

/// A program that is needed.
struct Tool {
    /// Its name.
    program: &'static str,
    /// The Debian package it is in.
    package: &'static str,
    /// The service that the package would start, if any.
    service: Option<&'static str>,
    /// What it is needed for.
    purpose: &'static str,
}

/// What the tests need.
pub const TESTS: Wishes = Wishes {
    who: "The tests need",
    otherwise: "its tests are skipped",
    tools: &[
        Tool {
            program: "nginx",
            package: "nginx",
            service: Some("nginx"),
            purpose: "its access log must hold the requests that onrush counted",
        },
        Tool {
            program: "python3",
            package: "python3",
            service: None,
            purpose: "its http.server is a target that speaks HTTP/1.0",
        },
        Tool {
            program: "openssl",
            package: "openssl",
            service: None,
            purpose: "its s_server is a target that speaks TLS, old versions too",
        },
        Tool {
            program: "tinyproxy",
            package: "tinyproxy",
            service: Some("tinyproxy"),
            purpose: "it takes whole URLs and builds tunnels for --http-proxy",
        },
        Tool {
            program: "jq",
            package: "jq",
            service: None,
            purpose: "it reads the result files, and runs the examples about them",
        },
    ],
};

/// What the benchmarks need.
pub const BENCHMARKS: Wishes = Wishes {
    who: "The benchmarks need",
    otherwise: "its figures are missing",
    tools: &[
        Tool { program: "wrk", package: "wrk", service: None, purpose: "the peer of every row" },
        Tool { program: "h2load", package: "nghttp2-client", service: None, purpose: "a peer" },
        Tool { program: "nginx", package: "nginx", service: Some("nginx"), purpose: "the target of the rows over TLS" },
        Tool { program: "openssl", package: "openssl", service: None, purpose: "it makes the target's certificate" },
        Tool { program: "valgrind", package: "valgrind", service: None, purpose: "it counts instructions" },
        Tool { program: "strace", package: "strace", service: None, purpose: "it counts system calls" },
    ],
};

/// The program that Debian asks whether a service may start; see `install.sh`.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Installs the missing ones of the programs that are `needed`, or says which are still missing.
///
/// # Errors
/// A terminal that cannot be read, or a shell that cannot be started.
pub fn provide(wishes: &Wishes, needed: impl Fn(&str) -> bool) -> io::Result<()> {
    let missing = missing(wishes, &needed);
    if missing.is_empty() {
        return Ok(());
    }
    for tool in &missing {
        println!("{} {}: {}.", wishes.who, tool.program, tool.purpose);
    }
    match Installer::find()? {
        None => println!("Installing them from here needs apt-get, and root or sudo."),
        Some(installer) => {
            let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
            if is_wanted(&packages)? && !installer.install(&missing)? {
                println!("apt-get could not install them.");
            }
        }
    }
    for Tool { program, package, .. } in self::missing(wishes, &needed) {
        println!("Without {program} {}. To install it: sudo apt-get install {package}", wishes.otherwise);
    }
    Ok(())
}

/// Whether continuous integration runs this, without a user to ask.
pub fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

/// The needed tools that are not on the search path.
fn missing(wishes: &Wishes, needed: impl Fn(&str) -> bool) -> Vec<&'static Tool> {
    wishes.tools.iter().filter(|tool| needed(tool.program) && !path::has(tool.program)).collect()
}

/// Asks whether to install `packages`; without a terminal, assumes yes.
fn is_wanted(packages: &[&str]) -> io::Result<bool> {
    let packages = packages.join(" ");
    if is_ci() || !io::stdin().is_terminal() {
        println!("Installing {packages} with apt-get; no service is started.");
        return Ok(true);
    }
    print!("Install {packages} with apt-get now? No service is started. [Y/n] ");
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

/// Whether the typed line agrees; the end of the input does not.
fn is_yes(answer: &str) -> bool {
    matches!(answer.to_lowercase().as_str(), "\n" | "y\n" | "yes\n")
}

/// How this machine installs packages.
enum Installer {
    /// As root.
    Root,
    /// Through sudo.
    Sudo,
}

impl Installer {
    /// The way that works here, if any.
    fn find() -> io::Result<Option<Self>> {
        let is_root = Command::new("id").arg("-u").output()?.stdout == b"0\n";
        Ok(match (path::has("apt-get"), is_root, path::has("sudo")) {
            (false, ..) | (_, false, false) => None,
            (true, true, _) => Some(Self::Root),
            (true, false, true) => Some(Self::Sudo),
        })
    }

    /// Installs `tools`; returns whether that succeeded.
    fn install(&self, tools: &[&Tool]) -> io::Result<bool> {
        if Path::new(POLICY).exists() {
            println!("({POLICY} exists already; it decides whether a service may start.)");
        }
        let mut command = match self {
            Self::Root => Command::new("sh"),
            Self::Sudo => Command::new("sudo"),
        };
        if let Self::Sudo = self {
            // Without a terminal, sudo must not wait for a password.
            command.args((!io::stdin().is_terminal()).then_some("--non-interactive")).arg("sh");
        }
        script(&mut command, POLICY, tools);
        Ok(command.status()?.success())
    }
}

/// Makes the shell that `command` starts run `install.sh`.
fn script(command: &mut Command, policy: &str, tools: &[&Tool]) {
    let services: Vec<&str> = tools.iter().filter_map(|tool| tool.service).collect();
    command.args(["-c", include_str!("install.sh"), "install", policy, &services.join(" ")]);
    command.args(tools.iter().map(|tool| tool.package));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A directory with programs that replace Debian's and log how they were called.
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

        /// A program that appends its name, its arguments and whether the policy forbids services to the log, then
        /// continues with `rest`.
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

        /// Installs nginx; returns whether that succeeded, and the log.
        fn install(&self) -> (bool, String) {
            let mut command = Command::new("sh");
            command.env("PATH", format!("{}:/usr/bin:/bin", self.0.display()));
            script(&mut command, self.policy().to_str().unwrap(), &[&TESTS.tools[0]]);
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
    fn services_are_denied_while_apt_get_runs_and_the_policy_is_gone_afterwards() {
        let debian = Debian::new("plain", "");
        let (is_good, log) = debian.install();
        assert!(is_good);
        assert_eq!(log, format!("{INSTALL}systemctl --quiet disable nginx policy=101\n"));
        assert!(!debian.policy().exists());
    }

    #[test]
    fn the_package_list_is_fetched_only_after_a_first_failure_and_the_policy_is_gone_after_a_second() {
        let debian = Debian::new("failing", "[ \"$1\" = update ]");
        let (is_good, log) = debian.install();
        assert!(!is_good);
        assert_eq!(log, format!("{INSTALL}apt-get update policy=101\n{INSTALL}"));
        assert!(!debian.policy().exists());
    }

    #[test]
    fn the_policy_is_gone_after_a_signal() {
        let debian = Debian::new("interrupted", "kill -TERM $PPID");
        let (is_good, log) = debian.install();
        assert!(!is_good);
        assert_eq!(log, INSTALL);
        assert!(!debian.policy().exists());
    }

    #[test]
    fn the_administrators_policy_stays_as_it_is() {
        let debian = Debian::new("administered", "");
        fs::write(debian.policy(), "#!/bin/sh\nexit 104\n").unwrap();
        fs::set_permissions(debian.policy(), fs::Permissions::from_mode(0o755)).unwrap();
        let (is_good, log) = debian.install();
        assert!(is_good);
        assert!(log.starts_with(&INSTALL.replace("policy=101", "policy=104")), "{log}");
        assert_eq!(fs::read_to_string(debian.policy()).unwrap(), "#!/bin/sh\nexit 104\n");
    }

    #[test]
    fn only_an_empty_line_and_a_yes_agree() {
        for (answer, expected) in [("\n", true), ("y\n", true), ("Yes\n", true), ("n\n", false), ("", false)] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
