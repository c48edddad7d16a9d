//! Crates whose code is in the packaged program. Never builds anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Platform of the packages.
pub const TARGET: &str = "x86_64-unknown-linux-musl";
/// Crates whose C code is compiled in without a run-time dependency, each after the crate that compiles it.
const COMPILED_IN: [(&str, &str); 1] = [("mlua-sys", "luajit-src")];

/// Name and version of a crate.
pub type CrateId = (String, String);

/// A crate of the program.
pub struct Crate {
    /// Name and version.
    pub id: CrateId,
    /// Licence expression from the manifest, such as `MIT OR Apache-2.0`.
    pub licence: String,
    /// Directory of the sources on this machine.
    pub folder: PathBuf,
    /// True for a crate of this repository.
    pub is_ours: bool,
    /// Direct dependencies that are also in the program.
    pub uses: BTreeSet<CrateId>,
}

/// All crates of the program, in order.
///
/// Only `cargo tree` can list the crates compiled for one program: `cargo metadata` also includes dependencies of tests
/// and tools of this repository.
pub fn in_program() -> io::Result<Vec<Crate>> {
    let metadata = ["metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET];
    let metadata: Value = serde_json::from_str(&command_output(super::cargo().args(metadata))?)?;
    let packages: BTreeMap<CrateId, &Value> = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|package| ((text(package, "name"), text(package, "version")), package))
        .collect();
    let tree =
        command_output(super::cargo().args(["tree", "--locked", "--package", "onrush", "--target", TARGET]).args([
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "depth",
            "--format",
            " {p}",
        ]))?;
    let mut uses = uses(&tree);
    for (user, compiled) in COMPILED_IN {
        let id = packages.keys().find(|(name, _)| name == compiled);
        let user = uses.iter_mut().find(|((name, _), _)| name == user);
        if let (Some(id), Some((_, used))) = (id, user) {
            used.insert(id.clone());
            uses.insert(id.clone(), BTreeSet::new());
        }
    }
    let of = |(id, uses): (CrateId, BTreeSet<CrateId>)| {
        let package =
            packages.get(&id).ok_or_else(|| Error::other(format!("cargo metadata lacks {} {}", id.0, id.1)))?;
        let folder = PathBuf::from(text(package, "manifest_path")).parent().map(Path::to_owned).unwrap_or_default();
        Ok(Crate { id, licence: text(package, "license"), folder, is_ours: package["source"].is_null(), uses })
    };
    uses.into_iter().map(of).collect()
}

/// Dependencies of each crate, from lines such as `2 bytes v1.12.2 (*)`, which start with their depth in the tree.
fn uses(tree: &str) -> BTreeMap<CrateId, BTreeSet<CrateId>> {
    let mut uses: BTreeMap<CrateId, BTreeSet<CrateId>> = BTreeMap::new();
    let mut path: Vec<CrateId> = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next()) else { continue };
        let id = (name.to_owned(), version.trim_start_matches('v').to_owned());
        path.truncate(depth.parse().unwrap_or_default());
        if let Some(user) = path.last() {
            uses.entry(user.clone()).or_default().insert(id.clone());
        }
        uses.entry(id.clone()).or_default();
        path.push(id);
    }
    uses
}

/// Runs a command and returns its standard output. If the command fails, the error is what it printed on standard
/// error.
pub fn command_output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}

fn text(package: &Value, key: &str) -> String {
    package[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_use_those_one_level_below() {
        let tree = "0 onrush v0.1.0 (/a path)\n1 h2 v0.4.20\n2 bytes v1.12.2\n2 http v1.5.0\n3 bytes v1.12.2 (*)\n1 csv v1.4.0\n";
        let uses: Vec<String> = uses(tree)
            .into_iter()
            .map(|((name, version), used)| {
                format!("{name} {version}: {}", used.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" "))
            })
            .collect();
        let expected =
            ["bytes 1.12.2: ", "csv 1.4.0: ", "h2 0.4.20: bytes http", "http 1.5.0: bytes", "onrush 0.1.0: csv h2"];
        assert_eq!(uses, expected);
    }

    #[test]
    fn packaged_crates_include_build_time_code() {
        let crates = in_program().unwrap();
        let has = |name: &str| crates.iter().any(|of| of.id.0 == name);
        for name in ["onrush", "onrush-load", "rustls", "aws-lc-sys", "luajit-src"] {
            assert!(has(name), "{name} is missing");
        }
        // Not in the program: build tools, macros, and dependencies of tests, other platforms or other features.
        for name in ["cc", "serde_derive", "libtest-mimic", "ring", "xtask"] {
            assert!(!has(name), "{name} is not in the program");
        }
    }
}
