//! What starts together on a connection: the plan's one request, or as many as a script wrote; and the pause before.

use onrush_proto::{Client, Nanos};

use super::Engine;
use super::hooks::Pause;
use super::tally::OpenRequest;
use super::timers::Timer;
use crate::backend::{Backend, ConnId};

impl<B: Backend> Engine<B> {
    /// Whether a connection can begin a batch. What a script writes or delays is one batch at a time, as with wrk.
    pub(super) fn has_room(&mut self, conn: ConnId) -> bool {
        let (wants, slots) = (self.script.wants, self.settings.slots);
        let most = if wants.request || wants.delay { 1 } else { slots };
        self.tally.may_start()
            && !self.script.has_ended
            && self.slots[conn.index()]
                .live()
                .is_some_and(|live| !live.draining && live.open.len() < most && live.protocol.capacity() > 0)
    }

    /// Whether the script lets a connection begin a batch now. If it wants a pause first, a timer is set for its end.
    pub(super) fn pause_is_over(&mut self, conn: ConnId, at: Nanos) -> bool {
        // Before a batch that another connection had no room for there has been one.
        if !self.script.wants.delay || self.batch_waits {
            return true;
        }
        let Some(live) = self.slots[conn.index()].live() else { return false };
        if live.pause == Pause::Unasked {
            live.pause = match self.script.delay_ns() {
                0 => Pause::Over,
                pause_ns => {
                    let until = at + pause_ns;
                    self.timers.set(until, Timer::Begin(conn));
                    Pause::Until(until)
                }
            };
        }
        live.pause == Pause::Over
    }

    /// The pause before a batch is over, unless that of another connection began in its slot.
    pub(super) fn resume(&mut self, conn: ConnId, due: Nanos, now: Nanos) {
        let live = self.slots[conn.index()].live();
        if let Some(live) = live.filter(|live| live.pause == Pause::Until(due)) {
            live.pause = Pause::Over;
            self.pump(conn, now);
        }
    }

    /// Starts the requests of a batch; returns whether there was one.
    pub(super) fn start_batch(&mut self, conn: ConnId, at: Nanos) -> bool {
        let mut sent_at = at;
        let is_new = self.script.wants.request && !std::mem::take(&mut self.batch_waits);
        if is_new && !self.script.write(&mut self.batch) {
            return false;
        }
        if !B::GATHERS && self.script.wants.any() {
            // The script's time is not the server's.
            sent_at = self.backend.now();
        }
        let Some(mut live) = self.slots[conn.index()].live() else { return false };
        live.pause = Pause::Unasked;
        let is_last = live.left < 2 * self.batch.len() as u64;
        if is_last {
            if !self.prepare_last(conn) {
                return false;
            }
            let Some(prepared) = self.slots[conn.index()].live() else { return false };
            live = prepared;
        }
        if B::GATHERS && live.open.back().is_none_or(|request| !request.is_gathered) {
            self.gathered.push(conn);
        }
        self.awaited_since = at;
        for request in &self.batch {
            if !self.tally.may_start() {
                break;
            }
            let Ok(stream) = live.protocol.start(request) else { break };
            live.begin(OpenRequest {
                stream,
                sent_at,
                first_at: None,
                is_gathered: B::GATHERS,
                late: false,
                status: None,
                is_last: false,
            });
            self.tally.started(B::GATHERS);
            live.left -= 1;
        }
        if let Some(request) = live.open.back_mut() {
            request.is_last = true;
        }
        if is_last {
            self.swap_last();
        }
        true
    }
}
