//! The bins of a distribution, which are text in a document. They are encoded only when they are written, and decoded
//! only when they are looked at: a run that prints its report does neither.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_stats::{Corrupt, Distribution, hdr};
use serde::{Deserialize, Serialize};

/// The bins of a distribution. As text: an HdrHistogram, V2 compressed, base64.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema), schemars(inline))]
pub enum Hdr {
    /// As measured: the smallest value of each bin, ascending, and the number of values in it.
    Measured(Box<[(u64, u64)]>),
    /// As read from a document.
    Read(String),
}

impl Hdr {
    /// The bins of this distribution.
    pub fn of(measured: &Distribution<u64>) -> Self {
        Self::Measured(measured.binned().bins().map(|(values, count)| (*values.start(), count)).collect())
    }

    /// The distribution that has these bins, and no figures of its own.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn values(&self) -> Result<Distribution<u64>, Corrupt> {
        match self {
            Self::Measured(bins) => Distribution::from_bins(bins.iter().copied()),
            Self::Read(text) => Distribution::decode(&STANDARD.decode(text).map_err(|_| Corrupt::Bytes)?),
        }
    }
}

impl From<String> for Hdr {
    fn from(text: String) -> Self {
        Self::Read(text)
    }
}

impl From<Hdr> for String {
    fn from(written: Hdr) -> Self {
        match written {
            Hdr::Measured(bins) => STANDARD.encode(hdr::encode(bins)),
            Hdr::Read(text) => text,
        }
    }
}

impl PartialEq for Hdr {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Measured(bins), Self::Measured(others)) => bins == others,
            _ => String::from(self.clone()) == String::from(other.clone()),
        }
    }
}

impl Eq for Hdr {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_that_were_written_are_read_as_the_same() {
        let mut measured = Distribution::new();
        [0, 1, 2_047, 2_048, 123_456_789].into_iter().for_each(|value| measured.record_many(value, 1 + value % 3));
        for measured in [measured, Distribution::new()] {
            let written = Hdr::of(&measured);
            let text = serde_json::to_string(&written).unwrap();
            let read: Hdr = serde_json::from_str(&text).unwrap();
            assert!(text.starts_with('"') && matches!(read, Hdr::Read(_)), "{text}");
            for hdr in [&written, &read] {
                assert!(hdr.values().unwrap().values().eq(measured.values()), "{hdr:?}");
                assert_eq!(serde_json::to_string(hdr).unwrap(), text);
            }
            assert!(read == written && read != Hdr::Read("AAAA".to_owned()));
        }
    }
}
