//! The secrets that a run was given, hidden wherever they appear again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;

use super::names::is_scheme;
use super::places::{decoded, places, search};
use super::{in_file, without};
use crate::{FileContents, Plan, RequestList};

/// The minimum length of a secret that is searched for, in bytes: shorter ones appear too often by chance.
const LENGTH_MIN: usize = 4;

/// The minimum length of a piece of a secret, in bytes.
const PIECE_MIN: usize = 6;

/// The minimum length of a number that is unlikely to appear by chance, such as a session's, in bytes.
const NUMBER_MIN: usize = 10;

/// Largest number of secrets searched for, including pieces. A body may contain any number.
const MOST: usize = 500;

/// The secrets of a run in every spelling.
#[derive(Clone, Debug, Default)]
pub struct KnownSecrets {
    /// Folded.
    spellings: BTreeSet<Vec<u8>>,
    /// True if secrets may be shown, even those that no run was given.
    are_shown: bool,
}

impl KnownSecrets {
    /// The secrets of a plan, and of its body and script if these have been read.
    pub fn from_plan(plan: &Plan) -> Self {
        Self::of_all([plan], [])
    }

    /// The secrets in several plans, and the values of secret names in commands. They may be shown if any of the plans
    /// says so.
    pub fn of_all<'a>(
        plans: impl IntoIterator<Item = &'a Plan, IntoIter: Clone>,
        commands: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let plans = plans.into_iter();
        if plans.clone().any(|plan| plan.output.keeps_secrets) {
            return Self { are_shown: true, ..Self::default() };
        }
        // A value ends at a blank or a quote: the words after it are ordinary ones.
        let parts = commands.into_iter().flat_map(|command| command.split(['"', '\'', '\n']));
        let mut secrets: BTreeSet<Vec<u8>> = parts.flat_map(|part| values(part.as_bytes(), true)).collect();
        // The plans of an experiment often share a script and a body.
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
        // In a script, a word that is not in quotes is the name of a variable.
        let of_scripts = all(scripts).filter(|(script, place)| is_quoted(script, place));
        // Those in files come last, because a body may contain any number of them.
        let of_files = of_scripts.chain(all(bodies)).map(|(text, place)| text[place.clone()].to_vec());
        let constants: Vec<Vec<u8>> = secrets.into_iter().chain(of_files).collect();
        let placeholders: BTreeSet<String> = constants.iter().flat_map(|secret| placeholders(secret)).collect();
        let filled_in: Vec<Vec<u8>> = placeholders.iter().flat_map(|words| filled_in(words, &files)).collect();
        Self::of_secrets(constants.into_iter().chain(filled_in))
    }

    /// The secrets in the words of a command line, which may be mistyped, and the words that are secrets as a whole
    /// (`whole`).
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>, whole: impl IntoIterator<Item = String>) -> Self {
        let of_word = |word: &'a str| {
            // A URL may be typed without a scheme.
            let user = word.contains('@').then(|| format!("://{word}"));
            [Some(word.to_owned()), user].into_iter().flatten().flat_map(|text| values(text.as_bytes(), false))
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
        Self { spellings: found.iter().flat_map(|piece| spellings(piece)).collect(), are_shown: false }
    }

    /// Redacts these secrets, and the values of names that denote secrets, from a message or from output.
    pub fn redact(&self, bytes: &[u8]) -> Vec<u8> {
        if self.are_shown {
            return bytes.to_vec();
        }
        // A value of several words ends at a blank for `places`, which would leave the rest of a known secret.
        let hidden = self.hide(bytes);
        without(&hidden, &places(&hidden, true))
    }

    /// Redacts a sentence like [`Self::redact`].
    pub fn redact_in(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }

    /// Typed text as rendered by `shown` ([`super::redact_url`], [`super::redact_text`] or [`super::redact_body`]),
    /// without these secrets.
    pub fn redact_typed(&self, text: &str, shown: impl FnOnce(&str) -> String) -> String {
        if self.are_shown { text.to_owned() } else { self.hide_in(&shown(text)) }
    }

    /// The bytes without these secrets. If the bytes end in the middle of a secret, the part of it that they contain is
    /// hidden, too.
    pub fn hide(&self, bytes: &[u8]) -> Vec<u8> {
        without(bytes, &search(bytes, |bytes| self.places(bytes)))
    }

    /// The text without these secrets.
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

/// The secrets in typed values: URLs, headers, logins, labels and the arguments of a script.
fn typed(plan: &Plan) -> Vec<Vec<u8>> {
    let proxy = plan.connect.proxy.as_ref();
    let args: Vec<&str> = plan.script.iter().flat_map(|script| &script.args).map(String::as_str).collect();
    let urls = proxy.map(|proxy| &proxy.typed).into_iter().chain([&plan.target.typed]);
    let headers = plan.request.headers.iter().map(|(name, value)| format!("{name}: {value}"));
    let labels = plan.output.labels.iter().map(|(key, value)| format!("{key}: {value}"));
    let texts =
        urls.map(|url| format!("://{url}")).chain(headers).chain(labels).chain(args.iter().map(|&arg| arg.into()));
    let logins = plan.target.userinfo.iter().chain(proxy.and_then(|proxy| proxy.login.as_ref())).cloned();
    let hidden = args.iter().zip(super::find_secret_words(args.iter().copied()));
    let hidden = hidden.filter(|(_, is_hidden)| *is_hidden).map(|(arg, _)| (*arg).to_owned());
    let whole = logins.chain(hidden).map(String::into_bytes);
    whole.chain(texts.flat_map(|text| values(text.as_bytes(), false))).collect()
}

/// The bytes for comparison: lower case, and a plus sign becomes a blank, as in forms.
fn folded(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if *byte == b'+' { b' ' } else { byte.to_ascii_lowercase() }).collect()
}

/// The secrets in bytes, found as by [`places`].
fn values(text: &[u8], blanks_end: bool) -> Vec<Vec<u8>> {
    places(text, blanks_end).into_iter().map(|place| text[place].to_vec()).collect()
}

/// The words of the placeholders in a secret.
fn placeholders(secret: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(secret);
    text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.to_owned())).collect()
}

/// The values that fill a placeholder, at most as many as are searched for.
fn filled_in(placeholder: &str, files: &BTreeSet<(&str, &[u8])>) -> Vec<Vec<u8>> {
    let mut is_quoted = false;
    let words = placeholder.split(|character: char| {
        is_quoted ^= character == '"';
        !is_quoted && (character.is_whitespace() || character == '|')
    });
    let mut words = words.map(|word| word.trim_matches('"')).filter(|word| !word.is_empty());
    let (Some(kind), Some(file), column) = (words.next(), words.next(), words.next()) else { return Vec::new() };
    let of_file = |(name, contents): &(&str, &[u8])| match (kind, column) {
        _ if *name != file => Vec::new(),
        ("csv", Some(column)) => values_of_column(contents, column),
        _ => contents.split(|byte| *byte == b'\n').take(MOST).map(|line| line.trim_ascii().to_vec()).collect(),
    };
    files.iter().flat_map(of_file).collect()
}

/// The values in a column, at most as many as are searched for.
fn values_of_column(text: &[u8], name: &str) -> Vec<Vec<u8>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let names = reader.byte_headers().cloned().unwrap_or_default();
    let Some(index) = names.iter().position(|it| it.trim_ascii() == name.as_bytes()) else { return Vec::new() };
    let rows = reader.byte_records().take(MOST).filter_map(Result::ok);
    rows.filter_map(|row| row.get(index).map(<[u8]>::to_vec)).collect()
}

fn is_quoted(script: &[u8], place: &Range<usize>) -> bool {
    let is_quote = |at: usize| script.get(at).is_some_and(|byte| b"\"'".contains(byte));
    is_quote(place.start.wrapping_sub(1)) || is_quote(place.end)
}

/// A secret and its pieces, as written and with percent-encoding undone: the cookies of a header, the token after
/// `Bearer`, the password after a user. Short pieces and numbers are left out, because they may appear by chance.
fn pieces(secret: &[u8]) -> Vec<Vec<u8>> {
    let is_border = |byte: &u8| byte.is_ascii_whitespace() || b";,=:\"'{}[]&<>()/?#".contains(byte);
    let is_piece = |piece: &&[u8]| piece.len() >= PIECE_MIN && !is_scheme(piece);
    let mut all = Vec::new();
    // A typed `Basic` header contains the login in base64.
    let login = secret.split_at_checked(6).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"basic "));
    let login = login.and_then(|(_, digits)| STANDARD.decode(digits.trim_ascii()).ok());
    let login = login.unwrap_or_default();
    for whole in [secret.trim_ascii(), &decoded(secret).0, &login] {
        let password = memchr::memchr(b':', whole).map(|colon| whole[colon + 1..].trim_ascii());
        let pieces = whole.split(is_border).filter(is_piece);
        all.extend([whole].into_iter().chain(password).chain(pieces).map(<[u8]>::to_vec));
    }
    all.retain(|piece| piece.len() >= LENGTH_MIN && !is_short_number(piece));
    all
}

fn is_short_number(piece: &[u8]) -> bool {
    piece.len() < NUMBER_MIN && piece.iter().all(|byte| byte.is_ascii_digit() || b".:".contains(byte))
}

/// The spellings in which a server may send a secret back: unchanged, in hexadecimal and in base64; all folded.
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
