//! A proxy's failure in plain words, and what can be done about it.

use crate::stats::ProxyFailure;

/// What happened.
pub fn words(failure: ProxyFailure) -> String {
    match failure {
        ProxyFailure::Status(407) => "the proxy wants a user and a password (status 407)".to_owned(),
        ProxyFailure::Status(status @ (403 | 405)) => {
            format!("the proxy does not allow a tunnel to the target (status {status})")
        }
        ProxyFailure::Status(status @ (500 | 502..=504)) => {
            format!("the proxy did not reach the target (status {status})")
        }
        ProxyFailure::Status(status) => format!("the proxy answered the request for a tunnel with status {status}"),
        ProxyFailure::Answer(error) => {
            format!("the proxy's answer to the request for a tunnel cannot be read: {error}")
        }
        ProxyFailure::Early => "the proxy answered before it had been asked for a tunnel".to_owned(),
        ProxyFailure::Closed => "the proxy closed the connection when it was asked for a tunnel".to_owned(),
        ProxyFailure::Unanswered => "the proxy did not answer the request for a tunnel".to_owned(),
    }
}

/// What to do about it.
pub fn way_out(failure: ProxyFailure) -> &'static str {
    match failure {
        ProxyFailure::Status(407) => "write them in its URL: --http-proxy http://user:password@host:port",
        ProxyFailure::Status(403 | 405) => "its settings say to which ports it builds tunnels (CONNECT), and for whom",
        ProxyFailure::Status(500 | 502..=504) => "it has to know the host of the URL; its log may say why",
        ProxyFailure::Answer(onrush_proto::Error::SpeaksTls) => "use its port for plain text",
        ProxyFailure::Answer(_) | ProxyFailure::Early => "is it the port of a proxy that speaks HTTP?",
        ProxyFailure::Status(_) | ProxyFailure::Closed | ProxyFailure::Unanswered => "its log may say why",
    }
}

/// What happened, and what to do about it.
pub fn sentence(failure: ProxyFailure) -> String {
    format!("{}: {}", words(failure), way_out(failure))
}
