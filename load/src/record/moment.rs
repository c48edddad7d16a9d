//! A point in time as documents write it: RFC 3339, UTC, to the microsecond.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::format_description::well_known::iso8601::{Config, EncodedConfig, TimePrecision};
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{OffsetDateTime, UtcOffset};

/// Six decimals, always.
const FORMAT: EncodedConfig =
    Config::DEFAULT.set_time_precision(TimePrecision::Second { decimal_digits: NonZeroU8::new(6) }).encode();

/// The first moment after the year 9999, which the format cannot express.
const END_US: u64 = 253_402_300_800_000_000;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(pub u64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_1970_ns = i128::from(self.0.min(END_US - 1)) * 1_000;
        let moment = OffsetDateTime::from_unix_timestamp_nanos(since_1970_ns).map_err(|_| fmt::Error)?;
        f.write_str(&moment.format(&Iso8601::<FORMAT>).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a time such as 2026-01-31T12:00:00.000000Z";
        let moment = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| WRONG)?;
        let us = u64::try_from(moment.unix_timestamp_nanos() / 1_000).map_err(|_| WRONG)?;
        (moment.offset() == UtcOffset::UTC && us < END_US).then_some(Self(us)).ok_or(WRONG)
    }
}

impl TryFrom<String> for Moment {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_again() {
        // The seconds are those of `date -u -d … +%s`.
        for (seconds, us, text) in [
            (0, 0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.000001Z"),
            (1_677_628_799, 999_999, "2023-02-28T23:59:59.999999Z"),
            (1_798_761_599, 0, "2026-12-31T23:59:59.000000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000000Z"),
        ] {
            let moment = Moment(seconds * 1_000_000 + us);
            assert_eq!(moment.to_string(), text);
            assert_eq!(text.parse(), Ok(moment));
        }
        assert_eq!("1970-01-01T00:00:01Z".parse(), Ok(Moment(1_000_000)));
        assert_eq!("1970-01-01T00:00:01.5Z".parse(), Ok(Moment(1_500_000)));
        assert_eq!(Moment(u64::MAX).to_string(), "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "yesterday",
            "2023-02-29T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T00:00:00",
            "1969-12-31T00:00:00Z",
            "2023-01-01T00:00:00+01:00",
        ] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }
}
