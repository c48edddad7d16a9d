//! Descriptions of failed checks and failed gRPC calls.

use onrush_plan::Checks;
use onrush_plan::checks::{Check, ExpectedHeader};
use onrush_plan::secrets::{REDACTED, is_secret};
use onrush_proto::GRPC_STATUS_MAX;
use onrush_text::escape_controls;

/// Maximum length, in characters, to which expected values and strings are shortened.
const SHOWN_MAX: usize = 80;

/// Describes why a response failed the check with this number, counted from 0. Values of secret
/// headers are redacted.
pub fn describe_failed_check(checks: &Checks, number: usize) -> String {
    match checks.check_number(number) {
        Some(Check::Header(ExpectedHeader { name, value: None })) => format!("no header {name}"),
        Some(Check::Header(ExpectedHeader { name, value: Some(value) })) => {
            format!("no header {name}: {}", if is_secret(name) { REDACTED.to_owned() } else { shorten(value) })
        }
        Some(Check::Body(text)) => format!("the body does not contain \"{}\"", shorten(text)),
        None => format!("check {} failed", number + 1),
    }
}

/// gRPC's names for its statuses, from 0.
const GRPC_STATUSES: [&str; GRPC_STATUS_MAX as usize + 1] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Describes the status of a failed gRPC call: `grpc-status 14 (UNAVAILABLE)`.
pub fn describe_grpc_status(status: u8) -> String {
    match GRPC_STATUSES.get(usize::from(status)) {
        Some(name) => format!("grpc-status {status} ({name})"),
        None => format!("grpc-status above {GRPC_STATUS_MAX}"),
    }
}

/// The start of a string, with dots if it is longer than [`SHOWN_MAX`].
fn shorten(text: &str) -> String {
    let beginning: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if beginning.len() < text.len() { "…" } else { "" };
    escape_controls(&beginning) + dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_calls_are_named_by_status() {
        let words = [1, 14, 16, 17].map(describe_grpc_status);
        let names = ["grpc-status 1 (CANCELLED)", "grpc-status 14 (UNAVAILABLE)", "grpc-status 16 (UNAUTHENTICATED)"];
        assert_eq!((&words[..3], &*words[3]), (&names.map(str::to_owned)[..], "grpc-status above 16"));
    }

    #[test]
    fn checks_are_named_by_their_expectation() {
        let header =
            |name: &str, value: Option<&str>| ExpectedHeader { name: name.to_owned(), value: value.map(str::to_owned) };
        let headers =
            vec![header("ETag", None), header("Content-Type", Some("text/html")), header("Set-Cookie", Some("id=1"))];
        let checks = Checks { status: None, headers, body: vec!["a\nb".to_owned(), "é".repeat(90)] };
        let words: Vec<String> = (0..6).map(|number| describe_failed_check(&checks, number)).collect();
        let long = format!("the body does not contain \"{}…\"", "é".repeat(80));
        assert_eq!(
            words,
            [
                "no header ETag",
                "no header Content-Type: text/html",
                "no header Set-Cookie: REDACTED",
                "the body does not contain \"a\\u{a}b\"",
                &long,
                "check 6 failed"
            ]
        );
    }
}
