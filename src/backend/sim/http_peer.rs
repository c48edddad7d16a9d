//! One connection of a simulated HTTP/1.1 server: finds the requests in what arrives and answers each as its
//! [`Scenario`](super::Scenario) says. It checks nothing: what the client sends is for other tests.

use std::cell::Cell;
use std::rc::Rc;

use onrush_proto::Nanos;

use super::scenario::{Mischief, Scenario, nanos};
use super::{Act, Action, Peer};
use crate::random::Random;

/// Time between the pieces of a split answer, in nanoseconds.
const PIECE_PAUSE: u64 = 1_000;

/// What the connections of one thread share.
pub(super) struct Shared {
    pub scenario: Scenario,
    /// Requests that have arrived so far.
    pub requests: Cell<u64>,
    /// Connections that are open.
    pub open: Cell<usize>,
}

/// The server's side of a connection.
pub(super) struct HttpPeer {
    shared: Rc<Shared>,
    random: Random,
    /// The head of a request, as far as it has come.
    head: Vec<u8>,
    /// Bytes of a request body still to come.
    body_left: u64,
    /// The request under way has been answered before its body was there.
    answered_early: bool,
    /// When the last answer so far ends; the next cannot overtake it.
    busy_until: Nanos,
}

impl HttpPeer {
    pub(super) fn new(shared: Rc<Shared>, random: Random) -> Self {
        shared.open.set(shared.open.get() + 1);
        let busy_until = Nanos::default();
        Self { shared, random, head: Vec::new(), body_left: 0, answered_early: false, busy_until }
    }

    fn head_complete(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        self.body_left = content_length(&self.head);
        self.head.clear();
        let number = self.shared.requests.get() + 1;
        self.shared.requests.set(number);
        self.answered_early = matches!(self.fault(number), Some((Mischief::Early(_), _)));
        if self.answered_early || self.body_left == 0 {
            self.answer(now, actions);
        }
    }

    fn fault(&self, number: u64) -> Option<(Mischief, usize)> {
        let hit =
            self.shared.scenario.fault.iter().find(|fault| fault.every > 0 && number.is_multiple_of(fault.every))?;
        Some((hit.what.clone(), hit.after_bytes))
    }

    fn answer(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let shared = Rc::clone(&self.shared);
        let scenario = &shared.scenario;
        let latency = nanos(scenario.latency_us) + self.random.below(nanos(scenario.jitter_us) + 1);
        let at = scenario.release(now + latency.max(1)).max(self.busy_until);
        let whole = scenario.answer.as_bytes();
        let (bytes, end) = match self.fault(shared.requests.get()) {
            None => (whole.to_vec(), scenario.close.then_some(Act::Close)),
            Some((Mischief::Answer(text) | Mischief::Early(text), _)) => (text.into_bytes(), None),
            Some((Mischief::Bug, _)) => panic!("a bug, on purpose"),
            Some((Mischief::Hang, after)) => (whole[..after.min(whole.len())].to_vec(), None),
            Some((Mischief::Close, after)) => (whole[..after.min(whole.len())].to_vec(), Some(Act::Close)),
            Some((Mischief::Reset, after)) => (whole[..after.min(whole.len())].to_vec(), Some(Act::Reset)),
        };
        let size = if scenario.split == 0 { bytes.len().max(1) } else { scenario.split };
        let mut last = at;
        for (index, piece) in bytes.chunks(size).enumerate() {
            last = at + index as u64 * PIECE_PAUSE;
            actions.push(Action { at: last, act: Act::Send(piece.to_vec()) });
        }
        actions.extend(end.map(|act| Action { at: last, act }));
        self.busy_until = last;
    }
}

impl Peer for HttpPeer {
    fn receive(&mut self, now: Nanos, mut bytes: &[u8], actions: &mut Vec<Action>) {
        while let Some((&first, rest)) = bytes.split_first() {
            if self.body_left > 0 {
                let n = bytes.len().min(usize::try_from(self.body_left).unwrap_or(usize::MAX));
                bytes = &bytes[n..];
                self.body_left -= n as u64;
                if self.body_left == 0 && !self.answered_early {
                    self.answer(now, actions);
                }
                continue;
            }
            bytes = rest;
            self.head.push(first);
            if self.head.ends_with(b"\r\n\r\n") {
                self.head_complete(now, actions);
            }
        }
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        self.shared.open.set(self.shared.open.get() - 1);
    }
}

/// Reads every line, also those behind the one it looks for: what a request costs here must not depend on the order of
/// its lines, or counted instructions could not be compared.
fn content_length(head: &[u8]) -> u64 {
    let lengths = head.split(|&byte| byte == b'\n').filter_map(|line| {
        let (name, value) = line.split_at_checked("content-length:".len())?;
        let value = name.eq_ignore_ascii_case(b"content-length:").then_some(value)?;
        str::from_utf8(value).ok()?.trim().parse().ok()
    });
    lengths.max().unwrap_or(0)
}
