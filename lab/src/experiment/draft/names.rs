//! Derives the names of result files from factors and levels.

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use onrush_plan::experiment::{Factor, Point};
use onrush_plan::secrets::KnownSecrets;

use super::options::{ARGS, COMMAND, URL, redact_value};
use super::outline::OutlineLevel;

/// Maximum length of the file-name prefix of a point, in bytes. A longer one is cut, and a digest is appended.
const LENGTH_MAX: usize = 100;

/// Number of digits of the digest in a name that was cut.
const DIGITS: usize = 8;

/// The part of a file name for a factor and its level: `connections-8`, with the label, or with a number if the value
/// is not suitable for a file name. `index` is counted from 0. Contains no secrets.
pub(super) fn factor_file(factor: &str, level: &OutlineLevel, index: usize, known: &KnownSecrets) -> String {
    let is_no_word = |key: &str| [URL, ARGS, COMMAND, "header", "body", "basic-auth", "http-proxy"].contains(&key);
    let of = |(key, values): &(String, Vec<String>)| match &values[..] {
        _ if is_no_word(key) => format!("{}{}", last_name_part(key), index + 1),
        [] => format!("{}-on", last_name_part(key)),
        _ => {
            let shown: Vec<String> = values.iter().map(|value| known.hide_in(&redact_value(key, value))).collect();
            format!("{}-{}", last_name_part(key), slug(&shown.join("_")))
        }
    };
    match (&level.label, &level.sets[..]) {
        (Some(label), _) => format!("{}-{}", last_name_part(factor), slug(label)),
        (None, []) => format!("{}-off", last_name_part(factor)),
        (None, sets) => sets.iter().map(of).collect::<Vec<_>>().join("-"),
    }
}

/// The last part of a setting's name. Other names are unchanged.
fn last_name_part(name: &str) -> String {
    slug(name.rsplit('.').next().unwrap_or(name))
}

/// A string in a form suitable for file names: characters outside `[A-Za-z0-9._-]` become underscores.
pub(super) fn slug(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let shown: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    // A name must neither be hidden nor look like an option.
    shown.trim_start_matches(['.', '-']).to_owned()
}

/// File-name prefix of the results of a point, short enough for any file system.
pub(super) fn result_prefix(factors: &[Factor], levels: &[usize]) -> String {
    let each = factors.iter().zip(levels).map(|(factor, &level)| factor.levels[level].file.as_str());
    let name = each.collect::<Vec<_>>().join("-");
    if name.is_empty() {
        return "run".to_owned();
    }
    if name.len() <= LENGTH_MAX {
        return name;
    }
    let digest = digest::digest(&digest::SHA256, name.as_bytes());
    let digits: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}", &name[..LENGTH_MAX], &digits[..DIGITS])
}

/// Rejects points whose results would have the same file names.
pub(super) fn check_distinct_files(factors: &[Factor], points: &[Point]) -> Result<(), String> {
    let mut names = BTreeMap::new();
    for point in points {
        let shown: Vec<&str> =
            factors.iter().zip(&point.levels).map(|(factor, &level)| factor.levels[level].shown.as_str()).collect();
        let shown = shown.join(" ");
        // Some file systems ignore case.
        if let Some(other) = names.insert(point.file.to_ascii_lowercase(), shown.clone()) {
            let file = &point.file;
            return Err(format!(
                "{other:?} and {shown:?} would both be written to {file}-1.json; give one of them another label"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(label: Option<&str>, sets: &[(&str, &str)]) -> OutlineLevel {
        let set = |(key, value): &(&str, &str)| (key.to_string(), vec![value.to_string()]);
        OutlineLevel { label: label.map(str::to_owned), sets: sets.iter().map(set).collect() }
    }

    #[test]
    fn run_names_are_safe_file_names() {
        let table = [
            ("connections", level(None, &[("connections", "8")]), "connections-8"),
            ("url", level(Some("nginx 1.26/ä"), &[("url", "http://h/")]), "url-nginx_1.26__"),
            ("url", level(None, &[("url", "http://h/")]), "url3"),
            (
                "buffers",
                level(None, &[("sysctl.net.core.rmem_max", "16777216"), ("sysctl.net.core.wmem_max", "16777216")]),
                "rmem_max-16777216-wmem_max-16777216",
            ),
            (
                "tcp",
                level(None, &[("sysctl.net.ipv4.tcp_rmem", "4096 131072 6291456")]),
                "tcp_rmem-4096_131072_6291456",
            ),
            ("x", level(Some("../.."), &[]), "x-_.."),
            ("latency", level(None, &[]), "latency-off"),
        ];
        for (factor, level, expected) in table {
            assert_eq!(factor_file(factor, &level, 2, &KnownSecrets::default()), expected);
        }
    }
}
