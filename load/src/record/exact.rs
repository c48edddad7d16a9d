//! Whole numbers of any size. As numbers of JSON, most readers would round them beyond 2^53.

use serde::{Deserialize, Serialize};

/// A whole number, written as text in decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Exact(pub u128);

impl Exact {
    /// It, unless it follows from rounded figures, as `follows` does.
    pub(super) fn unless(number: u128, follows: u128) -> Option<Self> {
        (number != follows).then_some(Self(number))
    }
}

impl TryFrom<String> for Exact {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self).map_err(|_| "not a whole number in decimal digits")
    }
}

impl From<Exact> for String {
    fn from(number: Exact) -> Self {
        number.0.to_string()
    }
}
