//! Options for HTTP/2 connections.

use super::frame::{self, PAYLOAD_USUAL, kind};
use super::hpack::SIZE_USUAL;
use super::settings::{self, WINDOW_MAX, WINDOW_USUAL};
use crate::http1::HEAD_MAX;

/// Beginning of every connection.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Options for the connections of a thread.
#[derive(Clone, Debug)]
pub struct Http2Options {
    /// Limit on requests in flight per connection; the server may allow fewer.
    pub streams: u32,
    /// True if the requests' `:scheme` is `https` instead of `http`.
    pub is_https: bool,
    /// True if [`crate::Event::Data`] is wanted. Otherwise body bytes are counted for flow control and cause no event.
    pub wants_body: bool,
    /// True if the fields of every head and [`crate::Event::Trailer`] are wanted. Heads with a status of 300 or more
    /// always have their fields.
    pub wants_fields: bool,
    /// Number of body bytes the server may send before it must wait (SETTINGS_INITIAL_WINDOW_SIZE).
    pub window: u32,
    /// Window for all bodies of a connection together, in bytes; at least 65,535.
    pub connection_window: u32,
    /// The largest payload of a frame, in bytes, from 16 KiB to 16 MiB - 1 (SETTINGS_MAX_FRAME_SIZE).
    pub frame_max: u32,
    /// Size of the server's header table, in bytes (SETTINGS_HEADER_TABLE_SIZE).
    pub table: u32,
    /// True if the transport reports accepted bytes at once. Otherwise it may have accepted everything it was given:
    /// TLS reports only once the last of several records has left.
    pub is_told_at_once: bool,
    /// Number of bytes of unfinished header blocks that the connections of a thread may keep together. Beyond that,
    /// blocks larger than 4 KiB fail.
    pub blocks_max: usize,
}

impl Default for Http2Options {
    fn default() -> Self {
        Self {
            streams: 1,
            is_https: false,
            wants_body: false,
            wants_fields: false,
            window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            frame_max: PAYLOAD_USUAL as u32,
            table: SIZE_USUAL,
            is_told_at_once: true,
            blocks_max: 64 * 1024 * 1024,
        }
    }
}

impl Http2Options {
    /// Clamps every value to its range.
    pub(super) fn clamp_values(self) -> Self {
        Self {
            window: self.window.min(WINDOW_MAX),
            connection_window: self.connection_window.clamp(WINDOW_USUAL, WINDOW_MAX),
            frame_max: self.frame_max.clamp(PAYLOAD_USUAL as u32, (1 << 24) - 1),
            ..self
        }
    }

    /// The first bytes of a connection: its preface, our SETTINGS and the connection window.
    pub(super) fn greeting(&self) -> Vec<u8> {
        let ours = [
            (settings::TABLE, self.table, SIZE_USUAL),
            (settings::PUSH, 0, 1),
            (settings::WINDOW, self.window, WINDOW_USUAL),
            (settings::FRAME, self.frame_max, PAYLOAD_USUAL as u32),
            (settings::HEADERS, HEAD_MAX as u32, u32::MAX),
        ];
        let mut payload = Vec::new();
        for (id, value, usual) in ours {
            if value != usual {
                payload.extend_from_slice(&id.to_be_bytes());
                payload.extend_from_slice(&value.to_be_bytes());
            }
        }
        let mut greeting = PREFACE.to_vec();
        frame::write(&mut greeting, kind::SETTINGS, 0, 0, &payload);
        if self.connection_window > WINDOW_USUAL {
            frame::write_credit(&mut greeting, 0, self.connection_window - WINDOW_USUAL);
        }
        greeting
    }
}
