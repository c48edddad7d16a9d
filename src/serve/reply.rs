//! Handling of a request, before and after its body.

use super::response::{Response, ResponseForm};

/// Handling of a request.
#[derive(Debug)]
pub(super) struct Reply {
    /// Sent before the body is received.
    pub early: Option<Response>,
    /// The step after the body was received.
    pub then: AfterBody,
    /// True if the request counts in `/stats`.
    pub counts: bool,
}

/// A step after the body was received.
#[derive(Debug)]
pub(super) enum AfterBody {
    /// Sends this response.
    Response(Box<Response>),
    /// The request is echoed: its bytes so far.
    Echo(Vec<u8>, ResponseForm),
    /// The response is the length of the body.
    Length(ResponseForm),
}

impl AfterBody {
    /// The response, once the body was received.
    pub(super) fn response(self, body_bytes: u64) -> Box<Response> {
        match self {
            Self::Response(response) => response,
            Self::Echo(request, manner) => Box::new(Response::text(200, request, manner)),
            Self::Length(manner) => Box::new(Response::text(200, body_bytes.to_string().into_bytes(), manner)),
        }
    }
}
