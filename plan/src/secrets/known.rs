//! The secrets that a run was given, which are hidden wherever they appear again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;

use super::decoded::{decoded, search};
use super::names::is_scheme;
use super::places::places;
use super::{in_file, is_number_or_address, without};
use crate::{FileContents, Plan, RequestList};

/// The minimum length of a secret that is searched for, in bytes: shorter ones appear in too many texts by chance.
const LENGTH_MIN: usize = 4;

/// The minimum length of a piece of a secret, in bytes.
const PIECE_MIN: usize = 6;

/// The most secrets that are searched for, including pieces. A body may have any number.
const MOST: usize = 500;

/// The secrets of a run in every spelling. Empty if secrets may be shown.
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets {
    /// Folded.
    spellings: BTreeSet<Vec<u8>>,
}

impl KnownSecrets {
    /// The secrets of a plan, and of its body and script if these have been read.
    pub fn from_plan(plan: &Plan) -> Self {
        Self::of_all([plan], [])
    }

    /// The secrets of several plans and of commands for a shell.
    pub fn of_all<'a>(plans: impl IntoIterator<Item = &'a Plan>, commands: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets: BTreeSet<Vec<u8>> = BTreeSet::new();
        for command in commands {
            let command = command.as_bytes();
            secrets.extend(super::command::places(command, true).into_iter().map(|place| command[place].to_vec()));
        }
        // The plans of an experiment often have the same script and body.
        let (mut scripts, mut bodies): (BTreeMap<&[u8], _>, BTreeMap<&[u8], _>) = Default::default();
        let mut files: BTreeSet<(&str, &[u8])> = BTreeSet::new();
        for plan in plans {
            secrets.extend(typed(plan));
            let contents = |file: &'a FileContents| Some((file.contents().ok()?, file));
            scripts.extend(plan.script.iter().filter_map(|script| contents(&script.file)));
            let of_plan = plan.templates.iter().flat_map(|templates| &templates.files);
            files.extend(of_plan.filter_map(|file| Some((&*file.name, file.contents().ok()?))));
            let listed = plan.list.iter().flat_map(RequestList::files);
            bodies.extend(plan.body.iter().chain(listed).filter_map(contents));
        }
        let all = |files: BTreeMap<&'a [u8], &'a FileContents>| {
            let places =
                |(text, file): (&'a [u8], &'a FileContents)| in_file(file).iter().map(move |place| (text, place));
            files.into_iter().flat_map(places)
        };
        let of_columns: BTreeSet<Vec<u8>> =
            files.iter().flat_map(|(_, text)| columns(text, is_secret_column)).collect();
        // In a script, what is not in quotes is the name of a variable.
        let of_scripts = all(scripts).filter(|(script, place)| is_quoted(script, place));
        // The last, because a body may have any number of them.
        let of_files = of_scripts.chain(all(bodies)).map(|(text, place)| text[place.clone()].to_vec());
        // Rows come last, because there may be any number of them.
        let constants: Vec<Vec<u8>> = secrets.into_iter().chain(of_files).collect();
        let filled_in: Vec<Vec<u8>> = constants.iter().flat_map(|secret| filled_in(secret, &files)).collect();
        Self::of_secrets(constants.into_iter().chain(filled_in).chain(of_columns))
    }

    /// The secrets in words of a command line, which may be mistyped, and those that are secrets as a whole.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>, whole: impl IntoIterator<Item = String>) -> Self {
        let of_word = |word: &'a str| {
            // A URL needs no scheme.
            let user = word.contains('@').then(|| format!("://{word}"));
            [Some(word.to_owned()), user].into_iter().flatten().flat_map(|text| values(text.as_bytes()))
        };
        let whole = whole.into_iter().map(String::into_bytes);
        Self::of_secrets(whole.chain(words.into_iter().flat_map(of_word)))
    }

    fn of_secrets(secrets: impl Iterator<Item = Vec<u8>>) -> Self {
        // Each is found more than once: as a whole and as a piece, as written and decoded.
        let mut found: BTreeSet<Vec<u8>> = BTreeSet::new();
        for piece in secrets.flat_map(|secret| pieces(&secret)) {
            if found.len() == MOST {
                break;
            }
            found.insert(piece);
        }
        Self { spellings: found.iter().flat_map(|piece| spellings(piece)).collect() }
    }

    /// The bytes without any secret. If they end in the middle of a secret, its beginning is hidden as well.
    pub fn hide(&self, bytes: &[u8]) -> Vec<u8> {
        without(bytes, search(bytes, |bytes| self.places(bytes)))
    }

    /// The text without any secret.
    pub fn hide_in(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.hide(text.as_bytes())).into_owned()
    }

    fn places(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let folded = folded(bytes);
        let mut places = Vec::new();
        for spelling in &self.spellings {
            places.extend(memmem::find_iter(&folded, spelling).map(|start| start..start + spelling.len()));
            let cut_off = (LENGTH_MIN..spelling.len()).rfind(|&length| folded.ends_with(&spelling[..length]));
            places.extend(cut_off.map(|length| folded.len() - length..folded.len()));
        }
        places
    }
}

/// The secrets that were typed: in URLs, headers, logins, labels and the arguments of a script.
fn typed(plan: &Plan) -> Vec<Vec<u8>> {
    let args = plan.script.iter().flat_map(|script| &script.args);
    let proxy = plan.connect.proxy.as_ref();
    let urls = proxy.map(|proxy| &proxy.typed).into_iter().chain([&plan.target.typed]);
    let mut texts: Vec<Vec<u8>> = urls.map(|url| format!("://{url}").into_bytes()).collect();
    texts.extend(plan.request.headers.iter().map(|(name, value)| format!("{name}: {value}").into_bytes()));
    texts.extend(args.map(|arg| arg.clone().into_bytes()));
    let logins = plan.target.userinfo.iter().chain(proxy.and_then(|proxy| proxy.login.as_ref())).cloned();
    let labels = plan.output.labels.iter().filter(|(key, _)| super::is_secret(key)).map(|(_, value)| value.clone());
    let mut secrets: Vec<Vec<u8>> = logins.chain(labels).chain(hidden_args(plan)).map(String::into_bytes).collect();
    secrets.extend(texts.iter().flat_map(|text| values(text)));
    secrets
}

/// The bytes for comparison: lower case, and a plus sign becomes a blank, as in forms.
fn folded(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { byte.to_ascii_lowercase() }).collect()
}

/// The values of the secret names in a text.
fn values(text: &[u8]) -> Vec<Vec<u8>> {
    places(text, false).into_iter().map(|place| text[place].to_vec()).collect()
}

/// Values of the placeholders in a secret, as many as are searched for.
fn filled_in(secret: &[u8], files: &BTreeSet<(&str, &[u8])>) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(secret);
    let placeholders = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
    let values = |words: &str| {
        let mut words = words.split(|character: char| character.is_whitespace() || character == '|');
        let mut word = || words.find(|word| !word.is_empty());
        let (kind, file, column) = (word()?, word()?, word());
        let of_file = |(name, contents): &(&str, &[u8])| match (kind, column) {
            _ if *name != file => Vec::new(),
            ("csv", Some(column)) => columns(contents, |name| name == column.as_bytes()),
            _ => contents.split(|byte| *byte == b'\n').take(MOST).map(|line| line.trim_ascii().to_vec()).collect(),
        };
        Some(files.iter().flat_map(of_file).collect::<Vec<_>>())
    };
    placeholders.filter_map(|(words, _)| values(words)).flatten().collect()
}

fn is_secret_column(name: &[u8]) -> bool {
    super::names::is_secret(name)
}

/// The values below such names of columns, as many as are searched for.
fn columns(text: &[u8], is_such: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let names = reader.byte_headers().cloned().unwrap_or_default();
    let such: Vec<usize> = (0..names.len()).filter(|index| is_such(names[*index].trim_ascii())).collect();
    if such.is_empty() {
        return Vec::new();
    }
    let rows = reader.byte_records().take(MOST).filter_map(Result::ok);
    rows.flat_map(|row| such.iter().filter_map(|index| row.get(*index).map(<[u8]>::to_vec)).collect::<Vec<_>>())
        .collect()
}

fn is_quoted(script: &[u8], place: &Range<usize>) -> bool {
    let is_quote = |at: usize| script.get(at).is_some_and(|byte| b"\"'".contains(byte));
    is_quote(place.start.wrapping_sub(1)) || is_quote(place.end)
}

/// The script's arguments that are secrets as a whole.
fn hidden_args(plan: &Plan) -> impl Iterator<Item = String> {
    let args = || plan.script.iter().flat_map(|script| &script.args);
    let are_hidden = super::are_hidden(args().map(String::as_str));
    args().cloned().zip(are_hidden).filter_map(|(arg, is_hidden)| is_hidden.then_some(arg))
}

/// A secret and its pieces, unless they may appear by chance, as written and with percent-encoding undone: the cookies of a header, the token after
/// `Bearer`, the password after a user.
fn pieces(secret: &[u8]) -> Vec<Vec<u8>> {
    let is_border = |byte: &u8| byte.is_ascii_whitespace() || b";,=:\"'{}[]&<>()/?#".contains(byte);
    let is_piece = |piece: &&[u8]| piece.len() >= PIECE_MIN && !is_scheme(piece);
    let mut all = Vec::new();
    // A typed `Basic` header has the login in base64.
    let login = secret.split_at_checked(6).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"basic "));
    let login = login.and_then(|(_, digits)| STANDARD_NO_PAD.decode(without_padding(digits.trim_ascii())).ok());
    let login = login.unwrap_or_default();
    for whole in [secret.trim_ascii(), &decoded(secret).0, &login] {
        if is_number_or_address(whole) {
            continue;
        }
        let password = memchr::memchr(b':', whole).map(|colon| whole[colon + 1..].trim_ascii());
        all.extend(
            [whole].into_iter().chain(password).chain(whole.split(is_border).filter(is_piece)).map(<[u8]>::to_vec),
        );
    }
    all.retain(|piece| piece.len() >= LENGTH_MIN && !is_number_or_address(piece));
    all
}

fn without_padding(digits: &[u8]) -> &[u8] {
    let padding = digits.iter().rev().take_while(|digit| **digit == b'=').count();
    &digits[..digits.len() - padding]
}

/// The spellings of a secret in which a server may send it back: as it is, in hexadecimal and in base64, folded.
fn spellings(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut spellings = vec![folded(secret), hex.into_bytes()];
    for ahead in 0..3 {
        // The bytes before and after the secret affect the base64 digits at its borders, so those are left out.
        let padded = [&vec![0; ahead], secret].concat();
        let (first, last) = ((ahead * 8).div_ceil(6), padded.len() * 8 / 6);
        let digits = [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)];
        spellings.extend(digits.map(|text| folded(&text.as_bytes()[first..last])));
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::super::REDACTED;
    use super::*;
    use crate::fixtures;
    use crate::{Dialect, LuaScript};

    fn known() -> KnownSecrets {
        let mut plan = fixtures::plan(Dialect::Native, "http://me:pa%2Fss@h/?token=tok+en%21", 1, 1, 1);
        plan.target.userinfo = Some("me:pa/ss".to_owned());
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        plan.request.headers = vec![
            header("Authorization", "Bearer abcd.efgh"),
            header("Cookie", "a=cookie-1; b=cookie-2"),
            header("Accept", "text/html"),
        ];
        plan.body = Some(FileContents::from_bytes("", br#"{"user":"alice","password":"a secret, 1"}"#.to_vec()));
        let args = ["--password", "an-argument", "harmless"].map(str::to_owned).to_vec();
        let file = FileContents::from_bytes("x.lua", b"wrk.headers['X-Api-Key'] = 'in-a-script'".to_vec());
        plan.script = Some(LuaScript { file, args });
        KnownSecrets::from_plan(&plan)
    }

    #[test]
    fn given_secrets_are_found_anywhere() {
        let known = known();
        for (text, expected) in [
            ("no pa/ss here", "no REDACTED here"),
            ("no PA%2fSS here", "no REDACTED here"),
            ("tok+en! and tok en!", "tok+en! and REDACTED"),
            ("got abcd.efgh.", "got REDACTED."),
            ("cookie-2 is old", "REDACTED is old"),
            ("not a secret, 1", "not REDACTED"),
            ("an-argument in-a-script", "REDACTED REDACTED"),
            ("alice text/html harmless", "alice text/html harmless"),
        ] {
            let expected = expected.replace("tok+en!", "REDACTED");
            assert_eq!(known.hide_in(text), expected, "{text}");
        }
    }

    #[test]
    fn secrets_are_found_encoded_and_truncated() {
        let known = known();
        let base64 = |text: &str| STANDARD_NO_PAD.encode(text);
        for text in ["616263642e65666768", "616263642E65666768", "abcd%2Eefgh", "abcd%2eefg%6"] {
            assert_eq!(known.hide_in(text), REDACTED, "{text}");
        }
        for ahead in ["", "1", "12", "123"] {
            let shown = known.hide_in(&base64(&format!("{ahead}in-a-script---")));
            assert!(shown.contains(REDACTED) && shown.len() < 8 + REDACTED.len() + 6, "{shown}");
        }
        assert_eq!(known.hide_in("this is in-a-scr"), "this is REDACTED");
        assert_eq!(known.hide_in("this is in-"), "this is in-");
    }

    #[test]
    fn basic_header_logins_are_secret() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        for login in ["me:hunter-2", "someone:hunter-2"] {
            let value = format!("basic {}", base64::engine::general_purpose::STANDARD.encode(login));
            plan.request.headers = vec![("Authorization".to_owned(), value)];
            assert_eq!(KnownSecrets::from_plan(&plan).hide_in("as hunter-2 you may"), "as REDACTED you may", "{login}");
        }
    }

    #[test]
    fn commands_yield_only_passwords_as_secrets() {
        let commands = [
            "curl -u admin1:hunter-2 http://h/",
            "curl -u admin1:1000 http://h/; PASSWORD=500.25 AUTH=localhost:8000 TOKEN=127.0.0.1 SID=::1 ./server",
            "docker run -u 1000:1000 img; ./server -a 127.0.0.1:8000",
            "curl -H 'Cookie: id=12345678901' http://h/; say Authorization: Negotiate one-token two-token",
        ];
        let known = KnownSecrets::of_all([], commands);
        let text = "Negotiate admin1 1000 500.25 localhost:8000 localhost 127.0.0.1:8000 127.0.0.1 ::1";
        assert_eq!(known.hide_in(text), text);
        for secret in ["hunter-2", "12345678901", "one-token", "two-token"] {
            assert_eq!(known.hide_in(secret), REDACTED, "{secret}");
        }
    }

    #[test]
    fn scripts_yield_only_quoted_secrets() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        let script = b"wrk.headers['X-Auth'] = token\nlocal password = user_name\n\
                       wrk.headers[\"Cookie\"] = \"id=hunter1\"\nwrk.body = 'user=ada&password=hunter2'\n";
        plan.script = Some(LuaScript { file: FileContents::from_bytes("x.lua", script.to_vec()), args: Vec::new() });
        let known = KnownSecrets::from_plan(&plan);
        assert_eq!(known.hide_in("token user_name hunter1 hunter2"), "token user_name REDACTED REDACTED");
    }

    #[test]
    fn the_values_of_secret_columns_are_known() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        let file = |text: &str| FileContents::from_bytes("users.csv", text.as_bytes().to_vec());
        let files = vec![
            file("\u{feff}id, Token,city\n1,first-one,Springfield\n2,\"second\"\"one\",Shelbyville\n3\n"),
            file("a-line\nan-other\n"),
        ];
        plan.templates = Some(crate::Templates { files, seed: 1, part: (0, 1) });
        let known = KnownSecrets::from_plan(&plan);
        assert_eq!(known.hide_in("first-one second\"one Springfield a-line"), "REDACTED REDACTED Springfield a-line");
        plan.request.headers = vec![("Cookie".to_owned(), "id={{csv users.csv city | raw}}".to_owned())];
        plan.list = None;
        assert_eq!(KnownSecrets::from_plan(&plan).hide_in("from Springfield"), "from REDACTED");
        plan.templates.iter_mut().for_each(|templates| templates.files = vec![file("a-line\r\nan-other\n")]);
        plan.request.headers = vec![("Authorization".to_owned(), "Bearer {{line users.csv}}".to_owned())];
        assert_eq!(KnownSecrets::from_plan(&plan).hide_in("it was an-other"), "it was REDACTED");
    }

    #[test]
    fn huge_bodies_keep_a_bounded_number_of_secrets() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        let fields: Vec<String> = (0..45_000).map(|n| format!("\"token\":\"secret-{n}\"")).collect();
        plan.body = Some(FileContents::from_bytes("", format!("{{{}}}", fields.join(",")).into_bytes()));
        let known = KnownSecrets::from_plan(&plan);
        assert_eq!(known.hide_in("they were secret-7 and secret-400"), "they were REDACTED and REDACTED");
        assert!(known.spellings.len() <= 8 * MOST, "{}", known.spellings.len());
    }
}
