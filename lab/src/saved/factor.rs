//! Names of factors, which become table columns beside the columns of every run.

use onrush_plan::column::{FIELDS, is_column};

/// Name of the factor made from a label. `--label` rejects the names of columns, but documents may have other sources:
/// such a label is renamed.
pub fn factor_of_label(key: &str) -> String {
    if is_column(key) { format!("label.{key}") } else { key.to_owned() }
}

/// Name of the factor for a name in an experiment or a file name. A factor with the name of a field replaces that
/// field. A factor with the name of a figure is renamed.
pub fn factor_of_experiment(name: &str) -> String {
    if FIELDS.contains(&name) { name.to_owned() } else { factor_of_label(name) }
}
