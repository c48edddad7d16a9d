//! Detects headers that contradict the body, and predicts how a server will read them.
//!
//! They are sent as typed, because the reaction of a server is worth a test. The requests of scripts are not checked.

use std::cmp::Ordering;

use onrush_proto::http1::outline;

use crate::plan::{Material, Request};
use crate::report::units::{counted, thousands};

/// A warning if the headers give a server a wrong end of the request, or none, with what the server will do.
pub(super) fn contradiction(request: &Request, body: Option<&Material>) -> Option<String> {
    let body = body.and_then(|body| body.contents().ok()).unwrap_or_default();
    let values = |name: &str| -> Vec<&str> {
        let named = request.headers.iter().filter(|header| header.0.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim_matches([' ', '\t'])).collect()
    };
    match (&values("Content-Length")[..], &values("Transfer-Encoding")[..]) {
        ([], []) => None,
        ([length], []) => wrong_length(length, body.len() as u64),
        ([], codings) => wrong_coding(&codings.join(", "), body),
        (lengths, []) => Some(format!(
            "there is more than one 'Content-Length' ({}): most servers respond with 400, others use one of them",
            lengths.join(", ")
        )),
        ([length, ..], [coding, ..]) => Some(format!(
            "'Content-Length: {length}' and 'Transfer-Encoding: {coding}' exclude each other: some servers respond \
             with 400, others use one of them"
        )),
    }
}

fn wrong_length(typed: &str, body: u64) -> Option<String> {
    let is_number = typed.bytes().all(|byte| byte.is_ascii_digit());
    let Some(announced) = typed.parse::<u64>().ok().filter(|_| is_number) else {
        return Some(format!("'Content-Length: {typed}' is not a length: most servers respond with 400"));
    };
    let difference = thousands(announced.abs_diff(body));
    let outcome = match announced.cmp(&body) {
        Ordering::Equal => return None,
        Ordering::Greater => format!("the server waits for {difference} more, {NO_ANSWER}"),
        Ordering::Less => format!("the server takes the last {difference} for the start of the next request"),
    };
    Some(format!("'Content-Length: {typed}' is wrong, as the body has {}: {outcome}", counted(body, "byte")))
}

const NO_ANSWER: &str = "and does not respond until one side gives up";

fn wrong_coding(typed: &str, body: &[u8]) -> Option<String> {
    let header = format!("'Transfer-Encoding: {typed}'");
    let last = typed.rsplit(',').next().unwrap_or_default();
    if !last.trim().eq_ignore_ascii_case("chunked") {
        let line = "does not end in chunked, so a server cannot tell where the body ends: most respond with 400";
        return Some(format!("{header} {line}"));
    }
    let request = [b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", body].concat();
    let mut found = Vec::new();
    let read = outline(&request, &mut found);
    let end = found.first().map(|first| first.range.end);
    let outcome = match (read, end) {
        (_, Some(end)) if end < request.len() => {
            "the server takes what follows the last chunk for the start of the next request".to_owned()
        }
        (Ok(()), _) => return None,
        (Err(malformed), _) if malformed.is_incomplete() => {
            format!("the last chunk is missing, so the server waits for it, {NO_ANSWER}")
        }
        (Err(_), _) => "the body is sent as it is, without chunks: most servers respond with 400".to_owned(),
    };
    Some(format!("{header}: {outcome}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    fn said(headers: &[(&str, &str)], body: &str) -> Option<String> {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        contradiction(
            &Request { method: "POST".into(), target: "/".into(), headers },
            Some(&Material::of("", body.into())),
        )
    }

    #[test]
    fn headers_that_fit_the_body_get_no_warning() {
        assert_eq!(said(&[("Host", "h")], "hello"), None);
        assert_eq!(said(&[("content-length", "5")], "hello"), None);
        assert_eq!(said(&[("Content-Length", "0")], ""), None);
        assert_eq!(said(&[("Transfer-Encoding", "Chunked")], "5\r\nhello\r\n0\r\n\r\n"), None);
        assert_eq!(said(&[("Transfer-Encoding", "gzip, chunked")], "0\r\nTrailer: x\r\n\r\n"), None);
    }

    #[test]
    fn what_a_server_will_do_is_said_of_headers_that_do_not() {
        const LENGTH: &str = "Content-Length";
        const CODING: &str = "Transfer-Encoding";
        let table: [(Headers, &str, &str); 11] = [
            (
                &[(LENGTH, "2000")],
                "hello",
                "'Content-Length: 2000' is wrong, as the body has 5 bytes: the server waits for 1,995 more, and does \
                 not respond until one side gives up",
            ),
            (&[(LENGTH, "7")], "", "as the body has 0 bytes: the server waits for 7 more"),
            (&[(LENGTH, "3")], "hello", "takes the last 2 for the start of the next request"),
            (&[(LENGTH, "5"), ("content-length", "7")], "hello", "more than one 'Content-Length' (5, 7): most servers"),
            (&[(LENGTH, "+5")], "hello", "'Content-Length: +5' is not a length"),
            (&[(LENGTH, "")], "hello", "'Content-Length: ' is not a length"),
            (&[(LENGTH, "5"), (CODING, "chunked")], "hello", "exclude each other"),
            (
                &[(CODING, "chunked")],
                "hello",
                "'Transfer-Encoding: chunked': the body is sent as it is, without chunks: most servers respond with 400",
            ),
            (&[(CODING, "chunked")], "", "the last chunk is missing, so the server waits for it, and does not respond"),
            (&[(CODING, "chunked")], "0\r\n\r\nx", "takes what follows the last chunk for the start"),
            (
                &[(CODING, "chunked"), (CODING, "gzip")],
                "x",
                "'Transfer-Encoding: chunked, gzip' does not end in chunked",
            ),
        ];
        for (headers, body, expected) in table {
            let line = said(headers, body).unwrap_or_default();
            assert!(line.contains(expected), "{headers:?} {body:?}: {line}");
        }
    }
}
