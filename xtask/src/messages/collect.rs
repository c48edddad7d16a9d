//! Finds the sentences of the program in its source.
//!
//! A string literal counts as a sentence if it has at least two words, except in tests, in panics and in attributes
//! other than `#[error]`. It is identified by its item, and within that by the arms of `match` that name a variant, so
//! that it keeps its name when the lines around it change.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, ImplItemConst, ImplItemFn, ItemConst, ItemFn, ItemImpl, ItemStatic, ItemTrait};
use syn::{Lit, LitCStr, LitStr, Macro, Meta, Pat, Path, TraitItemFn, Type, Variant};

use crate::tidy::Source;

/// Macros whose strings only a developer reads.
const UNREAD: [&str; 12] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "debug_assert",
    "debug_assert_eq",
    "env",
    "include_bytes",
    "include_str",
    "matches",
    "panic",
    "unreachable",
];

/// A sentence of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The item it is in, for instance `Note::fmt/Dropped` or `PAUSES_UNREAD`.
    pub item: String,
    /// The sentence as the source has it, with its placeholders.
    pub text: String,
}

/// The sentences of a file, in its order.
pub fn collect(source: &Source<'_>) -> Vec<Message> {
    let mut collector = Collector { source, place: Vec::new(), owner: None, messages: Vec::new() };
    collector.visit_file(&source.tree);
    collector.messages
}

/// The sentences of a Lua script: its strings in double quotes, outside comments.
pub fn collect_lua(text: &str) -> Vec<Message> {
    let mut messages = Vec::new();
    for line in text.lines() {
        let code = line.split('"').enumerate().take_while(|(index, part)| index % 2 == 1 || !part.contains("--"));
        let strings = code.filter(|(index, _)| index % 2 == 1).map(|(_, part)| part);
        let sentences = strings.filter(|text| is_sentence(text));
        messages.extend(sentences.map(|text| Message { item: "script".to_owned(), text: text.to_owned() }));
    }
    messages
}

/// Whether a text has two words, at least one of which is lower-case: other strings are names, formats and bytes of a
/// protocol.
fn is_sentence(text: &str) -> bool {
    let mut words = 0;
    let mut has_lower = false;
    for word in without_placeholders(text).split([' ', '\n']) {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation() || "…“”–".contains(c));
        if word.len() >= 2 && word.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-') {
            words += 1;
            has_lower |= word.chars().all(|c| !c.is_uppercase());
        }
    }
    words >= 2 && has_lower
}

/// A text without its placeholders in braces.
fn without_placeholders(text: &str) -> String {
    let mut depth = 0_u32;
    let mut kept = String::new();
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

struct Collector<'a> {
    source: &'a Source<'a>,
    /// The names of the item and the arms around what is visited.
    place: Vec<String>,
    /// The type whose methods are visited.
    owner: Option<String>,
    messages: Vec<Message>,
}

impl Collector<'_> {
    fn take(&mut self, text: String, line: usize) {
        if !self.place.is_empty() && is_sentence(&text) && !self.source.is_test(line) {
            self.messages.push(Message { item: self.place.join("/"), text });
        }
    }

    /// Takes every string among the tokens of a macro call.
    fn take_all(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.take_all(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(literal) = Lit::new(literal) {
                        self.visit_lit_str(&literal);
                    }
                }
                _ => {}
            }
        }
    }

    /// Visits something as a part of the place `name`.
    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.place.push(name);
        visit(self);
        self.place.pop();
    }

    /// The name of an item, after that of the type it belongs to.
    fn named(&self, name: &impl ToString) -> String {
        match &self.owner {
            Some(owner) if self.place.is_empty() => format!("{owner}::{}", name.to_string()),
            _ => name.to_string(),
        }
    }

    /// Visits the items of a type.
    fn owned(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let outer = self.owner.replace(owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.within(self.named(&item.sig.ident), |inside| visit::visit_item_fn(inside, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.within(self.named(&item.sig.ident), |inside| visit::visit_impl_item_fn(inside, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.within(self.named(&item.sig.ident), |inside| visit::visit_trait_item_fn(inside, item));
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.within(self.named(&item.ident), |inside| visit::visit_item_const(inside, item));
    }

    fn visit_item_static(&mut self, item: &'ast ItemStatic) {
        self.within(self.named(&item.ident), |inside| visit::visit_item_static(inside, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast ImplItemConst) {
        self.within(self.named(&item.ident), |inside| visit::visit_impl_item_const(inside, item));
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let owner = match &*item.self_ty {
            Type::Path(path) => last(&path.path),
            other => quoted(other),
        };
        self.owned(owner, |inside| visit::visit_item_impl(inside, item));
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.owned(item.ident.to_string(), |inside| visit::visit_item_trait(inside, item));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.owned(item.ident.to_string(), |inside| visit::visit_item_enum(inside, item));
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.within(item.ident.to_string(), |inside| visit::visit_item_struct(inside, item));
    }

    fn visit_variant(&mut self, variant: &'ast Variant) {
        self.within(self.named(&variant.ident), |inside| visit::visit_variant(inside, variant));
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        match variant(&arm.pat) {
            Some(name) => self.within(name, |inside| visit::visit_arm(inside, arm)),
            None => visit::visit_arm(self, arm),
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "expect" || call.method == "expect_err" {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta
            && list.path.is_ident("error")
        {
            self.take_all(list.tokens.clone());
        }
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        if !UNREAD.contains(&&last(&call.path)[..]) {
            self.take_all(call.tokens.clone());
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        self.take(literal.value(), literal.span().start().line);
    }

    fn visit_lit_cstr(&mut self, literal: &'ast LitCStr) {
        self.take(literal.value().to_string_lossy().into_owned(), literal.span().start().line);
    }
}

/// The last part of a path.
fn last(path: &Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// A type as its source has it.
fn quoted(node: &impl Spanned) -> String {
    node.span().source_text().unwrap_or_default()
}

/// The variant that a pattern names first, unless that is one of the standard library's.
fn variant(pattern: &Pat) -> Option<String> {
    let path = match pattern {
        Pat::Path(pattern) => &pattern.path,
        Pat::Struct(pattern) => &pattern.path,
        Pat::TupleStruct(pattern) => &pattern.path,
        Pat::Or(or) => return or.cases.first().and_then(variant),
        Pat::Reference(reference) => return variant(&reference.pat),
        _ => return None,
    };
    let name = last(path);
    let is_ours = !["Some", "None", "Ok", "Err"].contains(&&name[..]);
    (is_ours && name.chars().any(char::is_lowercase)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Vec<(String, String)> {
        let source = Source::parse("src/a.rs", text).unwrap();
        collect(&source).into_iter().map(|message| (message.item, message.text)).collect()
    }

    #[test]
    fn sentences_are_found_in_constants_functions_macros_and_errors() {
        let text = r##"
//! A module "with a head".
const PLAIN: &str = "one constant";
/// Doc comments "are not" it.
fn line(count: u64) -> String {
    let short = "id";
    write!(f, "{count} of {} failed", other("two of them"))
}
#[derive(Error)]
enum Refusal {
    #[error("{0} is missing")]
    Missing(String),
}
impl fmt::Display for Note {
    fn fmt(&self) {
        match self {
            Self::Lost { count } => write!(f, "lost {count} times"),
            Some(_) => f.write_str("in a\
                 longer line"),
        }
    }
}
"##;
        let expected = [
            ("PLAIN", "one constant"),
            ("line", "{count} of {} failed"),
            ("line", "two of them"),
            ("Refusal::Missing", "{0} is missing"),
            ("Note::fmt/Lost", "lost {count} times"),
            ("Note::fmt", "in alonger line"),
        ];
        assert_eq!(messages(text), expected.map(|(item, text)| (item.to_owned(), text.to_owned())));
    }

    #[test]
    fn sentences_are_found_in_c_strings_and_in_lua() {
        let text = "fn raise() { error(c\"%s is a %s value\".as_ptr()) }";
        assert_eq!(messages(text), [("raise".to_owned(), "%s is a %s value".to_owned())]);
        let found = collect_lua("error(\"no such --thing\") -- \"not this one\"\nlocal id = \"x\"\n");
        assert_eq!(found, [Message { item: "script".to_owned(), text: "no such --thing".to_owned() }]);
    }

    #[test]
    fn what_no_user_reads_is_left_out() {
        let text = r##"
fn quiet() {
    assert!(true, "only in tests");
    panic!("of no use");
    lock.lock().expect("never poisoned here").push("x");
    println!("{} {}", "HTTP/1.1 200 OK", "GET / HTTP");
}
#[cfg(test)]
mod tests {
    fn a() { let _ = "some words here"; }
}
"##;
        assert_eq!(messages(text), []);
    }
}
