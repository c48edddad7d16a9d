//! The house rules that a machine can check: sizes, documentation, the borders between modules, leftovers, phrases.
//!
//! Every check is a pure function from one parsed file to what is wrong with it. Only [`tree`] touches the disk, and
//! nothing here ever changes a file.

mod borders;
mod circles;
mod docs;
mod leftovers;
mod names;
mod phrases;
mod safety;
mod sizes;
mod source;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

pub use source::Source;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root of the repository, with forward slashes.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and the purpose of the rule if it is not obvious.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Checks every Rust file and document below `root`, sorted by path and line.
///
/// # Errors
/// A directory or a file that cannot be read.
pub fn tree(root: &Path) -> io::Result<Vec<Finding>> {
    let files = read(root)?;
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&path[..], &text[..])).collect();
    Ok(check(&files))
}

/// Every Rust file and document below `root`, its path and its text, sorted by path.
///
/// # Errors
/// A directory or a file that cannot be read.
pub fn read(root: &Path) -> io::Result<Vec<(String, String)>> {
    let mut paths = Vec::new();
    list(root, "", &mut paths)?;
    paths.sort();
    paths.into_iter().map(|path| fs::read_to_string(root.join(&path)).map(|text| (path, text))).collect()
}

/// Checks files, each given by its path from the root of the repository and its text.
fn check(files: &[(&str, &str)]) -> Vec<Finding> {
    let (mut sources, mut findings) = (Vec::new(), Vec::new());
    for (path, text) in files {
        // The rule itself must name the phrases.
        if !path.starts_with("xtask/src/tidy/") {
            findings.extend(phrases::check(path, text));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    let checks = [sizes::check, docs::check, borders::check, safety::check, leftovers::check];
    findings.extend(sources.iter().flat_map(|source| checks.iter().flat_map(|check| check(source))));
    findings.extend(circles::check(&sources));
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    findings
}

/// Adds the Rust files and documents in `directory` (relative to `root`) and below to `paths`, without built or hidden
/// ones.
fn list(root: &Path, directory: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                list(root, &path, paths)?;
            }
        } else if [".rs", ".md"].iter().any(|ending| name.ends_with(ending)) {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let findings: Vec<String> = tree(&root).unwrap().iter().map(Finding::to_string).collect();
        assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    }

    #[test]
    fn the_walk_sees_every_source_file_and_nothing_that_was_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = Vec::new();
        list(root, "", &mut paths).unwrap();
        assert!(paths.contains(&"src/main.rs".to_string()), "{paths:?}");
        assert!(paths.contains(&"src/tidy/mod.rs".to_string()), "{paths:?}");
        assert!(paths.contains(&"src/bench/benchmarks.md".to_string()), "{paths:?}");

        let mut all = Vec::new();
        list(&root.join(".."), "", &mut all).unwrap();
        assert!(all.iter().all(|path| !path.starts_with("target/") && !path.contains("/target/")), "{all:?}");
    }

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        let findings = check(&[("src/a.rs", "//! A.\n\npub fn a() {}\n")]);
        let shown: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(shown, ["src/a.rs:3: public function `a` has no documentation"]);
    }

    #[test]
    fn a_document_is_checked_for_phrases_alone_and_the_rule_itself_for_none() {
        let text = "What stands here.\n";
        let shown: Vec<String> = check(&[("docs/a.md", text)]).iter().map(Finding::to_string).collect();
        assert_eq!(shown, ["docs/a.md:1: \"what stands\": say \"what is\""]);
        assert_eq!(check(&[("xtask/src/tidy/a.md", text)]), []);
    }

    #[test]
    fn a_file_that_does_not_parse_is_one_finding() {
        let findings = check(&[("src/a.rs", "//! A.\n\nfn a( {}\n")]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
        assert!(findings[0].text.starts_with("does not parse: "), "{}", findings[0]);
    }
}
