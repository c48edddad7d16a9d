//! Checks that every `unsafe` has a `SAFETY:` comment above it that says why it is sound.

use super::Finding;
use super::source::Source;

/// How many lines of code may be between the comment and the `unsafe` of one statement.
const DISTANCE_MAX: usize = 3;

/// Finds `unsafe` blocks and implementations without a reason. An `unsafe fn` puts the obligation on its caller
/// instead; clippy's `missing_safety_doc` checks that.
pub fn check(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_declaration = |at: usize| {
        let next = source.names.get(at + 1).and_then(|name| name.parts.first());
        next.is_some_and(|word| word == "fn" || word == "extern")
    };
    let mut findings = Vec::new();
    for (at, name) in source.names.iter().enumerate() {
        if name.contains("unsafe") && !is_declaration(at) && !is_explained(&lines[..name.line]) {
            findings.push(source.finding(name.line, "`unsafe` without a `// SAFETY:` comment above it"));
        }
    }
    findings
}

/// Whether the last of `lines`, or the comment a few lines of code above it, says why it is safe.
fn is_explained(lines: &[&str]) -> bool {
    let mut code = 0;
    for line in lines.iter().rev() {
        if line.contains("// SAFETY:") {
            return true;
        }
        code += usize::from(!line.trim_start().starts_with("//"));
        if code > DISTANCE_MAX {
            break;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_found(text: &str) -> Vec<usize> {
        let source = Source::parse("src/backend/a.rs", text).unwrap();
        check(&source).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn an_unsafe_block_needs_its_reason_close_above() {
        assert_eq!(lines_found("fn a() {\n    unsafe { b() }\n}\n"), [2]);
        assert_eq!(lines_found("unsafe impl Send for A {}\n"), [1]);
        assert_eq!(lines_found("// SAFETY: far away.\n\n\n\nfn a() {\n    unsafe { b() }\n}\n"), [6]);
        assert_eq!(lines_found("fn a() {\n    // It is safe.\n    unsafe { b() }\n}\n"), [3]);
    }

    #[test]
    fn a_reason_may_be_long_and_the_statement_begin_before_the_block() {
        assert_eq!(lines_found("fn a() {\n    // SAFETY: b is sound.\n    unsafe { b() }\n}\n"), [] as [usize; 0]);
        let long =
            "fn a() {\n    // SAFETY: 1\n    // 2\n    // 3\n    // 4\n    let c =\n        unsafe { b() };\n}\n";
        assert_eq!(lines_found(long), [] as [usize; 0]);
    }

    #[test]
    fn a_declaration_and_a_lint_are_no_block() {
        assert_eq!(lines_found("#![deny(unsafe_code)]\nunsafe fn a() {}\nunsafe extern \"C\" {}\n"), [] as [usize; 0]);
    }
}
