//! Requests that differ: the lists of `--urls`.
//!
//! `line` reads one line of a list, `entries` a whole one, `order` says which entry the k-th request of a run is, and
//! `source` hands the requests to a worker.

mod entries;
mod line;
mod order;
mod source;

pub use entries::{BadLine, Entries};
pub use line::{field, is_name, is_token, raw_field};
pub use order::{Numbers, Picker};
pub use source::Listed;
