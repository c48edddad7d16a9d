//! Observations on the connections of a thread, as plain numbers.

use serde::{Deserialize, Serialize};

use crate::Code;

/// Largest number of different GOAWAY explanations kept; further ones are not counted.
pub const REASONS_MAX: usize = 16;

/// Counts of one thread's connections; those of several threads can be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Http2Counts {
    /// Number of connections on which the server has sent its SETTINGS.
    pub connections: u64,
    /// Connections ended by the server with GOAWAY, by the code of its last GOAWAY: an earlier announcement may have
    /// had another code.
    pub connections_ended: Codes,
    /// Smallest stream limit of a server: zero only if all limits were zero, [`u32::MAX`] if all servers were
    /// unlimited, `None` if none is known yet.
    pub streams_allowed_min: Option<u32>,
    /// Largest stream limit of a server; [`u32::MAX`]: unlimited, `None`: not known yet.
    pub streams_allowed_max: Option<u32>,
    /// Largest number of simultaneous streams on one connection.
    pub streams_peak: u32,
    /// GOAWAY frames from servers, by code; a connection may get several.
    pub goaway_received: Codes,
    /// Explanations in the servers' GOAWAY frames, up to 16 different ones.
    pub reasons: Vec<GoawayReason>,
    /// GOAWAY frames to servers, by code.
    pub goaway_sent: Codes,
    /// RST_STREAM frames from servers on streams that were open, by code.
    pub reset_received: Codes,
    /// RST_STREAM frames to servers, by code.
    pub reset_sent: Codes,
    /// Bytes of DATA from servers, including padding.
    pub data_bytes_received: u64,
    /// Bytes of header blocks from servers.
    pub header_bytes_received: u64,
    /// Bytes of the decoded names and values in header blocks from servers.
    pub header_bytes_decoded: u64,
    /// Time for which connections had as many streams as their servers allow while more were wanted, in nanoseconds.
    pub streams_blocked_ns: u64,
    /// Time for which connections had bodies to send and no window for any of them, in nanoseconds.
    pub window_blocked_ns: u64,
}

/// An explanation that servers gave in GOAWAY frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoawayReason {
    /// The error code in those frames.
    pub code: Code,
    /// The first 100 bytes of the text, unescaped.
    pub text: Vec<u8>,
    /// Number of frames with this code and text.
    pub times: u64,
}

/// Number of occurrences of each error code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codes {
    /// Numbers for the codes that the RFC names, indexed by code.
    pub named: [u64; Code::NAMED],
    /// Number of all other codes.
    pub other: u64,
}

impl Codes {
    /// Counts a code.
    pub(super) fn note(&mut self, code: Code) {
        *self.named.get_mut(code.0 as usize).unwrap_or(&mut self.other) += 1;
    }

    /// Takes a code back, if one is left.
    pub(super) fn take_back(&mut self, code: Code) {
        let count = self.named.get_mut(code.0 as usize).unwrap_or(&mut self.other);
        *count = count.saturating_sub(1);
    }

    fn add(&mut self, more: &Self) {
        self.other += more.other;
        for (count, more) in self.named.iter_mut().zip(more.named) {
            *count += more;
        }
    }
}

/// The smaller of two stream limits; [`u32::MAX`]: unlimited, `None`: unknown. Zero is returned only if there is
/// nothing else: it applies only for a moment (RFC 9113, 6.5.2), so any other limit says more about a server.
pub fn smaller_stream_limit(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min_by_key(|allowed| (*allowed == 0, *allowed))
}

impl Http2Counts {
    /// Records a server's stream limit; [`u32::MAX`]: unlimited.
    pub(super) fn note_allowed(&mut self, streams: u32) {
        self.streams_allowed_min = smaller_stream_limit(self.streams_allowed_min, Some(streams));
        self.streams_allowed_max = self.streams_allowed_max.max(Some(streams));
    }

    /// Counts a GOAWAY from a server. `announced`: the code with which the server has announced the end of this
    /// connection before, if it did.
    pub(super) fn note_goaway(&mut self, code: Code, announced: Option<Code>) {
        self.goaway_received.note(code);
        self.connections_ended.note(code);
        if let Some(announced) = announced {
            self.connections_ended.take_back(announced);
        }
    }

    /// Records a GOAWAY's explanation, if it has one.
    pub(super) fn note_goaway_reason(&mut self, code: Code, reason: &[u8]) {
        if !reason.is_empty() {
            self.count_goaway_reason(code, reason, 1);
        }
    }

    fn count_goaway_reason(&mut self, code: Code, text: &[u8], times: u64) {
        let known = self.reasons.iter().position(|reason| reason.code == code && reason.text == text);
        match known {
            Some(at) => self.reasons[at].times = self.reasons[at].times.saturating_add(times),
            None if self.reasons.len() < REASONS_MAX => {
                self.reasons.push(GoawayReason { code, text: text.to_vec(), times })
            }
            None => {}
        }
    }

    /// Adds another thread's counts: sums, and the smallest or largest of limits and peaks.
    pub fn add_counts(&mut self, more: &Self) {
        self.connections += more.connections;
        self.connections_ended.add(&more.connections_ended);
        self.streams_allowed_min = smaller_stream_limit(self.streams_allowed_min, more.streams_allowed_min);
        self.streams_allowed_max = self.streams_allowed_max.max(more.streams_allowed_max);
        self.streams_peak = self.streams_peak.max(more.streams_peak);
        self.goaway_received.add(&more.goaway_received);
        for GoawayReason { code, text, times } in &more.reasons {
            self.count_goaway_reason(*code, text, *times);
        }
        self.goaway_sent.add(&more.goaway_sent);
        self.reset_received.add(&more.reset_received);
        self.reset_sent.add(&more.reset_sent);
        self.data_bytes_received += more.data_bytes_received;
        self.header_bytes_received += more.header_bytes_received;
        self.header_bytes_decoded += more.header_bytes_decoded;
        self.streams_blocked_ns += more.streams_blocked_ns;
        self.window_blocked_ns += more.window_blocked_ns;
    }
}
