//! Handling of a request before and after its body.

use super::response::{Response, ResponseForm};

/// How to respond to a request: what to send before its body, and what after.
#[derive(Debug)]
pub(super) struct Reply {
    /// A response to send before the body is received, if any.
    pub early: Option<Response>,
    /// Action after the body.
    pub then: AfterBody,
    /// True if the request is counted in `/stats`.
    pub counts: bool,
}

/// Action after the request body.
#[derive(Debug)]
pub(super) enum AfterBody {
    /// Sends this response.
    Response(Box<Response>),
    /// Echoes the request, of which these bytes have been received.
    Echo(Vec<u8>, ResponseForm),
    /// Sends the length of the body as text.
    Length(ResponseForm),
}

impl AfterBody {
    /// The response to send after the body, which had `body_bytes` bytes of content.
    pub(super) fn into_response(self, body_bytes: u64) -> Box<Response> {
        match self {
            Self::Response(response) => response,
            Self::Echo(request, manner) => Box::new(Response::text_response(200, request, manner)),
            Self::Length(manner) => Box::new(Response::text_response(200, body_bytes.to_string().into_bytes(), manner)),
        }
    }
}
