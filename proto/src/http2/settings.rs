//! The server's SETTINGS (RFC 9113, 6.5.2) that concern a client.

use super::frame::PAYLOAD_USUAL;
use crate::Breach;

/// SETTINGS_HEADER_TABLE_SIZE.
pub(super) const TABLE: u16 = 1;
pub(super) const PUSH: u16 = 2;
/// SETTINGS_MAX_CONCURRENT_STREAMS.
pub(super) const STREAMS: u16 = 3;
/// SETTINGS_INITIAL_WINDOW_SIZE.
pub(super) const WINDOW: u16 = 4;
/// SETTINGS_MAX_FRAME_SIZE.
pub(super) const FRAME: u16 = 5;
/// SETTINGS_MAX_HEADER_LIST_SIZE.
pub(super) const HEADERS: u16 = 6;

/// The window of streams until SETTINGS change it, and of a connection until the first WINDOW_UPDATE.
pub(super) const WINDOW_USUAL: u32 = 65_535;

pub(super) const WINDOW_MAX: u32 = i32::MAX as u32;

/// Number of streams a client may assume before the server's SETTINGS (RFC 9113, 6.5.2: no fewer than 100 are
/// recommended).
pub const STREAMS_ASSUMED: u32 = 100;

/// The server's settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    /// Known stream limit; [`u32::MAX`]: unlimited.
    pub(super) streams: u32,
    /// The window of a new stream.
    pub(super) window: u32,
    /// The value of `window` after the current SETTINGS frame.
    window_next: u32,
    /// True if the first SETTINGS have arrived completely.
    pub(super) have_come: bool,
    /// True if the first SETTINGS contained a stream limit.
    names_streams: bool,
}

/// A setting's effect, apart from being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing.
    None,
    /// The server's table of our fields has this size.
    Table(u32),
}

impl PeerSettings {
    /// Settings before the server's first frame. `streams_seen`: smallest stream limit of a server so far.
    pub(super) fn new(streams_seen: Option<u32>) -> Self {
        Self {
            streams: streams_seen.map_or(STREAMS_ASSUMED, |seen| seen.min(STREAMS_ASSUMED)),
            window: WINDOW_USUAL,
            window_next: WINDOW_USUAL,
            have_come: false,
            names_streams: false,
        }
    }

    pub(super) fn set(&mut self, id: u16, value: u32) -> Result<Consequence, Breach> {
        match id {
            TABLE => return Ok(Consequence::Table(value)),
            PUSH if value != 0 => return Err(Breach::Push),
            STREAMS => {
                self.streams = value;
                self.names_streams = true;
            }
            WINDOW if value > WINDOW_MAX => return Err(Breach::InitialWindow),
            WINDOW => self.window_next = value,
            FRAME if !(PAYLOAD_USUAL as u32..1 << 24).contains(&value) => return Err(Breach::MaxFrameSize),
            _ => {}
        }
        Ok(Consequence::None)
    }

    /// Applies the complete settings of a frame. Returns the change of all streams' windows.
    pub(super) fn change_window(&mut self) -> i64 {
        let before = std::mem::replace(&mut self.window, self.window_next);
        i64::from(self.window) - i64::from(before)
    }

    /// Ends a SETTINGS frame.
    pub(super) fn end(&mut self) {
        if !self.names_streams {
            self.streams = u32::MAX;
        }
        self.have_come = true;
    }
}
