//! One response: the order of its parts, and its completion (RFC 9113, 8.1).

use super::meaning::Meaning;
use crate::Breach;
use crate::http1::ResponseKind;

#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseState {
    kind: ResponseKind,
    phase: ResponsePhase,
    /// The `grpc-status` at the end of the response.
    grpc_status: u8,
    /// Number of body bytes to come; [`ANY`]: unknown.
    left: u64,
    /// True if there can be no body.
    is_bodiless: bool,
}

/// The next part of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponsePhase {
    /// The head, or an interim one.
    Head,
    /// The body, or trailers.
    Body,
}

/// Kinds of header blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// An interim response.
    Interim,
    /// The final head.
    Head,
    /// The head of a tunnel, which is not used: nothing after it is wanted.
    Tunnel,
    /// The trailers.
    Trailers,
}

/// An unknown length.
const ANY: u64 = u64::MAX;

impl ResponseState {
    pub(super) fn new(kind: ResponseKind) -> Self {
        Self { kind, phase: ResponsePhase::Head, grpc_status: 0, left: ANY, is_bodiless: false }
    }

    pub(super) fn phase(&self) -> ResponsePhase {
        self.phase
    }

    /// Takes a header block; `ends`: nothing follows it.
    pub(super) fn take_block(&mut self, meaning: &Meaning, ends: bool) -> Result<Block, Breach> {
        if let Some(breach) = meaning.breach {
            return Err(breach);
        }
        if ends {
            self.grpc_status = meaning.grpc_status;
        }
        match (self.phase, meaning.status) {
            (ResponsePhase::Head, 0) => Err(Breach::Status),
            (ResponsePhase::Head, 100..=199) if ends => Err(Breach::InterimEnds),
            (ResponsePhase::Head, 100..=199) => Ok(Block::Interim),
            (ResponsePhase::Head, status) => {
                self.phase = ResponsePhase::Body;
                if self.kind == ResponseKind::Tunnel && (200..=299).contains(&status) {
                    return Ok(Block::Tunnel);
                }
                self.is_bodiless = self.kind == ResponseKind::Bodiless || status == 204 || status == 304;
                // No body has the largest possible length, which would look unknown.
                self.left = if self.is_bodiless { 0 } else { meaning.length.map_or(ANY, |length| length.min(ANY - 1)) };
                Ok(Block::Head)
            }
            (ResponsePhase::Body, 0) if ends => Ok(Block::Trailers),
            (ResponsePhase::Body, 0) => Err(Breach::TrailersDoNotEnd),
            (ResponsePhase::Body, _) => Err(Breach::PseudoField),
        }
    }

    /// Takes `n` bytes of the body.
    pub(super) fn take_data(&mut self, n: u32) -> Result<(), Breach> {
        if self.left != ANY {
            let breach = if self.is_bodiless { Breach::NoBody } else { Breach::BodyLength };
            self.left = self.left.checked_sub(n.into()).ok_or(breach)?;
        }
        Ok(())
    }

    /// Number of body bytes to come; zero if the server does not announce it.
    pub(super) fn body_left(&self) -> u64 {
        if self.left == ANY { 0 } else { self.left }
    }

    /// Completes the response at the server's end of stream. Returns the `grpc-status`.
    pub(super) fn end_of_stream(&self) -> Result<u8, Breach> {
        if self.left == 0 || self.left == ANY { Ok(self.grpc_status) } else { Err(Breach::BodyLength) }
    }
}
