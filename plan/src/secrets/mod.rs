//! Redaction of secrets, which must not leave the machine with a result.
//!
//! Secrets are found in two ways. `places` finds the users of URLs and the values of secret `names`: in URLs, headers,
//! forms, documents, options and sentences alike. `known` has the secrets that a run was given, and finds them wherever
//! else they appear, also in hexadecimal and base64. Both read a text as it is and with percent-encoding undone once
//! (`decoded`). In the commands of an experiment, `command` finds places in spite of quotes.

mod command;
mod decoded;
mod known;
mod names;
mod places;

use std::net::IpAddr;
use std::ops::Range;

pub use known::KnownSecrets;

use super::file_contents::{FileContents, UnreadableFile};

/// Replacement of a secret.
pub const REDACTED: &str = "REDACTED";

/// True if the value of a header, field, parameter or argument of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    names::is_secret(name.as_bytes())
}

/// A URL, with or without a scheme, with its user and secret parameters redacted.
pub fn url(url: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    match url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, rest)) => format!("{scheme}{}", text(&format!("://{rest}"))),
        None => text(&format!("://{url}"))["://".len()..].to_owned(),
    }
}

/// A text with only the users of its URLs redacted: for messages, whose words may look like the names of secrets.
pub fn users(text: &str) -> String {
    String::from_utf8_lossy(&without(text.as_bytes(), places::users(text.as_bytes()))).into_owned()
}

/// A text that may not be a valid URL, with everything redacted that may be meant as a user. To a parser, a slash in a
/// password ends the host.
pub fn misspelt_url(typed: &str) -> String {
    match typed.rsplit_once('@') {
        Some((user, host)) => {
            let scheme =
                ["http://", "https://"].into_iter().find(|scheme| user.starts_with(scheme)).unwrap_or_default();
            format!("{scheme}{REDACTED}@{}", url(host))
        }
        None => url(typed),
    }
}

/// True if a URL may be meant to have a user or password with a character that would end it.
pub fn is_misspelt_user(url: &str) -> bool {
    let user = url.rsplit_once('@').map(|(user, _)| user.split_once("://").map_or(user, |(_, user)| user));
    user.is_some_and(|user| user.contains(['/', '?', '#']))
}

/// The advice for such a URL.
pub const MISSPELT_USER: &str = "in a user name or password, write / ? # as %2F %3F %23";

/// A text that may not be a valid header, redacted.
pub fn misspelt_header(typed: &str) -> String {
    match typed.split_once([':', ' ', '\t', '=']) {
        Some((name, _)) if is_secret(name) => format!("{name} {REDACTED}"),
        _ => text(typed),
    }
}

/// Any text, with every secret value up to the end of the field or line redacted, and the user of every URL.
pub fn text(text: &str) -> String {
    redacted(text, false)
}

/// Any bytes, redacted like [`text`].
pub fn bytes(bytes: &[u8]) -> Vec<u8> {
    without(bytes, places::places(bytes, false))
}

/// The contents of a file without the secrets in the first 4 MiB, in two parts: searching all of a long list would take
/// longer than many runs.
///
/// # Errors
///
/// When they were neither read nor attached.
pub fn contents(file: &FileContents) -> Result<(Vec<u8>, &[u8]), UnreadableFile> {
    let (searched, rest) = searched(file.contents()?);
    Ok((without(searched, in_file(file).to_vec()), rest))
}

/// The places of these secrets.
fn in_file(file: &FileContents) -> &[Range<usize>] {
    file.secrets(|contents| places::places(searched(contents).0, false))
}

/// The part of contents that is searched, and the rest.
fn searched(contents: &[u8]) -> (&[u8], &[u8]) {
    contents.split_at(contents.len().min(4 << 20))
}

/// Bytes of a message on the wire, redacted. A value after `name=` ends at the first blank, as in a request line.
pub fn message(bytes: &[u8]) -> Vec<u8> {
    without(bytes, places::places(bytes, true))
}

/// A sentence, redacted. A value after `name=` ends at the first blank.
pub fn sentence(text: &str) -> String {
    redacted(text, true)
}

/// The words of a command line, redacted like [`text`], including those of [`are_hidden`].
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let words: Vec<&str> = words.into_iter().collect();
    let shown = |(word, is_hidden): (&&str, bool)| if is_hidden { REDACTED.to_owned() } else { text(word) };
    words.iter().zip(are_hidden(words.iter().copied())).map(shown).collect()
}

/// Returns of each word of a command line whether it is a secret as a whole: the word after an option with a secret name, and
/// after the beginning of a header that a blank cuts off, all words up to the next option or URL.
pub fn are_hidden<'a>(words: impl Iterator<Item = &'a str>) -> Vec<bool> {
    let (mut hides_next, mut is_in_header) = (false, false);
    let is_hidden = |word: &str| {
        is_in_header &= !word.starts_with('-') && !word.contains("://");
        let is_hidden = std::mem::replace(&mut hides_next, is_secret_option(word)) || is_in_header;
        is_in_header |= ends_before_secret(word);
        is_hidden
    };
    words.map(is_hidden).collect()
}

/// A command for a shell, redacted: values of secret names in and without quotes, and logins after options like `-u`.
pub fn command(text: &str) -> String {
    String::from_utf8_lossy(&without(text.as_bytes(), command::places(text.as_bytes(), false))).into_owned()
}

/// The value of a label, redacted like [`text`], and all of it if its key is the name of a secret.
pub fn label(key: &str, value: &str) -> String {
    if is_secret(key) { REDACTED.to_owned() } else { text(value) }
}

/// True if a word is an option with a secret name whose value is the next word.
pub fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && is_secret(word)
}

/// Returns whether a word is the beginning of a header, cut off by a blank before its secret: `Cookie:`, `X:Bearer`, `Bearer`.
pub fn ends_before_secret(word: &str) -> bool {
    match word.split_once(':') {
        Some((name, value)) => (value.trim().is_empty() && is_secret(name)) || is_scheme(value),
        // Other schemes are ordinary words, too.
        None => word.eq_ignore_ascii_case("bearer"),
    }
}

/// Returns whether the value of a header is only a scheme such as `Bearer`, without its credentials.
pub fn is_scheme(value: &str) -> bool {
    names::is_scheme(value.trim().as_bytes())
}

/// The minimum length of a number that is unlikely to appear by chance, such as a session's, in bytes.
const NUMBER_MIN: usize = 10;

/// True if a value is one or two numbers like many others, or the address of a host, perhaps with a port: they appear
/// in texts that have nothing to do with it.
fn is_number_or_address(value: &[u8]) -> bool {
    let Ok(value) = str::from_utf8(value) else { return false };
    let is_of_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.[:]".contains(&byte);
    let is_number = value.len() < NUMBER_MIN && value.bytes().all(is_of_number);
    let has_port = value.rsplit_once(':').is_some_and(|(host, port)| {
        host.bytes().all(is_of_host) && port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
    });
    is_number || has_port || value.parse::<IpAddr>().is_ok()
}

fn redacted(text: &str, blanks_end: bool) -> String {
    String::from_utf8_lossy(&without(text.as_bytes(), places::places(text.as_bytes(), blanks_end))).into_owned()
}

/// The bytes with these places, which are in order, redacted.
fn without(bytes: &[u8], places: Vec<Range<usize>>) -> Vec<u8> {
    let (mut shown, mut copied) = (Vec::with_capacity(bytes.len()), 0);
    for Range { start, end } in places {
        shown.extend_from_slice(&bytes[copied..start]);
        shown.extend_from_slice(REDACTED.as_bytes());
        copied = end;
    }
    shown.extend_from_slice(&bytes[copied..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_redact_only_url_userinfo() {
        let said = "--header \"http://a:S@h/\": no; token: x, http://h/@b http://a:S@http://b:S@h";
        assert_eq!(users(said), "--header \"http://REDACTED@h/\": no; token: x, http://h/@b http://REDACTED@h");
    }

    #[test]
    fn secret_names_match_in_any_case() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "Cookie",
            "Set-Cookie",
            "X-API-Key",
            "csrf_token",
            "clientSecret",
            "passwd",
            "PASSWORD",
            "PHPSESSIONID",
            "-HAuthorization",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["Accept", "Host", "user", "Keep-Alive", "author", ""] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn urls_lose_their_user_and_secret_parameters() {
        let table = [
            ("http://user:pa@ss@h:80/a?x=1&token=abc&y=2#f", "http://REDACTED@h:80/a?x=1&token=REDACTED&y=2#f"),
            ("user:pass@h/", "REDACTED@h/"),
            ("session-store:8080/key?a=1", "session-store:8080/key?a=1"),
            ("http://session:80", "http://session:80"),
            ("h?api_key=1", "h?api_key=REDACTED"),
            ("https://h/?q=me@h", "https://h/?q=me@h"),
            ("http://me:it's@h/", "http://REDACTED@h/"),
            ("me:pw@h/?token=1&to=http://a/", "REDACTED@h/?token=REDACTED&to=http://a/"),
            ("h/?to=http://me:pw@a/", "h/?to=http://REDACTED@a/"),
        ];
        for (typed, shown) in table {
            assert_eq!(url(typed), shown);
        }
    }

    #[test]
    fn secrets_are_found_in_headers_forms_and_options() {
        let table = [
            ("Authorization: Bearer abc", "Authorization: REDACTED"),
            ("-HCookie: a=1; b=2", "-HCookie: REDACTED"),
            ("--header=X-Api-Key:123", "--header=X-Api-Key:REDACTED"),
            ("Accept: text/html", "Accept: text/html"),
            ("user=me&password=my pass&n=1", "user=me&password=REDACTED&n=1"),
            (r#"{"user":"me","password": "a,b","n":1}"#, r#"{"user":"me","password": "REDACTED","n":1}"#),
            ("{\"password\":\n  \"abc\"}", "{\"password\":\n  \"REDACTED\"}"),
            ("Password:\nX: y", "Password:\nX: y"),
            (r#"{"session": 12, "n": 1}"#, r#"{"session": REDACTED, "n": 1}"#),
            ("--access-token=abc", "--access-token=REDACTED"),
            ("--http-proxy=http://u:p@proxy:3128", "--http-proxy=http://REDACTED@proxy:3128"),
            ("the key is here", "the key is here"),
            ("token=", "token="),
            ("a=1&password=it's;#a\"b&n=1", "a=1&password=REDACTED&n=1"),
            (r#"<user password="a b" n="1">"#, r#"<user password="REDACTED" n="1">"#),
            ("password = x", "password = REDACTED"),
            (r#"{"url":"http://h/?token=abc","n":1}"#, r#"{"url":"http://h/?token=REDACTED","n":1}"#),
            (r#"{"password":"a\"b\\","n":"\"c"}"#, r#"{"password":"REDACTED","n":"\"c"}"#),
            (r#"{"keys":["a","b"],"n":1}"#, r#"{"keys":REDACTED,"n":1}"#),
            (r#"{"session":{"id":"a","of":"b"},"n":1}"#, r#"{"session":REDACTED,"n":1}"#),
            (r#"{"session":{"user":{"id":1},"sid":"a"},"n":1}"#, r#"{"session":REDACTED,"n":1}"#),
            (r#"{"keys":["a]\"b","c"],"n":1}"#, r#"{"keys":REDACTED,"n":1}"#),
            (r#"{"keys":["a"#, r#"{"keys":REDACTED"#),
            ("größe=1&schlüssel=2&kéy=3", "größe=1&schlüssel=2&kéy=3"),
            (r#"headers["Authorization"] = "Bearer a b" x"#, r#"headers["Authorization"] = "REDACTED" x"#),
            (r#"{"name":"password","value":"S","n":1}"#, r#"{"name":"password","value":"REDACTED","n":1}"#),
            (r#"<input name="password" value="S">"#, r#"<input name="password" value="REDACTED">"#),
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown);
        }
    }

    #[test]
    fn names_count_as_they_are_meant() {
        let table = [
            ("a=1&%74oken=S&b=2", "a=1&%74oken=REDACTED&b=2"),
            ("pass%77ord=S", "pass%77ord=REDACTED"),
            (r#"{"pass\u0077ord":"S","n":1}"#, r#"{"pass\u0077ord":"REDACTED","n":1}"#),
            (r#"{"\u0070\u0061ssword" : {"a":"S"},"n":1}"#, r#"{"\u0070\u0061ssword" : REDACTED,"n":1}"#),
            // Of a document in a document, the rest is hidden as well.
            (r#"{"a":"{\"password\":\"S\",\"n\":1}","n":2}"#, r#"{"a":"{\"password\":\"REDACTED","n":2}"#),
            (r#"{\\\"password\\\":\\\"S\\\"}"#, r#"{\\\"password\\\":\\\"REDACTED"#),
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown);
        }
    }

    #[test]
    fn elements_and_attributes_are_found_by_their_names() {
        let table = [
            ("<a><password>S</password><n>1</n></a>", "<a><password>REDACTED</password><n>1</n></a>"),
            (r#"<x:apiKey token='S' n="1"><![CDATA[S]]></x:apiKey>1"#, r#"<x:apiKey REDACTED</x:apiKey>1"#),
            ("<keys><key>S</key><key>S</key></keys>1", "<keys>REDACTED</keys>1"),
            ("<token/><n>1</n>", "<token/><n>1</n>"),
            ("<token></token><n>1</n>", "<token></token><n>1</n>"),
            (r#"<login Password="S"/>1"#, r#"<login Password="REDACTED"/>1"#),
            ("<password>S", "<password>REDACTED"),
            ("<passwords", "<passwords"),
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown);
        }
    }

    #[test]
    fn what_is_percent_encoded_is_read_as_well() {
        let table = [
            ("data=%7B%22password%22%3A+%22S%22%7D&n=1", "data=%7B%22password%22%3A+%22REDACTED%22%7D&n=1"),
            ("to=http%3A%2F%2Fme%3Apw%40h%2F&n=1", "to=http%3A%2F%2FREDACTED%40h%2F&n=1"),
            ("q=a%3D1%26token%3DS n=1", "q=a%3D1%26token%3DREDACTED"),
            ("q=caf%C3%A9%20au%20lait&n=100%25", "q=caf%C3%A9%20au%20lait&n=100%25"),
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown);
        }
    }

    #[test]
    fn documents_of_every_kind_are_read() {
        let table = [
            ("user: me\npassword: S\nn: 1", "user: me\npassword: REDACTED\nn: 1"),
            ("- pwd: |\n    S\n\n    S\n  n: 1", "- pwd: REDACTED\n  n: 1"),
            ("keys:\n- S\n- S\nn: 1", "keys:\nREDACTED\nn: 1"),
            ("\"pwd\": >-\n  S\nn: 1", "\"pwd\": REDACTED\nn: 1"),
            ("[a]\npassword = \"S\"\nn = 1", "[a]\npassword = \"REDACTED\"\nn = 1"),
            ("pwd = \"\"\"\nS\"S\n\"\"\"\nn = 1", "pwd = \"\"\"REDACTED\"\"\"\nn = 1"),
            (
                r#"[{"value":"S","n":{},"name":"password"},{"value":"1"}]"#,
                r#"[{"value":"REDACTED","n":{},"name":"password"},{"value":"REDACTED"}]"#,
            ),
            (r#"{"key":"sid","value":"S"}"#, r#"{"key":"sid","value":"REDACTED"}"#),
            (r#"<input value="S" name="pwd"><b>1"#, r#"<input value="REDACTED" name="pwd"><b>1"#),
            ("- name: pwd\n  value: S\n", "- name: pwd\n  value: REDACTED\n"),
            ("X: Bearer abc.d3f-x y", "X: Bearer REDACTED y"),
            ("Basic authentication, bearer of news", "Basic authentication, bearer of news"),
            ("%74oken=S%26S&n=1", "%74oken=REDACTED&n=1"),
            (r#"{"pass\u0077ord":"a\"S","n":1}"#, r#"{"pass\u0077ord":"REDACTED","n":1}"#),
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown, "{typed}");
        }
    }

    #[test]
    fn long_texts_are_scanned_once() {
        // If each place caused a scan of everything after it, this would not end.
        let pieces = [
            "name=\"x\" ",
            "bearer a",
            "key: |\n ",
            "name=\"key\" ",
            "<key ",
            "<key>",
            "a%20b+",
            "ab/cd+ef",
            "key:[",
            "\"key\":[",
            "\\",
            "://",
        ];
        for piece in pieces {
            let text = piece.repeat((1 << 18) / piece.len());
            assert!(!super::text(&text).is_empty(), "{piece}");
        }
    }

    #[test]
    fn mistyped_arguments_are_shown_redacted() {
        assert_eq!(misspelt_url("http://me:a/b@h /"), "http://REDACTED@h /");
        assert_eq!(misspelt_url("h h/?token=S"), "h h/?token=REDACTED");
        assert_eq!(misspelt_header("Authorization Bearer S"), "Authorization REDACTED");
        assert_eq!(misspelt_header("X"), "X");
    }

    #[test]
    fn multipart_secrets_are_found_by_field_name() {
        let part = |name: &str, value: &str| {
            format!(
                "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n{value}\r\n"
            )
        };
        let form = |value: &str| part("user", "me") + &part("my-password", value) + &part("n", "1") + "--x--\r\n";
        assert_eq!(text(&form("a\r\n-b")), form(REDACTED));
        assert_eq!(text(&form("")), form(""));
        let other = |value: &str| form(value).replace("\"my-password\"", "my-pass%77ord");
        assert_eq!(text(&other("a b")), other(REDACTED));
        // With bare line feeds, and with a blank line of the other kind in the value.
        let bare = |value: &str| form("VALUE").replace("\r\n", "\n").replace("VALUE", value);
        assert_eq!(text(&bare("a\n-b\n\r\nc")), bare(REDACTED));
        assert_eq!(text(&bare("")), bare(""));
    }

    #[test]
    fn a_sentence_goes_on_after_a_secret() {
        assert_eq!(sentence("all were 302 to /?token=abc: you saw it"), "all were 302 to /?token=REDACTED you saw it");
        assert_eq!(sentence("302 to http://a:b@h/ again"), "302 to http://REDACTED@h/ again");
    }

    #[test]
    fn the_word_after_a_secret_option_is_hidden() {
        let shown = words(["--user", "me", "--password", "hunter2", "-x", "key=1"]);
        assert_eq!(shown, ["--user", "me", "--password", "REDACTED", "-x", "key=REDACTED"]);
        assert_eq!(
            words(["Bearer", "abc", "-H", "Authorization:", "Bearer", "abc", "x", "http://h/", "basic", "json"]),
            [
                "Bearer",
                "REDACTED",
                "-H",
                "Authorization:",
                "REDACTED",
                "REDACTED",
                "REDACTED",
                "http://h/",
                "basic",
                "json"
            ]
        );
    }
}
