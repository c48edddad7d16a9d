//! Redaction of secrets, which must not leave the machine with a result.
//!
//! A secret is the user in a URL or the value of a secret name (`names`), found by its place (`places`).
//! [`KnownSecrets`] holds the secrets that a run was given, and hides them wherever else they appear. Bodies other than
//! forms are not searched but left out, and so are the commands of experiments.

mod known;
mod names;
mod places;

use std::ops::Range;

pub use known::KnownSecrets;
use places::places;

use super::file_contents::{FileContents, UnreadableFile};

/// The text that replaces a secret.
pub const REDACTED: &str = "REDACTED";

/// Advice for a URL if [`is_misspelt_user`] is true.
pub const MISSPELT_USER: &str = "in a user name or password, write / ? # as %2F %3F %23";

/// True if the value of a header, field, parameter or argument of this name is a secret.
pub fn is_secret(name: &str) -> bool {
    names::is_secret(name.as_bytes())
}

/// Typed text with every secret value redacted up to the end of its field or line, and the user in every URL.
pub fn redact_text(text: &str) -> String {
    String::from_utf8_lossy(&redact_bytes(text.as_bytes())).into_owned()
}

/// Any bytes, redacted like [`redact_text`].
pub fn redact_bytes(bytes: &[u8]) -> Vec<u8> {
    without(bytes, &places(bytes, false))
}

/// A URL, with or without a scheme, with its user and secret parameters redacted.
pub fn redact_url(url: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let (scheme, rest) = url.split_once("://").filter(|(scheme, _)| is_scheme(scheme)).unwrap_or(("", url));
    let shown = redact_text(&format!("://{rest}"));
    if rest.len() < url.len() { format!("{scheme}{shown}") } else { shown["://".len()..].to_owned() }
}

/// The value of a header or label: redacted as a whole if its name is secret, otherwise like [`redact_text`].
pub fn redact_value(name: &str, value: &str) -> String {
    if is_secret(name) { REDACTED.to_owned() } else { redact_text(value) }
}

/// A body, redacted: in a form, the secret fields; anything else as a whole.
pub fn redact_body(body: &str) -> String {
    if is_form(body) { redact_text(body) } else { REDACTED.to_owned() }
}

/// True if a body has the form `name=value&name=value`.
pub fn is_form(body: &str) -> bool {
    let is_field = |field: &str| field.split_once('=').is_some_and(|(name, _)| name.bytes().all(places::is_of_name));
    // Padded base64 looks like a field without a value, and a file of settings like a field on each line.
    let is_padded = !body.contains('&') && body.ends_with('=') && body.len().is_multiple_of(4);
    !is_padded && !body.contains(['\r', '\n']) && body.split('&').all(is_field)
}

/// The words of a command line, redacted like [`redact_text`]; words that [`find_secret_words`] are redacted as a whole.
pub fn redact_words<'a>(words: impl IntoIterator<Item = &'a str, IntoIter: Clone>) -> Vec<String> {
    let words = words.into_iter();
    let shown = |(word, is_hidden)| if is_hidden { REDACTED.to_owned() } else { redact_text(word) };
    words.clone().zip(find_secret_words(words)).map(shown).collect()
}

/// For each word of a command line, true if the whole word is a secret because it follows `Bearer` or an option with a
/// secret name.
pub fn find_secret_words<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = bool> {
    let hides_next = |word: &str| is_secret_option(word) || word.eq_ignore_ascii_case("bearer");
    words.scan(false, move |is_hidden, word| Some(std::mem::replace(is_hidden, hides_next(word))))
}

/// True if a word is an option with a secret name whose value is the next word.
pub fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && is_secret(word)
}

/// True if the value of a header is only a scheme such as `Bearer`, without its credentials.
pub fn is_scheme(value: &str) -> bool {
    names::is_scheme(value.trim().as_bytes())
}

/// A message with only the users in its URLs redacted, because ordinary words in it may look like the names of secrets.
pub fn users(text: &str) -> String {
    String::from_utf8_lossy(&without(text.as_bytes(), &places::users(text.as_bytes()))).into_owned()
}

/// Redacts everything that may be meant as a user in what may not be a valid URL. A parser would take the slash in a
/// password for the end of the host.
pub fn misspelt_url(typed: &str) -> String {
    let Some((user, host)) = typed.rsplit_once('@') else { return redact_url(typed) };
    let scheme = ["http://", "https://"].into_iter().find(|scheme| user.starts_with(scheme)).unwrap_or_default();
    format!("{scheme}{REDACTED}@{}", redact_url(host))
}

/// True if a URL may be meant to have a user or password with a character that would end it.
pub fn is_misspelt_user(url: &str) -> bool {
    let user = url.rsplit_once('@').map(|(user, _)| user.split_once("://").map_or(user, |(_, user)| user));
    user.is_some_and(|user| user.contains(['/', '?', '#']))
}

/// Redacts what may not be a valid header.
pub fn misspelt_header(typed: &str) -> String {
    match typed.split_once([':', ' ', '\t', '=']) {
        Some((name, _)) if is_secret(name) => format!("{name} {REDACTED}"),
        _ => redact_text(typed),
    }
}

/// The contents of a file without the secrets in the first 4 MiB, in two parts: searching all of a long list would take
/// longer than many runs.
///
/// # Errors
///
/// If the contents were neither read nor attached.
pub fn contents(file: &FileContents) -> Result<(Vec<u8>, &[u8]), UnreadableFile> {
    let (searched, rest) = searched(file.contents()?);
    Ok((without(searched, in_file(file)), rest))
}

/// The places of the secrets in the part of a file that is searched.
fn in_file(file: &FileContents) -> &[Range<usize>] {
    file.secrets(|contents| places(searched(contents).0, false))
}

/// Splits contents into the part that is searched, the first 4 MiB, and the rest.
fn searched(contents: &[u8]) -> (&[u8], &[u8]) {
    contents.split_at(contents.len().min(4 << 20))
}

/// The bytes with these places, which are in order and apart, redacted.
fn without(bytes: &[u8], places: &[Range<usize>]) -> Vec<u8> {
    let (mut shown, mut copied) = (Vec::with_capacity(bytes.len()), 0);
    for &Range { start, end } in places {
        shown.extend_from_slice(&bytes[copied..start]);
        shown.extend_from_slice(REDACTED.as_bytes());
        copied = end;
    }
    shown.extend_from_slice(&bytes[copied..]);
    shown
}

#[cfg(test)]
mod tests;
