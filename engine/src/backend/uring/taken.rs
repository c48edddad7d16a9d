//! Counts the bytes taken by the kernel.
//!
//! A send that reports its end reports the number. A silent send counts as taken completely when it is submitted. If
//! the kernel took less, a completion from the same wait corrects the count, even if the connection has been closed in
//! the meantime.

/// The count, and the sends that may still change it.
#[derive(Default)]
pub struct Taken {
    bytes: i64,
    /// Bytes of silent sends to be submitted with the next wait.
    queued: i64,
    /// Number of sends in flight that will report their end, and the number of those to be submitted with the next
    /// wait.
    reporting: i64,
    reporting_queued: i64,
    /// Silent sends of closed connections whose refusal may still be reported.
    closed: Vec<Silent>,
}

/// A silent send of a closed connection.
#[derive(Clone, Copy)]
struct Silent {
    name: u64,
    length: usize,
    turn: u32,
}

impl Taken {
    /// Records a queued silent send.
    pub fn add_silent_send(&mut self, length: usize) {
        self.queued += length as i64;
    }

    /// Counts bytes taken at once.
    pub fn add_accepted_bytes(&mut self, n: usize) {
        self.bytes += n as i64;
    }

    /// Records a queued send that will report its end.
    pub fn add_reporting_send(&mut self) {
        self.reporting_queued += 1;
    }

    /// Records that all operations queued in this turn have been submitted. `has_seen_all`: no completion of earlier
    /// turns is left.
    pub fn on_submitted(&mut self, turn: u32, has_seen_all: bool) {
        self.bytes += std::mem::take(&mut self.queued);
        self.reporting += std::mem::take(&mut self.reporting_queued);
        self.closed.retain(|silent| silent.turn == turn || !has_seen_all);
    }

    /// Counts an ended send, of which the kernel took `n` bytes.
    pub fn on_send_reported(&mut self, n: usize) {
        self.reporting -= 1;
        self.bytes += n as i64;
    }

    /// Corrects the count for a silent send of `length` bytes, of which the kernel took only `n`.
    pub fn on_send_refused(&mut self, length: usize, n: usize) {
        self.bytes -= length as i64 - n as i64;
    }

    /// Records that a connection was closed after a silent send queued in this turn.
    pub fn on_connection_closed(&mut self, name: u64, length: usize, turn: u32) {
        self.closed.push(Silent { name, length, turn });
    }

    /// [`Self::on_send_refused`] for a closed connection.
    pub fn on_send_refused_after_close(&mut self, name: u64, n: usize) {
        if let Some(index) = self.closed.iter().position(|silent| silent.name == name) {
            let Silent { length, .. } = self.closed.remove(index);
            self.on_send_refused(length, n);
        }
    }

    /// True if all sends submitted have ended.
    pub fn is_settled(&self) -> bool {
        self.reporting <= 0
    }

    /// Returns the bytes taken since the last call.
    pub fn take_count(&mut self) -> u64 {
        let bytes = self.bytes.max(0);
        self.bytes -= bytes;
        bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_sends_count_on_submission_minus_refusals() {
        let mut taken = Taken::default();
        taken.add_silent_send(100);
        assert_eq!(taken.take_count(), 0, "it is not submitted yet");
        taken.on_submitted(0, true);
        taken.on_send_refused(100, 30);
        assert_eq!(taken.take_count(), 30);
        // The next sends make up for a late correction.
        taken.on_send_refused(10, 0);
        assert_eq!(taken.take_count(), 0);
        taken.add_reporting_send();
        taken.on_submitted(1, true);
        assert!(!taken.is_settled());
        taken.on_send_reported(15);
        assert_eq!((taken.take_count(), taken.is_settled()), (5, true));
    }

    #[test]
    fn sends_may_fail_after_close() {
        for (has_seen_all, expected) in [(false, 100), (true, 200)] {
            let mut taken = Taken::default();
            taken.add_silent_send(100);
            taken.on_connection_closed(7, 100, 0);
            taken.on_submitted(0, true);
            taken.add_silent_send(100);
            taken.on_submitted(1, has_seen_all);
            taken.on_send_refused_after_close(7, 0);
            taken.on_send_refused_after_close(7, 0);
            assert_eq!(taken.take_count(), expected);
        }
    }
}
