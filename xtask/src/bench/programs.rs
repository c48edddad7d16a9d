//! Provides the programs of the benchmarks: builds our own, finds or installs the others, and reads all versions.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contender::{Contender, GeneratorProgram};
use super::options::BenchOptions;
use crate::tools;

/// Peers from crates.io, with pinned versions.
const CRATES: &[(GeneratorProgram, &str)] = &[(GeneratorProgram::Shb, "0.6.0"), (GeneratorProgram::Oha, "1.16.0")];

/// Locations of the programs.
#[derive(Debug)]
pub struct Programs {
    /// Directory of our own programs.
    built: PathBuf,
    /// The packaged onrush, if measured.
    packaged: Option<PathBuf>,
    /// Directory of programs from crates.io.
    peers: PathBuf,
    /// Another build of onrush.
    against: Option<PathBuf>,
    /// Unavailable peers, with the reason.
    missing: Vec<(GeneratorProgram, String)>,
}

impl Programs {
    /// Builds our own programs, installs those that `options` need from crates.io into `directory`, and records the
    /// missing ones.
    ///
    /// # Errors
    ///
    /// If a build fails. A missing peer is no error.
    pub fn provide(options: &BenchOptions, directory: &Path) -> io::Result<Self> {
        build(&["onrush-benches", "--bins", "--examples"])?;
        let packaged = if options.is_packaged {
            Some(build_packaged()?)
        } else {
            build(&["onrush", "--bin", "onrush"])?;
            None
        };
        let built = crate::target()?.join("release");
        let (peers, against) = (directory.join("peers"), options.against.clone());
        let mut programs = Self { built, packaged, peers, against, missing: Vec::new() };
        for peer in options.peers() {
            if let Some(why) = programs.reason_unavailable(peer)? {
                programs.missing.push((peer, why));
            }
        }
        Ok(programs)
    }

    /// Why a peer is unavailable; `None` if it is available. If it is missing and on crates.io, installs it first.
    fn reason_unavailable(&self, peer: GeneratorProgram) -> io::Result<Option<String>> {
        let name = peer.name();
        let Some((_, version)) = CRATES.iter().find(|(known, _)| *known == peer) else {
            return Ok(reason_not_installed(name));
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

    /// Why this program cannot run here; `None` if it can.
    pub fn missing(&self, program: GeneratorProgram) -> Option<&str> {
        let missing = self.missing.iter().find(|(known, _)| *known == program);
        missing.map(|(_, why)| why.as_str())
    }

    /// Path of a contender's program.
    pub fn path_for(&self, contender: &Contender) -> PathBuf {
        let program = contender.program;
        match (&self.against, program) {
            (Some(build), GeneratorProgram::Onrush(_)) if contender.is_before => build.clone(),
            (_, GeneratorProgram::Shb | GeneratorProgram::Oha) => self.peers.join("bin").join(program.name()),
            (_, GeneratorProgram::Onrush(_) | GeneratorProgram::Bare(_)) => self.path_of(program.name()),
            _ => program.name().into(),
        }
    }

    /// Path of one of our own programs.
    pub fn path_of(&self, name: &str) -> PathBuf {
        match &self.packaged {
            Some(program) if name == "onrush" => program.clone(),
            _ => self.built.join(name),
        }
    }

    /// Versions of onrush and of the installed peers, in one line.
    ///
    /// # Errors
    ///
    /// If a program cannot be started.
    pub fn versions(&self, peers: &[GeneratorProgram]) -> io::Result<String> {
        let which = if self.packaged.is_some() { ", the static program of the packages" } else { "" };
        let mut versions = vec![format!("onrush {} ({}{which})", env!("CARGO_PKG_VERSION"), commit()?)];
        if let Some(build) = &self.against {
            versions.push(format!("before: {}", installed_version(build.clone(), "onrush")?));
        }
        for &peer in peers.iter().filter(|peer| self.missing(**peer).is_none()) {
            versions.push(match CRATES.iter().find(|(known, _)| *known == peer) {
                Some((_, version)) => format!("{} {version}", peer.name()),
                None => installed_version(peer.name().into(), peer.name())?,
            });
        }
        Ok(versions.join(", "))
    }
}

fn build(package: &[&str]) -> io::Result<()> {
    if !crate::cargo().args(["build", "--release", "--package"]).args(package).status()?.success() {
        return Err(io::Error::other(format!("{} cannot be built", package[0])));
    }
    Ok(())
}

/// Builds the packaged static program, and returns its path.
fn build_packaged() -> io::Result<PathBuf> {
    if !Command::new(crate::root().join(".ci/dist")).arg("binary").status()?.success() {
        return Err(io::Error::other("the program of the packages cannot be built"));
    }
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    Ok(crate::root().join("target/dist-build").join(target).join("release/onrush"))
}

/// Why a program from Debian cannot be used; `None` if it is installed.
pub fn reason_not_installed(program: &str) -> Option<String> {
    (!tools::has(program)).then(|| format!("skipped: {program} is not installed"))
}

/// The checked-out commit, with a mark if the files have been changed since.
fn commit() -> io::Result<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(crate::root()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(if text.is_empty() { "no commit".to_owned() } else { text })
}

/// Name and version printed by an installed peer.
fn installed_version(program: PathBuf, name: &str) -> io::Result<String> {
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

/// True if cargo's list of installed programs contains this version.
fn is_listed(list: &str, name: &str, version: &str) -> bool {
    list.lines().any(|line| line.trim_end_matches(':') == format!("{name} v{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pinned_versions_count_as_installed() {
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

    #[test]
    fn missing_programs_are_skipped_by_name() {
        assert_eq!(reason_not_installed("sh"), None);
        assert_eq!(
            reason_not_installed("no-such-program").as_deref(),
            Some("skipped: no-such-program is not installed")
        );
    }
}
