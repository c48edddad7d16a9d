//! The value of a field of a socket reading.

use serde::{Serialize, Serializer};

/// The value of a field of a socket reading, as files show it.
#[derive(Clone, Debug, PartialEq)]
pub enum SocketValue<'a> {
    /// A whole number.
    Whole(u64),
    /// Any other number.
    Decimal(f64),
    /// True or false.
    Flag(bool),
    /// A name.
    Text(&'a str),
    /// An address and port, or an identifying number.
    Id(String),
    /// Several named values.
    Group(Vec<(&'static str, Self)>),
}

impl Serialize for SocketValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(number) => serializer.serialize_u64(*number),
            Self::Decimal(number) => serializer.serialize_f64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Id(text) => serializer.serialize_str(text),
            Self::Group(group) => serializer.collect_map(group.iter().map(|(key, value)| (key, value))),
        }
    }
}
