//! Converts heads between the HTTP/1.1 form of the paths and the library's form.

use std::fmt::Write;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request;
use http::{Response, StatusCode};

use super::super::response::ResponseHead;

/// Converts a final head; `None` if HTTP/2 cannot express its status or fields.
pub(super) fn to_http2_head(head: &ResponseHead) -> Option<Response<()>> {
    let mut response = head_with_fields(head.status, &head.fields)?;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Some(response)
}

/// A head with these fields (whole HTTP/1.1 lines), without `Transfer-Encoding`; `None` if a field or the status is
/// invalid.
pub(super) fn head_with_fields(status: u16, fields: &str) -> Option<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    for line in fields.split_terminator("\r\n") {
        let (name, value) = line.split_once(": ")?;
        let (name, value) = parse_field(name, value)?;
        if name != TRANSFER_ENCODING {
            response.headers_mut().append(name, value);
        }
    }
    Some(response)
}

/// A trailer section with this field.
pub(super) fn to_trailers((name, value): (&str, &str)) -> HeaderMap {
    parse_field(name, value).into_iter().collect()
}

fn parse_field(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
}

/// The path and query of a request; for a request without a path, its authority.
pub(super) fn request_target(request: &request::Parts) -> &str {
    match (request.uri.path_and_query(), request.uri.authority()) {
        (Some(path_and_query), _) => path_and_query.as_str(),
        (None, Some(authority)) => authority.as_str(),
        (None, None) => "",
    }
}

/// A request head as text, as `/echo` returns it: in HTTP/1.1 form, with the received names and values.
pub(super) fn to_echo_text(request: &request::Parts) -> Vec<u8> {
    let mut text = String::new();
    // Writing to memory cannot fail.
    let _ = write!(text, "{} {} HTTP/2\r\n", request.method, request_target(request));
    if let Some(authority) = request.uri.authority() {
        let _ = write!(text, "host: {authority}\r\n");
    }
    let mut bytes = text.into_bytes();
    for (name, value) in &request.headers {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}
