//! The secrets that a run was given, to be found again in whatever a server sends back.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::decode::{from_base64, plain};
use super::{REDACTED, values};
use crate::plan::Plan;

/// The least length of a secret that is looked for, in bytes: shorter ones are in every other text.
const LENGTH_MIN: usize = 4;

/// The least length of a part of one, in bytes.
const PART_MIN: usize = 6;

/// Words that stand before a secret and are none.
const SCHEMES: [&str; 3] = ["Bearer", "Digest", "Negotiate"];

/// How much of a body is looked through for secrets, in bytes.
const LOOKED_THROUGH: usize = 1 << 20;

/// The most secrets that are looked for. A body may have any number.
const MOST: usize = 500;

/// The secrets of a run, in every way that they may be written.
#[derive(Debug)]
pub struct Known {
    spellings: BTreeSet<Vec<u8>>,
}

impl Known {
    /// Those of a plan, its body and its script, as far as they have been read.
    pub fn of(plan: &Plan) -> Self {
        let body = plan.body().unwrap_or_default();
        let body = &body[..body.len().min(LOOKED_THROUGH)];
        let script = plan.script.as_ref().and_then(|script| script.file.contents().ok());
        let proxy = plan.way.proxy.as_ref();
        let urls = proxy.map(|proxy| &proxy.typed).into_iter().chain([&plan.target.typed]);
        let mut texts: Vec<String> = urls.map(|url| format!("://{url}")).collect();
        texts.extend(plan.request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        texts.extend(plan.script.iter().flat_map(|script| script.args.iter().cloned()));
        texts.extend(
            [Some(body), script].into_iter().flatten().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        );
        let logins = plan.target.userinfo.iter().chain(proxy.and_then(|proxy| proxy.login.as_ref()));
        let found = logins.cloned().chain(hidden_args(plan)).chain(texts.iter().flat_map(|text| values(text)));
        let secrets: BTreeSet<String> = found.take(MOST).flat_map(|secret| parts(&secret)).collect();
        Self { spellings: secrets.iter().flat_map(|secret| spellings(secret)).collect() }
    }

    /// Bytes without any of them. Where the bytes end in the middle of one, its beginning is hidden too.
    pub fn hide(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut shown, mut at) = (Vec::with_capacity(bytes.len()), 0);
        while let Some(&byte) = bytes.get(at) {
            match self
                .spellings
                .iter()
                .map(|spelling| matched(spelling, &bytes[at..]))
                .max()
                .filter(|&length| length > 0)
            {
                Some(length) => {
                    shown.extend_from_slice(REDACTED.as_bytes());
                    at += length;
                }
                None => {
                    shown.push(byte);
                    at += 1;
                }
            }
        }
        shown
    }

    /// The same of a text.
    pub fn hide_in(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.hide(text.as_bytes())).into_owned()
    }
}

/// The words behind options of a script that have a secret's name.
fn hidden_args(plan: &Plan) -> impl Iterator<Item = String> {
    let args = plan.script.iter().flat_map(|script| script.args.windows(2));
    args.filter(|pair| super::is_secret_option(&pair[0])).map(|pair| pair[1].clone())
}

/// A secret, and what it is made of: the cookies of a header, the token behind `Bearer`, the password behind a user, the
/// secrets in an encoded document.
fn parts(secret: &str) -> Vec<String> {
    let whole = secret.trim();
    let last = whole.split_whitespace().last().unwrap_or_default();
    let decoded = [plain(whole).into_owned(), plain(&whole.replace('+', " ")).into_owned()];
    let mut parts: Vec<String> = decoded.into_iter().chain(from_base64(last)).collect();
    let inside: Vec<String> = parts.iter().flat_map(|part| values(part)).filter(|part| part != whole).collect();
    parts.extend(inside);
    parts.push(whole.to_owned());
    let is_border = |c: char| c.is_whitespace() || ";,=:\"'{}[]&<>()/?#".contains(c);
    let says_something =
        |part: &&str| part.len() >= PART_MIN && !SCHEMES.iter().any(|name| part.eq_ignore_ascii_case(name));
    let mut smaller: Vec<String> = Vec::new();
    for part in &parts {
        smaller.extend(part.split(is_border).filter(says_something).map(str::to_owned));
        smaller.extend(part.split_once(':').map(|(_, password)| password.trim().to_owned()));
    }
    parts.extend(smaller);
    parts.retain(|part| part.len() >= LENGTH_MIN);
    parts
}

/// A secret in the ways in which it may come back whose letters are others.
fn spellings(secret: &str) -> Vec<Vec<u8>> {
    let bytes = secret.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut spellings = vec![secret.to_owned(), hex];
    for ahead in 0..3 {
        // What stands before it and behind it has a say in the digits at the border.
        let padded = [&vec![0; ahead], bytes].concat();
        let (first, last) = ((ahead * 8).div_ceil(6), padded.len() * 8 / 6);
        let inner =
            [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)].map(|text| text[first..last].to_owned());
        spellings.extend(inner);
    }
    spellings.retain(|spelling| spelling.len() >= LENGTH_MIN);
    spellings.into_iter().map(String::into_bytes).collect()
}

/// How many of the first of these bytes are a spelling, or as much of it as there are bytes; zero if they are not.
fn matched(spelling: &[u8], bytes: &[u8]) -> usize {
    let mut at = 0;
    for (index, &wanted) in spelling.iter().enumerate() {
        let rest = &bytes[at..];
        if rest.is_empty() {
            return if index >= LENGTH_MIN { at } else { 0 };
        }
        let is_wanted = |(byte, _): &(u8, usize)| byte.eq_ignore_ascii_case(&wanted);
        match letters(rest).into_iter().flatten().find(is_wanted) {
            Some((_, length)) => at += length,
            None => return 0,
        }
    }
    at
}

/// What the first bytes of a text may mean, and how many they are: one letter as it is, with percent signs or
/// backslashes, or as an entity.
fn letters(bytes: &[u8]) -> [Option<(u8, usize)>; 2] {
    const ENTITIES: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&#39;", b'\'')];
    let number = |from: usize, to: usize| {
        let digits = std::str::from_utf8(bytes.get(from..to)?).ok()?;
        Some((u8::from_str_radix(digits, 16).ok()?, to))
    };
    let otherwise = match bytes {
        [b'%', ..] => number(1, 3),
        [b'+', ..] => Some((b' ', 1)),
        [b'\\', b'x', ..] => number(2, 4),
        [b'\\', b'u', b'0', b'0', ..] => number(4, 6),
        [b'\\', byte, ..] => Some((*byte, 2)),
        _ => ENTITIES.iter().find(|(entity, _)| bytes.starts_with(entity)).map(|&(entity, byte)| (byte, entity.len())),
    };
    [otherwise, bytes.first().map(|&byte| (byte, 1))]
}

#[cfg(test)]
mod tests {
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
}
