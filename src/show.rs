//! `onrush show`: prints saved results.

use std::path::PathBuf;

use crate::files;
use crate::record;
use crate::report::form::{self, Form, Printed};

/// What to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Show {
    /// The files, at least one.
    pub inputs: Vec<PathBuf>,
    /// The form.
    pub form: Form,
    /// Whether percentiles are shown even if the report had none.
    pub percentiles: bool,
}

/// Reads and prints each file.
pub fn run(show: &Show) -> impl Iterator<Item = anyhow::Result<Printed>> {
    show.inputs.iter().map(|path| {
        let document = files::read(path)?;
        let printed = form::print(&document, show.form, show.percentiles);
        printed.map_err(|corrupt| record::damaged(path, corrupt))
    })
}
