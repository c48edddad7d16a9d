//! The content of every request, except for its body.

use std::sync::Arc;

use onrush_proto::RequestParts;
use serde::{Deserialize, Serialize};

/// The content of every request, except for its body, which may be large.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The request target: path and query, or the whole URL for a proxy.
    pub target: String,
    /// Names and values in the order sent, including `Host`.
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// The request with a body, in the form that the protocols encode.
    pub fn with_body(&self, body: Arc<[u8]>) -> RequestParts {
        let Self { method, target, headers } = self.clone();
        RequestParts { method, target, headers, body }
    }
}
