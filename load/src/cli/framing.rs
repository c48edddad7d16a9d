//! The warning about headers that contradict the body. Such headers are sent unchanged, because testing a server's
//! reaction is legitimate.

use onrush_plan::{FileContents, Request};
use onrush_text::units::format_count;

/// A warning if a typed header ends the body at a different place.
///
/// Only for `--once`: in a run, statuses and missing responses reveal the mismatch. There is one exception: after a
/// `Content-Length` that is too small, a server may take the rest of the body for the method of the next request and
/// respond as usual.
pub(super) fn framing_warning(request: &Request, body: Option<&FileContents>, once: bool) -> Option<String> {
    let body = body.and_then(|body| body.contents().ok()).unwrap_or_default();
    let of = |wanted: &'static str| request.headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
    let is_chunked = of("Transfer-Encoding").next().is_some();
    // A chunked body ends with an empty line, with or without trailers.
    let wrong_coding = of("Transfer-Encoding").filter(|_| !body.ends_with(b"\r\n\r\n"));
    let wrong_length =
        || of("Content-Length").filter(|(_, value)| is_chunked || parse_length(value) != Some(body.len()));
    let too_small = || wrong_length().find(|(_, value)| parse_length(value).is_some_and(|length| length < body.len()));
    let (name, value) = if once { wrong_coding.chain(wrong_length()).next()? } else { too_small()? };
    Some(format!(
        "'{name}: {value}' does not fit the body, which has {}, but is sent as typed: a server may respond with 400, \
         wait for more, or take a part for another request",
        format_count(body.len() as u64, "byte")
    ))
}

fn parse_length(value: &str) -> Option<usize> {
    value.trim_end().parse().ok().filter(|_| !value.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning_for(headers: &[(&str, &str)], body: &str, once: bool) -> Option<String> {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        framing_warning(
            &Request { method: "POST".into(), target: "/".into(), headers },
            Some(&FileContents::from_bytes("", body.into())),
            once,
        )
    }

    #[test]
    fn headers_matching_the_body_get_no_warning() {
        assert_eq!(warning_for(&[("Host", "h")], "hello", true), None);
        assert_eq!(warning_for(&[("content-length", "5")], "hello", true), None);
        assert_eq!(warning_for(&[("Content-Length", "00 ")], "", true), None);
        assert_eq!(warning_for(&[("Transfer-Encoding", "Chunked")], "5\r\nhello\r\n0\r\n\r\n", true), None);
        assert_eq!(warning_for(&[("Transfer-Encoding", "gzip, chunked")], "0\r\nTrailer: x\r\n\r\n", true), None);
    }

    #[test]
    fn headers_contradicting_the_body_get_a_warning() {
        const LENGTH: &str = "Content-Length";
        const CODING: &str = "Transfer-Encoding";
        let (five, chunked) = ((LENGTH, "5"), (CODING, "chunked"));
        for (headers, body, named) in [
            (&[(LENGTH, "2000")][..], "hello", "'Content-Length: 2000' does not fit the body, which has 5 bytes, but"),
            (&[(LENGTH, "3")], "hello", "'Content-Length: 3' does"),
            (&[(LENGTH, "+5")], "hello", "'Content-Length: +5' does"),
            (&[five, ("content-length", "7")], "hello", "'content-length: 7' does"),
            (&[chunked], "hello", "'Transfer-Encoding: chunked' does"),
            (&[chunked], "", "'Transfer-Encoding: chunked' does not fit the body, which has 0 bytes, but"),
            (&[five, chunked], "0\r\n\r\n", "'Content-Length: 5' does"),
        ] {
            let line = warning_for(headers, body, true).unwrap_or_default();
            assert!(line.starts_with(named), "{headers:?} {body:?}: {line}");
            assert_eq!(warning_for(headers, body, false).is_some(), named.contains("'Content-Length: 3'"), "{line}");
        }
        let line = warning_for(&[(LENGTH, "7"), (LENGTH, "3")], "hello", false);
        assert!(line.is_some_and(|line| line.starts_with("'Content-Length: 3' does")), "the dangerous one");
    }
}
