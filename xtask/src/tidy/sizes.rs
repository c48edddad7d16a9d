//! Limits the length of functions to a screen, 70 lines, and that of files to 800 lines.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, ItemFn, Macro, Signature, TraitItemFn};

use super::Finding;
use super::source::Source;

/// The longest function, in lines from `fn` to the closing brace: one screen.
const FUNCTION_MAX: usize = 70;

/// The longest file, in lines.
const FILE_MAX: usize = 800;

/// Finds what is too long, in tests and benchmarks too.
pub fn check(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let mut findings = Vec::new();
    if lines > FILE_MAX {
        findings
            .push(source.finding(FILE_MAX + 1, format!("file of {lines} lines; at most {FILE_MAX}: split it by noun")));
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(&source.tree);
    for Function { name, first, last } in functions.0 {
        let lines = last - first + 1;
        if lines > FUNCTION_MAX {
            findings.push(source.finding(first, format!("function `{name}` of {lines} lines; at most {FUNCTION_MAX}")));
        }
    }
    findings
}

/// The place of a function.
struct Function {
    name: String,
    /// The line of `fn`.
    first: usize,
    /// The line of the closing brace.
    last: usize,
}

/// Collects all functions: free ones, methods, nested ones, those inside macro calls.
struct Functions(Vec<Function>);

impl Functions {
    fn take(&mut self, signature: &Signature, block: &Block) {
        self.push(signature.ident.to_string(), signature.fn_token.span, block.brace_token.span.close());
    }

    fn push(&mut self, name: String, first: Span, last: Span) {
        self.0.push(Function { name, first: first.start().line, last: last.end().line });
    }

    /// Takes the functions in a macro's tokens, which have no syntax tree: `fn`, a name, and the next braces.
    fn take_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match (token, tokens.get(at + 1)) {
                (TokenTree::Ident(word), Some(TokenTree::Ident(name))) if word == "fn" => {
                    if let Some(close) = tokens[at..].iter().find_map(closing_brace) {
                        self.push(name.to_string(), word.span(), close);
                    }
                }
                (TokenTree::Group(group), _) => self.take_tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.take(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.take(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.take(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.take_tokens(call.tokens.clone());
    }
}

/// Where a token's closing brace is, if the token is a pair of braces.
fn closing_brace(token: &TokenTree) -> Option<Span> {
    match token {
        TokenTree::Group(group) if group.delimiter() == proc_macro2::Delimiter::Brace => Some(group.span_close()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings in a function of `lines` lines that is between `before` and `after`.
    fn function_of(lines: usize, before: &str, after: &str) -> Vec<String> {
        let body = "    let _ = 1;\n".repeat(lines - 2);
        let text = format!("{before}fn long() {{\n{body}}}{after}\n");
        check(&Source::parse("tests/it/a.rs", &text).unwrap()).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_function_of_71_lines_is_found_wherever_it_stands() {
        for (before, after) in [
            ("", ""),
            ("#[test]\n", ""),
            ("impl A { ", "}"),
            ("trait A { ", "}"),
            ("mod a { ", "}"),
            ("fn outer() { struct A; impl A { ", "} }"),
            ("proptest! { #[test]\n", "}"),
            ("macro_rules! a { () => { ", "} }"),
        ] {
            let found = function_of(71, before, after);
            assert!(found.contains(&"function `long` of 71 lines; at most 70".to_string()), "{before}: {found:?}");
            assert_eq!(function_of(70, before, after), [] as [&str; 0], "{before}");
        }
    }

    #[test]
    fn comments_in_a_function_count_and_those_above_it_do_not() {
        let comment = "    // why\n".repeat(69);
        let inside = format!("fn a() {{\n{comment}}}\n");
        let above = format!("{comment}\nfn a() {{\n}}\n");
        assert_eq!(check(&Source::parse("src/a.rs", &inside).unwrap()).len(), 1);
        assert_eq!(check(&Source::parse("src/a.rs", &above).unwrap()).len(), 0);
    }

    #[test]
    fn a_file_of_801_lines_is_found() {
        let found = check(&Source::parse("src/a.rs", &"// a\n".repeat(801)).unwrap());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].text.as_str()), (801, "file of 801 lines; at most 800: split it by noun"));
        assert_eq!(check(&Source::parse("src/a.rs", &"// a\n".repeat(800)).unwrap()), []);
    }
}
