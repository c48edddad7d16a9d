//! A sample of sockets as lines of JSON: one for each socket, and one with the number of sockets
//! left out.

use onrush_text::error_reason;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::record::Moment;
use crate::run::sockets::{SocketReading, SocketSample};

/// The lines with their line endings; empty without sockets.
pub fn sample_lines(sample: &SocketSample) -> String {
    let time = Moment(u64::try_from(sample.time.as_micros()).unwrap_or(u64::MAX)).to_string();
    let at_s = (sample.at_s * 1e6).round() / 1e6;
    let mut text = Vec::new();
    let mut put = |rest: LineContent| {
        let line = SampleLine { at_s, time: &time, rest };
        serde_json::to_writer(&mut text, &line).expect("numbers and names can always be written");
        text.push(b'\n');
    };
    sample.readings.iter().for_each(|reading| put(LineContent::Reading(reading)));
    if sample.left_out > 0 {
        put(LineContent::LeftOut(sample.left_out));
    }
    if let Some(errno) = sample.failure {
        put(LineContent::Failure(&error_reason(&errno.into())));
    }
    String::from_utf8(text).expect("JSON is text")
}

struct SampleLine<'a> {
    at_s: f64,
    time: &'a str,
    rest: LineContent<'a>,
}

/// The content of a line, apart from the time.
enum LineContent<'a> {
    Reading(&'a SocketReading),
    LeftOut(u64),
    Failure(&'a str),
}

impl Serialize for SampleLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at_s", &self.at_s)?;
        map.serialize_entry("time", self.time)?;
        match &self.rest {
            LineContent::Reading(reading) => reading.for_each_value(|key, value| map.serialize_entry(key, &value))?,
            LineContent::LeftOut(sockets) => map.serialize_entry("left_out", sockets)?,
            LineContent::Failure(reason) => map.serialize_entry("error", reason)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn incomplete_samples_have_their_own_lines() {
        let sample = |left_out: u64, failure: Option<Errno>| SocketSample {
            at: Instant::now(),
            at_s: -0.4999996,
            time: Duration::from_micros(1_767_225_600_250_000),
            readings: Vec::new(),
            left_out,
            failure,
        };
        assert_eq!(sample_lines(&sample(0, None)), "");
        let moment = r#"{"at_s":-0.5,"time":"2026-01-01T00:00:00.250000Z","#;
        let expected = format!("{moment}\"left_out\":4000}}\n{moment}\"error\":\"Operation not permitted\"}}\n");
        assert_eq!(sample_lines(&sample(4_000, Some(Errno::PERM))), expected);
    }
}
