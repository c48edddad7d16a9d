//! A sample of sockets as lines of JSON: one for each socket, and one that says how many were left out.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::super::result::Moment;
use crate::reason::reason;
use crate::run::sockets::{Reading, Sample};

/// The lines, each with its end; none if there was no socket.
pub fn lines(sample: &Sample) -> String {
    let time = Moment(u64::try_from(sample.time.as_micros()).unwrap_or(u64::MAX)).to_string();
    let at_s = (sample.at_s * 1e6).round() / 1e6;
    let mut text = Vec::new();
    let mut put = |rest: Rest| {
        let line = Line { at_s, time: &time, rest };
        serde_json::to_writer(&mut text, &line).expect("numbers and names can always be written");
        text.push(b'\n');
    };
    sample.readings.iter().for_each(|reading| put(Rest::Reading(reading)));
    if sample.left_out > 0 {
        put(Rest::LeftOut(sample.left_out));
    }
    if let Some(errno) = sample.failure {
        put(Rest::Failure(&reason(&errno.into())));
    }
    String::from_utf8(text).expect("JSON is text")
}

struct Line<'a> {
    at_s: f64,
    time: &'a str,
    rest: Rest<'a>,
}

/// What a line says beside the moment.
enum Rest<'a> {
    Reading(&'a Reading),
    LeftOut(u64),
    Failure(&'a str),
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("at_s", &self.at_s)?;
        map.serialize_entry("time", self.time)?;
        match &self.rest {
            Rest::Reading(reading) => reading.each(|key, value| map.serialize_entry(key, &value))?,
            Rest::LeftOut(sockets) => map.serialize_entry("left_out", sockets)?,
            Rest::Failure(reason) => map.serialize_entry("error", reason)?,
        }
        map.end()
    }
}
