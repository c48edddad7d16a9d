//! Finds circles inside a directory (a "room"): none of its files and directories may depend on one that depends on it.
//! Without circles they stand on floors, each on what it depends on; there are at most ten, or nobody overlooks them.
//!
//! What two of them share is in a third, which depends on neither. A `mod.rs` and its files may depend on one another:
//! they are one module. Like borders, circles are found by the names that files contain, and by the calls through `self`
//! of a type whose methods are in several files; tests may name anything.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;
use syn::spanned::Spanned;

use super::Finding;
use super::calls::Method;
use super::names::Name;
use super::source::Source;

/// The directories that are checked, each with the sources of one crate.
const CRATES: &[&str] = &["src/", "engine/src/", "plan/src/", "proto/src/", "stats/src/", "text/src/", "xtask/src/"];

/// The most floors of a room.
const FLOORS_MAX: usize = 10;

/// Finds the names that close a circle, and those on the top floor of a room that has too many.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let of_room = |room: &Room| circles(room).into_iter().chain(too_high(room)).collect::<Vec<_>>();
    CRATES
        .iter()
        .flat_map(|root| Crate::new(root, sources).rooms().values().flat_map(of_room).collect::<Vec<_>>())
        .collect()
}

/// The circles that are intended: a file, and the module that it names. A request carries the forms in which protocols
/// have written it, and protocols send requests.
const MEANT: &[(&str, &str)] = &[("proto/src/request.rs", "http1"), ("proto/src/request.rs", "http2")];

/// The place of a module: the names that lead to it from the root of its crate.
type Place = [String];

/// What the members of one room name of one another: the member, the one it names, and where for the first time.
type Room = BTreeMap<String, BTreeMap<String, Finding>>;

/// The modules of one crate.
struct Crate<'a> {
    /// The file of each. A library and a binary over it share a root; the library has the modules.
    files: BTreeMap<Vec<String>, &'a Source<'a>>,
}

impl<'a> Crate<'a> {
    /// The crate whose sources are below `root`.
    fn new(root: &str, sources: &'a [Source<'a>]) -> Self {
        let mut files = BTreeMap::new();
        for source in sources {
            let Some(path) = source.path.strip_prefix(root).and_then(|path| path.strip_suffix(".rs")) else { continue };
            let mut place: Vec<String> = path.split('/').map(String::from).collect();
            place.pop_if(|last| ["lib", "main", "mod"].contains(&last.as_str()));
            files.entry(place).or_insert(source);
        }
        Self { files }
    }

    /// Every room in which one file names another, by its place.
    fn rooms(&self) -> BTreeMap<&Place, Room> {
        let mut rooms = BTreeMap::<&Place, Room>::new();
        let defined = self.defined();
        for (from, source) in &self.files {
            let named = source.names.iter().map(|name| (self.resolve(from, name), name.line, name.parts.join("::")));
            let called = source.methods.called.iter().map(|Method { owner, name, line }| {
                // Of types with one name, or methods of traits, it is not known whose it is.
                let homes = defined.get(&(&**owner, &**name)).map_or(&[][..], |homes| homes);
                let home = if let [home] = homes { Some(home.to_vec()) } else { None };
                (home, *line, format!("self.{name}()"))
            });
            for (to, line, text) in named.chain(called).filter(|(_, line, _)| !source.is_test(*line)) {
                let Some(to) = to else { continue };
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if let (Some(who), Some(whom)) = (from.get(common), to.get(common))
                    && !MEANT.contains(&(source.path, whom))
                {
                    let members = rooms.entry(&from[..common]).or_default().entry(who.clone()).or_default();
                    members.entry(whom.clone()).or_insert_with(|| source.finding(line, text));
                }
            }
        }
        rooms
    }

    /// The files that define each method, by the name of its type and its own.
    fn defined(&self) -> BTreeMap<(&str, &str), Vec<&Place>> {
        let mut defined = BTreeMap::<_, Vec<&Place>>::new();
        for (place, source) in &self.files {
            for Method { owner, name, line } in &source.methods.defined {
                if !source.is_test(*line) {
                    defined.entry((&**owner, &**name)).or_default().push(place);
                }
            }
        }
        defined
    }

    /// The module that defines what `name` means in the module `from`, if it is one of this crate.
    fn resolve(&self, from: &Place, name: &Name) -> Option<Vec<String>> {
        let mut place = from.to_vec();
        let mut parts = name.parts.iter().peekable();
        let first = name.parts.first()?;
        match first.as_str() {
            "crate" => place.clear(),
            "self" | "super" => {}
            _ if self.child(from, first).is_some() => {}
            _ => return None,
        }
        while let Some(part) = parts.next_if(|part| ["crate", "self", "super"].contains(&part.as_str())) {
            if part == "super" {
                place.pop()?;
            }
        }
        while let Some(child) = parts.peek().and_then(|part| self.child(&place, part)) {
            place = child;
            parts.next();
        }
        match parts.peek().and_then(|part| self.import(&place, part)) {
            Some(import) => self.resolve(&place, import).or(Some(place)),
            None => Some(place),
        }
    }

    /// The module `name` in the module `place`.
    fn child(&self, place: &Place, name: &str) -> Option<Vec<String>> {
        let child = [place, &[name.to_string()]].concat();
        self.files.contains_key(&child).then_some(child)
    }

    /// What brings `name` into the module `place` from elsewhere.
    fn import(&self, place: &Place, name: &str) -> Option<&'a Name> {
        let source = *self.files.get(place)?;
        let uses = source.tree.items.iter().filter(|item| matches!(item, Item::Use(_))).map(Item::span);
        let lines: Vec<_> = uses.map(|span| span.start().line..=span.end().line).collect();
        source.names.iter().find(|import| {
            import.parts.len() > 1
                && import.parts.last().is_some_and(|last| last == name)
                && lines.iter().any(|lines| lines.contains(&import.line))
                && !source.is_test(import.line)
        })
    }
}

/// Every name in `room` that closes a circle.
fn circles(room: &Room) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (who, named) in room {
        for (whom, name) in named {
            if let Some(way) = way(room, whom, who) {
                let text = format!("names `{}`, and so {who} → {} is a circle", name.text, way.join(" → "));
                findings.push(Finding { text, ..name.clone() });
            }
        }
    }
    findings
}

/// The members of `room` through which `from` depends on `to`, both included, or nothing if it does not.
fn way<'a>(room: &'a Room, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::from([from]);
    let mut ways = vec![vec![from]];
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        let last = way[way.len() - 1];
        if last == to {
            return Some(way);
        }
        let named = room.get(last).into_iter().flat_map(BTreeMap::keys);
        ways.extend(named.filter(|whom| seen.insert(whom)).map(|whom| [&way[..], &[whom]].concat()));
        next += 1;
    }
    None
}

/// The floors of `room`, the ground floor first: on each, what names nothing but what is below. What is in a circle, or
/// above one, is on none.
fn floors(room: &Room) -> Vec<Vec<&str>> {
    let mut left: BTreeSet<&str> =
        room.iter().flat_map(|(who, named)| named.keys().chain([who])).map(|it| &**it).collect();
    let mut floors = Vec::new();
    loop {
        let is_free =
            |who: &&&str| room.get(**who).is_none_or(|named| !named.keys().any(|whom| left.contains(&**whom)));
        let floor: Vec<&str> = left.iter().filter(is_free).copied().collect();
        if floor.is_empty() {
            return floors;
        }
        left.retain(|who| !floor.contains(who));
        floors.push(floor);
    }
}

/// That `room` has too many floors, with all of them, the highest first.
fn too_high(room: &Room) -> Option<Finding> {
    let floors = floors(room);
    let top = floors.last().filter(|_| floors.len() > FLOORS_MAX)?;
    let name = room.get(top[0])?.values().next()?;
    let line = |(index, floor): (usize, &Vec<&str>)| format!("\n  {:>2}. {}", index + 1, floor.join(", "));
    let lines: String = floors.iter().enumerate().rev().map(line).collect();
    let text = format!("names `{}` from floor {}, and {FLOORS_MAX} are the most:{lines}", name.text, floors.len());
    Some(Finding { text, ..name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings in files, each given by its path and its text.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::parse(path, text).unwrap()).collect();
        check(&sources).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn two_files_that_name_one_another_are_a_circle() {
        assert_eq!(
            found(&[
                ("src/room/mod.rs", "mod a;\nmod b;\n"),
                ("src/room/a.rs", "use super::b::B;\n"),
                ("src/room/b.rs", "use std::fmt;\n\nfn f(a: crate::room::a::A) {}\n"),
            ]),
            [
                "src/room/a.rs:1: names `super::b::B`, and so a → b → a is a circle",
                "src/room/b.rs:3: names `crate::room::a::A`, and so b → a → b is a circle"
            ]
        );
    }

    #[test]
    fn a_circle_may_lead_through_others_and_through_what_the_room_imports() {
        let findings = found(&[
            ("src/a/mod.rs", "mod deep;"),
            ("src/a/deep.rs", "use crate::b::B;"),
            ("src/b/mod.rs", "pub use crate::c::C as B;\npub use self::deep::Deep;\nmod deep;"),
            ("src/b/deep.rs", "fn f() { crate::c::f() }"),
            ("src/c.rs", "fn f() { crate::a::deep::g() }"),
        ]);
        assert_eq!(
            findings,
            [
                "src/a/deep.rs:1: names `crate::b::B`, and so a → b → c → a is a circle",
                "src/b/mod.rs:1: names `crate::c::C`, and so b → c → a → b is a circle",
                "src/c.rs:1: names `crate::a::deep::g`, and so c → a → b → c is a circle"
            ]
        );
        let through_room = found(&[
            ("src/room/mod.rs", "mod a;\nmod b;\nuse {self::a::A, b::B};"),
            ("src/room/a.rs", "use super::B;"),
            ("src/room/b.rs", "fn f() { super::A::new() }"),
        ]);
        assert_eq!(
            through_room,
            [
                "src/room/a.rs:1: names `super::B`, and so a → b → a is a circle",
                "src/room/b.rs:1: names `super::A::new`, and so b → a → b is a circle"
            ]
        );
    }

    #[test]
    fn a_circle_may_lead_through_the_methods_of_one_type() {
        let files = [
            ("src/room/mod.rs", "mod a;\nmod b;\npub struct X;"),
            ("src/room/a.rs", "use super::X;\nimpl X { fn a(&self) { self.b() } }"),
            ("src/room/b.rs", "use super::X;\nimpl X { fn b(&self) { assert!(self.a()) } }"),
        ];
        assert_eq!(
            found(&files),
            [
                "src/room/a.rs:2: names `self.b()`, and so a → b → a is a circle",
                "src/room/b.rs:2: names `self.a()`, and so b → a → b is a circle"
            ]
        );
        let other = ("src/c.rs", "struct X; impl X { fn b(&self) {} }");
        assert_eq!(found(&[files[0], files[1], files[2], other]), [""; 0], "it is not known whose it is");
    }

    #[test]
    fn a_room_has_at_most_ten_floors() {
        let stack = |files: usize| {
            let path = |index: usize| format!("src/room/a{index:02}.rs");
            let text = |index: usize| {
                if index > 1 { format!("fn f() {{ super::a{:02}::f() }}", index - 1) } else { String::new() }
            };
            let files: Vec<(String, String)> = (1..=files).map(|index| (path(index), text(index))).collect();
            let beside = ("src/room/beside.rs", "fn f() { super::a01::f() }");
            found(&files.iter().map(|(path, text)| (&**path, &**text)).chain([beside]).collect::<Vec<_>>())
        };
        assert_eq!(stack(10), [""; 0]);
        assert_eq!(
            stack(11),
            ["src/room/a11.rs:1: names `super::a10::f` from floor 11, and 10 are the most:\n  11. a11\n  10. a10\n   \
              9. a09\n   8. a08\n   7. a07\n   6. a06\n   5. a05\n   4. a04\n   3. a03\n   2. a02, beside\n   1. a01"]
        );
    }

    #[test]
    fn nothing_is_found_without_a_circle() {
        let none: [&str; 0] = [];
        let room = "mod a;\nmod b;\nuse a::A;\npub struct Shared;";
        let test = "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}";
        let files = [
            ("src/room/mod.rs", room),
            ("src/room/a.rs", "use super::b::B;\nuse super::Shared;"),
            ("src/room/b.rs", test),
            ("src/room/tests.rs", "use super::{a::A, b::B};"),
        ];
        assert_eq!(found(&files), none);
        assert_eq!(found(&[("src/a.rs", "use crate::b::B;"), ("proto/src/b.rs", "use crate::a::A;")]), none);
        assert_eq!(found(&[("tests/a.rs", "use super::b::B;"), ("tests/b.rs", "use super::a::A;")]), none);
        assert_eq!(found(&[("src/a.rs", "use b::B;"), ("src/b.rs", "use a::A;")]), none);
    }
}
