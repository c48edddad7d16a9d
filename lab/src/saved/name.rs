//! Parses the parameters of a run in a file name: `buffers-rmem_max-262144-wmem_max-262144-1.json`.

use std::path::Path;

/// The parts of a result's file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResultName {
    /// The part before the factors, or the whole name.
    pub prefix: String,
    /// The factors in the order of the name, each with its level.
    pub factors: Vec<(String, String)>,
    /// The number of the run at the end of the name; `None` for other names.
    pub run: Option<u64>,
}

impl ResultName {
    /// Parses a file name from its end: the number of the run, preceded by pairs of a factor and its level. A level
    /// starts with a digit. A name without a number has no factors.
    pub fn from_path(path: &Path) -> Self {
        let stem = stem(path);
        let mut parts: Vec<&str> = stem.split('-').collect();
        let run = parts.last().filter(|_| parts.len() > 1).and_then(|last| last.parse().ok());
        if run.is_none() {
            return Self { prefix: stem, ..Self::default() };
        }
        parts.pop();
        let mut factors = Vec::new();
        while let [.., factor, level] = parts[..]
            && factor.starts_with(|first: char| first.is_alphabetic())
            && level.starts_with(|first: char| first.is_ascii_digit())
        {
            factors.insert(0, (factor.to_owned(), level.to_owned()));
            parts.truncate(parts.len() - 2);
        }
        Self { prefix: parts.join("-"), factors, run }
    }
}

/// The file name without `.gz` and without its last extension.
pub fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_hold_factors_and_run_number() {
        let table = [
            (
                "t/buffertest-rmem_max-262144-wmem_max-524288-3.json",
                "buffertest",
                "rmem_max=262144 wmem_max=524288",
                Some(3),
            ),
            ("c-10k-02.json.gz", "", "c=10k", Some(2)),
            ("nginx-http-1.log", "nginx-http", "", Some(1)),
            ("a-c-10.json", "a-c", "", Some(10)),
            ("result.json", "result", "", None),
            ("7.json", "7", "", None),
            ("-", "-", "", None),
        ];
        for (path, prefix, factors, run) in table {
            let factors = factors.split_whitespace().filter_map(|pair| pair.split_once('='));
            let factors = factors.map(|(factor, level)| (factor.to_owned(), level.to_owned())).collect();
            assert_eq!(
                ResultName::from_path(Path::new(path)),
                ResultName { prefix: prefix.to_owned(), factors, run },
                "{path}"
            );
        }
    }
}
