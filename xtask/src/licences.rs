//! The licences of everything that is in the program: its crates, what they compile in C, Rust's library and musl.
//!
//! It never guesses: a licence that is not accepted here, or a crate without a text of it, ends the task.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

/// The system for which packages are made.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// Licences that ask for no more than their text beside the program, as in deny.toml, the one whose text is chosen first.
const ACCEPTED: [&str; 6] = ["MIT", "ISC", "BSD-3-Clause", "Zlib", "Unicode-3.0", "Apache-2.0"];
/// Crates without a text, and those whose text is theirs, too: both come from one repository.
const WITHOUT_TEXT: [(&str, &str); 1] = [("mlua-sys", "mlua")];
/// What is compiled in although no crate depends on it at run time.
const COMPILED_IN: [&str; 1] = ["luajit-src"];
/// What comes with the compiler, and where its text is in the repository.
const WITH_THE_COMPILER: [(&str, &str); 2] = [
    ("Rust's standard library (MIT OR Apache-2.0)", "packaging/licences/std.txt"),
    ("musl (MIT)", "packaging/licences/musl.txt"),
];

/// Prints all licences and their texts, as Markdown.
pub fn run() -> io::Result<ExitCode> {
    let metadata =
        super::cargo().args(["metadata", "--locked", "--format-version", "1", "--filter-platform", TARGET]).output()?;
    if !metadata.status.success() {
        return Err(Error::other(String::from_utf8_lossy(&metadata.stderr).into_owned()));
    }
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = packages(&metadata);
    // Of each text, what has it.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in in_program(&metadata) {
        let Some(package) = packages.get(package) else { continue };
        let [name, version, licence] =
            ["name", "version", "license"].map(|key| package[key].as_str().unwrap_or_default());
        let chosen =
            chosen(licence).ok_or_else(|| Error::other(format!("{name}: the licence {licence:?} is unknown")))?;
        let owner = WITHOUT_TEXT.iter().find(|(without, _)| *without == name).map_or(name, |(_, owner)| owner);
        let of_owner = packages.values().find(|other| other["name"] == *owner).unwrap_or(package);
        let manifest = PathBuf::from(of_owner["manifest_path"].as_str().unwrap_or_default());
        let text = text(manifest.parent().unwrap_or(Path::new("")), &chosen)?
            .ok_or_else(|| Error::other(format!("{name}: there is no text of its licence {licence}")))?;
        texts.entry(text).or_default().push(format!("{name} {version} ({licence})"));
    }
    for (what, file) in WITH_THE_COMPILER {
        texts.entry(fs::read_to_string(super::root().join(file))?).or_default().push(what.to_owned());
    }
    print!("{}", markdown(&texts));
    Ok(ExitCode::SUCCESS)
}

/// The page: what there is, then each text with what has it.
fn markdown(texts: &BTreeMap<String, Vec<String>>) -> String {
    let mut page = String::from("# Licences of what is in the program\n\n");
    let mut all: Vec<&String> = texts.values().flatten().collect();
    all.sort();
    all.iter().for_each(|name| page += &format!("* {name}\n"));
    for (text, names) in texts {
        let fence = if text.contains("```") { "~~~~" } else { "```" };
        page += &format!("\n## {}\n\n{fence}\n{}\n{fence}\n", names.join(", "), text.trim_end());
    }
    page
}

/// All packages by their ids.
fn packages(metadata: &Value) -> BTreeMap<&str, &Value> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.filter_map(|package| Some((package["id"].as_str()?, package))).collect()
}

/// The ids of the packages of other authors whose code is in the program: those that are needed at run time.
fn in_program(metadata: &Value) -> BTreeSet<&str> {
    let packages = packages(metadata);
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let is_named = |id: &str, name: &str| packages.get(id).is_some_and(|package| package["name"] == name);
    let is_macro = |id: &str| {
        let targets = packages.get(id).and_then(|package| package["targets"].as_array());
        targets.into_iter().flatten().any(|target| target["kind"][0] == "proc-macro")
    };
    let mut open: Vec<&str> = packages.keys().copied().filter(|id| is_named(id, "onrush")).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let dependencies = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        for dependency in dependencies {
            let Some(id) = dependency["pkg"].as_str() else { continue };
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            let is_at_run_time = kinds.any(|kind| kind["kind"].is_null()) && !is_macro(id);
            if is_at_run_time || COMPILED_IN.iter().any(|name| is_named(id, name)) {
                open.push(id);
            }
        }
    }
    found.retain(|id| packages.get(id).is_some_and(|package| !package["source"].is_null()));
    found
}

/// The licences that are chosen of an expression such as `MIT OR Apache-2.0`; `None`: there is no acceptable choice.
fn chosen(expression: &str) -> Option<Vec<String>> {
    let accepted: Vec<Licensee> = ACCEPTED.iter().map(|name| Licensee::parse(name).expect("a licence")).collect();
    let expression = Expression::parse_mode(expression, ParseMode::LAX).ok()?;
    let chosen = expression.minimized_requirements(&accepted).ok()?;
    Some(chosen.into_iter().map(|requirement| requirement.to_string()).collect())
}

/// The texts in a folder of these licences, or all of its texts if their names do not tell which is which.
fn text(folder: &Path, licences: &[String]) -> io::Result<Option<String>> {
    let is_text = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"].iter().any(|word| name.starts_with(word))
    };
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.is_file() && file.file_name().and_then(|name| name.to_str()).is_some_and(is_text));
    files.sort();
    let is_of = |file: &&PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        licences
            .iter()
            .any(|licence| name.contains(licence.split('-').next().unwrap_or(licence).to_ascii_uppercase().as_str()))
    };
    let of_licences: Vec<&PathBuf> = files.iter().filter(is_of).collect();
    let chosen = if of_licences.is_empty() { files.iter().collect() } else { of_licences };
    let texts: Vec<String> = chosen.into_iter().map(fs::read_to_string).collect::<io::Result<_>>()?;
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licence_that_asks_for_least_is_chosen_and_an_unknown_one_is_not() {
        for (expression, expected) in [
            ("MIT OR Apache-2.0", Some("MIT")),
            ("Apache-2.0/MIT", Some("MIT")),
            ("ISC AND (Apache-2.0 OR ISC)", Some("ISC")),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some("MIT Unicode-3.0")),
            ("GPL-3.0-only", None),
            ("GPL-3.0-only OR Zlib", Some("Zlib")),
            ("what I like", None),
            ("", None),
        ] {
            let chosen = chosen(expression).map(|names| names.join(" "));
            assert_eq!(chosen.as_deref(), expected, "{expression}");
        }
    }
}
