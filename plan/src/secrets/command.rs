//! Finds secrets in shell commands by where they stand. Quotes are removed before a word is read.

use std::ops::Range;

use super::names::is_scheme;
use super::places;
use super::{decoded, is_number_or_address, is_secret, is_secret_option};

/// Programs with options that do not say by their names that their value is a secret. Those of other programs have other
/// meanings.
const PROGRAMS: [Program; 9] = [
    Program {
        names: &[b"curl"],
        options: &[b"-u", b"-U", b"--user", b"--proxy-user", COOKIE],
        value: Value::Login,
        flags: FLAGS,
    },
    Program { names: &[b"http", b"https"], options: &[b"-a"], value: Value::Login, flags: FLAGS },
    Program { names: &[b"ab"], options: &[b"-A", b"-P"], value: Value::Login, flags: FLAGS },
    Program { names: &[b"redis-cli", b"valkey-cli"], options: &[b"-a"], value: Value::NextPassword, flags: FLAGS },
    Program { names: &[b"sshpass", b"mongosh"], options: &[b"-p"], value: Value::Password, flags: FLAGS },
    Program {
        names: &[
            b"ldapsearch",
            b"ldapadd",
            b"ldapcompare",
            b"ldapdelete",
            b"ldapexop",
            b"ldapmodify",
            b"ldapmodrdn",
            b"ldapwhoami",
        ],
        options: &[b"-w"],
        value: Value::Password,
        flags: LDAP_FLAGS,
    },
    Program { names: &[b"ldappasswd"], options: &[b"-w", b"-a", b"-s"], value: Value::Password, flags: LDAP_FLAGS },
    Program {
        names: &[b"openssl"],
        options: &[b"-k", b"-pass", b"-passin", b"-passout"],
        value: Value::NextPassword,
        flags: FLAGS,
    },
    Program {
        names: &[
            b"mysql",
            b"mysqladmin",
            b"mysqlcheck",
            b"mysqldump",
            b"mysqlimport",
            b"mysqlshow",
            b"mysqlslap",
            b"mariadb",
            b"mariadb-admin",
            b"mariadb-check",
            b"mariadb-dump",
            b"mariadb-import",
            b"mariadb-show",
            b"mariadb-slap",
        ],
        options: &[b"-p"],
        value: Value::AttachedPassword,
        flags: FLAGS,
    },
];

/// Such programs.
struct Program {
    names: &'static [&'static [u8]],
    options: &'static [&'static [u8]],
    value: Value,
    /// Letters of their options that have no value.
    flags: &'static [u8],
}

/// The kind of value that their options take.
#[derive(PartialEq, Eq)]
enum Value {
    /// A user and a password, with a colon between them; after [`COOKIE`], a name and a value, with an equals sign.
    Login,
    /// A password, in the same word or the next one.
    Password,
    /// A password that is the next word.
    NextPassword,
    /// A password in the same word.
    AttachedPassword,
}

/// How OpenSSL marks a password that is one, and not the name of a file or variable that has it.
const GIVEN: &[u8] = b"pass:";

/// Letters of the options of most of these programs that have no value.
const FLAGS: &[u8] = b"#0123469BGIJLNOQRSVafghijklnpqsv";

/// Flags of the LDAP tools.
const LDAP_FLAGS: &[u8] = b"ACILMNQVWZacntuvx";

/// curl's option for cookies, whose value is the name of a file if there is no equals sign in it.
const COOKIE: &[u8] = b"-b";

/// Options of any program whose value may be a user and a password, but also a user and a group.
const LONG_LOGINS: [&[u8]; 2] = [b"--user", b"--proxy-user"];

/// The places of the secrets in a command, in order and apart. With `only_passwords`, the place of a login is that of its
/// password.
pub(super) fn places(command: &[u8], only_passwords: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut logins = Logins { program: None, only_passwords };
    // The programs whose arguments go on after a parenthesis.
    let mut outer = Vec::new();
    // Roles of the next words, because of the words before them.
    let (mut login, mut is_value, mut in_document) = (None, false, false);
    let words = words(command);
    for part in words.chunk_by(|_, next| next.operator.is_none()) {
        match part[0].operator {
            Some(b'(') => outer.push(logins.program.take()),
            // In `$(which curl) -u a:S`, the program is that in the parentheses.
            Some(b')') => logins.program = outer.pop().flatten().or(logins.program),
            Some(operator) if !is_redirection(operator) => logins.program = None,
            _ => {}
        }
        let header = part.iter().position(|word| is_bare_name(&word.bytes, b':'));
        let (read, value) = part.split_at(header.map_or(part.len(), |at| at + 1));
        for Word { bytes, sources, .. } in read {
            let after_option = login.take().and_then(|option| logins.place(bytes, 0, option));
            let hidden = after_option.or_else(|| {
                if is_value {
                    Some(0..bytes.len())
                } else if in_document {
                    bytes.iter().rposition(|byte| !b",}]".contains(byte)).map(|last| 0..last + 1)
                } else {
                    None
                }
            });
            is_value = is_value && is_scheme(bytes);
            let whole = hidden.filter(|_| !is_value);
            let mut places = whole.map_or_else(|| logins.in_word(bytes), |whole| Vec::from([whole]));
            places.retain(|place| !place.is_empty() && !is_reference(&bytes[place.clone()]));
            // A byte between two others, such as a quote, belongs to neither.
            found.extend(places.into_iter().map(|place| sources[place.start]..sources[place.end - 1] + 1));
            let is_next = |option: &&[u8]| logins.value(bytes, option).is_some_and(<[u8]>::is_empty);
            login = logins.options().filter(|_| !logins.have(&Value::AttachedPassword)).find(is_next);
            // The first name of a JSON document that is not quoted as a whole.
            in_document = bytes.strip_prefix(b"{").is_some_and(|name| is_bare_name(name, b':'));
            // In `-p$PASSWORD` the name is that of a variable.
            let is_option = !bytes.contains(&b'$') && is_secret_option(&String::from_utf8_lossy(bytes));
            is_value |= is_bare_name(bytes, b'=') || is_option;
            logins.program = program(bytes).or(logins.program);
        }
        // The value of a header may be any number of words.
        if let [first, .., last] | [first @ last] = value {
            let place = first.sources[0]..last.sources[last.sources.len() - 1] + 1;
            found.extend(Some(place).filter(|place| !is_reference(&command[place.clone()])));
        }
    }
    decoded::apart(found)
}

/// How logins and passwords are found after options.
#[derive(Clone, Copy)]
struct Logins {
    /// The program whose arguments are being read, if it is a known one.
    program: Option<&'static Program>,
    only_passwords: bool,
}

impl Logins {
    /// The options whose value may be a login or a password.
    fn options(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        self.program.into_iter().flat_map(|program| program.options).chain(&LONG_LOGINS).copied()
    }

    fn have(&self, value: &Value) -> bool {
        self.program.is_some_and(|program| program.value == *value)
    }

    /// The place of the login or password that begins here, as the value of an option.
    fn place(&self, word: &[u8], start: usize, option: &[u8]) -> Option<Range<usize>> {
        let value = &word[start..];
        let program = self.program.filter(|program| program.options.contains(&option));
        if program.is_some_and(|program| program.value != Value::Login) {
            let mark = if value.starts_with(GIVEN) { GIVEN.len() } else { 0 };
            return Some(start + mark..word.len());
        }
        let colon = memchr::memchr(if option == COOKIE { b'=' } else { b':' }, value)?;
        let is_login = program.is_some() || !is_number_or_address(value);
        is_login.then(|| if self.only_passwords { start + colon + 1 } else { start }..word.len())
    }

    /// The value of this option if the word is the option; it is empty where the value is the next word. Before a letter
    /// there may be others that have no value, as in `-su a:S`.
    fn value<'a>(&self, word: &'a [u8], option: &[u8]) -> Option<&'a [u8]> {
        if option.len() > 2 {
            let rest = word.strip_prefix(option)?;
            return if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"=") };
        }
        let flags = self.program.map_or(FLAGS, |program| program.flags);
        let letters = word.strip_prefix(b"-")?;
        let at = letters.iter().position(|letter| !flags.contains(letter) || *letter == option[1])?;
        (letters[at] == option[1]).then(|| &letters[at + 1..])
    }

    /// The places in a word without its quotes. A word with blanks may be a command itself, as after `sh -c`.
    fn in_word(&self, word: &[u8]) -> Vec<Range<usize>> {
        let mut found = places::places(word, false);
        let login = self.options().filter(|_| !self.have(&Value::NextPassword)).find_map(|option| {
            let value = self.value(word, option)?;
            self.place(word, word.len() - value.len(), option)
        });
        found.extend(login);
        if word.iter().any(u8::is_ascii_whitespace) {
            found.extend(places(word, self.only_passwords));
        }
        decoded::apart(found)
    }
}

/// The program that a word names, in quotes or as what a variable is by default, too: `"$(which curl)"`, `${CURL:-curl}`.
fn program(word: &[u8]) -> Option<&'static Program> {
    let is_expanded = word.starts_with(b"$");
    let word = word.strip_suffix(b")").or(word.strip_suffix(b"}")).filter(|_| is_expanded).unwrap_or(word);
    let name = word.rsplit(|byte| *byte == b'/' || (is_expanded && b" :".contains(byte))).next()?;
    let name = name.strip_prefix(b"-").filter(|_| is_expanded).unwrap_or(name);
    PROGRAMS.iter().find(|known| known.names.contains(&name))
}

/// True if a word is the name of a secret and this mark, so that the value follows.
fn is_bare_name(word: &[u8], mark: u8) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let name = word.strip_suffix(&[mark]).and_then(|name| str::from_utf8(name).ok());
    name.is_some_and(|name| name.bytes().all(|byte| is_of_name(&byte)) && is_secret(name))
}

/// True if a value is only the name of a variable, perhaps after a scheme: the secret is elsewhere.
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

/// True if a file follows an operator, after which a command may go on.
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
            None | Some(b'$') => next.is_some(),
            Some(b'"') => next.is_some_and(|next| b"\"\\$`\n".contains(next)),
            _ => false,
        };
        if byte == b'\\' && escapes {
            // Before the end of a line, it joins it with the next one.
            if next != Some(&b'\n') {
                let is_blank = quote == Some(b'$') && next.is_some_and(|next| b"nt".contains(next));
                word.bytes.extend(if is_blank { Some(&b' ') } else { next });
                word.sources.push(at + 1);
            }
            at += 2;
            continue;
        }
        let is_operator = b";|&()<>`\n".contains(&byte);
        match quote {
            Some(b'$') if byte == b'\'' => quote = None,
            Some(open) if byte == open && open != b'$' => quote = None,
            // In `$'…'`, too, a backslash comes before a quote that is part of the text. The `$` of `$"…"` means nothing.
            None if byte == b'$' && next == Some(&b'\'') => {
                quote = Some(b'$');
                at += 1;
            }
            None if byte == b'$' && next == Some(&b'"') => {}
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
            (
                "redis-cli -h h -a S ping | valkey-cli -a 'S T'",
                "redis-cli -h h -a REDACTED ping | valkey-cli -a 'REDACTED'",
            ),
            ("sshpass -p S ssh h; sshpass -pS ssh h", "sshpass -p REDACTED ssh h; sshpass -pREDACTED ssh h"),
            (
                "mysql -u root -pS db && mysqldump -p'S T' db",
                "mysql -u root -pREDACTED db && mysqldump -p'REDACTED' db",
            ),
            ("mongosh -u a -p S h", "mongosh -u a -p REDACTED h"),
            ("ldapsearch -x -w S -b dc=h", "ldapsearch -x -w REDACTED -b dc=h"),
            ("ab -A a:S http://h/", "ab -A REDACTED http://h/"),
            (
                "openssl enc -k S -kdf a; openssl pkcs12 -passin pass:S -passout 'pass:S' -pass pass:S",
                "openssl enc -k REDACTED -kdf a; openssl pkcs12 -passin pass:REDACTED -passout 'pass:REDACTED' -pass \
                 pass:REDACTED",
            ),
            ("ldapsearch -xw S -b dc=h; ldapadd -xwS", "ldapsearch -xw REDACTED -b dc=h; ldapadd -xwREDACTED"),
            ("ldapadd -w S; ldappasswd -xs S -a S", "ldapadd -w REDACTED; ldappasswd -xs REDACTED -a REDACTED"),
            (
                "mysqlimport -pS db; mysqlslap -pS; mysqlcheck -pS",
                "mysqlimport -pREDACTED db; mysqlslap -pREDACTED; mysqlcheck -pREDACTED",
            ),
            ("bash -c $'curl -u a:S h'; curl $'-ua:S' h", "bash -c $'curl -u REDACTED h'; curl $'-uREDACTED' h"),
            ("bash -c $'echo it\\'s\\ncurl -u a:S\\nls'", "bash -c $'echo it\\'s\\ncurl -u REDACTED\\nls'"),
            ("curl $\"-ua:S\" h -sb 'theme=S'", "curl $\"-uREDACTED\" h -sb 'REDACTED'"),
            (
                "$(which curl) -u a:S h; \"$(which curl)\" -u a:S",
                "$(which curl) -u REDACTED h; \"$(which curl)\" -u REDACTED",
            ),
            (
                "${CURL:-/bin/curl} -u a:S; ${CURL:-curl} -ua:S",
                "${CURL:-/bin/curl} -u REDACTED; ${CURL:-curl} -uREDACTED",
            ),
            ("curl $(date +%s) -u a:S h", "curl $(date +%s) -u REDACTED h"),
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
            "mysql -p db; psql -p 5432 -a",
            "redis-cli -a $PASSWORD -n 1",
            "curl -b cookies.txt h; ldapsearch -xW -b dc=h",
            "$(which server) -u a:b; (curl h) ; server -u a:b",
            "mysql -uroot -p\"$PASSWORD\" db",
        ] {
            assert_eq!(command(typed), typed);
        }
    }
}
