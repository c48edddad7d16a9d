//! Provides the programs of the benchmarks: builds our own, finds or installs the others, and reads all versions.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contender::{Contender, GeneratorProgram};
use super::options::BenchOptions;
use crate::tools;

/// Peers from crates.io, and their pinned versions.
const CRATES: &[(GeneratorProgram, &str)] = &[(GeneratorProgram::Shb, "0.6.0"), (GeneratorProgram::Oha, "1.16.0")];

/// Where the programs are.
#[derive(Debug)]
pub struct Programs {
    /// The directory of our own.
    built: PathBuf,
    /// onrush as it is in the packages, if that is measured.
    packaged: Option<PathBuf>,
    /// The directory of programs from crates.io.
    peers: PathBuf,
    /// Another build of onrush.
    against: Option<PathBuf>,
    /// The peers that are not available, and why.
    missing: Vec<(GeneratorProgram, String)>,
}

impl Programs {
    /// Builds our own, installs the other ones that `options` need from crates.io into `directory`, and names the
    /// missing ones.
    ///
    /// # Errors
    ///
    /// A build that fails. A peer that is not available is no error.
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
            if let Some(why) = programs.lacks(peer)? {
                programs.missing.push((peer, why));
            }
        }
        Ok(programs)
    }

    /// Why a peer is not available, if so; one from crates.io is installed if it is missing.
    fn lacks(&self, peer: GeneratorProgram) -> io::Result<Option<String>> {
        let name = peer.name();
        let Some((_, version)) = CRATES.iter().find(|(known, _)| *known == peer) else {
            return Ok(lacking(name));
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

    /// Why this program cannot run here, if so.
    pub fn missing(&self, program: GeneratorProgram) -> Option<&str> {
        let missing = self.missing.iter().find(|(known, _)| *known == program);
        missing.map(|(_, why)| why.as_str())
    }

    /// The file to start for a contender.
    pub fn path_for(&self, contender: &Contender) -> PathBuf {
        let program = contender.program;
        match (&self.against, program) {
            (Some(build), GeneratorProgram::Onrush(_)) if contender.is_before => build.clone(),
            (_, GeneratorProgram::Shb | GeneratorProgram::Oha) => self.peers.join("bin").join(program.name()),
            (_, GeneratorProgram::Onrush(_) | GeneratorProgram::Bare(_)) => self.own(program.name()),
            _ => program.name().into(),
        }
    }

    /// One of our own programs.
    pub fn own(&self, name: &str) -> PathBuf {
        match &self.packaged {
            Some(program) if name == "onrush" => program.clone(),
            _ => self.built.join(name),
        }
    }

    /// The versions of onrush and of the installed peers, in one line.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn versions(&self, peers: &[GeneratorProgram]) -> io::Result<String> {
        let which = if self.packaged.is_some() { ", the static program of the packages" } else { "" };
        let mut versions = vec![format!("onrush {} ({}{which})", env!("CARGO_PKG_VERSION"), commit()?)];
        if let Some(build) = &self.against {
            versions.push(format!("before: {}", installed(build.clone(), "onrush")?));
        }
        for &peer in peers.iter().filter(|peer| self.missing(**peer).is_none()) {
            versions.push(match CRATES.iter().find(|(known, _)| *known == peer) {
                Some((_, version)) => format!("{} {version}", peer.name()),
                None => installed(peer.name().into(), peer.name())?,
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

/// Builds the static program of the packages, and says where it is.
fn build_packaged() -> io::Result<PathBuf> {
    if !Command::new(crate::root().join(".ci/dist")).arg("binary").status()?.success() {
        return Err(io::Error::other("the program of the packages cannot be built"));
    }
    Ok(crate::root().join("target/dist-build/x86_64-unknown-linux-musl/release/onrush"))
}

/// Why a program from Debian cannot be used, if it is missing.
pub fn lacking(program: &str) -> Option<String> {
    (!tools::has(program)).then(|| format!("skipped: {program} is not installed"))
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

/// True if cargo's list of installed programs names this version.
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

    #[test]
    fn a_missing_program_is_skipped_by_name() {
        assert_eq!(lacking("sh"), None);
        assert_eq!(lacking("no-such-program").as_deref(), Some("skipped: no-such-program is not installed"));
    }
}
