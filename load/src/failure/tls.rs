//! Descriptions of TLS: negotiated parameters, failures, and their remedies.

use onrush_plan::http;
use onrush_plan::tls::{GROUPS, SUITES, TlsName, TlsVersion};
use onrush_stats::{Handshakes, Negotiated, TlsFailure};
use onrush_text::escape;

/// A line for each combination negotiated in handshakes: version, cipher suite and group.
pub fn handshake_lines(handshakes: &Handshakes) -> String {
    let line = |(Negotiated { version, suite, group, is_http2 }, _): (Negotiated, u64)| {
        let version = TlsVersion::name_of(version);
        let group = if group == 0 { String::new() } else { format!(", {}", TlsName::name_of(GROUPS, group)) };
        let http2 = if is_http2 { ", HTTP/2" } else { "" };
        format!("TLS {version}, {}{group}{http2}\n", TlsName::name_of(SUITES, suite))
    };
    handshakes.parameters_in_use().into_iter().map(line).collect()
}

/// Describes a TLS failure, without its remedy.
pub fn describe_tls_failure(failure: TlsFailure) -> String {
    match failure {
        TlsFailure::Expired => "the server's certificate has expired".to_owned(),
        TlsFailure::NotYetValid => "the server's certificate is not valid yet".to_owned(),
        TlsFailure::WrongName => "the server's certificate is for another name".to_owned(),
        TlsFailure::SelfSigned => "the server's certificate is self-signed".to_owned(),
        TlsFailure::UnknownIssuer => "the server's certificate is not signed by a trusted CA".to_owned(),
        TlsFailure::Certificate => "the server's certificate is not acceptable".to_owned(),
        TlsFailure::Alert(number) => format!("TLS alert {} ({number}) from the server", alert_name(number)),
        TlsFailure::Incompatible => {
            "the server and onrush have no TLS version, cipher suite or group in common".to_owned()
        }
        TlsFailure::PlainText => "the server does not speak TLS but responds in plain text".to_owned(),
        TlsFailure::NotTls => "the server sends something other than TLS".to_owned(),
        TlsFailure::Misbehaved => "the server violates the TLS protocol".to_owned(),
        TlsFailure::Closed => "closed by the server during the TLS handshake".to_owned(),
        TlsFailure::NoProtocol => "the server chose none of the offered protocols (ALPN)".to_owned(),
    }
}

/// The remedy for a TLS failure; `None` if none is known. `example`: received bytes or a detail of the failure;
/// `offered`: the HTTP versions offered to the server.
pub fn tls_remedy(failure: TlsFailure, example: &[u8], offered: &[http::HttpVersion]) -> Option<&'static str> {
    let text = match failure {
        TlsFailure::Expired => "renew the certificate, check this machine's clock, or use -k",
        TlsFailure::NotYetValid => "check this machine's clock and the certificate's dates, or use -k",
        TlsFailure::WrongName => "use --sni with a name in the certificate, or -k",
        TlsFailure::SelfSigned => "trust the certificate with --cacert FILE, or use -k",
        TlsFailure::UnknownIssuer => {
            "trust the issuer with --cacert FILE, or use -k; does the server send the whole chain? See \
             docs/troubleshooting.md#the-certificate-is-not-accepted"
        }
        TlsFailure::Certificate if ["version 1", "RSA key", "Ed448"].iter().any(|it| contains(example, it)) => {
            NEW_CERTIFICATE
        }
        TlsFailure::Certificate => "use -k to accept the certificate",
        TlsFailure::Alert(40 | 70 | 71) | TlsFailure::Incompatible => NOT_OFFERED,
        TlsFailure::Alert(42 | 116) => "the server may require a client certificate: use --cert and --key",
        TlsFailure::Alert(43..=46 | 48 | 49 | 51) => {
            "the server rejects the client certificate: check --cert and --key"
        }
        TlsFailure::Alert(112) => "the server does not know that name: send another with --sni",
        TlsFailure::Alert(120) | TlsFailure::NoProtocol => match offered {
            [http::HttpVersion::Http2] => {
                "the server does not speak HTTP/2: leave out --http2 and options such as --streams, or write --alpn-list h2,http/1.1"
            }
            [http::HttpVersion::Http11] => {
                "the server does not speak HTTP/1.1: use --http2, or --alpn-list h2,http/1.1"
            }
            _ => return None,
        },
        TlsFailure::PlainText if example.starts_with(b"HTTP/") => "write http://",
        TlsFailure::NotTls if begins_with_http2(example) => match offered {
            [http::HttpVersion::Http2] => "the server speaks HTTP/2 without TLS: write http://",
            _ => "the server speaks HTTP/2 without TLS: write http://, and add --http2",
        },
        TlsFailure::PlainText | TlsFailure::NotTls => "does the port speak HTTPS?",
        TlsFailure::Closed => SERVER_LOG,
        TlsFailure::Alert(_) | TlsFailure::Misbehaved => return None,
    };
    Some(text)
}

/// Describes a TLS failure, with the example if it is not empty, and with the remedy if one is known.
pub fn tls_failure_sentence(failure: TlsFailure, example: &[u8], offered: &[http::HttpVersion]) -> String {
    let mut text = describe_tls_failure(failure);
    if !example.is_empty() {
        text += &format!(": {}", escape(example));
    }
    tls_remedy(failure, example, offered).map_or(text.clone(), |remedy| format!("{text}; {remedy}"))
}

/// True if these bytes start an HTTP/2 connection from the server's side: with its SETTINGS (RFC 9113, 3.4), or with
/// the GOAWAY by which some servers answer an invalid preface.
pub(super) fn begins_with_http2(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, _, 4, 0, 0, 0, 0, 0, ..] | [0, 0, 8..=u8::MAX, 7, _, 0, 0, 0, 0, ..])
}

/// The sentence on a first handshake to which the server did not respond.
pub fn unanswered_handshake_message(peer: &str) -> String {
    format!("TLS handshake with {peer} failed: no response; {IS_IT_TLS}")
}

/// The question to ask after a handshake without a response.
pub const IS_IT_TLS: &str = "does that port speak TLS?";

/// The hint for a connection closed by the server.
pub const SERVER_LOG: &str = "the server's log may say why";

/// Offers of onrush, for servers that require something else.
const NOT_OFFERED: &str = "onrush offers TLS 1.2 and 1.3, but no suites with CBC, RSA key exchange or DHE, and no keys of \
                           Ed448: see --tls-min, --tls-ciphers and --tls-groups";

/// How to make a certificate that can be verified.
const NEW_CERTIFICATE: &str = "use -k to accept the certificate; this makes another: openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem \
                               -out cert.pem -subj /CN=HOST -addext subjectAltName=DNS:HOST";

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// The name of an alert in its standard.
fn alert_name(number: u8) -> &'static str {
    match number {
        10 => "unexpected message",
        20 => "bad record MAC",
        22 => "record overflow",
        40 => "handshake failure",
        42 => "bad certificate",
        43 => "unsupported certificate",
        44 => "certificate revoked",
        45 => "certificate expired",
        46 => "certificate unknown",
        47 => "illegal parameter",
        48 => "unknown CA",
        49 => "access denied",
        50 => "decode error",
        51 => "decrypt error",
        70 => "protocol version",
        71 => "insufficient security",
        80 => "internal error",
        86 => "inappropriate fallback",
        90 => "user canceled",
        100 => "no renegotiation",
        109 => "missing extension",
        110 => "unsupported extension",
        112 => "unrecognized name",
        115 => "unknown PSK identity",
        116 => "certificate required",
        120 => "no application protocol",
        _ => "of an unknown kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_sentences_say_what_and_remedy() {
        let sentence =
            |failure, example: &str| tls_failure_sentence(failure, example.as_bytes(), &[http::HttpVersion::Http11]);
        assert_eq!(
            sentence(TlsFailure::Expired, "it was valid until 2020-01-01 00:00:00 UTC"),
            "the server's certificate has expired: it was valid until 2020-01-01 00:00:00 UTC; renew the certificate, check this \
             machine's clock, or use -k"
        );
        assert_eq!(
            sentence(TlsFailure::Alert(116), ""),
            "TLS alert certificate required (116) from the server; the server may require a client certificate: use --cert and \
             --key"
        );
        assert_eq!(
            sentence(TlsFailure::NotYetValid, ""),
            "the server's certificate is not valid yet; check this machine's clock and the certificate's dates, or use \
             -k"
        );
        assert_eq!(sentence(TlsFailure::Misbehaved, ""), "the server violates the TLS protocol");
    }

    #[test]
    fn servers_may_choose_another_tls_version() {
        for (offered, expected) in [
            (
                &[http::HttpVersion::Http2][..],
                Some(
                    "the server does not speak HTTP/2: leave out --http2 and options such as --streams, or write --alpn-list h2,http/1.1",
                ),
            ),
            (
                &[http::HttpVersion::Http11],
                Some("the server does not speak HTTP/1.1: use --http2, or --alpn-list h2,http/1.1"),
            ),
            (&http::HttpVersion::ALL, None),
            (&[], None),
        ] {
            for failure in [TlsFailure::Alert(120), TlsFailure::NoProtocol] {
                assert_eq!(tls_remedy(failure, b"", offered), expected, "{offered:?}");
            }
        }
    }

    #[test]
    fn non_tls_replies_say_what_to_do() {
        let (http11, http2) = (&[http::HttpVersion::Http11][..], &[http::HttpVersion::Http2][..]);
        let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
        for (failure, example, offered, expected) in [
            (TlsFailure::PlainText, &b"HTTP/1.1 400 Bad Request"[..], http11, "write http://"),
            (TlsFailure::PlainText, b"SSH-2.0-OpenSSH_9.2", http2, "does the port speak HTTPS?"),
            (TlsFailure::NotTls, b"\0\0", http2, "does the port speak HTTPS?"),
            (TlsFailure::NotTls, settings, http2, "the server speaks HTTP/2 without TLS: write http://"),
            (
                TlsFailure::NotTls,
                settings,
                http11,
                "the server speaks HTTP/2 without TLS: write http://, and add --http2",
            ),
        ] {
            assert_eq!(tls_remedy(failure, example, offered), Some(expected), "{example:?}");
        }
    }
}
