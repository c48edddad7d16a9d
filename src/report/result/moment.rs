//! A moment of the calendar as documents write it: RFC 3339, UTC, to the microsecond.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const DAY_US: u64 = 24 * 3600 * 1_000_000;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(pub u64);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, us) = (self.0 / DAY_US, self.0 % DAY_US);
        let (year, month, day) = date(days);
        let (seconds, us) = (us / 1_000_000, us % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
    }
}

impl FromStr for Moment {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "not a time such as 2026-01-31T12:00:00.000000Z";
        let number = |range| text.get(range).and_then(|digits: &str| digits.parse::<u64>().ok()).ok_or(WRONG);
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        if !(1970..=9999).contains(&year) || hour > 23 || minute > 59 || second > 60 {
            return Err(WRONG);
        }
        let days =
            (365 * (year - 1970)..366 * (year - 1969)).find(|&days| date(days) == (year, month, day)).ok_or(WRONG)?;
        let fraction = text.get(19..).and_then(|rest| rest.strip_suffix('Z')).ok_or(WRONG)?;
        let us = match fraction.strip_prefix('.') {
            None if fraction.is_empty() => 0,
            Some(digits) => format!("{digits:0<6}").get(..6).and_then(|digits| digits.parse().ok()).ok_or(WRONG)?,
            None => return Err(WRONG),
        };
        Ok(Self(days * DAY_US + (hour * 3600 + minute * 60 + second) * 1_000_000 + us))
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

/// Year, month and day of a day counted from 1970-01-01, by the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted in years that begin in March, the day that comes and goes is the last of the year.
    const ERA_DAYS: u64 = 146_097;
    let days = days + 719_468;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
