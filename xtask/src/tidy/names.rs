//! Finds what a file names: paths such as `std::time::Instant`, macros such as `println!`, keywords such as `unsafe`.
//!
//! It works on tokens, so that names in macro calls are found and those in comments and strings are not. It resolves
//! nothing: an item imported under another name is only seen at its import.

use proc_macro2::{Ident, Punct, Spacing, TokenStream, TokenTree};

/// A path, a macro or a keyword, where it is named.
#[derive(Clone, Debug)]
pub struct Name {
    /// Its parts. A macro's last part ends with `!`; a glob import's is `*`.
    pub parts: Vec<String>,
    /// The line, counted from 1.
    pub line: usize,
}

impl Name {
    /// Whether the parts of `pattern`, for instance `thread::spawn`, are in this name, one after the other.
    pub fn contains(&self, pattern: &str) -> bool {
        let pattern: Vec<&str> = pattern.split("::").collect();
        self.parts.windows(pattern.len()).any(|parts| parts == pattern)
    }
}

/// Every name in `tokens`, in the order of the text; `use a::{b, c}` names `a`, `a::b` and `a::c`.
pub fn collect(tokens: TokenStream) -> Vec<Name> {
    let mut names = Vec::new();
    walk(tokens, &[], &mut names);
    names
}

/// Adds the names in `tokens` to `names`, each after the path `outer` that comes before the braces of a `use`.
fn walk(tokens: TokenStream, outer: &[String], names: &mut Vec<Name>) {
    let mut reader = Reader { outer, name: None, colons: 0, names };
    let mut before = [None, None];
    for token in tokens {
        match &token {
            TokenTree::Ident(ident) if !is_member(before) => reader.ident(ident),
            TokenTree::Punct(punct) => reader.punct(punct),
            TokenTree::Group(group) => {
                let inside = if reader.colons == 2 { reader.parts().to_vec() } else { Vec::new() };
                reader.end();
                walk(group.stream(), &inside, reader.names);
            }
            _ => reader.end(),
        }
        let punct = if let TokenTree::Punct(punct) = &token { Some(punct.as_char()) } else { None };
        before = [before[1], punct];
    }
    reader.end();
}

/// Whether the token after these two is a field or a method: after a dot, but not after the two of a range.
fn is_member(before: [Option<char>; 2]) -> bool {
    before[1] == Some('.') && before[0] != Some('.')
}

/// Assembles one name after the other, token by token.
struct Reader<'a> {
    outer: &'a [String],
    name: Option<Name>,
    /// How much of a `::` follows the name.
    colons: u8,
    names: &'a mut Vec<Name>,
}

impl Reader<'_> {
    fn ident(&mut self, ident: &Ident) {
        if self.colons != 2 {
            self.end();
        }
        let line = ident.span().start().line;
        let name = self.name.get_or_insert_with(|| Name { parts: self.outer.to_vec(), line });
        let is_outer_itself = ident == "self" && !self.outer.is_empty();
        if !is_outer_itself {
            name.parts.push(ident.to_string());
        }
        self.colons = 0;
        if ident == "use" {
            // What follows is never part of it, not even `::a`.
            self.end();
        }
    }

    fn punct(&mut self, punct: &Punct) {
        match (punct.as_char(), self.colons) {
            (':', 0) if punct.spacing() == Spacing::Joint => self.colons = 1,
            (':', 1) => self.colons = 2,
            ('*', 2) => {
                self.change(|parts| parts.push("*".to_string()));
                self.end();
            }
            ('!', 0) if punct.spacing() == Spacing::Alone => {
                self.change(|parts| {
                    if let Some(last) = parts.last_mut() {
                        last.push('!');
                    }
                });
                self.end();
            }
            _ => self.end(),
        }
    }

    /// The parts read so far.
    fn parts(&self) -> &[String] {
        self.name.as_ref().map_or(&[], |name| &name.parts)
    }

    /// Changes the parts read so far.
    fn change(&mut self, change: impl FnOnce(&mut Vec<String>)) {
        if let Some(name) = &mut self.name {
            change(&mut name.parts);
        }
    }

    /// The name ends here, if one was begun.
    fn end(&mut self) {
        self.names.extend(self.name.take());
        self.colons = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of more than one part and the macros in `text`.
    fn names(text: &str) -> Vec<String> {
        let names = collect(text.parse().unwrap()).into_iter().map(|name| name.parts.join("::"));
        names.filter(|name| name.contains(':') || name.ends_with('!')).collect()
    }

    #[test]
    fn a_use_names_each_of_its_leaves() {
        assert_eq!(
            names("use std::{self, time::{Instant, Duration}, sync::*}; use ::crate_a::b;"),
            ["std::time", "std::time::Instant", "std::time::Duration", "std::sync::*", "crate_a::b"]
        );
    }

    #[test]
    fn paths_are_found_in_types_expressions_and_macro_calls() {
        assert_eq!(
            names("fn f(x: a::B<c::D>) -> Vec<u8> { a::b::<E>(1); println!(\"{}\", g::h()) }"),
            ["a::B", "c::D", "a::b", "println!", "g::h"]
        );
    }

    #[test]
    fn comments_strings_members_and_inequality_are_no_names() {
        assert_eq!(names("/* a::b */ let x = \"c::d\"; // e::f\nx.spawn(y != z);"), [] as [&str; 0]);
        let all = collect("x.stdout; ..Instant".parse().unwrap());
        assert!(!all.iter().any(|name| name.contains("stdout")), "{all:?}");
        assert!(all.iter().any(|name| name.contains("Instant")), "{all:?}");
    }

    #[test]
    fn a_pattern_is_a_run_of_whole_parts() {
        let name = Name { parts: ["std", "thread", "spawn"].map(String::from).to_vec(), line: 1 };
        for (pattern, expected) in [
            ("thread::spawn", true),
            ("std::thread", true),
            ("spawn", true),
            ("std::spawn", false),
            ("read::spawn", false),
        ] {
            assert_eq!(name.contains(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn a_name_knows_its_line() {
        let lines: Vec<usize> = collect("a::b;\n{\n c }".parse().unwrap()).iter().map(|name| name.line).collect();
        assert_eq!(lines, [1, 3]);
    }
}
