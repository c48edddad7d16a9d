//! What must not leave the machine with a result: the values of names that mean a secret, and the user of a URL.
//!
//! It works on text and knows no grammar but `name=value`, `Name: value` and `"name": "value"`, so that it finds
//! secrets wherever they stand: in a URL, a header, a form, a document, an argument for a script, a sentence.

/// What stands in the place of a secret.
pub const REDACTED: &str = "REDACTED";

/// Names that contain one of these mean a secret.
const PARTS: [&str; 5] = ["token", "secret", "passw", "key", "session"];

/// And names that end in one of these, whatever option they are glued to.
const ENDS: [&str; 2] = ["authorization", "cookie"];

/// Where a value ends that belongs to a `name=`. Rather too much is hidden than too little.
const VALUE_ENDS: [char; 2] = ['&', '\n'];

/// What may follow a quote that closes something.
const BEHIND_QUOTES: [char; 8] = [',', '}', ']', ')', '>', ':', ';', '/'];

/// Whether the value of a header, field, parameter or argument of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || ENDS.iter().any(|end| name.ends_with(end))
}

/// A URL, with or without its scheme: without the user and the secret parameters.
pub fn url(url: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    match url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) {
        Some((scheme, rest)) => format!("{scheme}{}", text(&format!("://{rest}"))),
        None => text(&format!("://{url}"))["://".len()..].to_owned(),
    }
}

/// Any text: every secret value in it, up to the end of the field or line, and the user of every URL.
pub fn text(text: &str) -> String {
    redacted(text, false)
}

/// Any bytes, as [`text`].
pub fn bytes(bytes: &[u8]) -> Vec<u8> {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    redacted(&text, false).chars().map(|character| character as u8).collect()
}

/// A sentence, in which a value that belongs to a `name=` ends with the word.
pub fn sentence(text: &str) -> String {
    redacted(text, true)
}

/// Words in a row: as [`text`], and the word that follows an option with a secret's name.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hides_next = false;
    let shown = |word| {
        if std::mem::take(&mut hides_next) {
            return REDACTED.to_owned();
        }
        hides_next = is_secret_option(word);
        text(word)
    };
    words.into_iter().map(shown).collect()
}

/// Whether a word is an option with a secret's name whose value is the next word.
pub fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && is_secret(word)
}

fn redacted(text: &str, blanks_end: bool) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("://") {
            let end = after.find(|c: char| "/?#\"".contains(c) || c.is_whitespace()).unwrap_or(after.len());
            let (authority, tail) = after.split_at(end);
            shown.push_str("://");
            let host = authority.rsplit_once('@').map(|(_, host)| host);
            shown.push_str(&host.map_or(authority.to_owned(), |host| format!("{REDACTED}@{host}")));
            rest = tail;
            continue;
        }
        let name_end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        let (name, tail) = rest.split_at(name_end.max(if name_end == 0 { first.len_utf8() } else { 0 }));
        shown.push_str(name);
        rest = tail;
        let found = if is_secret(name) { value_behind(rest, blanks_end) } else { None };
        if let Some((before, value)) = found.or_else(|| part_behind(name, rest)) {
            shown.push_str(&rest[..before]);
            shown.push_str(REDACTED);
            rest = &rest[before + value..];
        }
    }
    shown
}

/// Whether a character may be part of a name.
fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || "_-.%[]".contains(character)
}

/// The lengths of what stands between a name and its value, and of the value; `None` if no value follows.
fn value_behind(rest: &str, blanks_end: bool) -> Option<(usize, usize)> {
    let unquoted = rest.strip_prefix(['"', '\'']).unwrap_or(rest);
    let (is_quoted, closed) = (unquoted.len() < rest.len(), unquoted.trim_start_matches([' ', '\t']));
    let mark = closed.chars().next().filter(|mark| "=:".contains(*mark))?;
    let behind = closed[1..].trim_start_matches([' ', '\t']);
    let before = rest.len() - behind.len();
    let first = behind.chars().next()?;
    let value = match first {
        '"' | '\'' => return Some((before + 1, closing_quote(&behind[1..], first))),
        '[' | '{' if is_quoted => group_end(behind),
        _ if mark == '=' => value_end(behind, blanks_end),
        // Behind the name of a field of a document stand numbers too, and further fields.
        _ => behind.find(|c: char| c == '\n' || (is_quoted && ",}".contains(c))),
    };
    Some((before, value.unwrap_or(behind.len()))).filter(|&(_, value)| value > 0)
}

/// The same for a field of a form in parts: its name stands in its head, and its value behind an empty line.
fn part_behind(name: &str, rest: &str) -> Option<(usize, usize)> {
    let (field, behind) = rest.strip_prefix("=\"").filter(|_| name == "name")?.split_once('"')?;
    let empty = ["\n\r\n", "\n\n"].into_iter().filter_map(|empty| Some(behind.find(empty)? + empty.len()));
    let value = &behind[empty.min().filter(|_| is_secret(field))?..];
    let length = value.find("\r\n--").or_else(|| value.find("\n--")).unwrap_or(value.len());
    Some((rest.len() - value.len(), length)).filter(|&(_, length)| length > 0)
}

/// Where a list or an object of a document ends, with everything in it; `None` if it does not.
fn group_end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted_until) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            _ if at < quoted_until => {}
            '"' => quoted_until = at + 1 + closing_quote(&text[at + 1..], c) + 1,
            '[' | '{' => depth += 1,
            ']' | '}' if depth == 1 => return Some(at + 1),
            ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Where the quote is that ends a text, unless a backslash stands before it; the end if there is none.
fn closing_quote(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c: char| {
        let closes = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        closes
    });
    end.unwrap_or(text.len())
}

/// Where a value behind `name=` ends: at a quote only if something around it ends there too.
fn value_end(text: &str, blanks_end: bool) -> Option<usize> {
    let is_end = |(at, c): &(usize, char)| {
        let next = text[at + c.len_utf8()..].chars().next();
        let closes = next.is_none_or(|next| next.is_whitespace() || BEHIND_QUOTES.contains(&next));
        VALUE_ENDS.contains(c) || (blanks_end && c.is_whitespace()) || ("\"'".contains(*c) && closes)
    };
    text.char_indices().find(is_end).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_a_secret_are_known_in_any_case() {
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
        for name in ["Accept", "Host", "user", "Keep-Alive", "Cookies-Allowed", ""] {
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
    fn secrets_are_found_in_headers_forms_documents_and_options() {
        let table = [
            ("Authorization: Bearer abc", "Authorization: REDACTED"),
            ("-HCookie: a=1; b=2", "-HCookie: REDACTED"),
            ("--header=X-Api-Key:123", "--header=X-Api-Key:REDACTED"),
            ("Accept: text/html", "Accept: text/html"),
            ("user=me&password=my pass&n=1", "user=me&password=REDACTED&n=1"),
            (r#"{"user":"me","password": "a,b","n":1}"#, r#"{"user":"me","password": "REDACTED","n":1}"#),
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
        ];
        for (typed, shown) in table {
            assert_eq!(text(typed), shown);
        }
    }

    #[test]
    fn fields_of_a_form_in_parts_are_found_by_the_name_in_their_head() {
        let part = |name: &str, value: &str| {
            format!(
                "--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n{value}\r\n"
            )
        };
        let form = |value: &str| part("user", "me") + &part("my-password", value) + &part("n", "1") + "--x--\r\n";
        assert_eq!(text(&form("a\r\n-b")), form(REDACTED));
        assert_eq!(text(&form("")), form(""));
    }

    #[test]
    fn a_sentence_goes_on_behind_a_secret() {
        assert_eq!(sentence("all were 302 to /?token=abc: you saw it"), "all were 302 to /?token=REDACTED you saw it");
        assert_eq!(sentence("302 to http://a:b@h/ again"), "302 to http://REDACTED@h/ again");
    }

    #[test]
    fn the_word_behind_a_secret_option_is_hidden() {
        let shown = words(["--user", "me", "--password", "hunter2", "-x", "key=1"]);
        assert_eq!(shown, ["--user", "me", "--password", "REDACTED", "-x", "key=REDACTED"]);
    }
}
