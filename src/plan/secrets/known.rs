//! The secrets that a run was given, which are hidden wherever a server sends them back.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::decode::{View, all_views, views, words};
use super::find::{joined, secrets};
use super::lua::secrets_of_script;
use super::without;
use crate::plan::Plan;

/// The minimum length of a secret that is searched for, in bytes: shorter ones appear in too many texts by chance.
const LENGTH_MIN: usize = 4;

/// The minimum length of a part of a secret, in bytes.
const PART_MIN: usize = 6;

/// The length to which a long secret is searched for, in bytes: more than is kept of what a server sent.
const LENGTH_MAX: usize = 512;

/// The most parts of one secret that are searched for.
const PARTS_MOST: usize = 64;

/// The most secrets that are searched for, including parts. A body may have any number.
const MOST: usize = 2000;

/// Words that precede a secret and are not secret.
const SCHEMES: [&str; 3] = ["Bearer", "Digest", "Negotiate"];

/// The length to which a body or script is searched for secrets, in bytes.
const LOOKED_THROUGH: usize = 1 << 20;

/// The longest escape that may be cut off at the end of a text, in bytes.
const ESCAPE_MAX: usize = 6;

/// The secrets of a run in every spelling. Empty if secrets may be shown.
#[derive(Debug, Default)]
pub struct Known {
    /// The folded spellings, by their first bytes.
    spellings: HashMap<[u8; LENGTH_MIN], Vec<Vec<u8>>>,
}

impl Known {
    /// The secrets of a plan, and of its body and script if these have been read.
    pub fn of(plan: &Plan) -> Self {
        let body = plan.body().unwrap_or_default();
        let script = plan.script.as_ref().and_then(|script| script.file.contents().ok());
        let proxy = plan.way.proxy.as_ref();
        let urls = proxy.map(|proxy| &proxy.typed).into_iter().chain([&plan.target.typed]);
        let mut texts: Vec<Vec<u8>> = urls.map(|url| format!("://{url}").into_bytes()).collect();
        texts.extend(plan.request.headers.iter().map(|(name, value)| format!("{name}: {value}").into_bytes()));
        let args = plan.script.iter().flat_map(|script| &script.args);
        texts.extend(args.map(|arg| arg.clone().into_bytes()));
        let start = |bytes: &[u8]| bytes[..bytes.len().min(LOOKED_THROUGH)].to_vec();
        texts.push(start(body));
        let script = start(script.unwrap_or_default());
        let logins = plan.target.userinfo.iter().chain(proxy.and_then(|proxy| proxy.login.as_ref()));
        let given = logins.cloned().chain(hidden_args(plan)).map(String::into_bytes);
        let in_script = secrets_of_script(&script).into_iter().map(|place| script[place].to_vec());
        let found = texts.iter().flat_map(|text| values(text)).chain(in_script);
        let mut parts_of_all = BTreeSet::new();
        for secret in given.chain(found) {
            if parts_of_all.len() >= MOST {
                break;
            }
            parts_of_all.extend(parts(&secret[..secret.len().min(LENGTH_MAX)]));
        }
        Self::from_iter(parts_of_all.iter().flat_map(|secret| spellings(secret)))
    }

    /// The bytes without any secret. If they end in the middle of a secret, its beginning is hidden as well.
    pub fn hide(&self, bytes: &[u8]) -> Vec<u8> {
        if self.spellings.is_empty() {
            return bytes.to_vec();
        }
        without(bytes, joined(all_views(bytes).iter().flat_map(|view| self.places(view)).collect()))
    }

    /// The text without any secret.
    pub fn hide_in(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.hide(text.as_bytes())).into_owned()
    }

    /// The places of the secrets in the source of a view.
    fn places(&self, view: &View) -> Vec<Range<usize>> {
        let folded: Vec<u8> = view.bytes.iter().map(fold).collect();
        let (mut places, mut at) = (Vec::new(), 0);
        while let Some(key) = folded[at..].first_chunk() {
            let candidates = self.spellings.get(key).into_iter().flatten();
            match candidates.map(|spelling| matched(spelling, &folded[at..])).max().unwrap_or_default() {
                0 => at += 1,
                length => {
                    places.push(view.source(at)..view.source(at + length));
                    at += length;
                }
            }
        }
        places
    }
}

impl FromIterator<Vec<u8>> for Known {
    fn from_iter<I: IntoIterator<Item = Vec<u8>>>(spellings: I) -> Self {
        let mut known = Self::default();
        for spelling in spellings {
            let spelling: Vec<u8> = spelling.iter().map(fold).collect();
            if let Some(key) = spelling.first_chunk() {
                known.spellings.entry(*key).or_default().push(spelling);
            }
        }
        known
    }
}

/// Folds a byte for comparison: lower case, and a plus sign becomes a blank, as in forms.
fn fold(byte: &u8) -> u8 {
    if *byte == b'+' { b' ' } else { byte.to_ascii_lowercase() }
}

/// The number of leading bytes that match a spelling: all of them if they end in the middle of it, and zero without a
/// match.
fn matched(spelling: &[u8], bytes: &[u8]) -> usize {
    let length = spelling.iter().zip(bytes).take_while(|(wanted, byte)| wanted == byte).count();
    let rest = &bytes[length..];
    let is_cut_off = rest.is_empty() || (rest.len() < ESCAPE_MAX && b"%\\&=".contains(&rest[0]));
    if length == spelling.len() {
        length
    } else if is_cut_off {
        bytes.len()
    } else {
        0
    }
}

/// The secrets of a text, as written.
fn values(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    secrets(text, false).into_iter().map(|place| text[place].to_vec())
}

/// The words that follow an option with a secret name in the script's arguments.
fn hidden_args(plan: &Plan) -> impl Iterator<Item = String> {
    let args = plan.script.iter().flat_map(|script| script.args.windows(2));
    args.filter(|pair| super::is_secret_option(&pair[0])).map(|pair| pair[1].clone())
}

/// A secret and its parts: the cookies of a header, the token after `Bearer`, the password after a user, the secrets in
/// an encoded document.
fn parts(secret: &[u8]) -> Vec<Vec<u8>> {
    let whole = secret.trim_ascii();
    let last = whole.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    let unpadded = &last[..last.iter().rposition(|&byte| byte != b'=').map_or(0, |at| at + 1)];
    let says_text = |said: &Vec<u8>| {
        std::str::from_utf8(said).is_ok_and(|said| !said.contains(|c: char| c.is_control() && !c.is_whitespace()))
    };
    let mut parts: Vec<Vec<u8>> = views(whole).into_iter().map(|view| view.bytes).collect();
    parts.extend(words(unpadded).into_iter().filter(says_text));
    let inside: Vec<Vec<u8>> = parts.iter().flat_map(|part| values(part)).filter(|part| part != whole).collect();
    parts.extend(inside);
    let is_border = |byte: &u8| byte.is_ascii_whitespace() || b";,=:\"'{}[]&<>()/?#".contains(byte);
    let says_something =
        |part: &&[u8]| part.len() >= PART_MIN && !SCHEMES.iter().any(|name| part.eq_ignore_ascii_case(name.as_bytes()));
    let mut smaller: Vec<Vec<u8>> = Vec::new();
    for part in &parts {
        let password = memchr::memchr(b':', part).map(|colon| part[colon + 1..].trim_ascii());
        smaller.extend(password.into_iter().chain(part.split(is_border).filter(says_something)).map(<[u8]>::to_vec));
    }
    parts.extend(smaller);
    parts.retain(|part| part.len() >= LENGTH_MIN);
    parts.truncate(PARTS_MOST);
    parts
}

/// The spellings of a secret in which a server may send it back: as it is, in hexadecimal and in base64.
fn spellings(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut spellings = vec![secret.to_vec(), hex.into_bytes()];
    for ahead in 0..3 {
        // The bytes before and after the secret affect the base64 digits at its borders, so those are left out.
        let padded = [&vec![0; ahead], secret].concat();
        let (first, last) = ((ahead * 8).div_ceil(6), padded.len() * 8 / 6);
        let digits = [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)];
        spellings.extend(digits.map(|text| text.as_bytes()[first..last].to_vec()));
    }
    spellings.dedup();
    spellings
}

#[cfg(test)]
mod tests {
    use super::super::REDACTED;
    use super::*;
    use crate::plan::{Dialect, Material, Script};
    use crate::report::fixtures;

    fn known() -> Known {
        let mut plan = fixtures::plan(Dialect::Native, "http://me:pa%2Fss@h/?token=tok+en%21", 1, 1, 1);
        plan.target.userinfo = Some("me:pa/ss".to_owned());
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        plan.request.headers = vec![
            header("Authorization", "Bearer abcd.efgh"),
            header("Cookie", "a=cookie-1; b=cookie-2"),
            header("Accept", "text/html"),
        ];
        plan.body = Some(Material::of("", br#"{"user":"alice","password":"s\u00e9cret \"1\""}"#.to_vec()));
        let args = ["--password", "an-argument", "harmless"].map(str::to_owned).to_vec();
        let file = Material::of("x.lua", b"wrk.headers['X-Api-Key'] = 'in-a-script'".to_vec());
        plan.script = Some(Script { file, args });
        Known::of(&plan)
    }

    #[test]
    fn what_was_given_is_found_again_wherever_it_stood() {
        let known = known();
        for (text, expected) in [
            ("no pa/ss here", "no REDACTED here"),
            ("no PA%2fSS here", "no REDACTED here"),
            ("tok+en! and tok en!", "tok+en! and REDACTED"),
            ("got abcd.efgh.", "got REDACTED."),
            ("cookie-2 is old", "REDACTED is old"),
            ("not s\u{e9}cret \"1\"", "not REDACTED"),
            ("an-argument in-a-script", "REDACTED REDACTED"),
            ("alice text/html harmless", "alice text/html harmless"),
        ] {
            let expected = expected.replace("tok+en!", "REDACTED");
            assert_eq!(known.hide_in(text), expected, "{text}");
        }
    }

    #[test]
    fn it_is_found_in_every_spelling_and_cut_off() {
        let known = known();
        let base64 = |text: &str| STANDARD_NO_PAD.encode(text);
        for text in [
            "616263642e65666768".to_owned(),
            "616263642E65666768".to_owned(),
            "abcd%2Eefgh".to_owned(),
            r#"s\u00e9cret \"1\""#.to_owned(),
            "s%C3%A9cret+%221%22".to_owned(),
            "s\u{e9}cret &quot;1&quot;".to_owned(),
            "s=C3=A9cret \"1\"".to_owned(),
        ] {
            assert_eq!(known.hide_in(&text), REDACTED, "{text}");
        }
        for ahead in ["", "1", "12", "123"] {
            let shown = known.hide_in(&base64(&format!("{ahead}in-a-script---")));
            assert!(shown.contains(REDACTED) && shown.len() < 8 + REDACTED.len() + 6, "{shown}");
        }
        assert_eq!(known.hide_in("this is in-a-scr"), "this is REDACTED");
        assert_eq!(known.hide_in("this is in-"), "this is in-");
    }

    #[test]
    fn a_body_of_any_number_of_secrets_is_known_by_some_of_them() {
        let mut plan = fixtures::plan(Dialect::Native, "http://h/", 1, 1, 1);
        let fields: Vec<String> = (0..45_000).map(|n| format!("\"token\":\"secret-{n}\"")).collect();
        plan.body = Some(Material::of("", format!("{{{}}}", fields.join(",")).into_bytes()));
        let known = Known::of(&plan);
        assert_eq!(known.hide_in("it was secret-7"), "it was REDACTED");
        let spellings: usize = known.spellings.values().map(Vec::len).sum();
        assert!(spellings <= 8 * (MOST + PARTS_MOST), "{spellings}");
    }
}
