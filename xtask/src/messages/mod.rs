//! `make messages`: writes `docs/messages.md`, with every sentence of the program, when it is printed, the exit code
//! and what to do.
//!
//! [`collect`] finds the sentences in the source, and [`page`] lays them out. The other columns are written by hand in `xtask/messages/`: a file
//! per area, with a table per source file and an entry per item. The test at the end fails if a sentence has no entry
//! or an entry no sentence, and if two items have the same sentence.

mod collect;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize;

use crate::tidy::{self, Source};
use collect::Message;

/// The page, from the root of the repository.
const PAGE: &str = "docs/messages.md";
/// The directory of the remarks, from the root of the repository.
const REMARKS: &str = "xtask/messages";
/// The directories whose sentences users read.
const SOURCES: [&str; 2] = ["src/", "proto/src/"];
/// What scripts find in their state, in Lua.
const SCRIPT: &str = "src/script/wrk.lua";

/// How remarks begin that leave their reader where the message did.
const EMPTY: [&str; 4] = ["As it says", "Follow the advice", "Nothing.", "See above"];

/// The remarks on the sentences of a source file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRemarks {
    /// The heading.
    title: String,
    /// Why no sentence of the file is a message, if so.
    ignored: Option<String>,
    /// When they are printed; items may differ.
    when: Option<String>,
    /// The exit code; items may differ.
    exit: Option<String>,
    /// What to do; items may differ.
    #[serde(rename = "do")]
    remedy: Option<String>,
    /// The items that differ.
    #[serde(default)]
    items: BTreeMap<String, Remark>,
}

/// The remark on the sentences of an item.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remark {
    /// Why it has no message.
    ignored: Option<String>,
    when: Option<String>,
    exit: Option<String>,
    #[serde(rename = "do")]
    remedy: Option<String>,
}

/// The sentences of a file and the remarks on them.
struct Section<'a> {
    path: &'a str,
    messages: Vec<Message>,
    remarks: Option<&'a FileRemarks>,
}

/// Writes the page, or says what is missing.
///
/// # Errors
/// A file that cannot be read or written.
pub fn run(root: &Path) -> io::Result<ExitCode> {
    let (page, flaws) = make(root)?;
    if flaws.is_empty() {
        fs::write(root.join(PAGE), page)?;
        println!("wrote {PAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}\nmessages: {} flaws", flaws.join("\n"), flaws.len());
    Ok(ExitCode::FAILURE)
}

/// The page, and what is wrong with the remarks.
fn make(root: &Path) -> io::Result<(String, Vec<String>)> {
    let remarks = read_remarks(root)?;
    let files = tidy::read(root)?;
    let mut sections = Vec::new();
    for (path, text) in &files {
        if path.ends_with(".rs") && SOURCES.iter().any(|source| path.starts_with(source)) {
            let source = Source::parse(path, text).map_err(|flaw| io::Error::other(flaw.to_string()))?;
            let messages = collect::collect(&source);
            if !messages.is_empty() {
                sections.push(Section { path, messages, remarks: remarks.get(path) });
            }
        }
    }
    let messages = collect::collect_lua(&fs::read_to_string(root.join(SCRIPT))?);
    sections.push(Section { path: SCRIPT, messages, remarks: remarks.get(SCRIPT) });
    let mut flaws: Vec<String> = sections.iter().flat_map(Section::flaws).collect();
    let known: BTreeSet<&str> = sections.iter().map(|section| section.path).collect();
    let stale = remarks.keys().filter(|path| !known.contains(&path[..]));
    flaws.extend(stale.map(|path| format!("{path}: has remarks and no sentence")));
    flaws.extend(twice(&sections));
    flaws.extend(titles(&sections));
    Ok((page::page(&sections), flaws))
}

/// The remarks of all files, by their path.
fn read_remarks(root: &Path) -> io::Result<BTreeMap<String, FileRemarks>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(root.join(REMARKS))? {
        let path = entry?.path();
        let area: BTreeMap<String, FileRemarks> = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        for (source, remarks) in area {
            if all.insert(source.clone(), remarks).is_some() {
                return Err(io::Error::other(format!("{}: {source} has remarks in two files", path.display())));
            }
        }
    }
    Ok(all)
}

impl Section<'_> {
    /// The messages by their item, in the order of the file.
    fn items(&self) -> Vec<(&str, Vec<&Message>)> {
        let mut items: Vec<(&str, Vec<&Message>)> = Vec::new();
        for message in &self.messages {
            match items.iter_mut().find(|(item, _)| *item == message.item) {
                Some((_, messages)) => messages.push(message),
                None => items.push((&message.item, vec![message])),
            }
        }
        items
    }

    /// The remark on an item: from its own entry, from those of the enclosing items, or from the file.
    fn find<'a>(&'a self, item: &str, pick: impl Fn(&'a Remark) -> &'a Option<String>) -> Option<&'a str> {
        let remarks = self.remarks?;
        let mut name = item;
        loop {
            if let Some(found) = remarks.items.get(name).and_then(|remark| pick(remark).as_deref()) {
                return Some(found);
            }
            name = name.rsplit_once('/')?.0;
        }
    }

    /// Whether an item has no message.
    fn is_ignored(&self, item: &str) -> bool {
        self.remarks.is_some_and(|remarks| remarks.ignored.is_some())
            || self.find(item, |remark| &remark.ignored).is_some()
    }

    /// When, exit code and what to do.
    fn cells(&self, item: &str) -> [Option<&str>; 3] {
        let of_file =
            |pick: fn(&FileRemarks) -> &Option<String>| self.remarks.and_then(|remarks| pick(remarks).as_deref());
        [
            self.find(item, |remark| &remark.when).or(of_file(|remarks| &remarks.when)),
            self.find(item, |remark| &remark.exit).or(of_file(|remarks| &remarks.exit)),
            self.find(item, |remark| &remark.remedy).or(of_file(|remarks| &remarks.remedy)),
        ]
    }

    /// What is missing, and what is stale.
    fn flaws(&self) -> Vec<String> {
        let Some(remarks) = self.remarks else {
            return vec![format!("{}: no remarks, and {} sentences", self.path, self.messages.len())];
        };
        let items = self.items();
        let mut flaws = Vec::new();
        for (item, messages) in items.iter().filter(|(item, _)| !self.is_ignored(item)) {
            for (name, cell) in ["when", "exit", "do"].iter().zip(self.cells(item)) {
                if cell.is_none_or(|cell| cell.trim().is_empty()) {
                    flaws.push(format!("{}: {item} has no `{name}`: {:?}", self.path, messages[0].text));
                } else if cell.is_some_and(|cell| EMPTY.iter().any(|words| cell.starts_with(words))) {
                    flaws.push(format!(
                        "{}: `{name}` of {item} says nothing: {:?}",
                        self.path,
                        cell.unwrap_or_default()
                    ));
                }
            }
        }
        let is_there = |name: &str| {
            items
                .iter()
                .any(|(item, _)| *item == name || item.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
        };
        let stale = remarks.items.keys().filter(|name| !is_there(name));
        flaws.extend(stale.map(|name| format!("{}: {name} has a remark and no sentence", self.path)));
        flaws
    }
}

/// Sections in no chapter, and titles that are given twice, so that a link leads to the wrong place.
fn titles(sections: &[Section<'_>]) -> Vec<String> {
    let mut flaws = Vec::new();
    let mut known: BTreeSet<&str> = page::chapters().collect();
    for section in sections {
        let Some(remarks) = section.remarks.filter(|remarks| remarks.ignored.is_none()) else { continue };
        if page::chapter(section.path).is_none() {
            flaws.push(format!("{}: is in no chapter of the page", section.path));
        }
        if !known.insert(&remarks.title) {
            flaws.push(format!("{}: the title {:?} is given twice", section.path, remarks.title));
        }
    }
    flaws
}

/// Sentences that are in two items.
fn twice(sections: &[Section<'_>]) -> Vec<String> {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in sections {
        // A script may raise what the program recognizes by its words.
        let is_twice = |message: &&Message| section.path != SCRIPT && !section.is_ignored(&message.item);
        for message in section.messages.iter().filter(is_twice) {
            let item = message.item.split('/').next().unwrap_or_default();
            places.entry(page::code(&message.text)).or_default().insert(format!("{} {item}", section.path));
        }
    }
    let twice = places.into_iter().filter(|(_, places)| places.len() > 1);
    twice
        .map(|(text, places)| format!("{text} is in {}", places.into_iter().collect::<Vec<_>>().join(" and ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_messages_has_every_sentence_of_the_program_and_what_to_do_about_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (page, flaws) = make(&root).unwrap();
        assert!(flaws.is_empty(), "{} flaws; the remarks are in {REMARKS}:\n{}", flaws.len(), flaws.join("\n"));
        let written = fs::read_to_string(root.join(PAGE)).unwrap();
        assert!(page == written, "{PAGE} is not up to date: `cargo xtask messages` rewrites it");
    }

    pub(super) fn remarks(text: &str) -> BTreeMap<String, FileRemarks> {
        toml::from_str(text).unwrap()
    }

    pub(super) fn message(item: &str, text: &str) -> Message {
        Message { item: item.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_sentence_without_a_remark_and_a_remark_without_a_sentence_are_flaws() {
        let remarks = remarks(
            r#"["src/a.rs"]
title = "A"
when = "always"
exit = "1"
["src/a.rs".items]
"#,
        );
        let section = |messages| Section { path: "src/a.rs", messages, remarks: remarks.get("src/a.rs") };
        let flaws = section(vec![message("line", "it is late")]).flaws();
        assert_eq!(flaws, ["src/a.rs: line has no `do`: \"it is late\""]);
        let empty = BTreeMap::from([(
            "line".to_owned(),
            Remark { remedy: Some("As it says.".to_owned()), ..Remark::default() },
        )]);
        let empty = FileRemarks {
            title: "A".to_owned(),
            ignored: None,
            when: Some("always".to_owned()),
            exit: Some("1".to_owned()),
            remedy: None,
            items: empty,
        };
        let section =
            Section { path: "src/a.rs", messages: vec![message("line", "it is late")], remarks: Some(&empty) };
        assert_eq!(section.flaws(), ["src/a.rs: `do` of line says nothing: \"As it says.\""]);
        let nothing = Section { path: "src/b.rs", messages: vec![message("line", "it is late")], remarks: None };
        assert_eq!(nothing.flaws(), ["src/b.rs: no remarks, and 1 sentences"]);
    }

    #[test]
    fn an_arm_has_the_remark_of_its_item_unless_it_has_its_own() {
        let text = r#"["src/a.rs"]
title = "A"
exit = "1"
items."Note::fmt" = { when = "at the end", do = "nothing" }
items."Note::fmt/Lost" = { do = "more" }
items.gone = { do = "less" }
"#;
        let remarks = remarks(text);
        let messages = vec![message("Note::fmt/Lost", "one lost"), message("Note::fmt", "two words")];
        let section = Section { path: "src/a.rs", messages, remarks: remarks.get("src/a.rs") };
        assert_eq!(section.cells("Note::fmt/Lost"), [Some("at the end"), Some("1"), Some("more")]);
        assert_eq!(section.cells("Note::fmt/Found"), [Some("at the end"), Some("1"), Some("nothing")]);
        assert_eq!(section.flaws(), ["src/a.rs: gone has a remark and no sentence"]);
        let again =
            Section { path: "src/b.rs", messages: vec![message("line", "one lost")], remarks: remarks.get("src/a.rs") };
        assert_eq!(twice(&[section, again]), ["`one lost` is in src/a.rs Note::fmt and src/b.rs line"]);
    }
}
