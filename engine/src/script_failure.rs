//! Reasons why a script ends a run.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The reason why a script cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
pub enum ScriptFailure {
    /// A callback failed. The text says what happened and where, in words for the user.
    #[error("{0}")]
    Raised(String),
    /// The script asked the program to exit with this code.
    #[error("the script ended the program")]
    Exit(i32),
}
