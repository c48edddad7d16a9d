//! Parses `--sample-responses`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use onrush_plan::SampleOptions;

use super::refusal::{PlanRefusal, is_url, url_as_value_hint};
use super::values::Value;

/// Maximum number of samples of each kind that may be requested.
const EACH_MAX: u32 = 100;

/// Parses the option's two words, a number and a folder, which `value` joins with a blank.
pub(super) fn parse_samples(value: Value) -> Result<SampleOptions, PlanRefusal> {
    let bytes = value.text.as_bytes();
    let (number, folder) = bytes.split_at(bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len()));
    let folder = folder.get(1..).unwrap_or_default();
    if is_url(OsStr::from_bytes(folder)) {
        return Err(PlanRefusal::Misused(url_as_value_hint(&value.flag.described.spelling, OsStr::from_bytes(folder))));
    }
    let each = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    let Some(each) = each.filter(|each| (1..=EACH_MAX).contains(each)) else {
        let reason = format!("N is a number from 1 to {EACH_MAX}, and DIR a folder; write for instance 3 samples");
        return Err(value.wrong(reason));
    };
    match folder {
        [] => Err(value.wrong(format!("there is no folder; write {each} DIR"))),
        folder => Ok(SampleOptions { folder: PathBuf::from(OsStr::from_bytes(folder)), each }),
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Dialect;

    use super::*;
    use crate::cli::flags;

    #[test]
    fn sample_counts_and_folders_are_two_words() {
        let flag = flags::named("sample-responses");
        let read = |value: &str| parse_samples(Value::new(flag, value.as_ref(), Dialect::Native));
        assert_eq!(read("3 my samples").unwrap(), SampleOptions { folder: "my samples".into(), each: 3 });
        let refused = read("3 http://127.0.0.1/").unwrap_err();
        assert!(format!("{refused:?}").contains("took the URL"), "{refused:?}");
        for value in ["0 a", "101 a", "x a", "3 ", "-1 a", "dir 3"] {
            assert!(read(value).is_err(), "{value}");
        }
    }
}
