//! Answers in a protocol other than ours.

use onrush_stats::Cause;

/// Number of answers in another protocol that cannot be chance.
const CERTAIN: u64 = 5;

/// Answers in another protocol from one worker's servers.
#[derive(Debug, Default)]
pub(super) struct OtherProtocol {
    /// Number of such answers.
    answers: u64,
    /// Number of complete responses among them.
    responses: u64,
    /// The cause of the last answer.
    cause: Option<Cause>,
}

impl OtherProtocol {
    /// Records a failure with this cause.
    pub fn record_failure(&mut self, cause: Cause) {
        if matches!(cause, Cause::Protocol(error) if error.is_other_protocol()) {
            self.answers += 1;
            self.cause = Some(cause);
        }
    }

    /// Counts a response with status 400 saying that the port expects TLS.
    pub fn count_tls_hint(&mut self) {
        self.answers += 1;
        self.responses += 1;
        self.cause = Some(Cause::Status(400));
    }

    /// True if there are complete responses, and all `completed` ones say that the port expects TLS.
    pub fn all_say_tls(&self, completed: u64) -> bool {
        self.responses > 0 && completed <= self.responses
    }

    /// The other protocol, if there were enough answers and none of the `completed` responses is in ours.
    pub fn cause(&self, completed: u64) -> Option<Cause> {
        self.cause.filter(|_| self.answers >= CERTAIN && completed <= self.responses)
    }
}
