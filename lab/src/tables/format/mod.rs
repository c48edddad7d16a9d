//! Formats tables for people and programs.

mod csv;
mod json;
mod markdown;
mod text;

pub use csv::csv;
pub use json::json;
pub use markdown::markdown;
pub use text::text;

use super::TableForm;
use super::grid::Grid;

/// Returns the function that formats a table in this form.
pub fn for_form(form: TableForm) -> fn(&Grid) -> String {
    match form {
        TableForm::Markdown => markdown,
        TableForm::Text => text,
        TableForm::Csv => csv,
        TableForm::Json => json,
    }
}
