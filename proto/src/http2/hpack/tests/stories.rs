//! Blocks made by other encoders; see the README in `stories`.

use std::fs;
use std::path::Path;

use super::*;

#[test]
fn blocks_of_other_encoders_are_decoded() {
    let stories = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http2/hpack/tests/stories");
    let mut blocks = 0;
    for entry in fs::read_dir(stories).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            blocks += decode_story(&path.display().to_string(), &fs::read_to_string(&path).unwrap());
        }
    }
    assert!(blocks > 80, "{blocks} blocks");
}

/// Decodes the blocks of a story with one decoder. Returns their number.
fn decode_story(name: &str, story: &str) -> usize {
    let mut decoder = Decoder::new(SIZE_USUAL);
    let cases: Vec<&str> = story.split_terminator("\n\n").collect();
    for (index, case) in cases.iter().enumerate() {
        let mut lines = case.lines().peekable();
        if let Some(size) = lines.peek().and_then(|line| line.strip_prefix("table ")) {
            decoder.on_settings_acknowledged(size.parse().unwrap());
            lines.next();
        }
        let block = lines.next().and_then(|line| line.strip_prefix("block ")).unwrap();
        let fields: Vec<String> = lines.map(String::from).collect();
        let block = decoded(&mut decoder, &hex(block));
        assert_eq!(block, Ok(fields), "block {index} of {name}");
    }
    cases.len()
}
