//! Licences of everything in the program: crates, their C code, Rust's library and musl.
//!
//! Never guesses: an unaccepted licence, or a crate without its text, fails the task.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use spdx::{Expression, Licensee, ParseMode};

use crate::crates;

/// Licences that require nothing but that their text accompanies the program, as in deny.toml, in descending order of
/// preference.
const ACCEPTED: [&str; 6] = ["MIT", "ISC", "BSD-3-Clause", "Zlib", "Unicode-3.0", "Apache-2.0"];
/// Crates without a text, each with a crate of the same repository whose text applies.
const WITHOUT_TEXT: [(&str, &str); 1] = [("mlua-sys", "mlua")];
/// Works that come with the compiler, with the paths of their licences in the repository.
const WITH_THE_COMPILER: [(&str, &str); 2] = [
    ("Rust's standard library (MIT OR Apache-2.0)", "packaging/licences/std.txt"),
    ("musl (MIT)", "packaging/licences/musl.txt"),
];

/// Prints all licences and their texts, as Markdown.
pub fn run() -> io::Result<ExitCode> {
    let crates = crates::in_program()?;
    // The works to which each text applies.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for of in crates.iter().filter(|of| !of.is_ours) {
        let ((name, version), licence) = (&of.id, &of.licence);
        let chosen = choose_licences(licence)
            .ok_or_else(|| Error::other(format!("{name}: the licence {licence:?} is unknown")))?;
        let owner = WITHOUT_TEXT.iter().find(|(without, _)| without == name).map_or(name.as_str(), |(_, owner)| owner);
        let of_owner = crates.iter().find(|other| other.id.0 == owner).unwrap_or(of);
        let text = licence_text(&of_owner.folder, &chosen)?
            .ok_or_else(|| Error::other(format!("{name}: there is no text of its licence {licence}")))?;
        texts.entry(text).or_default().push(format!("{name} {version} ({licence})"));
    }
    for (what, file) in WITH_THE_COMPILER {
        texts.entry(fs::read_to_string(super::root().join(file))?).or_default().push(what.to_owned());
    }
    print!("{}", markdown(&texts));
    Ok(ExitCode::SUCCESS)
}

/// The page: a summary, then each text with its works.
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

/// The licences chosen from an expression such as `MIT OR Apache-2.0`; `None` without an acceptable choice.
fn choose_licences(expression: &str) -> Option<Vec<String>> {
    let accepted: Vec<Licensee> = ACCEPTED.iter().map(|name| Licensee::parse(name).expect("a licence")).collect();
    let expression = Expression::parse_mode(expression, ParseMode::LAX).ok()?;
    let chosen = expression.minimized_requirements(&accepted).ok()?;
    Some(chosen.into_iter().map(|requirement| requirement.to_string()).collect())
}

/// The texts of these licences in a folder, or all texts if file names do not distinguish them.
fn licence_text(folder: &Path, licences: &[String]) -> io::Result<Option<String>> {
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
    fn most_permissive_known_licences_are_chosen() {
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
            let chosen = choose_licences(expression).map(|names| names.join(" "));
            assert_eq!(chosen.as_deref(), expected, "{expression}");
        }
    }
}
