//! The end of a worker, and what it gives back.

use std::net::SocketAddr;

use onrush_proto::Nanos;

use super::slot::{Slot, State};
use super::{Engine, ScriptFailure, Spare, UNANSWERED_NS};
use crate::backend::Backend;
use crate::stats::{Buffers, Cause, Gap, Interval, Phase, ProxyFailure, Spread, Transcript};

/// What a worker gives back.
pub struct WorkerEnd {
    /// What it measured since its last hand-over.
    pub interval: Box<Interval>,
    /// The most connections that it might have had.
    pub connections: u32,
    /// How long it ran, in nanoseconds, warm-up not included.
    pub elapsed_ns: u64,
    /// Whether it ended because nobody could be connected to any more.
    pub stayed_away: bool,
    /// The last refusal before anybody accepted, if nobody ever did.
    pub refusal: Option<(SocketAddr, Cause)>,
    /// Addresses that refused while another worked, and the error numbers.
    pub dropped: Vec<(SocketAddr, i32)>,
    /// Addresses that worked.
    pub working: Vec<SocketAddr>,
    /// What went over the wire.
    pub transcript: Option<Box<Transcript>>,
    /// Stretches in which it completed nothing.
    pub silences: Vec<Gap>,
    /// In which part of them somebody waited: all of them, unless its script or a schedule decides when something is asked for.
    pub awaited: Vec<Gap>,
    /// Stretches in which it stood still, for want of a processor or because it was stopped.
    pub standstills: Vec<Gap>,
    /// How its requests were spread over the connections that were there at the end, where any number may use one.
    pub spread: Spread,
    /// The shortest latency of its warm-up, in nanoseconds.
    pub least_before_ns: Option<u64>,
    /// How large the kernel made the buffers of its connections.
    pub buffers: Buffers,
    /// Whether its script was asked how long to pause.
    pub pauses: bool,
    /// Whether it was once told something that is no time.
    pub pauses_unread: bool,
    /// Connections that another session can use.
    pub spares: Vec<Spare>,
    /// What went wrong in its script.
    pub failure: Option<ScriptFailure>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub at: Nanos,
    /// Nobody could be connected to any more.
    pub stayed_away: bool,
}

impl<B: Backend> Engine<B> {
    /// Adds up what there is at the end.
    pub(super) fn finish(mut self, End { at: now, stayed_away }: End) -> WorkerEnd {
        self.hear_connects(now);
        let spares = self.leave_spares();
        self.backend.stop();
        self.take_counts();
        self.settle_spin();
        self.occupy_to_the_end(now);
        let spread = self.spread();
        self.end_slots(now);
        self.books.tally.end_returned(now);
        self.books.tally.end_gone(now);
        self.count_unsent(now);
        self.books.tally.count_ended();
        if self.books.tally.is_warming_up() {
            // It ended before anything counted.
            self.count_from(now);
        }
        // A worker that had nothing to send has no rate.
        if self.settings.requests != Some(0) {
            self.books.sample_rest(now);
        }
        self.books.note_script_time(self.script.spent_ns());
        let (mut books, wants) = (self.books, self.script.wants);
        let asks_at_once = !wants.delay && self.settings.rules.open_loop.is_none();
        let (silences, awaited) = books.tally.silences.end(now.since(books.start));
        books.tally.interval.evidence += books.account.take();
        books.tally.interval.until_ns = now.since(books.start);
        WorkerEnd {
            connections: self.settings.max_inflight,
            interval: books.tally.interval,
            elapsed_ns: now.since(books.start),
            stayed_away,
            refusal: self.connecting.refusal(),
            dropped: self.connecting.routes.dropped(),
            working: self.connecting.routes.working(),
            transcript: books.tally.transcript,
            silences,
            awaited: if asks_at_once { vec![Gap::ALL] } else { awaited },
            standstills: books.standstills,
            spread,
            least_before_ns: books.least_before_ns,
            buffers: self.backend.buffers(),
            pauses: wants.delay,
            pauses_unread: self.script.pauses_unread,
            spares,
            failure: self.script.failure,
        }
    }

    /// How requests are spread over the connections, where these have no limit from which it could be told what is left.
    fn spread(&mut self) -> Spread {
        let mut spread = Spread::default();
        let lives = self.slots.iter_mut().filter_map(Slot::live).filter(|live| live.left > u64::MAX / 2);
        lives.for_each(|live| spread.record(u64::MAX - live.left));
        spread
    }

    /// Takes note of what the slots have under way.
    fn end_slots(&mut self, now: Nanos) {
        let tally = &mut self.books.tally;
        for slot in &mut self.slots {
            let is_shaking_hands = slot.is_shaking_hands();
            match &mut slot.state {
                State::Open(live) => live.leave_open(now, tally),
                State::Connecting(since) if now.since(*since) >= UNANSWERED_NS => {
                    let address = self.connecting.routes.address(slot.route);
                    let phase = if is_shaking_hands { Phase::Tls } else { Phase::Connect };
                    tally.error(phase, Cause::Unanswered, now, || address.to_string().into_bytes());
                }
                State::Tunnelling(tunnel) if now.since(tunnel.since) >= UNANSWERED_NS => {
                    tally.error(Phase::Connect, Cause::Proxy(ProxyFailure::Unanswered), now, Vec::new);
                }
                State::Connecting(_) | State::Tunnelling(_) | State::Parked | State::Queued | State::Waiting => {}
            }
        }
    }
}
