//! Requests that differ: the lists of `--urls`, and the placeholders of `--templates`.
//!
//! `line` reads one line of a list, `entries` a whole list. `order` maps the k-th request of a run to an entry.
//! `template` fills in placeholders, and `source` provides a worker's requests.

mod entries;
mod line;
mod order;
mod source;
mod template;

pub use entries::{BadLine, Entries};
pub use line::{QUOTES, field, is_name, is_token, raw_field};
use order::mix_seed;
pub use order::{Picker, RequestNumbering};
pub use source::Listed;
pub use template::{
    Masked, Placeholder, Template, TemplateToken, Tokens, Values, escaped, first_likely_placeholder, percent_encoded,
    placeholders,
};
