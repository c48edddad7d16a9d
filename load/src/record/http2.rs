//! What the connections of HTTP/2 have seen, as a document has it.

use std::collections::BTreeMap;

use onrush_plan::Http;
use onrush_plan::http::Http2Settings;
use onrush_proto::Code;
use onrush_proto::http2::{Codes, GoawayReason, Http2Counts, smaller_stream_limit};
use onrush_stats::Activity;
use onrush_text::escape;
use serde::{Deserialize, Serialize};

use super::counts::add_counts;

/// Stands for all codes that have no name.
pub const OTHER: &str = "other";

/// How HTTP/2 was asked for. With https, the protocols offered are in `tls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct AskedHttp2 {
    /// The most requests in flight on a connection (`--streams`); left out: one, or one batch of the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// How many bytes of a response the server may send ahead, if that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// The same for all responses of a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_window: Option<u32>,
    /// The largest payload of a frame, in bytes, if that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frame: Option<u32>,
    /// The size of the server's table of header fields, in bytes, if that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
}

impl AskedHttp2 {
    /// What a plan asks for; `None`: HTTP/1.1.
    pub fn of(http: &Http) -> Option<Self> {
        let Http { streams, settings: Http2Settings { window, connection_window, frame_max, table }, .. } = *http;
        http.may_be_http2().then_some(Self { streams, window, connection_window, max_frame: frame_max, table })
    }
}

/// The connections of HTTP/2. Frames and ended connections are counted by their error code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Http2 {
    /// Connections whose server sent its SETTINGS, warm-up included.
    pub connections: u64,
    /// Connections that servers ended with GOAWAY, each once, by the code of its last GOAWAY; left out if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub connections_ended: BTreeMap<String, u64>,
    /// The fewest streams that a server allowed on a connection since measuring began, 0 only if none allowed any; left out if all
    /// allowed any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams_allowed: Option<u32>,
    /// Whether servers also allowed more than these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streams_allowed_varied: bool,
    /// The most requests that were in flight on one connection at the same time, warm-up included.
    pub streams_peak: u32,
    /// GOAWAY frames from servers, of which a connection may get several: they end it in the regular way if the code is
    /// `NO_ERROR`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goaway_received: BTreeMap<String, u64>,
    /// The texts of these frames by code, and how often they came: the first 100 bytes, escaped. Left out: what comes after 16
    /// different ones, and frames that say nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goaway_reasons: BTreeMap<String, BTreeMap<String, u64>>,
    /// GOAWAY frames to servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub goaway_sent: BTreeMap<String, u64>,
    /// RST_STREAM frames from servers, on streams that were open.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reset_received: BTreeMap<String, u64>,
    /// RST_STREAM frames to servers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reset_sent: BTreeMap<String, u64>,
    /// Requests that a server returned without processing them; they were sent again.
    pub returned: u64,
    /// The bytes of DATA from servers, with padding: what windows are for. A frame counts when it begins.
    pub data_bytes_received: u64,
    /// The bytes of the header fields of responses, as they came over the wire.
    pub header_bytes_received: u64,
    /// The bytes of their names and values.
    pub header_bytes_decoded: u64,
    /// For how long connections had as many requests in flight as their server allows and not as many as were asked for,
    /// in total, in whole microseconds.
    pub streams_blocked_us: u64,
    /// For how long connections had bodies to send and no window for any of them, in total, in whole microseconds.
    pub window_blocked_us: u64,
    /// How often threads waited for several responses at once.
    #[serde(default)]
    pub lingers: u64,
    /// The longest time that such a wait could take, in whole microseconds; 0 if there was none.
    #[serde(default)]
    pub linger_max_us: u64,
}

impl Http2 {
    /// That of a run; `returned`: the requests that came back.
    pub fn of(seen: &Http2Counts, returned: u64, activity: &Activity) -> Self {
        Self {
            connections: seen.connections,
            connections_ended: by_code(&seen.connections_ended),
            streams_allowed: seen.streams_allowed_min.filter(|allowed| *allowed != u32::MAX),
            streams_allowed_varied: seen.streams_allowed_min != seen.streams_allowed_max,
            streams_peak: seen.streams_peak,
            goaway_received: by_code(&seen.goaway_received),
            goaway_reasons: reasons(seen),
            goaway_sent: by_code(&seen.goaway_sent),
            reset_received: by_code(&seen.reset_received),
            reset_sent: by_code(&seen.reset_sent),
            returned,
            data_bytes_received: seen.data_bytes_received,
            header_bytes_received: seen.header_bytes_received,
            header_bytes_decoded: seen.header_bytes_decoded,
            streams_blocked_us: seen.streams_blocked_ns / 1_000,
            window_blocked_us: seen.window_blocked_ns / 1_000,
            lingers: activity.lingers,
            linger_max_us: activity.linger_max_ns / 1_000,
        }
    }

    /// Adds that of another run.
    pub(super) fn add(&mut self, other: &Self) {
        // Nothing was allowed where all connections spoke HTTP/1.1.
        let allowed = |http2: &Self| (http2.connections > 0).then(|| http2.streams_allowed.unwrap_or(u32::MAX));
        let (ours, theirs) = (allowed(self), allowed(other));
        // None at all are allowed only for a moment.
        let tells = |allowed: Option<u32>| allowed.is_some_and(|allowed| allowed > 0);
        let differ = tells(ours) && tells(theirs) && ours != theirs;
        self.streams_allowed_varied |= other.streams_allowed_varied || differ;
        self.streams_allowed = smaller_stream_limit(ours, theirs).filter(|allowed| *allowed != u32::MAX);
        self.connections += other.connections;
        add_counts(&mut self.connections_ended, &other.connections_ended);
        self.streams_peak = self.streams_peak.max(other.streams_peak);
        add_counts(&mut self.goaway_received, &other.goaway_received);
        for (code, reasons) in &other.goaway_reasons {
            add_counts(self.goaway_reasons.entry(code.clone()).or_default(), reasons);
        }
        add_counts(&mut self.goaway_sent, &other.goaway_sent);
        add_counts(&mut self.reset_received, &other.reset_received);
        add_counts(&mut self.reset_sent, &other.reset_sent);
        self.returned += other.returned;
        self.data_bytes_received += other.data_bytes_received;
        self.header_bytes_received += other.header_bytes_received;
        self.header_bytes_decoded += other.header_bytes_decoded;
        self.streams_blocked_us += other.streams_blocked_us;
        self.window_blocked_us += other.window_blocked_us;
        self.lingers += other.lingers;
        self.linger_max_us = self.linger_max_us.max(other.linger_max_us);
    }
}

/// The codes that were seen, by name.
fn by_code(codes: &Codes) -> BTreeMap<String, u64> {
    let named = (0..).zip(codes.named).map(|(code, count)| (Code::new(code).to_string(), count));
    named.chain([(OTHER.to_owned(), codes.other)]).filter(|(_, count)| *count > 0).collect()
}

/// Returns the texts with which servers ended connections, by the name of the code.
fn reasons(seen: &Http2Counts) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut reasons = BTreeMap::<String, BTreeMap<String, u64>>::new();
    for GoawayReason { code, text, times } in &seen.reasons {
        *reasons.entry(code.to_string()).or_default().entry(escape(text)).or_default() += times;
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_streams_vary_only_among_runs_that_spoke_http2() {
        let of = |connections, streams_allowed_min| {
            let mut seen = Http2Counts::default();
            (seen.connections, seen.streams_allowed_min) = (connections, streams_allowed_min);
            seen.streams_allowed_max = streams_allowed_min;
            Http2::of(&seen, 0, &Activity::default())
        };
        let varied = |one: &Http2, other: &Http2| {
            let mut sum = one.clone();
            sum.add(other);
            (sum.streams_allowed, sum.streams_allowed_varied)
        };
        let [some, fewer, unlimited, none] = [of(1, Some(9)), of(1, Some(5)), of(1, Some(u32::MAX)), of(0, None)];
        assert_eq!((varied(&some, &some), varied(&some, &none)), ((Some(9), false), (Some(9), false)));
        assert_eq!((varied(&none, &some), varied(&unlimited, &none)), ((Some(9), false), (None, false)));
        assert_eq!(
            (varied(&some, &of(1, Some(0))), varied(&of(1, Some(0)), &some)),
            ((Some(9), false), (Some(9), false))
        );
        let zero = of(1, Some(0));
        assert_eq!((varied(&unlimited, &zero), varied(&zero, &unlimited)), ((None, false), (None, false)));
        assert_eq!((varied(&zero, &zero), varied(&zero, &none)), ((Some(0), false), (Some(0), false)));
        assert_eq!((varied(&some, &fewer), varied(&some, &unlimited)), ((Some(5), true), (Some(9), true)));
    }
}
