//! Encodes a request as HTTP/1.1.
//!
//! Neither checks nor repairs its input: the command line rejects line breaks in names and values.

use crate::RequestParts;

/// Methods that normally have a body (RFC 9110, 8.6): a server may require a length, even if it is zero.
const METHODS_WITH_BODY: [&str; 3] = ["POST", "PUT", "PATCH"];

/// Encodes a request: its request line, its headers in order, a `Content-Length` if [`needs_length`] says so, an empty
/// line, the body. Adds nothing else, not even `Host`, and does not chunk the body.
pub fn encode(parts: &RequestParts) -> Vec<u8> {
    let RequestParts { method, target, headers, body } = parts;
    let mut head = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if needs_length(parts) {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    [head.as_bytes(), body].concat()
}

/// A request's head, including the empty line, changed to ask the server to close after the response; replaces all
/// other connection options. `None` if the head already asks for that.
pub(super) fn closing_head(head: &[u8]) -> Option<Vec<u8>> {
    const CLOSE: &[u8] = b"Connection: close\r\n";
    let mut lines: Vec<&[u8]> = head.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.iter().any(|line| line.eq_ignore_ascii_case(CLOSE)) {
        return None;
    }
    lines.retain(|line| !is_about_connection(line));
    lines.insert(lines.len().saturating_sub(1), CLOSE);
    Some(lines.concat())
}

fn is_about_connection(line: &[u8]) -> bool {
    let name = line.iter().position(|&byte| byte == b':').map(|colon| &line[..colon]);
    name.is_some_and(|name| name.eq_ignore_ascii_case(b"connection"))
}

/// True if a request has a body, or its method normally has one, and its headers have neither `Content-Length` nor
/// `Transfer-Encoding`.
pub fn needs_length(parts: &RequestParts) -> bool {
    let is_framed = parts
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding"));
    !is_framed && (!parts.body.is_empty() || METHODS_WITH_BODY.contains(&parts.method.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(method: &str, headers: &[(&str, &str)], body: &str) -> String {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let parts =
            RequestParts { method: method.into(), target: "/p?q".into(), headers, body: body.as_bytes().into() };
        String::from_utf8(encode(&parts)).unwrap()
    }

    #[test]
    fn plain_gets_have_only_a_host() {
        let headers = vec![("Host".to_owned(), "127.0.0.1:18080".to_owned())];
        let parts = RequestParts { method: "GET".into(), target: "/".into(), headers, ..RequestParts::default() };
        assert_eq!(encode(&parts), b"GET / HTTP/1.1\r\nHost: 127.0.0.1:18080\r\n\r\n");
    }

    #[test]
    fn last_requests_send_connection_close() {
        let table: [(&str, Option<&str>); 5] = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Some("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")),
            ("\r\nGET / HTTP/1.1\r\n\r\n", Some("\r\nGET / HTTP/1.1\r\nConnection: close\r\n\r\n")),
            (
                "GET connection: HTTP/1.1\r\nconnection:keep-alive\r\nConnection: x\r\nA: connection:\r\n\r\n",
                Some("GET connection: HTTP/1.1\r\nA: connection:\r\nConnection: close\r\n\r\n"),
            ),
            ("GET / HTTP/1.0\nA: b\n\n", Some("GET / HTTP/1.0\nA: b\nConnection: close\r\n\n")),
            ("GET / HTTP/1.1\r\nconnection: Close\r\n\r\n", None),
        ];
        for (head, expected) in table {
            assert_eq!(closing_head(head.as_bytes()).as_deref(), expected.map(str::as_bytes), "{head:?}");
        }
    }

    #[test]
    fn headers_keep_order_and_repetitions() {
        assert_eq!(
            encoded("GET", &[("Host", "a"), ("Cookie", "b"), ("accept", ""), ("Cookie", "c")], ""),
            "GET /p?q HTTP/1.1\r\nHost: a\r\nCookie: b\r\naccept: \r\nCookie: c\r\n\r\n"
        );
    }

    #[test]
    fn bodies_get_lengths_with_any_method() {
        assert_eq!(encoded("POST", &[], "hello"), "POST /p?q HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(encoded("GET", &[], "hello"), "GET /p?q HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
    }

    #[test]
    fn bodyless_posts_send_content_length_zero() {
        for method in ["POST", "PUT", "PATCH"] {
            assert_eq!(encoded(method, &[], ""), format!("{method} /p?q HTTP/1.1\r\nContent-Length: 0\r\n\r\n"));
        }
        for method in ["GET", "HEAD", "DELETE", "OPTIONS", "post"] {
            assert_eq!(encoded(method, &[], ""), format!("{method} /p?q HTTP/1.1\r\n\r\n"));
        }
    }

    #[test]
    fn user_framing_headers_are_kept() {
        assert_eq!(
            encoded("POST", &[("content-LENGTH", "99")], "hello"),
            "POST /p?q HTTP/1.1\r\ncontent-LENGTH: 99\r\n\r\nhello"
        );
        assert_eq!(
            encoded("POST", &[("transfer-encoding", "chunked")], "0\r\n\r\n"),
            "POST /p?q HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
        );
    }
}
