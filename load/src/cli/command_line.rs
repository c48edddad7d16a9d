//! The command line as recorded in result files: quoted for a shell, and without secrets.

use std::borrow::Cow;
use std::ffi::OsString;

use onrush_plan::Plan;
use onrush_plan::secrets::{self, KnownSecrets, REDACTED};

use super::flag::Secrecy;
use super::flags;

/// The command line of a plan, quoted so that a shell can read it again. Secrets are replaced, unless the plan keeps
/// them.
pub fn redacted_command_line(args: &[OsString], plan: &Plan) -> String {
    let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
    if plan.output.keeps_secrets {
        return words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ");
    }
    let mut previous = "";
    let mut shown = Vec::new();
    for (word, is_of_header) in words.iter().zip(mark_unquoted_secrets(&words, &plan.target.typed)) {
        let hidden = || redact_word(word, previous, &plan.target.typed);
        shown.push(if is_of_header { REDACTED.to_owned() } else { shell_quoted(&hidden()) });
        previous = word;
    }
    shown.join(" ")
}

/// Finds the secrets in a command line, even if it is mistyped. The words after the name of an unquoted header are
/// secrets as well.
pub fn find_secrets(args: &[OsString]) -> KnownSecrets {
    let words: Vec<_> = args.iter().map(|word| word.to_string_lossy()).collect();
    let (mut whole, mut is_value) = (Vec::new(), false);
    for (word, is_of_header) in words.iter().zip(mark_unquoted_secrets(&words, "")) {
        let is_option = word.starts_with('-');
        if (is_value && !is_option) || is_of_header {
            whole.push(word.clone().into_owned());
            is_value = false;
        }
        let is_secret = |(option, _): &(&str, &str)| matches!(own_secrecy(option), Some(Secrecy::Whole));
        whole.extend(word.split_once('=').filter(is_secret).map(|(_, secret)| secret.to_owned()));
        // The value may be missing, so that another option follows directly.
        is_value |= has_secret_value(word);
    }
    // A value of onrush's own options, such as a file, is not secret because of the option's name.
    let is_ours = |(option, _): &(&str, &str)| own_secrecy(option).is_some();
    let texts = words.iter().map(|word| word.split_once('=').filter(is_ours).map_or(&**word, |(_, value)| value));
    KnownSecrets::of_words(texts, whole)
}

/// Returns for each word whether it continues an unquoted header with a secret name or scheme.
fn mark_unquoted_secrets<'a>(words: &'a [Cow<'_, str>], url: &str) -> Vec<bool> {
    let (mut is_in_header, mut previous) = (false, "");
    let is_of_header = |word: &'a str| {
        is_in_header &= !word.starts_with('-') && !word.contains("://") && word != url;
        let is_hidden = is_in_header;
        // The colon may be missing.
        let is_name = ["-H", "--header"].contains(&previous) && !word.contains(':') && secrets::is_secret(word);
        is_in_header |= is_name || ends_before_secret(word);
        previous = word;
        is_hidden
    };
    words.iter().map(|word| &**word).map(is_of_header).collect()
}

/// True if a blank cut off a header before its secret: `Cookie:`, `X:Bearer`, `Bearer`.
fn ends_before_secret(word: &str) -> bool {
    match word.split_once(':') {
        Some((name, value)) => (value.trim().is_empty() && secrets::is_secret(name)) || secrets::is_scheme(value),
        // Other schemes are also ordinary words.
        None => word.eq_ignore_ascii_case("bearer"),
    }
}

/// True if the word is the name of an option with a secret value. That of another tool's option is secret by its name.
fn has_secret_value(word: &str) -> bool {
    own_secrecy(word).map_or_else(|| secrets::is_secret_option(word), |secrecy| matches!(secrecy, Secrecy::Whole))
}

/// A word of a command line without its secrets. `previous` is the word before, which may be the option whose value
/// this is; `url` is the URL of the target as typed.
pub fn redact_word(word: &str, previous: &str, url: &str) -> String {
    let attached = || {
        let (option, value) = word.split_once('=')?;
        Some(format!("{option}={}", redacted_value(option, value)?))
    };
    let plain = || if word == url { secrets::redact_url(word) } else { secrets::redact_text(word) };
    redacted_value(previous, word).or_else(attached).unwrap_or_else(plain)
}

/// The value of an option without its secrets; `None` if the value is to be treated like any other text.
fn redacted_value(option: &str, value: &str) -> Option<String> {
    match own_secrecy(option) {
        Some(Secrecy::Replaced(replace)) => replace(value),
        _ => has_secret_value(option).then(|| REDACTED.to_owned()),
    }
}

/// The kind of secret in the value of one of onrush's own options; `None` for other words.
fn own_secrecy(word: &str) -> Option<Secrecy> {
    word.strip_prefix("--").and_then(flags::by_name).map(|flag| flag.secrecy)
}

/// Puts a word in single quotes, unless a shell reads it unchanged without them.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@,+%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use onrush_plan::{Dialect, OutputOptions};

    use super::*;
    use crate::fixtures;

    fn command(words: &[&str]) -> String {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        redacted_command_line(&args, &fixtures::plan(Dialect::Native, "u:p@h/?token=1", 1, 1, 1))
    }

    #[test]
    fn shells_can_read_the_command_line_again() {
        assert_eq!(
            command(&["onrush", "-c10", "-H", "A: it's", "", "http://h/"]),
            r"onrush -c10 -H 'A: it'\''s' '' http://h/"
        );
    }

    #[test]
    fn secrets_are_redacted_in_every_position() {
        let table: [(&[&str], &str); 14] = [
            (&["onrush", "-H", "Cookie: a=b"], "onrush -H 'Cookie: REDACTED'"),
            (&["onrush", "-vHAuthorization: x"], "onrush '-vHAuthorization: REDACTED'"),
            (&["onrush", "u:p@h/?token=1"], "onrush 'REDACTED@h/?token=REDACTED'"),
            (&["onrush", "--basic-auth", "me:x"], "onrush --basic-auth REDACTED"),
            (&["onrush", "--basic-auth=me:x"], "onrush --basic-auth=REDACTED"),
            (&["onrush", "--http-proxy", "u:p@h:1"], "onrush --http-proxy REDACTED@h:1"),
            (&["onrush", "--http-proxy=u:p@h:1"], "onrush --http-proxy=REDACTED@h:1"),
            (&["onrush", "U", "--", "--token", "x"], "onrush U -- --token REDACTED"),
            (&["onrush", "-H", "X:Bearer", "a", "b", "-c1"], "onrush -H X:Bearer REDACTED REDACTED -c1"),
            (
                &["onrush", "-H", "Cookie", "a", "u:p@h/?token=1"],
                "onrush -H Cookie REDACTED 'REDACTED@h/?token=REDACTED'",
            ),
            (&["onrush", "U", "Bearer", "a"], "onrush U Bearer REDACTED"),
            (&["onrush", "--body", "a=1&pwd=x"], "onrush --body 'a=1&pwd=REDACTED'"),
            (&["onrush", "--body={\"a\":1}"], "onrush --body=REDACTED"),
            (&["onrush", "--body", "@a=1"], "onrush --body @a=1"),
        ];
        for (words, expected) in table {
            assert_eq!(command(words), expected);
        }
    }

    #[test]
    fn kept_secrets_are_shown() {
        let args = ["onrush", "-H", "Cookie: a"].map(OsString::from);
        let plan = fixtures::plan(Dialect::Native, "", 1, 1, 1);
        assert_eq!(
            redacted_command_line(
                &args,
                &Plan { output: OutputOptions { keeps_secrets: true, ..plan.output }, ..plan }
            ),
            "onrush -H 'Cookie: a'"
        );
        assert_eq!(command(&["onrush", "--keep-secrets", "h"]), "onrush --keep-secrets h");
    }
}
