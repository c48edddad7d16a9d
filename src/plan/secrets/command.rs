//! Finds secrets in shell commands by where they stand. Quotes are removed before a word is read.

use std::ops::Range;

use super::names::is_scheme;
use super::places;
use super::{decoded, is_number_or_address, is_secret, is_secret_option};

/// Programs, and their options whose value is a user and a password. Those of other programs have other meanings.
const LOGINS: [(&[u8], &[&[u8]]); 3] =
    [(b"curl", &[b"-u", b"-U", b"--user", b"--proxy-user"]), (b"http", &[b"-a"]), (b"https", &[b"-a"])];

/// Letters of these programs' options that have no value.
const FLAGS: &[u8] = b"#0123469BGIJLNOQRSVafghijklnpqsv";

/// Options of any program whose value may be a user and a password, but also a user and a group.
const LONG_LOGINS: [&[u8]; 2] = [b"--user", b"--proxy-user"];

/// The places of the secrets in a command, in order and apart. With `only_passwords`, the place of a login is that of its
/// password.
pub(super) fn places(command: &[u8], only_passwords: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut logins = Logins { of_program: &[], only_passwords };
    // What the next words are, because of the words before them.
    let (mut login, mut is_value, mut in_document) = (None, false, false);
    let words = words(command);
    for part in words.chunk_by(|_, next| next.operator.is_none()) {
        if part[0].operator.is_some_and(|operator| !is_redirection(operator)) {
            logins.of_program = &[];
        }
        let header = part.iter().position(|word| is_bare_name(&word.bytes, b':'));
        let (read, value) = part.split_at(header.map_or(part.len(), |at| at + 1));
        for Word { bytes, sources, .. } in read {
            let hidden = if is_value {
                Some(0..bytes.len())
            } else if in_document {
                bytes.iter().rposition(|byte| !b",}]".contains(byte)).map(|last| 0..last + 1)
            } else {
                login.take().and_then(|option| logins.place(bytes, 0, option))
            };
            is_value = is_value && is_scheme(bytes);
            let whole = hidden.filter(|_| !is_value);
            let mut places = whole.map_or_else(|| logins.in_word(bytes), |whole| Vec::from([whole]));
            places.retain(|place| !place.is_empty() && !is_reference(&bytes[place.clone()]));
            // What stands between two bytes, such as a quote, belongs to neither.
            found.extend(places.into_iter().map(|place| sources[place.start]..sources[place.end - 1] + 1));
            login = logins.options().find(|option| option_value(bytes, option).is_some_and(<[u8]>::is_empty));
            // The first name of a JSON document that is not quoted as a whole.
            in_document = bytes.strip_prefix(b"{").is_some_and(|name| is_bare_name(name, b':'));
            is_value |= is_bare_name(bytes, b'=') || is_secret_option(&String::from_utf8_lossy(bytes));
            let program = bytes.rsplit(|byte| *byte == b'/').next();
            let program = LOGINS.iter().find(|(name, _)| program == Some(name));
            logins.of_program = program.map_or(logins.of_program, |(_, options)| options);
        }
        // The value of a header may be any number of words.
        if let [first, .., last] | [first @ last] = value {
            let place = first.sources[0]..last.sources[last.sources.len() - 1] + 1;
            found.extend(Some(place).filter(|place| !is_reference(&command[place.clone()])));
        }
    }
    decoded::apart(found)
}

/// How logins are found after options.
#[derive(Clone, Copy)]
struct Logins {
    /// The options of the program whose arguments are being read.
    of_program: &'static [&'static [u8]],
    only_passwords: bool,
}

impl Logins {
    /// The options whose value may be a login.
    fn options(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        self.of_program.iter().chain(&LONG_LOGINS).copied()
    }

    /// The place of the login that begins here, as the value of an option.
    fn place(&self, word: &[u8], start: usize, option: &[u8]) -> Option<Range<usize>> {
        let login = &word[start..];
        let colon = memchr::memchr(b':', login)?;
        let is_login = self.of_program.contains(&option) || !is_number_or_address(login);
        is_login.then(|| if self.only_passwords { start + colon + 1 } else { start }..word.len())
    }

    /// The places in a word without its quotes. A word with blanks may be a command itself, as after `sh -c`.
    fn in_word(&self, word: &[u8]) -> Vec<Range<usize>> {
        let mut found = places::places(word, false);
        let login = self.options().find_map(|option| {
            let value = option_value(word, option)?;
            self.place(word, word.len() - value.len(), option)
        });
        found.extend(login);
        if word.iter().any(u8::is_ascii_whitespace) {
            found.extend(places(word, self.only_passwords));
        }
        decoded::apart(found)
    }
}

/// The value of this option if the word is the option; it is empty where the value is the next word. Before a letter there
/// may be others that have no value, as in `-su a:S`.
fn option_value<'a>(word: &'a [u8], option: &[u8]) -> Option<&'a [u8]> {
    if option.starts_with(b"--") {
        let rest = word.strip_prefix(option)?;
        return if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"=") };
    }
    let letters = word.strip_prefix(b"-")?;
    let at = letters.iter().position(|letter| !FLAGS.contains(letter) || *letter == option[1])?;
    (letters[at] == option[1]).then(|| &letters[at + 1..])
}

/// Whether a word is the name of a secret and this mark, so that the value is what follows.
fn is_bare_name(word: &[u8], mark: u8) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let name = word.strip_suffix(&[mark]).and_then(|name| str::from_utf8(name).ok());
    name.is_some_and(|name| name.bytes().all(|byte| is_of_name(&byte)) && is_secret(name))
}

/// Whether a value is only the name of a variable, perhaps after a scheme: the secret is elsewhere.
fn is_reference(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let scheme = value.iter().position(u8::is_ascii_whitespace).unwrap_or(0);
    let after = if is_scheme(&value[..scheme]) { scheme } else { 0 };
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
    /// The operator before it, if there is one between it and the last word.
    operator: Option<u8>,
}

/// Whether an operator is followed by a file, after which a command may go on.
fn is_redirection(operator: u8) -> bool {
    b"<>".contains(&operator)
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
            Some(b'"') => next.is_some_and(|next| b"\"\\$`\n".contains(next)),
            _ => false,
        };
        if byte == b'\\' && escapes {
            // Before the end of a line, it joins it with the next one.
            if next != Some(&b'\n') {
                word.bytes.extend(next);
                word.sources.push(at + 1);
            }
            at += 2;
            continue;
        }
        let is_operator = b";|&()<>`\n".contains(&byte);
        match quote {
            Some(open) if byte == open => quote = None,
            None if b"'\"".contains(&byte) => quote = Some(byte),
            None if is_operator || byte.is_ascii_whitespace() => {
                if !word.bytes.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                // As in `2>&1`, an ampersand may belong to a redirection.
                let redirection = word.operator.filter(|last| is_redirection(*last));
                word.operator = if is_operator { redirection.or(Some(byte)) } else { word.operator };
            }
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
            ("say Authorization: Bearer S now", "say Authorization: REDACTED"),
            ("say Authorization: Negotiate S; go", "say Authorization: REDACTED; go"),
            ("say Cookie: a=S 'b c' > file", "say Cookie: REDACTED' > file"),
            ("login --auth negotiate S --port 80", "login --auth negotiate REDACTED --port 80"),
            ("A=1 sudo /usr/bin/curl 2>&1 -U a:S -u 1:2", "A=1 sudo /usr/bin/curl 2>&1 -U REDACTED -u REDACTED"),
            ("curl \\\n -u a:S x", "curl \\\n -u REDACTED x"),
            ("true && http -a a:S h | https -aa:S h", "true && http -a REDACTED h | https -aREDACTED h"),
            ("./client --user a:S", "./client --user REDACTED"),
            ("curl -su a:S http://h/ -sSfub:S", "curl -su REDACTED http://h/ -sSfuREDACTED"),
            ("send <<X\n{\"password\": \"S\", \"n\": 1}\nX", "send <<X\n{\"password\": \"REDACTED\", \"n\": 1}\nX"),
            ("send <<X\n{\"n\": 1,\n\"token\": \"S\"}\nX", "send <<X\n{\"n\": 1,\n\"token\": \"REDACTED\nX"),
            ("send <<X\n{\"password\":\"S\"}\nX", "send <<X\n{\"password\":\"REDACTED\nX"),
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
            "docker run -u 1000:1000 img",
            "docker run --user=1000:1000 img",
            "./server -a 127.0.0.1:8000",
            "curl -sou http://h:8000/ -Hu: x",
            "curl http://h/; ./server -a a:b",
            "curl http://h/\n./server -a a:b",
            "echo Authorization: Bearer $TOKEN | send",
        ] {
            assert_eq!(command(typed), typed);
        }
    }
}
