//! Descriptions of a proxy's failures, and their remedies.

use onrush_stats::ProxyFailure;

/// Describes a failure to open a tunnel.
pub fn describe_proxy_failure(failure: ProxyFailure) -> String {
    match failure {
        ProxyFailure::Status(407) => "the proxy requires a user and a password (status 407)".to_owned(),
        ProxyFailure::Status(status @ (403 | 405)) => {
            format!("the proxy does not allow a tunnel to the target (status {status})")
        }
        ProxyFailure::Status(status @ (500 | 502..=504)) => {
            format!("the proxy could not reach the target (status {status})")
        }
        ProxyFailure::Status(status) => format!("the proxy responded to CONNECT with status {status}"),
        ProxyFailure::Answer(error) => {
            format!("the proxy's response to CONNECT cannot be read: {error}")
        }
        ProxyFailure::Early => "the proxy responded before it received CONNECT".to_owned(),
        ProxyFailure::Closed => "the proxy closed the connection after CONNECT".to_owned(),
        ProxyFailure::Silent => "the proxy did not respond to CONNECT".to_owned(),
    }
}

/// The remedy for a failure to open a tunnel.
pub fn proxy_remedy(failure: ProxyFailure) -> &'static str {
    match failure {
        ProxyFailure::Status(407) => "put both in the proxy URL: --http-proxy http://user:password@host:port",
        ProxyFailure::Status(403 | 405) => "check the proxy's settings: which ports and clients may use CONNECT",
        ProxyFailure::Status(500 | 502..=504) => {
            "the proxy must be able to reach the URL's host; the proxy's log may say why"
        }
        ProxyFailure::Answer(onrush_proto::Error::SpeaksTls) => PLAIN_PORT,
        ProxyFailure::Answer(_) | ProxyFailure::Early => "is it the port of an HTTP proxy?",
        ProxyFailure::Status(_) | ProxyFailure::Closed | ProxyFailure::Silent => "the proxy's log may say why",
    }
}

/// The remedy for a proxy that speaks TLS itself.
pub const PLAIN_PORT: &str = "use the proxy's plain-text port";

/// Describes a failure to open a tunnel, with its remedy.
pub fn proxy_failure_sentence(failure: ProxyFailure) -> String {
    format!("{}; {}", describe_proxy_failure(failure), proxy_remedy(failure))
}
