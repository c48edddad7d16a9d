//! Answers in another protocol than ours.

use onrush_stats::Cause;

/// How many answers in another protocol are no chance.
const CERTAIN: u64 = 5;

/// The answers of one worker's servers in another protocol.
#[derive(Debug, Default)]
pub(super) struct OtherProtocol {
    /// How many there were.
    answers: u64,
    /// How many of them are complete responses.
    responses: u64,
    /// The last one.
    cause: Option<Cause>,
}

impl OtherProtocol {
    /// Records a failure with this cause.
    pub fn failed(&mut self, cause: Cause) {
        if matches!(cause, Cause::Protocol(error) if error.is_other_protocol()) {
            self.answers += 1;
            self.cause = Some(cause);
        }
    }

    /// Counts a response with status 400 which says that the port expects TLS.
    pub fn responded(&mut self) {
        self.answers += 1;
        self.responses += 1;
        self.cause = Some(Cause::Status(400));
    }

    /// True if there are complete responses, and all `completed` ones say that.
    pub fn has_all(&self, completed: u64) -> bool {
        self.responses > 0 && completed <= self.responses
    }

    /// The other protocol, if there were enough answers and none of `completed` responses is in ours.
    pub fn cause(&self, completed: u64) -> Option<Cause> {
        self.cause.filter(|_| self.answers >= CERTAIN && completed <= self.responses)
    }
}
