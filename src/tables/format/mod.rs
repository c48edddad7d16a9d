//! Formats tables for people and programs.

mod csv;
mod json;
mod markdown;
mod text;

pub use csv::csv;
pub use json::json;
pub use markdown::markdown;
pub use text::text;

use super::Form;
use super::grid::Grid;

/// The function that writes a table in this form.
pub fn of(form: Form) -> fn(&Grid) -> String {
    match form {
        Form::Markdown => markdown,
        Form::Text => text,
        Form::Csv => csv,
        Form::Json => json,
    }
}
