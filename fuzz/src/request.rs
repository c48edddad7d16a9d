//! Requests written by a script: any bytes.

use onrush_proto::http1::{Outline, outline};

/// Any bytes as requests:
///
/// - Requests follow one another from the first byte on, each of them parses in the same way on its own, and only line
///   ends follow the last.
/// - A refusal names a position within the bytes, after the preceding requests. Further bytes do not change the refusal
///   unless the request is incomplete.
pub fn request(data: &[u8]) {
    let mut found = Vec::new();
    let result = outline(data, &mut found);
    let mut end = 0;
    for Outline { range, body_length, response } in &found {
        assert_eq!(range.start, end, "a gap, or an overlap");
        assert!(*body_length < range.len(), "a request without a head");
        end = range.end;
        let mut alone = Vec::new();
        assert_eq!(outline(&data[range.clone()], &mut alone), Ok(()));
        assert_eq!(alone, [Outline { range: 0..range.len(), body_length: *body_length, response: *response }]);
    }
    let rest = &data[end..];
    let Err(malformed) = result else {
        assert!(!found.is_empty() && rest.iter().all(|byte| b"\r\n".contains(byte)), "{rest:?} is not a request");
        return;
    };
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let before: usize = lines[..malformed.line - 1].iter().map(|line| line.len() + 1).sum();
    let at = before + malformed.column - 1;
    assert_eq!(malformed.at, at, "{malformed}");
    assert!(malformed.column <= lines[malformed.line - 1].len() + 1 && at >= end, "{malformed}");
    let longer = outline(&[data, b"x"].concat(), &mut Vec::new());
    if malformed.reason == "incomplete request" {
        assert_eq!(at, data.len(), "{malformed}");
    } else {
        assert_eq!(longer, Err(malformed), "a further byte changes the refusal");
    }
}
