//! The house rules that neither the compiler nor clippy checks: the borders between modules, no circles, and
//! documentation of everything public.
//!
//! Each check is a pure function from parsed files to what is wrong with them. Only [`tree`] touches the disk, and
//! nothing here ever changes a file.

mod borders;
mod calls;
mod circles;
mod docs;
mod names;
mod source;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use source::Source;

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

/// Checks every Rust file below `root`.
///
/// # Errors
/// A directory or a file that cannot be read.
pub fn tree(root: &Path) -> io::Result<Vec<Finding>> {
    let mut paths = Vec::new();
    list(root, "", &mut paths)?;
    paths.sort();
    let files: Vec<(String, String)> =
        paths.into_iter().map(|path| Ok((fs::read_to_string(root.join(&path))?, path))).collect::<io::Result<_>>()?;
    Ok(check(files.iter().map(|(text, path)| (&path[..], &text[..]))))
}

/// Checks files, each given by its path from the root of the repository and its text; sorts what is found by path and
/// line.
fn check<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let (mut sources, mut findings) = (Vec::new(), Vec::new());
    for (path, text) in files {
        match Source::parse(path, text) {
            Ok(source) => sources.push(source),
            Err(finding) => findings.push(finding),
        }
    }
    findings.extend(sources.iter().flat_map(|source| [borders::check(source), docs::check(source)].concat()));
    findings.extend(circles::check(&sources));
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    findings
}

/// Adds the Rust files in `directory` (relative to `root`) and below to `paths`, without built or hidden ones.
fn list(root: &Path, directory: &str, paths: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                list(root, &path, paths)?;
            }
        } else if name.ends_with(".rs") {
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
        let mut paths = Vec::new();
        list(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), "", &mut paths).unwrap();
        assert!(["src/main.rs", "xtask/src/tidy/mod.rs"].iter().all(|path| paths.contains(&path.to_string())));
        assert!(paths.iter().all(|path| !path.starts_with("target/") && !path.contains("/target/")), "{paths:?}");
    }

    #[test]
    fn a_file_that_does_not_parse_is_one_finding() {
        let findings = check([("src/a.rs", "//! A.\n\nfn a( {}\n")]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 3);
        assert!(findings[0].text.starts_with("does not parse: "), "{}", findings[0]);
    }
}
