//! One Rust file, parsed once for all checks, with its path and which of its lines are test code.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, Meta};

use super::Finding;
use super::calls::Methods;
use super::names::{self, Name};

/// A file in all the forms that checks use.
pub struct Source<'a> {
    /// The path from the root of the repository, with forward slashes.
    pub path: &'a str,
    /// The text of the file.
    pub text: &'a str,
    /// The syntax tree; macro calls in it are unparsed tokens.
    pub tree: syn::File,
    /// Every path and macro the file names, in macro calls too, but not in comments and strings.
    pub names: Vec<Name>,
    /// The methods that it defines, and those that it calls on `self`.
    pub methods: Methods,
    /// The lines of items that are only compiled for tests.
    tests: Vec<RangeInclusive<usize>>,
}

impl<'a> Source<'a> {
    /// Parses `text`. Fails with a finding that says where it is not Rust.
    pub fn parse(path: &'a str, text: &'a str) -> Result<Self, Finding> {
        let parsed = syn::parse_file(text).and_then(|tree| Ok((tree, syn::parse_str::<TokenStream>(text)?)));
        let (tree, tokens) = parsed.map_err(|error| Finding {
            path: path.to_string(),
            line: error.span().start().line,
            text: format!("does not parse: {error}"),
        })?;
        let mut tests = TestItems(Vec::new());
        tests.visit_file(&tree);
        let methods = Methods::of(&tree);
        Ok(Self { path, text, tree, names: names::collect(tokens), methods, tests: tests.0 })
    }

    /// A finding in this file.
    pub fn finding(&self, line: usize, text: impl Into<String>) -> Finding {
        Finding { path: self.path.to_string(), line, text: text.into() }
    }

    /// Whether the file is in one of `places`: directories (with a slash at the end) or files.
    pub fn lies_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path == *place || (place.ends_with('/') && self.path.starts_with(place)))
    }

    /// Whether `line` is only compiled for tests: the whole file is, or the item around the line.
    pub fn is_test(&self, line: usize) -> bool {
        let is_file = self.path.split('/').any(|part| part == "tests" || part == "tests.rs");
        is_file || self.tests.iter().any(|lines| lines.contains(&line))
    }
}

/// Collects the line ranges of items under `#[cfg(test)]` or `#[test]`.
struct TestItems(Vec<RangeInclusive<usize>>);

impl TestItems {
    /// Takes `item` if it is for tests; says whether it is.
    fn take(&mut self, attributes: &[Attribute], item: &impl Spanned) -> bool {
        let found = attributes.iter().any(is_for_tests);
        if found {
            self.0.push(item.span().start().line..=item.span().end().line);
        }
        found
    }
}

impl<'ast> Visit<'ast> for TestItems {
    fn visit_file(&mut self, file: &'ast syn::File) {
        if file.attrs.iter().any(is_for_tests) {
            self.0.push(1..=usize::MAX);
        }
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        if !self.take(attributes(item), item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !self.take(&function.attrs, function) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// Whether an attribute is `#[test]`, `#[cfg(test)]` (at the top of a file with a `!`) `#[cfg(all(test, …))]` or
/// `#[cfg(any(test, feature = "testing"))]`.
fn is_for_tests(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test,") || condition == "any(test,feature=\"testing\")"
        }
        _ => false,
    }
}

/// The attributes of an item; none for those that cannot be for tests only.
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_items_are_known_by_their_lines() {
        let text = "\
fn a() {}

#[cfg(test)]
mod tests {
    fn b() {}
}

#[cfg(not(test))]
fn c() {}

impl X {
    fn d() {}
    #[cfg(test)]
    fn e() {}
}
";
        let source = Source::parse("src/a.rs", text).unwrap();
        let lines: Vec<usize> = (1..=text.lines().count()).filter(|line| source.is_test(*line)).collect();
        assert_eq!(lines, [3, 4, 5, 6, 13, 14]);
    }

    #[test]
    fn a_whole_file_can_be_for_tests() {
        for (path, text, expected) in [
            ("tests/it/main.rs", "fn a() {}\n", true),
            ("engine/src/tests.rs", "fn a() {}\n", true),
            ("engine/src/tests/stall.rs", "fn a() {}\n", true),
            ("engine/src/fixtures.rs", "#![cfg(test)] fn a() {}\n", true),
            ("engine/src/contests.rs", "fn a() {}\n", false),
        ] {
            assert_eq!(Source::parse(path, text).unwrap().is_test(1), expected, "{path}");
        }
    }

    #[test]
    fn a_place_is_a_directory_or_one_file() {
        let source = Source::parse("engine/src/tls.rs", "").unwrap();
        assert!(source.lies_in(&["engine/src/"]));
        assert!(source.lies_in(&["src/run/", "engine/src/tls.rs"]));
        assert!(!source.lies_in(&["engine/src/t", "src/run/"]));
    }
}
