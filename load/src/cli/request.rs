//! The method, headers and body that all requests have, from the options.
//!
//! `Content-Length` is not added here, but by the protocol.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use onrush_plan::limits::BODY_MAX_MIB;
use onrush_plan::{Dialect, Request, Target};
use onrush_proto::http2::is_forbidden_field;
use onrush_text::error_reason;
use onrush_text::units::join_list;

use crate::input;
use crate::requests::{field, raw_field};

/// Name and value of a header.
pub(super) type HeaderField = (String, String);

/// Parses a header and removes leading blanks from its value. Natively, the header must conform to RFC 9110. The compat
/// dialects send it unchanged, as wrk does, and require only a name and a colon. The error says what is wrong.
pub(super) fn parse_header(text: &str, dialect: Dialect) -> Result<HeaderField, &'static str> {
    let (name, value) = if dialect.is_compat() { raw_field(text) } else { field(text) }?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The methods of RFC 9110 and RFC 5789.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// A warning about a `Host` header that HTTP/2 changes: the first one becomes `:authority`.
pub(super) fn http2_host_warning(request: &Request) -> Option<String> {
    let hosts = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Host"));
    let mut hosts = hosts.map(|(name, value)| (format!("'{name}: {value}'"), value.is_empty()));
    // The authority of a tunnel is its target, not the `Host`.
    let first = hosts.next().filter(|_| request.method != "CONNECT")?;
    match (first, hosts.next()) {
        ((empty, true), _) => Some(format!(
            "{} is left out with HTTP/2, and :authority with it, which servers may refuse with 400 or PROTOCOL_ERROR",
            empty.replace(": '", ":'")
        )),
        ((sent, false), Some((other, _))) => {
            Some(format!("{other} is left out with HTTP/2, which has one host; {sent} is sent as :authority"))
        }
        _ => None,
    }
}

/// A warning about headers that do not exist in HTTP/2.
pub(super) fn http1_headers_warning(headers: &[(String, String)]) -> Option<String> {
    let is_other_te =
        |name: &str, value: &str| name.eq_ignore_ascii_case("TE") && !value.eq_ignore_ascii_case("trailers");
    let left_out: Vec<_> =
        headers.iter().filter(|(name, value)| is_forbidden_field(name) || is_other_te(name, value)).collect();
    let named: Vec<String> = left_out.iter().map(|(name, value)| format!("'{name}: {value}'")).collect();
    let (is, headers) = if named.len() == 1 { ("is", "header") } else { ("are", "headers") };
    let instead = if left_out.iter().any(|(name, _)| name.eq_ignore_ascii_case("Connection")) {
        "; --disable-keepalive and --requests-per-connection end connections"
    } else {
        ""
    };
    (!named.is_empty())
        .then(|| format!("{} {is} left out with HTTP/2, which has no such {headers}{instead}", join_list(&named)))
}

/// The warning about a standard method typed with `option` in the wrong case.
pub(super) fn method_case_warning(method: &str, option: &str) -> Option<String> {
    let meant = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method) && *known != method)?;
    Some(format!("the case of a method matters, and servers know {meant}, not {method}; write {option}{meant}"))
}

/// The headers in the order in which they are sent: `Host`, possibly the user's; `Authorization`, if the URL contains a
/// user and the header is missing; and the user's headers in their own order.
pub(super) fn order_headers(typed: Vec<HeaderField>, target: &Target) -> Vec<HeaderField> {
    let is = |header: &HeaderField, name: &str| header.0.eq_ignore_ascii_case(name);
    let (mut headers, rest): (Vec<_>, Vec<_>) = typed.into_iter().partition(|header| is(header, "Host"));
    if headers.is_empty() {
        headers.push(("Host".to_owned(), target.authority()));
    }
    if let Some(userinfo) =
        target.userinfo.as_deref().filter(|_| !rest.iter().any(|header| is(header, "Authorization")))
    {
        headers.push(("Authorization".to_owned(), basic_credentials(userinfo)));
    }
    headers.extend(rest);
    headers
}

/// The body that `--body` sets: a text, the contents of a file, or standard input. The error says what is wrong.
pub(super) fn read_body(typed: &OsStr) -> Result<Vec<u8>, String> {
    let [b'@', name @ ..] = typed.as_bytes() else { return Ok(typed.as_bytes().to_vec()) };
    let name = Path::new(OsStr::from_bytes(name));
    let contents = match input::brought_path(name) {
        Some(there) => read_file(there),
        None if name.as_os_str() == "-" => read_limited(io::stdin().lock(), BODY_MAX_MIB),
        None => read_file(name),
    }?;
    input::note_read(name, &contents);
    Ok(contents)
}

/// The contents of a file named in a form, or of standard input for `-`.
pub(super) fn read_contents(file: &[u8]) -> Result<Vec<u8>, String> {
    match file {
        [] => Err("no file after the @ or <".to_owned()),
        file => read_body(OsStr::from_bytes(&[b"@", file].concat())),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error_reason(&error))?;
    let length = file.metadata().map_err(|error| error_reason(&error))?.len();
    if length > BODY_MAX_MIB << 20 { Err(too_long_message(BODY_MAX_MIB)) } else { read_limited(file, BODY_MAX_MIB) }
}

fn read_limited(source: impl Read, most_mib: u64) -> Result<Vec<u8>, String> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes).map_err(|error| error_reason(&error))?;
    if bytes.len() as u64 > most { Err(too_long_message(most_mib)) } else { Ok(bytes) }
}

fn too_long_message(most_mib: u64) -> String {
    format!("it is longer than {most_mib} MiB; send a shorter body")
}

/// The value of `Authorization` or `Proxy-Authorization` for `user:password`, which is encoded as it is.
pub(super) fn basic_credentials(userinfo: &str) -> String {
    format!("Basic {}", STANDARD.encode(userinfo))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(typed: &[&str], url: &str) -> String {
        let typed = typed.iter().map(|text| parse_header(text, Dialect::Wrk).unwrap()).collect();
        let headers = order_headers(typed, &Target::parse(url, Dialect::Wrk).unwrap());
        headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    #[test]
    fn host_comes_first_then_typed_order() {
        assert_eq!(sent(&[], "http://127.0.0.1:80/"), "Host: 127.0.0.1:80\n");
        assert_eq!(
            sent(&["A: b: c", "NoSpace:x", "Dup: 1", "Dup: 2"], "http://h/"),
            "Host: h\nA: b: c\nNoSpace: x\nDup: 1\nDup: 2\n"
        );
    }

    #[test]
    fn typed_host_replaces_ours_in_any_case() {
        assert_eq!(sent(&["A: 1", "hOST: h.example"], "http://h/"), "hOST: h.example\nA: 1\n");
    }

    #[test]
    fn url_userinfo_is_sent_unless_overridden() {
        assert_eq!(sent(&["A: 1"], "http://u:p@h/"), "Host: h\nAuthorization: Basic dTpw\nA: 1\n");
        assert_eq!(sent(&["authorization: x"], "http://u:p@h/"), "Host: h\nauthorization: x\n");
    }

    #[test]
    fn lower_case_methods_are_warned_about() {
        let line = "the case of a method matters, and servers know POST, not post; write -X POST";
        assert_eq!(method_case_warning("post", "-X ").as_deref(), Some(line));
        assert!(method_case_warning("Get", "").is_some_and(|line| line.ends_with("not Get; write GET")));
        assert_eq!(
            ["POST", "PURGE", "purge", "query"].map(|method| method_case_warning(method, "")),
            [const { None }; 4]
        );
    }

    #[test]
    fn invalid_headers_are_refused_natively() {
        let table = [
            ("A:", Ok(("A", ""))),
            ("A: b: c", Ok(("A", "b: c"))),
            ("A: \t b ", Ok(("A", "b "))),
            ("A:b\tc", Ok(("A", "b\tc"))),
            ("A: é", Ok(("A", "é"))),
            ("A", Err("no colon; write 'Name: value'")),
            (": b", Err("no name before the colon; write 'Name: value'")),
            ("'A: c'", Err("a quotation mark before the name; leave it out")),
            ("A b: c", Err("a header name consists of letters, digits and -; write 'Name: value'")),
            ("\u{201c}A: c", Err("a typographic quotation mark, which quotes nothing in a shell; write ' or \"")),
            ("A: b\r\nC: d", Err("a control character in the value; leave it out")),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parse_header(text, Dialect::Native), expected, "{text}");
        }
    }

    #[test]
    fn bodies_are_texts_or_readable_files() {
        assert_eq!(read_body(OsStr::new("a=1")).as_deref(), Ok(&b"a=1"[..]));
        assert_eq!(read_body(OsStr::new("")).as_deref(), Ok(&b""[..]));
        assert_eq!(read_body(OsStr::new("@/proc/self/comm")).map(|bytes| bytes.is_empty()), Ok(false));
        assert_eq!(read_body(OsStr::new("@/nonexistent")), Err("No such file or directory".to_owned()));
        assert_eq!(read_body(OsStr::new("@/")), Err("Is a directory".to_owned()));
        assert_eq!(read_body(OsStr::new("@")), Err("No such file or directory".to_owned()));
    }

    #[test]
    fn endless_bodies_are_errors() {
        assert_eq!(read_limited(io::repeat(b'x'), 1), Err("it is longer than 1 MiB; send a shorter body".to_owned()));
        assert_eq!(read_limited(io::repeat(b'x').take(1 << 20), 1).map(|bytes| bytes.len()), Ok(1 << 20));
    }
}
