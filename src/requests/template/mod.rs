//! Requests with placeholders, such as `{{seq}}`, that are filled in each time one is sent (`--templates`).
//!
//! `tokens` finds the placeholders of a text, `placeholder` reads one, `url` keeps those of a URL from its grammar.
//! `table` reads a file of values, `values` prepares the values of placeholders as the bytes that are sent, by
//! `filter`, and `template` is a request to fill in. Every fault is found before the run.

mod filter;
mod placeholder;
mod table;
#[expect(clippy::module_inception, reason = "one noun per file, and this is the main one")]
mod template;
mod tokens;
mod url;
mod values;

pub use filter::percent_encoded;
pub use placeholder::{Placeholder, looks_like_one, placeholders};
pub use template::{Template, TemplateBuffers};
pub use tokens::{TemplateToken, Tokens, escaped};
pub use url::Masked;
pub use values::Values;
