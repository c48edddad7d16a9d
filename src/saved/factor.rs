//! The names of factors, which are columns of tables beside the ones of every run.

use onrush_plan::column::{FIELDS, is_column};

/// The factor whose level a label gives. `--label` refuses the names of columns, but documents may have other sources.
pub fn factor_of_label(key: &str) -> String {
    if is_column(key) { format!("label.{key}") } else { key.to_owned() }
}

/// The factor of this name in an experiment, or in the name of a file. A factor with a field's name replaces the field;
/// one with a figure's name is renamed.
pub fn factor_of_experiment(name: &str) -> String {
    if FIELDS.contains(&name) { name.to_owned() } else { factor_of_label(name) }
}
