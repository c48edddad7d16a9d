//! Checks that public items are documented, and that every module begins with what it does.
//!
//! The compiler's `missing_docs` only checks what the crate exports, and clippy's `missing_docs_in_private_items` wants a
//! sentence on every private field and helper too. Here exactly the `pub` items count, whether they are exported or not.

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Fields, ImplItem, Item, ItemImpl, ItemTrait, TraitItem, Visibility};

use super::Finding;
use super::source::Source;

/// Where public items must be documented and modules must have a heading.
const PLACES: &[&str] =
    &["src/", "engine/src/", "plan/src/", "proto/src/", "stats/src/", "text/src/", "xtask/src/", "fuzz/src/"];

/// Finds public items without documentation, and modules without a heading.
pub fn check(source: &Source) -> Vec<Finding> {
    if !source.lies_in(PLACES) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(source.finding(1, "does not open with a `//!` comment that says what it does and never does"));
    }
    let mut public = Undocumented(Vec::new());
    public.visit_file(&source.tree);
    let undocumented = public.0.into_iter().filter(|(line, _)| !source.is_test(*line));
    findings
        .extend(undocumented.map(|(line, what)| source.finding(line, format!("public {what} has no documentation"))));
    findings
}

/// Collects line and name of public items without documentation.
struct Undocumented(Vec<(usize, String)>);

impl Undocumented {
    fn take(&mut self, attributes: &[Attribute], kind: &str, name: &syn::Ident) {
        if !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
            self.0.push((name.span().start().line, format!("{kind} `{name}`")));
        }
    }

    fn take_public(&mut self, visibility: &Visibility, attributes: &[Attribute], kind: &str, name: &syn::Ident) {
        if is_public(visibility) {
            self.take(attributes, kind, name);
        }
    }

    /// Takes the named fields: all of a variant, the public ones of a struct.
    fn take_fields(&mut self, fields: &Fields, is_variant: bool) {
        for field in fields {
            if let Some(name) = &field.ident
                && (is_variant || is_public(&field.vis))
            {
                self.take(&field.attrs, "field", name);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Undocumented {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(item) => self.take_public(&item.vis, &item.attrs, "constant", &item.ident),
            Item::Enum(item) if is_public(&item.vis) => {
                self.take(&item.attrs, "enum", &item.ident);
                for variant in &item.variants {
                    self.take(&variant.attrs, "variant", &variant.ident);
                    self.take_fields(&variant.fields, true);
                }
            }
            Item::Fn(item) => self.take_public(&item.vis, &item.attrs, "function", &item.sig.ident),
            Item::Macro(item) if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) => {
                item.ident.iter().for_each(|name| self.take(&item.attrs, "macro", name));
            }
            // A module in its own file is documented by its heading.
            Item::Mod(item) if item.content.is_some() => {
                self.take_public(&item.vis, &item.attrs, "module", &item.ident);
            }
            Item::Static(item) => self.take_public(&item.vis, &item.attrs, "static", &item.ident),
            Item::Struct(item) if is_public(&item.vis) => {
                self.take(&item.attrs, "struct", &item.ident);
                self.take_fields(&item.fields, false);
            }
            Item::Type(item) => self.take_public(&item.vis, &item.attrs, "type", &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        if !is_public(&item.vis) {
            return;
        }
        self.take(&item.attrs, "trait", &item.ident);
        for member in &item.items {
            match member {
                TraitItem::Const(member) => self.take(&member.attrs, "constant", &member.ident),
                TraitItem::Fn(member) => self.take(&member.attrs, "method", &member.sig.ident),
                TraitItem::Type(member) => self.take(&member.attrs, "type", &member.ident),
                _ => {}
            }
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        // What a trait demands is documented there; `pub` is not allowed in its implementation.
        for member in &item.items {
            match member {
                ImplItem::Const(member) => self.take_public(&member.vis, &member.attrs, "constant", &member.ident),
                ImplItem::Fn(member) => self.take_public(&member.vis, &member.attrs, "method", &member.sig.ident),
                ImplItem::Type(member) => self.take_public(&member.vis, &member.attrs, "type", &member.ident),
                _ => {}
            }
        }
    }

    /// Nothing inside a function is public.
    fn visit_block(&mut self, _: &'ast Block) {}
}

/// Whether it is plain `pub`.
fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<String> {
        let source = Source::parse(path, text).unwrap();
        check(&source).into_iter().map(|finding| format!("{}: {}", finding.line, finding.text)).collect()
    }

    #[test]
    fn each_kind_of_public_item_needs_documentation() {
        for (text, what) in [
            ("pub const A: u8 = 1;", "constant `A`"),
            ("pub enum A {}", "enum `A`"),
            ("/** x */ pub enum A { B }", "variant `B`"),
            ("/** x */ pub enum A { /** x */ B { c: u8 } }", "field `c`"),
            ("pub fn a() {}", "function `a`"),
            ("#[macro_export] macro_rules! a { () => {} }", "macro `a`"),
            ("pub mod a {}", "module `a`"),
            ("pub static A: u8 = 1;", "static `A`"),
            ("pub struct A;", "struct `A`"),
            ("/** x */ pub struct A { pub b: u8, c: u8 }", "field `b`"),
            ("pub trait A {}", "trait `A`"),
            ("/** x */ pub trait A { fn b(); }", "method `b`"),
            ("/** x */ pub trait A { type B; }", "type `B`"),
            ("pub type A = u8;", "type `A`"),
            ("impl A { pub fn b() {} }", "method `b`"),
            ("mod a { pub fn b() {} }", "function `b`"),
        ] {
            let found = found_in("src/a.rs", &format!("//! A.\n{text}\n"));
            assert_eq!(found, [format!("2: public {what} has no documentation")], "{text}");
        }
    }

    #[test]
    fn what_is_documented_private_or_for_tests_is_left_alone() {
        for text in [
            "/// A.\npub fn a() { pub struct Inner; }",
            "/// A.\npub struct A(pub u8);",
            "pub(crate) fn a() {}",
            "enum A { B { c: u8 } }",
            "trait A { fn b(); }",
            "impl A for B { fn c() {} }",
            "pub mod a;",
            "pub use a::b;",
            "macro_rules! a { () => {} }",
            "#[cfg(test)]\nmod tests { pub fn a() {} }",
        ] {
            assert_eq!(found_in("src/a.rs", &format!("//! A.\n{text}\n")), [] as [&str; 0], "{text}");
        }
        assert_eq!(found_in("tests/it/a.rs", "pub fn a() {}\n"), [] as [&str; 0]);
    }

    #[test]
    fn a_module_opens_with_what_it_does() {
        let found = found_in("src/a.rs", "// A.\nfn a() {}\n");
        assert_eq!(found, ["1: does not open with a `//!` comment that says what it does and never does"]);
        assert_eq!(found_in("examples/a.rs", "fn main() {}\n"), [] as [&str; 0]);
    }
}
