//! The names whose values are secrets.

use std::mem;

/// Parts that make any name secret, as in `PHPSESSID` or `-Hcookie`: no harmless name contains them.
const ANYWHERE: [&str; 10] =
    ["apikey", "authorization", "cookie", "credential", "passphrase", "passw", "secret", "sessid", "session", "token"];

/// Words that make a name secret only as whole words: `author`, `bypass` and `sigma` are harmless.
const WORDS: [&str; 14] = [
    "auth",
    "authentication",
    "bearer",
    "csrf",
    "hmac",
    "jwt",
    "oauth",
    "otp",
    "pass",
    "pwd",
    "sid",
    "sig",
    "signature",
    "xsrf",
];

/// Words before `key` that make a name secret, as in `api_key` or `apikey`. Other keys identify a row, a partition or a
/// repeated request; and `monkey` is not a key.
const KEYS: [&str; 21] = [
    "access",
    "account",
    "admin",
    "api",
    "app",
    "auth",
    "client",
    "encryption",
    "functions",
    "license",
    "master",
    "private",
    "root",
    "server",
    "service",
    "shared",
    "signing",
    "ssh",
    "storage",
    "subscription",
    "user",
];

/// Words between the name of a header and the secret, which are not secret.
const SCHEMES: [&str; 5] = ["basic", "bearer", "digest", "negotiate", "ntlm"];

/// The length of the shortest secret name: `key`, `sid`. A large binary body is full of shorter ones.
const LENGTH_MIN: usize = 3;

/// True if a word says what kind of secret follows, in any case.
pub(super) fn is_scheme(word: &[u8]) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// True if a decoded name is the name of a secret.
pub(super) fn is_secret(name: &[u8]) -> bool {
    if name.len() < LENGTH_MIN {
        return false;
    }
    let name = name.strip_prefix(b"-H").unwrap_or(name);
    let lower = name.to_ascii_lowercase();
    let mut start = 0;
    let words = (1..=name.len()).filter(|&end| is_border(name, end)).map(|end| {
        let word = &lower[start..end];
        start = end;
        word
    });
    let letters = lower.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let mut before: &[u8] = &[];
    let is_known = |known: &[&str], word: &[u8]| known.iter().any(|known| known.as_bytes() == word);
    words.filter(|word| word[0].is_ascii_alphabetic()).any(|word| {
        let one = word.strip_suffix(b"s").unwrap_or(word);
        let before = mem::replace(&mut before, word);
        let is_key = match one.strip_suffix(b"key") {
            Some(b"") => is_known(&KEYS, before) || word.len() == letters,
            Some(kind) => is_known(&KEYS, kind),
            None => false,
        };
        is_known(&WORDS, one) || is_known(&WORDS, word) || is_key
    }) || ANYWHERE.iter().any(|part| lower.windows(part.len()).any(|window| window == part.as_bytes()))
}

/// True if a word of a name ends here: before and after every character that is not a letter, in the middle of `aB`,
/// and in `ABc` before `Bc`.
fn is_border(name: &[u8], at: usize) -> bool {
    let (before, after, next) = (name[at - 1], name.get(at), name.get(at + 1));
    let Some(after) = after else { return true };
    let is_capital = after.is_ascii_uppercase();
    !before.is_ascii_alphabetic()
        || !after.is_ascii_alphabetic()
        || (is_capital && (before.is_ascii_lowercase() || next.is_some_and(u8::is_ascii_lowercase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_differ_from_lookalikes() {
        let secret = "Authorization proxy-authorization -HAuthorization -vHAuthorization -Hpwd Cookie Set-Cookie auth \
                      X-Auth oauth2 authentication X-API-Key apiKey APIKey api_key apikeys sshkey keys user.key key key2 \
                      SSHKeys access_key_id privateKey signing-key master_keys Ocp-Apim-Subscription-Key \
                      csrf_token _csrf clientSecret passwd PASSWORD PassWord pass user_pass userPass DB_PASS2 pwd \
                      passphrase PHPSESSIONID PHPSESSID connect.sid sid session-id jwt sig X-Amz-Signature \
                      X-Amz-Credential credentials user[password] ns:password otp";
        for name in secret.split_whitespace() {
            assert!(is_secret(name.as_bytes()), "{name}");
        }
        let harmless = "Accept Host user Keep-Alive author Authority passenger passage compass bypass sigma design \
                        signal inside ssid residue keyboard keyword monkey turkey hockey sort_key sortKey partition_key cache-key \
                        Idempotency-Key primary_key foreign_keys public_key Sec-WebSocket-Key key_type top footprint pas s - é";
        for name in harmless.split_whitespace().chain([""]) {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
    }
}
