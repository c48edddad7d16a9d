//! The names whose values are secrets.

/// Letters that make a name secret, in any case and with any other characters between them: `api_key`, `X-API-Key`,
/// `apiKey2`.
const PARTS: &str = "accesskey accountkey adminkey apikey appkey authkey authorization clientkey cookie credential \
                     encryptionkey functionskey licensekey masterkey passphrase passw privatekey rootkey secret \
                     serverkey servicekey sessid session sharedkey signingkey sshkey storagekey subscriptionkey token \
                     userkey";

/// Words that make a name secret as whole words only: `author`, `bypass` and `sigma` are harmless.
const WORDS: &str = "auth authentication bearer csrf hmac jwt oauth otp pass pwd sid sig signature xsrf";

/// Authentication schemes: words between the name of a header and the secret that are not secret themselves.
const SCHEMES: [&str; 5] = ["basic", "bearer", "digest", "negotiate", "ntlm"];

/// True if a word, in upper or lower case, is an authentication scheme.
pub(super) fn is_scheme(word: &[u8]) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme.as_bytes()))
}

/// True if a name, already decoded, is the name of a secret.
pub(super) fn is_secret(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"-H").unwrap_or(name);
    let (mut letters, mut words) = (String::new(), String::new());
    for (at, byte) in name.iter().enumerate() {
        if at > 0 && is_border(name, at) {
            words.push(' ');
        }
        let letter = byte.is_ascii_alphabetic().then(|| char::from(byte.to_ascii_lowercase()));
        letters.extend(letter);
        words.extend(letter);
    }
    ["key", "keys"].contains(&&*letters)
        || PARTS.split(' ').any(|part| letters.contains(part))
        || words.split(' ').any(|word| !word.is_empty() && WORDS.split(' ').any(|secret| secret == word))
}

/// True if a word of a name begins here: before and after every character that is not a letter, in the middle of `aB`,
/// and in `ABc` before `Bc`.
fn is_border(name: &[u8], at: usize) -> bool {
    let (before, after, next) = (name[at - 1], name[at], name.get(at + 1));
    !before.is_ascii_alphabetic()
        || !after.is_ascii_alphabetic()
        || (after.is_ascii_uppercase() && (before.is_ascii_lowercase() || next.is_some_and(u8::is_ascii_lowercase)))
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
