//! A JUnit test suite for continuous integration servers: one case for the run, and one for each gate.

use quick_xml::Writer;
use quick_xml::events::BytesText;

use crate::record::Document;
use crate::record::gate::Gate;

/// What became of a case, other than that it passed.
enum Flaw {
    Failure(String),
    /// There was nothing to judge.
    Skipped(String),
}

/// The suite of one document.
pub fn render(document: &Document) -> String {
    let mut cases = vec![("completed".to_owned(), document.flaw().map(Flaw::Failure))];
    let flaw = |gate: &Gate| match gate.broken {
        true => Some(Flaw::Failure(gate.was())),
        false => gate.lacks_name().then(|| Flaw::Skipped(gate.was())),
    };
    cases.extend(document.gates.iter().map(|gate| (gate.condition(), flaw(gate))));
    let failures = cases.iter().filter(|(_, flaw)| matches!(flaw, Some(Flaw::Failure(_)))).count();
    let skipped = cases.iter().filter(|(_, flaw)| matches!(flaw, Some(Flaw::Skipped(_)))).count();
    let time = format!("{:.3}", document.duration_s);
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let suite = writer.create_element("testsuite").with_attributes([
        ("name", document.command.as_str()),
        ("tests", &cases.len().to_string()),
        ("failures", &failures.to_string()),
        ("skipped", &skipped.to_string()),
        ("time", &time),
        ("timestamp", &document.started_at.to_string()),
    ]);
    let written = suite.write_inner_content(|writer| {
        for (name, flaw) in &cases {
            let case = writer.create_element("testcase").with_attributes([
                ("classname", "onrush"),
                ("name", name.as_str()),
                ("time", &time),
            ]);
            match flaw {
                None => case.write_empty()?,
                Some(Flaw::Skipped(words)) => case.write_inner_content(|writer| {
                    let skipped = writer.create_element("skipped").with_attribute(("message", words.as_str()));
                    skipped.write_empty().map(drop)
                })?,
                Some(Flaw::Failure(flaw)) => case.write_inner_content(|writer| {
                    let failure = writer.create_element("failure").with_attribute(("message", flaw.as_str()));
                    failure.write_text_content(BytesText::new(flaw)).map(drop)
                })?,
            };
        }
        Ok(())
    });
    written.expect("memory can be written to");
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", String::from_utf8_lossy(&writer.into_inner()))
}
