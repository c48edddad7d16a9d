//! Lays the sentences out as a page: chapters in the order in which a user meets them, and a table per source file.

use std::fmt::Write as _;

use super::Section;

/// What comes before the chapters.
const HEAD: &str = include_str!("head.md");

/// The chapters, each with the paths that its source files begin with. The longest of all that fit decides.
const CHAPTERS: [(&str, &[&str]); 12] = [
    ("The command line", &["src/cli/", "src/plan/", "src/session.rs"]),
    (
        "Before and after a run",
        &["src/program/", "src/main.rs", "src/report/mod.rs", "src/run/", "src/backend/", "src/live/"],
    ),
    (
        "What failed",
        &[
            "src/report/failure.rs",
            "src/report/errno.rs",
            "src/report/tls.rs",
            "src/report/proxy.rs",
            "src/engine/tls/",
            "proto/src/error.rs",
        ],
    ),
    ("The report and its notes", &["src/report/"]),
    ("What was the limit", &["src/verdict/", "src/report/verdict.rs", "src/run/sight/"]),
    ("Files", &["src/report/files/", "src/report/input.rs", "src/report/result/", "src/report/merge.rs", "src/stats/"]),
    ("The search for the highest load", &["src/cli/search.rs", "src/program/search.rs", "src/search/"]),
    ("Experiments", &["src/cli/lab/", "src/program/lab/", "src/program/ask.rs", "src/lab/"]),
    ("Kernel settings", &["src/cli/restore.rs", "src/program/restore.rs", "src/settings/"]),
    ("Comparisons and tables", &["src/cli/compare.rs", "src/cli/table.rs", "src/compare/", "src/tables/"]),
    ("Scripts", &["src/script/", "src/engine/", "proto/src/http1/"]),
    ("The embedded target", &["src/serve/"]),
];

/// The titles of the chapters.
pub(super) fn chapters() -> impl Iterator<Item = &'static str> {
    CHAPTERS.iter().map(|(title, _)| *title)
}

/// The chapter of a source file and the place of its path in it; `None`: it is in none.
pub(super) fn chapter(path: &str) -> Option<(usize, usize)> {
    let chapters = CHAPTERS.iter().enumerate();
    let all = chapters
        .flat_map(|(chapter, (_, paths))| paths.iter().enumerate().map(move |(at, begin)| (begin, chapter, at)));
    let found = all.filter(|(begin, ..)| path.starts_with(**begin)).max_by_key(|(begin, ..)| begin.len());
    found.map(|(_, chapter, at)| (chapter, at))
}

/// The page.
pub(super) fn page(sections: &[Section<'_>]) -> String {
    let (mut contents, mut text) = (String::new(), String::new());
    for (index, (title, _)) in CHAPTERS.iter().enumerate() {
        let mut inside: Vec<(usize, &Section<'_>)> = sections
            .iter()
            .filter_map(|section| {
                chapter(section.path).filter(|(chapter, _)| *chapter == index).map(|(_, at)| (at, section))
            })
            .collect();
        inside.sort_by_key(|(at, section)| (*at, section.path));
        let _ = write!(text, "\n## {title}\n");
        let tables = inside.into_iter().filter_map(|(_, section)| table(section));
        let titles: Vec<String> = tables
            .map(|(title, table)| {
                text.push_str(&table);
                format!("[{title}](#{})", anchor(title))
            })
            .collect();
        let _ = writeln!(contents, "- **{title}**: {}", titles.join(" · "));
    }
    format!("{HEAD}\n{contents}{text}")
}

/// The part of a link that leads to a heading, as renderers of Markdown make it.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The title and the table of a source file; `None`: all its sentences are ignored. Cells that are the same in all rows
/// are in a line above.
fn table<'a>(section: &Section<'a>) -> Option<(&'a str, String)> {
    const NAMES: [&str; 3] = ["when", "exit code", "what to do"];
    let remarks = section.remarks?;
    let mut rows: Vec<(String, [&str; 3])> = Vec::new();
    for (item, messages) in section.items().iter().filter(|(item, _)| !section.is_ignored(item)) {
        let mut texts: Vec<String> = Vec::new();
        for text in messages.iter().map(|message| code(&message.text)) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        rows.push((texts.join("<br>"), section.cells(item).map(Option::unwrap_or_default)));
    }
    let (_, first) = rows.first()?;
    let is_common = |column: usize| rows.len() > 1 && rows.iter().all(|(_, cells)| cells[column] == first[column]);
    let (common, own): (Vec<usize>, Vec<usize>) = (0..NAMES.len()).partition(|column| is_common(*column));
    let mut text = format!("\n### {}\n\n`{}`", remarks.title, section.path);
    for column in common {
        let _ = write!(text, " · {}: {}", NAMES[column], first[column].trim_end_matches('.'));
    }
    let heads: Vec<&str> = ["message"].into_iter().chain(own.iter().map(|column| NAMES[*column])).collect();
    let _ = write!(text, "\n\n| {} |\n|{}\n", heads.join(" | "), " --- |".repeat(heads.len()));
    for (sentence, cells) in &rows {
        let cells: Vec<&str> = own.iter().map(|column| cells[*column]).collect();
        let _ = writeln!(text, "| {} |", [&[&sentence[..]], &cells[..]].concat().join(" | "));
    }
    Some((&remarks.title, text))
}

/// A sentence as code in a cell of a table, with its placeholders reduced to their names.
pub(super) fn code(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        shown.push_str(before);
        if let Some(after) = after.strip_prefix('{') {
            shown.push('{');
            rest = after;
            continue;
        }
        let (inside, after) = after.split_once('}').unwrap_or((after, ""));
        let name = inside.split([':', '.', '?']).next().unwrap_or_default();
        let is_named = name.starts_with(|c: char| c.is_alphabetic());
        shown.push_str(&if is_named { format!("{{{name}}}") } else { "…".to_owned() });
        rest = after;
    }
    shown.push_str(rest);
    let line = shown.replace("}}", "}").split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    if line.contains('`') { format!("`` {line} ``") } else { format!("`{line}`") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{message, remarks};
    use super::*;

    #[test]
    fn placeholders_are_shown_by_their_names() {
        assert_eq!(code("{count:>3} of {} are {{x}} {name:?} a|b"), "`{count} of … are {x} {name} a\\|b`");
        assert_eq!(code("say `it`"), "`` say `it` ``");
    }

    #[test]
    fn the_longest_path_decides_the_chapter() {
        let title = |path| chapter(path).map(|(chapter, _)| CHAPTERS[chapter].0);
        assert_eq!(title("src/report/notes/words.rs"), Some("The report and its notes"));
        assert_eq!(title("src/report/tls.rs"), Some("What failed"));
        assert_eq!(title("src/cli/table.rs"), Some("Comparisons and tables"));
        assert_eq!(title("src/new/mod.rs"), None);
    }

    #[test]
    fn what_all_rows_share_is_above_the_table() {
        let text = "[\"src/serve/a.rs\"]\ntitle = \"A: b_c, 1\"\nwhen = \"always\"\nexit = \"1\"\n\
                    items.one = { do = \"this\" }\nitems.two = { do = \"that\" }\n";
        let remarks = remarks(text);
        let messages = vec![message("one", "first words"), message("two", "second words")];
        let section = Section { path: "src/serve/a.rs", messages, remarks: remarks.get("src/serve/a.rs") };
        let page = page(&[section]);
        assert!(page.contains("- **The embedded target**: [A: b_c, 1](#a-b_c-1)\n"), "{page}");
        let table = "\n### A: b_c, 1\n\n`src/serve/a.rs` · when: always · exit code: 1\n\n| message | what to do |\n\
                     | --- | --- |\n| `first words` | this |\n| `second words` | that |\n";
        assert!(page.ends_with(table), "{page}");
    }
}
