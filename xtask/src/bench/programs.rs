//! Provides the programs of the benchmarks: builds our own, finds or installs peers, and reads all versions.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contender::Contender;
use super::options::Options;
use crate::tools;

/// What Debian has of the programs that rows need.
const PACKAGED: [&str; 6] = ["wrk", "h2load", "nginx", "openssl", "valgrind", "strace"];

/// Peers from crates.io, and their pinned versions.
const CRATES: &[(Contender, &str)] = &[(Contender::Shb, "0.6.0"), (Contender::Oha, "1.16.0")];

/// Where the programs are.
#[derive(Debug)]
pub struct Programs {
    /// The directory of our own.
    built: PathBuf,
    /// The directory of those from crates.io.
    peers: PathBuf,
    /// Another build of onrush.
    against: Option<PathBuf>,
    /// Why a peer is not available.
    missing: HashMap<Contender, String>,
}

impl Programs {
    /// Builds and installs what `options` need; crates are installed into `directory`.
    ///
    /// # Errors
    /// A build that fails. A peer that is not available is no error.
    pub fn provide(options: &Options, directory: &Path) -> io::Result<Self> {
        tools::provide(PACKAGED.into_iter().filter(|program| options.needs(program)))?;
        for package in [&["onrush", "--bin", "onrush"][..], &["onrush-benches", "--bins"]] {
            if !crate::cargo().args(["build", "--release", "--package"]).args(package).status()?.success() {
                return Err(io::Error::other(format!("{} cannot be built", package[0])));
            }
        }
        let built = crate::target()?.join("release");
        let against = options.against.clone();
        let mut programs = Self { built, peers: directory.join("peers"), against, missing: HashMap::new() };
        for &peer in &options.peers {
            if let Some(why) = programs.lacks(peer)? {
                programs.missing.insert(peer, why);
            }
        }
        Ok(programs)
    }

    /// Why a peer is not available, if so; one from crates.io is installed if it is missing.
    fn lacks(&self, peer: Contender) -> io::Result<Option<String>> {
        let name = peer.name();
        let Some((_, version)) = CRATES.iter().find(|(known, _)| *known == peer) else {
            return Ok((!tools::has(name)).then(|| format!("skipped: {name} is not installed")));
        };
        let list = crate::cargo().args(["install", "--list", "--root"]).arg(&self.peers).output()?;
        if is_listed(&String::from_utf8_lossy(&list.stdout), name, version) {
            return Ok(None);
        }
        println!("Installing {name} {version} from crates.io into {}", self.peers.display());
        let mut install = crate::cargo();
        install.args(["install", "--locked", "--version", version, name, "--root"]).arg(&self.peers);
        let is_good = install.status()?.success();
        Ok((!is_good).then(|| format!("skipped: {name} {version} cannot be installed")))
    }

    /// Why this contender cannot run here, if so.
    pub fn missing(&self, contender: Contender) -> Option<&str> {
        self.missing.get(&contender).map(String::as_str)
    }

    /// The program to start for a contender.
    pub fn of(&self, contender: Contender) -> PathBuf {
        if let (Contender::Before | Contender::EpollBefore, Some(build)) = (contender, &self.against) {
            return build.clone();
        }
        if CRATES.iter().any(|(known, _)| *known == contender) {
            self.peers.join("bin").join(contender.program())
        } else if Contender::PEERS.contains(&contender) {
            contender.program().into()
        } else {
            self.own(contender.program())
        }
    }

    /// One of our own programs.
    pub fn own(&self, name: &str) -> PathBuf {
        self.built.join(name)
    }

    /// The versions of onrush and of the installed peers, in one line.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn versions(&self, peers: &[Contender]) -> io::Result<String> {
        let mut versions = vec![format!("onrush {} ({})", env!("CARGO_PKG_VERSION"), commit()?)];
        if let Some(build) = &self.against {
            versions.push(format!("before: {}", installed(build.clone(), "onrush")?));
        }
        for peer in peers.iter().filter(|peer| self.missing(**peer).is_none()) {
            versions.push(match CRATES.iter().find(|(known, _)| known == peer) {
                Some((_, version)) => format!("{} {version}", peer.name()),
                None => installed(self.of(*peer), peer.name())?,
            });
        }
        Ok(versions.join(", "))
    }
}

/// The commit that is checked out, and whether files were changed since.
fn commit() -> io::Result<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(crate::root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if text.is_empty() { "no commit".to_owned() } else { text })
}

/// The name and version that an installed peer prints.
fn installed(program: PathBuf, name: &str) -> io::Result<String> {
    let output = Command::new(program).arg("--version").output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    Ok(version(&text, name))
}

/// The first two words of a version's first line: `wrk debian/4.1.0-3+b2`.
fn version(text: &str, name: &str) -> String {
    let words: Vec<&str> = text.lines().next().unwrap_or_default().split_whitespace().take(2).collect();
    if words.len() == 2 { words.join(" ") } else { format!("{name} of an unknown version") }
}

/// Whether cargo's list of installed programs names this version.
fn is_listed(list: &str, name: &str, version: &str) -> bool {
    list.lines().any(|line| line.trim_end_matches(':') == format!("{name} v{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pinned_version_is_taken_for_installed() {
        let list = "oha v1.16.0:\n    oha\nshb v0.6.0:\n    shb\n";
        assert!(is_listed(list, "shb", "0.6.0"));
        assert!(!is_listed(list, "shb", "0.6.1"));
        assert!(!is_listed("", "oha", "1.16.0"));
    }

    #[test]
    fn versions_are_two_words() {
        assert_eq!(version("wrk debian/4.1.0-3+b2 [epoll] Copyright (C)\nUsage", "wrk"), "wrk debian/4.1.0-3+b2");
        assert_eq!(version("h2load nghttp2/1.52.0\n", "h2load"), "h2load nghttp2/1.52.0");
        assert_eq!(version("", "h2load"), "h2load of an unknown version");
    }
}
