//! A worker's measurements up to the end of the run.

use onrush_proto::http2::Http2Counts;
use onrush_stats::{Gap, Interval};

/// A worker's measurements up to the end of the run.
pub(super) struct Measured {
    pub interval: Box<Interval>,
    pub elapsed_ns: u64,
    pub silences: Vec<Gap>,
    pub awaited: Vec<Gap>,
    pub ahead: Vec<Gap>,
    pub stalls: Vec<Gap>,
    pub in_script: Vec<Gap>,
    pub http2: Option<Http2Counts>,
}
