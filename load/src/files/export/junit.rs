//! A JUnit test suite for continuous integration servers: one case for the run, and one for each gate.

use onrush_text::escape_controls;
use quick_xml::Writer;
use quick_xml::events::BytesText;

use crate::record::Document;
use crate::record::gate::Gate;

/// Why a test case did not pass.
enum CaseFailure {
    Failure(String),
    /// The outcome is unknown.
    Error(String),
}

/// The test suite for a document.
pub fn render_junit(document: &Document) -> String {
    let mut cases = vec![("completed".to_owned(), document.flaw().map(CaseFailure::Failure))];
    let flaw = |gate: &Gate| match gate.broken {
        true => Some(CaseFailure::Failure(gate.was())),
        false => gate.undecided.then(|| CaseFailure::Error(format!("undecided: {}", gate.was()))),
    };
    cases.extend(document.gates.iter().map(|gate| (gate.condition(), flaw(gate))));
    let failures = cases.iter().filter(|(_, flaw)| matches!(flaw, Some(CaseFailure::Failure(_)))).count();
    let errors = cases.iter().filter(|(_, flaw)| matches!(flaw, Some(CaseFailure::Error(_)))).count();
    let time = format!("{:.3}", document.duration_s);
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let suite = writer.create_element("testsuite").with_attributes([
        ("name", &*xml(&document.command)),
        ("tests", &cases.len().to_string()),
        ("failures", &failures.to_string()),
        ("errors", &errors.to_string()),
        ("time", &time),
        ("timestamp", &document.started_at.to_string()),
    ]);
    let written = suite.write_inner_content(|writer| {
        for (name, flaw) in &cases {
            let case = writer.create_element("testcase").with_attributes([
                ("classname", "onrush"),
                ("name", &*xml(name)),
                ("time", &time),
            ]);
            let (element, flaw) = match flaw {
                None => {
                    case.write_empty()?;
                    continue;
                }
                Some(CaseFailure::Error(flaw)) => ("error", xml(flaw)),
                Some(CaseFailure::Failure(flaw)) => ("failure", xml(flaw)),
            };
            case.write_inner_content(|writer| {
                let element = writer.create_element(element).with_attribute(("message", &*flaw));
                element.write_text_content(BytesText::new(&flaw)).map(drop)
            })?;
        }
        Ok(())
    });
    written.expect("memory can be written to");
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", String::from_utf8_lossy(&writer.into_inner()))
}

/// Removes from a string what XML forbids: most control characters, and two noncharacters.
fn xml(text: &str) -> String {
    escape_controls(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_xml_characters_are_escaped() {
        assert_eq!(xml("a\u{1b}[1m\u{1}\u{ffff}é"), "a\\u{1b}[1m\\u{1}\u{fffd}é");
    }
}
