//! Properties that must hold for any bytes.
//!
//! A target is a plain function that panics if a property does not hold. Seeds are in `corpus/<target>/`.
//! `tests/replay.rs` replays them in every test run, and a fuzzer calls the same functions. The expected output for
//! particular bytes is left to the unit tests.
//!
//! To add a target: write the function, add it to [`TARGETS`], put seeds with descriptive names into its directory, and
//! add a program in `src/bin/` and `Cargo.toml`, which only `make fuzz` builds.

#![forbid(unsafe_code)]

mod conversation;
mod http1;
mod http2;
mod request;
mod units;
mod url;

pub use http1::{chunked, http1_response};
pub use http2::http2_response;
pub use request::request;
pub use units::units;
pub use url::url;

/// Panics if a property does not hold for the bytes.
pub type FuzzTarget = fn(&[u8]);

/// Every target, with the name of its corpus.
pub const TARGETS: &[(&str, FuzzTarget)] = &[
    ("chunked", chunked),
    ("http1_response", http1_response),
    ("http2_response", http2_response),
    ("request", request),
    ("units", units),
    ("url", url),
];

/// The dialects of other tools, all of which parse values in the same way.
const COMPAT: [onrush_plan::Dialect; 3] =
    [onrush_plan::Dialect::Wrk, onrush_plan::Dialect::WrkCmm, onrush_plan::Dialect::Wrk2];
