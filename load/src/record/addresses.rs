//! The addresses of a target, where not all of them got load.

use serde::{Deserialize, Serialize};

use crate::failure::errno_words;
use crate::run::Outcome;

/// Which addresses got load, and which did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Addresses {
    /// Those that got it.
    pub used: Vec<String>,
    /// Those that refused connections at the start while another one worked.
    pub left_out: Vec<LeftOut>,
}

/// An address without load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The address, with its port.
    pub address: String,
    /// Why.
    pub cause: String,
}

impl Addresses {
    /// Those of a run; `None` if none was left out.
    pub fn of(outcome: &Outcome) -> Option<Self> {
        let left_out = outcome.dropped.iter();
        let left_out =
            left_out.map(|(address, errno)| LeftOut { address: address.to_string(), cause: errno_words(*errno) });
        let used = outcome.addresses.iter().map(ToString::to_string);
        (!outcome.dropped.is_empty()).then(|| Self { used: used.collect(), left_out: left_out.collect() })
    }
}
