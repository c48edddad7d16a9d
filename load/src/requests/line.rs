//! One line of a list of requests.

use onrush_plan::secrets;

/// A line of a list, by what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListLine<'a> {
    /// A blank line, which ends the request above.
    Blank,
    /// A comment, which has no effect.
    Comment,
    /// The first line of a request.
    Request(EntryHead<'a>),
    /// A header field of the request above.
    Field(&'a str, &'a str),
    /// Name of the file that holds the body of the request above.
    Body(&'a str),
}

/// The first line of a request: `[METHOD] URL-or-path [weight=N] [name=X]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHead<'a> {
    /// The method, if given.
    pub method: Option<&'a str>,
    /// The URL or the path.
    pub url: &'a str,
    /// The weight, which is 1 unless given.
    pub weight: u32,
    /// The name under which the request has separate results, if any.
    pub name: Option<&'a str>,
}

/// Length of a quoted line in a message, in characters.
const SHOWN: usize = 80;
const WEIGHT_MAX: u32 = 1_000_000;
/// Longest name, in characters.
const NAME_MAX: usize = 64;
/// Characters with a meaning in conditions such as `p99[login]<50ms`.
const NOT_IN_NAMES: &str = "[],<>=!\"";

impl<'a> ListLine<'a> {
    /// Parses a line without its line ending.
    ///
    /// # Errors
    ///
    /// Describes the fault.
    pub fn read(text: &'a str) -> Result<Self, String> {
        let text = text.trim_ascii();
        if is_quoted(text) {
            return Err("quotation marks around a request; leave them out".to_owned());
        }
        if let Some(kind) = foreign_kind(text) {
            return Err(format!(
                "this looks like {kind}; write METHOD URL, then a line for each header, and @FILE for a body"
            ));
        }
        match text.as_bytes() {
            [] => Ok(Self::Blank),
            [b'#', ..] => Ok(Self::Comment),
            [b'/', ..] => EntryHead::read(text).map(Self::Request),
            [b'@'] => Err("no file after the @".to_owned()),
            [b'@', ..] => Ok(Self::Body(&text[1..])),
            _ if is_host(text) => Err(format!("{} has no scheme; write http:// in front", shown(text))),
            _ if is_field(text) => field(text).map(|(name, value)| Self::Field(name, value)).map_err(str::to_owned),
            _ => EntryHead::read(text).map(Self::Request),
        }
    }
}

impl<'a> EntryHead<'a> {
    fn read(text: &'a str) -> Result<Self, String> {
        let mut words = words(text);
        let first = words.next().unwrap_or_default();
        let (method, url) = if is_url(first) { (None, Some(first)) } else { (Some(first), words.next()) };
        let url = url.filter(|url| is_url(url));
        let Some(url) = url.filter(|_| method.is_none_or(is_token)) else {
            return Err(format!(
                "{} is neither a request nor a header; write /PATH or http://…, after a method if you need one",
                without_secrets(text, secrets::misspelt_header)
            ));
        };
        let mut head = EntryHead { method, url, weight: 1, name: None };
        for word in words {
            match word.split_once('=') {
                Some(("weight", weight)) => {
                    head.weight = parse_weight(weight)
                        .ok_or_else(|| format!("{}: a weight is a whole number from 1 to {WEIGHT_MAX}", shown(word)))?
                }
                Some(("name", name)) if is_name(name) => head.name = Some(name),
                Some(("name", _)) => {
                    return Err(format!(
                        "{}: a name has 1 to {NAME_MAX} characters, none of them a control character or one of \
                         {NOT_IN_NAMES}",
                        shown(word)
                    ));
                }
                _ if word.starts_with("HTTP/") => {
                    return Err(format!("{} after the URL; leave it out", shown(word)));
                }
                _ if word.starts_with('@') => {
                    return Err(format!("{} after the URL; write it on the next line", shown(word)));
                }
                _ if word.starts_with(['{', '[', '"', '\'', '<']) => {
                    return Err("a body after the URL; put it in a file, and write @FILE on the next line".to_owned());
                }
                // The value may be a secret.
                Some((key, _)) => {
                    return Err(format!(
                        "{} after the URL; only weight=N and name=X may follow it",
                        shown(&format!("{key}=…"))
                    ));
                }
                None => {
                    return Err(format!(
                        "{} after the URL; only weight=N and name=X may follow it (write blanks as %20)",
                        shown(word)
                    ));
                }
            }
        }
        Ok(head)
    }
}

fn parse_weight(text: &str) -> Option<u32> {
    text.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight))
}

/// True if a string can be the name of requests: 1 to 64 characters, without blanks and characters used in conditions.
pub fn is_name(text: &str) -> bool {
    let is_allowed =
        |character: char| !character.is_control() && !character.is_whitespace() && !NOT_IN_NAMES.contains(character);
    (1..=NAME_MAX).contains(&text.chars().count()) && text.chars().all(is_allowed)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_ascii_start();
    std::iter::from_fn(move || {
        let (word, after) = rest.split_at(word_end(rest));
        rest = after.trim_ascii_start();
        (!word.is_empty()).then_some(word)
    })
}

/// End of the first word. A blank within the braces of a placeholder does not end a word.
fn word_end(text: &str) -> usize {
    let blank = text.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(text.len());
    // Most lines have no placeholder, and one character is found faster than two.
    let open = text[..blank].rfind('{').and_then(|_| text[..blank].rfind("{{"));
    let open = open.filter(|open| !text[*open..blank].contains("}}"));
    let close = open.and_then(|_| text[blank..].find("}}")).map(|length| blank + length + 2);
    close.map_or(blank, |close| close + word_end(&text[close..]))
}

/// True if a word is a URL or a path, not a method.
fn is_url(word: &str) -> bool {
    word.starts_with('/') || word.contains("://")
}

/// True if a line is a request in quotation marks, and not JSON.
fn is_quoted(text: &str) -> bool {
    let Some(text) = text.strip_prefix(QUOTES).or_else(|| text.strip_prefix(['"', '\''])) else { return false };
    let mut words = text.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    is_url(first) || (is_token(first) && words.next().is_some_and(is_url))
}

/// The kind of a line that belongs in a body file, or to another program.
fn foreign_kind(text: &str) -> Option<&'static str> {
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    match text.as_bytes() {
        [b'{' | b'[' | b'}' | b']' | b'"', ..] => Some("JSON"),
        [b'<', ..] => Some("XML"),
        _ if first == "curl" || first.starts_with('-') => Some("a curl command"),
        // Header names contain no =, and in URLs another of these characters comes first.
        _ if first.find(['=', '/', ':', '?']).is_some_and(|at| first[at..].starts_with('=')) => {
            Some("the body of a form")
        }
        _ => None,
    }
}

/// True if a line is a host with a port, and not a header field: `127.0.0.1:8080/path`.
fn is_host(text: &str) -> bool {
    let Some((name, rest)) = text.split_once(':') else { return false };
    let port = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_named = name.contains('.') || name == "localhost";
    port > 0 && (rest[port..].starts_with(['/', '?']) || (is_named && port == rest.len()))
}

/// Start of a string in quotes, without secrets.
pub(super) fn shown(text: &str) -> String {
    without_secrets(text, secrets::redact_text)
}

fn without_secrets(text: &str, hidden: impl Fn(&str) -> String) -> String {
    let text: String = text.trim().chars().take(SHOWN).collect();
    format!("{:?}", hidden(&text))
}

/// True if a line is a header field. The URL of a request also has a colon.
fn is_field(text: &str) -> bool {
    let name = text.split([':', ' ', '\t']).next().unwrap_or_default();
    let rest = &text[name.len()..];
    !name.starts_with('/') && rest.starts_with(':') && !rest.starts_with("://")
}

/// Splits a header field into name and value, without blanks before the value. Checks neither.
///
/// # Errors
///
/// Names the missing part.
pub fn raw_field(text: &str) -> Result<(&str, &str), &'static str> {
    let (name, value) = text.split_once(':').ok_or("no colon; write 'Name: value'")?;
    if name.is_empty() {
        return Err("no name before the colon; write 'Name: value'");
    }
    Ok((name, value.trim_start_matches([' ', '\t'])))
}

/// Typographic quotation marks, which web pages and word processors substitute for those of a shell.
pub const QUOTES: [char; 6] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}', '\u{201a}'];

/// Splits a header field like [`raw_field`], and checks name and value against RFC 9110.
///
/// # Errors
///
/// Describes the fault.
pub fn field(text: &str) -> Result<(&str, &str), &'static str> {
    let (name, value) = raw_field(text)?;
    if name.starts_with(QUOTES) {
        return Err("a typographic quotation mark, which is not a quote character in the shell; write ' or \"");
    }
    if name.starts_with(['\'', '"']) {
        return Err("a quotation mark before the name; leave it out");
    }
    if !is_token(name) {
        return Err("a header name consists of letters, digits and -; write 'Name: value'");
    }
    if value.contains(|character: char| character.is_ascii_control() && character != '\t') {
        return Err("a control character in the value; leave it out");
    }
    Ok((name, value))
}

/// True if a string is a token as defined in RFC 9110, as methods and header names must be.
pub fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_lines_have_four_kinds() {
        let head = |method, url, weight| Ok(ListLine::Request(EntryHead { method, url, weight, name: None }));
        for (text, expected) in [
            ("", Ok(ListLine::Blank)),
            ("  \r", Ok(ListLine::Blank)),
            ("# GET /", Ok(ListLine::Comment)),
            ("/a", head(None, "/a", 1)),
            ("  /a?b=c:d\r", head(None, "/a?b=c:d", 1)),
            ("http://h:80/a", head(None, "http://h:80/a", 1)),
            ("DELETE http://h/", head(Some("DELETE"), "http://h/", 1)),
            ("GET\t/a  weight=30", head(Some("GET"), "/a", 30)),
            (
                "/a name=log-in",
                Ok(ListLine::Request(EntryHead { method: None, url: "/a", weight: 1, name: Some("log-in") })),
            ),
            ("PUT /{{rand 1 9}}/{{ seq }}b weight=3", head(Some("PUT"), "/{{rand 1 9}}/{{ seq }}b", 3)),
            ("X-Token: a: b", Ok(ListLine::Field("X-Token", "a: b"))),
            ("Empty:", Ok(ListLine::Field("Empty", ""))),
            ("Content-Length:5", Ok(ListLine::Field("Content-Length", "5"))),
            ("@body file.json", Ok(ListLine::Body("body file.json"))),
        ] {
            assert_eq!(ListLine::read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn faulty_lines_are_explained() {
        for (text, words) in [
            ("a", "\"a\" is neither a request nor a header"),
            ("GET", "neither a request nor a header"),
            ("GET a", "neither a request nor a header"),
            ("GE(T /a", "neither a request nor a header"),
            ("example.com/a", "or http://…, after a method"),
            ("127.0.0.1:9001/b", "\"127.0.0.1:9001/b\" has no scheme; write http:// in front"),
            ("localhost:80", "has no scheme"),
            ("Authorization Bearer zebra-giraffe-77", "is neither a request nor a header"),
            ("Authorization Bearer zebra", "\"Authorization REDACTED\" is neither a request nor a header"),
            (" Bearer zebra", "\"Bearer REDACTED\" is neither a request nor a header"),
            ("--data-raw 'pw=zebra'", "looks like a curl command"),
            ("-H 'Authorization: zebra' \\", "looks like a curl command"),
            ("POST /echo {\"a\":\"zebra\"}", "a body after the URL; put it in a file"),
            ("POST /echo 'pw=zebra'", "a body after the URL"),
            ("POST /echo pw=zebra", "\"pw=…\" after the URL; only weight=N"),
            ("\"http://127.0.0.1:8088/a\"", "quotation marks around a request; leave them out"),
            ("'GET /a'", "quotation marks around a request"),
            ("\u{201c}/a\u{201d}", "quotation marks around a request"),
            ("'Authorization: zebra'", "a quotation mark before the name; leave it out"),
            ("/a b", "\"b\" after the URL"),
            ("/a weight=0", "\"weight=0\": a weight is a whole number from 1"),
            ("/a weight=x", "a weight is a whole number"),
            ("/a Weight=1", "only weight=N and name=X may follow"),
            ("/a @b", "\"@b\" after the URL; write it on the next line"),
            ("/a name=", "\"name=\": a name has 1 to 64 characters"),
            ("/a name=a]", "one of [],<>=!\""),
            ("@", "no file after the @"),
            ("{\"method\": \"GET\"}", "looks like JSON; write METHOD URL, then a line for each header, and @FILE"),
            ("[1, 2]", "looks like JSON"),
            ("[\"/a\"]", "looks like JSON"),
            ("\"method\": \"GET\",", "looks like JSON"),
            ("]", "looks like JSON"),
            ("<a href=\"/\">", "looks like XML"),
            ("<?xml version=\"1.0\"?>", "looks like XML"),
            ("user=zebra&at=12:30", "looks like the body of a form"),
            ("to=http://h/", "looks like the body of a form"),
            ("curl -X POST http://h/ -d zebra", "looks like a curl command"),
            ("GET http://h/ HTTP/1.1", "\"HTTP/1.1\" after the URL; leave it out"),
            ("GET / HTTP/2", "\"HTTP/2\" after the URL; leave it out"),
            (": a", "no name before the colon"),
            ("a\u{e9}: b", "a header name consists of"),
            ("A: b\u{1}", "a control character in the value"),
        ] {
            let line = ListLine::read(text);
            assert!(line.as_ref().is_err_and(|error| error.contains(words)), "{text:?}: {line:?}");
            assert!(!format!("{line:?}").contains("zebra"), "{line:?}");
        }
    }
}
