//! Finds secrets in commands for a shell, by their places: what stands in quotes is read without them.

use std::ops::Range;

use super::places;
use super::{decoded, is_secret, is_secret_option};

/// Options of curl and others whose value is a user and a password.
const LOGINS: [&[u8]; 5] = [b"-u", b"-U", b"-a", b"--user", b"--proxy-user"];

/// Words between the name of a secret and the secret.
const SCHEMES: [&[u8]; 3] = [b"bearer", b"basic", b"digest"];

/// The places of the secrets in a command, in order and apart.
pub(super) fn places(command: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // What the next words are, because of the words before them.
    let (mut is_login, mut is_value) = (false, false);
    for Word { bytes, sources } in words(command) {
        let lower = bytes.to_ascii_lowercase();
        let has_colon = bytes.contains(&b':');
        let is_hidden = is_value || (is_login && has_colon);
        is_value = is_value && SCHEMES.contains(&&lower[..]);
        let whole = Some(0..bytes.len()).filter(|_| is_hidden && !is_value);
        let mut places = whole.map_or_else(|| in_word(&bytes), |whole| Vec::from([whole]));
        places.retain(|place| !place.is_empty() && !is_reference(&bytes[place.clone()]));
        // What stands between two bytes, such as a quote, belongs to neither.
        found.extend(places.into_iter().map(|place| sources[place.start]..sources[place.end - 1] + 1));
        is_login = LOGINS.contains(&&bytes[..]);
        let text = String::from_utf8_lossy(&bytes);
        let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        let is_bare_name = text.strip_suffix([':', '=']).is_some_and(|name| is_name(name) && is_secret(name));
        is_value |= is_bare_name || is_secret_option(&text);
    }
    decoded::apart(found)
}

/// The places in a word without its quotes. A word with blanks may be a command itself, as after `sh -c`.
fn in_word(word: &[u8]) -> Vec<Range<usize>> {
    let mut found = places::places(word, false);
    let login = LOGINS.iter().find_map(|option| {
        let value = word.strip_prefix(*option)?;
        let value = if option.starts_with(b"--") { value.strip_prefix(b"=")? } else { value };
        Some(word.len() - value.len()..word.len())
    });
    found.extend(login.filter(|login| word[login.clone()].contains(&b':')));
    if word.iter().any(u8::is_ascii_whitespace) {
        found.extend(places(word));
    }
    decoded::apart(found)
}

/// Whether a value is only the name of a variable, perhaps after a scheme: the secret is elsewhere.
fn is_reference(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let scheme = value.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
    let after = if SCHEMES.contains(&&value[..scheme].to_ascii_lowercase()[..]) { scheme } else { 0 };
    let Some(name) = value[after..].trim_ascii().strip_prefix(b"$") else { return false };
    let name = name.strip_prefix(b"{").and_then(|name| name.strip_suffix(b"}")).unwrap_or(name);
    !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// A word as a command gets it.
#[derive(Default)]
struct Word {
    bytes: Vec<u8>,
    /// Where each byte is in the command.
    sources: Vec<usize>,
}

/// The words of a command, without quotes. Operators separate words as blanks do.
fn words(command: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut quote = None;
    let mut at = 0;
    while at < command.len() {
        let byte = command[at];
        let next = command.get(at + 1);
        let escapes = match quote {
            None => next.is_some(),
            Some(b'"') => next.is_some_and(|next| b"\"\\$`".contains(next)),
            _ => false,
        };
        if byte == b'\\' && escapes {
            word.bytes.extend(next);
            word.sources.push(at + 1);
            at += 2;
            continue;
        }
        let is_border = byte.is_ascii_whitespace() || b";|&()<>`".contains(&byte);
        match quote {
            Some(open) if byte == open => quote = None,
            None if b"'\"".contains(&byte) => quote = Some(byte),
            None if is_border => words.push(std::mem::take(&mut word)),
            _ => {
                word.bytes.push(byte);
                word.sources.push(at);
            }
        }
        at += 1;
    }
    words.push(word);
    words.retain(|word| !word.bytes.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::super::command;

    #[test]
    fn values_are_found_in_quotes_and_after_options() {
        for (typed, shown) in [
            ("curl -H 'Authorization: Bearer S' http://h/ -o x", "curl -H 'Authorization: REDACTED' http://h/ -o x"),
            ("curl -H \"X-Api-Key: S\" http://h/", "curl -H \"X-Api-Key: REDACTED\" http://h/"),
            ("curl -HX-Api-Key:S http://h/", "curl -HX-Api-Key:REDACTED http://h/"),
            (
                "curl -d '{\"password\": \"S\", \"n\": 1}' http://h/",
                "curl -d '{\"password\": \"REDACTED\", \"n\": 1}' http://h/",
            ),
            ("curl -d password=S http://h/", "curl -d password=REDACTED http://h/"),
            ("curl -u a:S http://h/; true", "curl -u REDACTED http://h/; true"),
            ("curl -ua:S --user=b:S http://h/", "curl -uREDACTED --user=REDACTED http://h/"),
            ("TOKEN=\"a b\" ./server --port 80", "TOKEN=\"REDACTED\" ./server --port 80"),
            ("export TOKEN='a b' && go", "export TOKEN='REDACTED' && go"),
            ("login --password S --port 80", "login --password REDACTED --port 80"),
            ("sh -c 'curl -u a:S http://h/'", "sh -c 'curl -u REDACTED http://h/'"),
            ("sh -c \"TOKEN='a b' curl -u \\\"a:S\\\" x\"", "sh -c \"TOKEN='REDACTED' curl -u \\\"REDACTED\\\" x\""),
            ("x=$(curl -u a:S http://h/)", "x=$(curl -u REDACTED http://h/)"),
            ("curl http://me:S@h/?token=S", "curl http://REDACTED@h/?token=REDACTED"),
            ("say Authorization: Bearer S now", "say Authorization: Bearer REDACTED now"),
            ("TOKEN='unfinished", "TOKEN='REDACTED"),
            ("TOKEN=a\\ b go", "TOKEN=REDACTED go"),
        ] {
            assert_eq!(command(typed), shown, "{typed}");
        }
    }

    #[test]
    fn what_holds_no_secret_stays_as_it_is() {
        for typed in [
            "",
            "sudo -u postgres psql",
            "curl -H 'Accept: text/html' http://h/?n=1",
            "curl -H \"Authorization: Bearer $TOKEN\" http://h/",
            "TOKEN=$TOKEN PASSWORD=\"${PASSWORD}\" ./server",
            "echo 'it is done' >> log; sleep 1",
            "ss -tanp | grep -c ESTAB > \"$DIR/x\"",
        ] {
            assert_eq!(command(typed), typed);
        }
    }
}
