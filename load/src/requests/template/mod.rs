//! Requests with placeholders, such as `{{seq}}`, that are filled in for each request (`--templates`).
//!
//! `tokens` finds the placeholders of a template. `placeholder` parses one. `url` hides placeholders from the URL
//! grammar. `table` reads a file of values. `values` prepares them as the bytes to send, encoded by `filter`.
//! `template` is a request to fill in. Every fault is found before the run.

mod filter;
mod placeholder;
mod table;
#[expect(clippy::module_inception, reason = "one noun per file, and this is the main one")]
mod template;
mod tokens;
mod url;
mod values;

pub use filter::percent_encoded;
pub use placeholder::{Placeholder, first_likely_placeholder, placeholders};
pub use template::{Template, TemplateBuffers};
pub use tokens::{TemplateToken, Tokens, escaped};
pub use url::Masked;
pub use values::Values;
