//! Finds half-done work: placeholders, ignored tests, notes to oneself, white space at the end of a line.

use syn::Attribute;
use syn::visit::Visit;

use super::Finding;
use super::source::Source;

/// Macros that stand for code that is not written yet.
const PLACEHOLDERS: &[&str] = &["todo!", "unimplemented!"];

/// The word that marks a note to oneself; put together here so that this file does not contain it.
const NOTE: &str = concat!("FIX", "ME");

/// Finds leftovers, in tests too.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in &source.names {
        if let Some(placeholder) = PLACEHOLDERS.iter().find(|placeholder| name.contains(placeholder)) {
            findings.push(source.finding(name.line, format!("`{placeholder}`: write it or leave it out")));
        }
    }
    let mut ignored = Ignored(Vec::new());
    ignored.visit_file(&source.tree);
    let reason = "`#[ignore]`: let a test that cannot run here skip by name and say why";
    findings.extend(ignored.0.into_iter().map(|line| source.finding(line, reason)));
    for (index, line) in source.text.lines().enumerate() {
        if line.contains(NOTE) {
            findings.push(source.finding(index + 1, format!("{NOTE}: fix it now or open an issue")));
        }
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(source.finding(index + 1, "white space at the end of the line"));
        }
    }
    findings
}

/// Collects the lines of `#[ignore]`.
struct Ignored(Vec<usize>);

impl<'ast> Visit<'ast> for Ignored {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if attribute.path().is_ident("ignore") {
            self.0.push(attribute.pound_token.span.start().line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(text: &str) -> Vec<usize> {
        let source = Source::parse("tests/it/a.rs", text).unwrap();
        check(&source).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_leftover_is_found() {
        let note = format!("fn a() {{}} // {NOTE} later\n");
        for text in [
            "fn a() { todo!() }\n",
            "fn a() { std::unimplemented!(\"b\") }\n",
            "#[ignore]\n#[test]\nfn a() {}\n",
            "#[ignore = \"slow\"]\n#[test]\nfn a() {}\n",
            "fn a() {} \n",
            "// a\t\nfn a() {}\n",
            &note,
        ] {
            assert_eq!(lines_found(text), [1], "{text:?}");
        }
    }

    #[test]
    fn words_about_leftovers_are_none() {
        assert_eq!(
            lines_found("/// No `todo!()` here, and no `#[ignore]`.\nfn ignore() { let todo = 1; }\n"),
            [] as [usize; 0]
        );
    }
}
