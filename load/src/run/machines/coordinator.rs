//! The coordinator's state machine, without sockets or a clock. Input arrives through [`Coordinator::handle_message`]
//! and [`Coordinator::handle_request`]; output is messages to send and events to report.
//!
//! No request is sent before every worker has joined and set up its part. All workers then start at the same moment,
//! given on each worker's own clock: the shortest of several round trips gives the offset from the coordinator's clock,
//! to within half that trip. Clocks are never compared otherwise, and never corrected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use onrush_stats::Totals;
use onrush_text::escape_controls;
use onrush_text::units::format_count;

use super::figures::{Bound, ErrorKinds};
use super::message::{CoordinatorMessage, Done, JoinRefusal, RowSums, WorkerMessage, WorkerSetup};
use crate::run::nanos;

/// Number of round trips per worker between the end of all setups and the start, and the time limit for all of them,
/// because clocks drift in the meantime.
const TRIPS: u32 = 12;
const TRIPS_TAKE: Duration = Duration::from_millis(500);
/// Lead time of the start, in addition to a few of the longest round trips.
const AHEAD: Duration = Duration::from_millis(50);
/// Linux retransmits a lost packet after this time, plus a round trip.
const SENT_AGAIN: Duration = Duration::from_millis(200);
/// A standstill is given as the reason for events up to this long afterwards.
const RECENTLY: Duration = Duration::from_secs(1);
/// Number of rows that a worker may send ahead of the elapsed time: the worker may have been stalled.
const ROWS_AHEAD: u64 = 20;
/// Maximum number of a worker's addresses that are compared; a name has fewer.
const ADDRESSES: usize = 256;
/// Maximum time by which a part may last longer than twice the elapsed time of the run, in nanoseconds.
const SECONDS_AHEAD_NS: u64 = 10_000_000_000;

/// Reason for losing a worker whose figures cannot be summed.
const IMPOSSIBLE: &str = "protocol error: impossible figures";

/// Number that identifies a connection.
pub type PeerId = u64;

/// A command to the coordinator.
pub enum CoordinatorRequest {
    /// Ask each worker to set up its part.
    Prepare(WorkerJobs),
    /// Start the run at this moment, in the coordinator's time.
    Start(Duration),
    /// Order all workers to end the run.
    Stop,
    /// Dismiss all workers: there are no more runs.
    Dismiss,
}

/// The parts that the workers should set up.
pub struct WorkerJobs {
    /// For each worker, as frames: the order to set up its part, then the pieces of the files. Empty for a worker
    /// without a part in this run.
    pub frames: Vec<Vec<Arc<[u8]>>>,
    /// Length of time that one row of a worker's measurements covers.
    pub row: Duration,
}

/// An action on a connection.
pub enum ConnectionAction {
    /// Send a message to a worker.
    Send(PeerId, CoordinatorMessage),
    /// Send these encoded frames in order.
    Frames(PeerId, Vec<Arc<[u8]>>),
    /// Close the connection.
    Close(PeerId),
}

/// An event to report.
pub enum CoordinatorEvent {
    /// The wait for workers has progressed.
    Waiting {
        /// Number of workers that have joined.
        there: u32,
        /// Number of workers that have set up their part.
        prepared: u32,
    },
    /// All workers are set up. Holds each worker's setup and shortest round trip, and the lead time of the start.
    Ready(Vec<(WorkerSetup, Duration)>, Duration),
    /// The run cannot start, because a worker cannot set up its part or too few joined. Holds the reason for the user,
    /// and true if the command line is at fault.
    Hopeless(String, bool),
    /// One row of measurements, and the number of the worker that sent it.
    Row(u32, Box<Totals>),
    /// A worker's part has ended. Holds the number of the worker, its final report, and the drift of its clock against
    /// the coordinator's during the run, in nanoseconds, if the drift exceeds the error of both measurements.
    Done(u32, Box<Done>, Option<i64>),
    /// A worker was lost during the run: its number and the reason for the user.
    Lost(u32, String),
    /// A worker was refused, or left before the run: its name and the reason for the user.
    Refused(String),
}

/// Offset of a worker's clock from the coordinator's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// The worker's clock minus the coordinator's, in nanoseconds.
    pub ns: i64,
    /// Round trip of the measurement, in nanoseconds: the error is at most half of it.
    pub trip_ns: u64,
}

impl Offset {
    /// Clock drift between this offset and a later one, in nanoseconds; `None` if it is within the error of the two
    /// measurements.
    fn drift_until(self, later: Self) -> Option<i64> {
        let moved_ns = later.ns.wrapping_sub(self.ns);
        (moved_ns.unsigned_abs() > (self.trip_ns / 2).saturating_add(later.trip_ns / 2)).then_some(moved_ns)
    }
}

/// A slot for a worker of the run.
#[derive(Default)]
struct WorkerSlot {
    peer: Option<PeerId>,
    name: String,
    state: SlotState,
    /// Time at which bytes last arrived from the worker.
    heard: Duration,
    /// Time and number of the last ping.
    pinged: Duration,
    ping: u64,
    trips: u32,
    best: Option<Offset>,
    /// Longest round trip.
    worst_ns: u64,
    /// Offset at the start of the run, and the offset of the best round trip since.
    begun: Option<Offset>,
    prepared: WorkerSetup,
    rows: RowSums,
    kinds: ErrorKinds,
    /// Bounds on the figures of the worker's rows and final report, the same for all workers.
    bound: Bound,
    bound_of_end: Bound,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SlotState {
    /// No worker: not joined yet, or left.
    #[default]
    Empty,
    /// The worker has joined.
    There,
    /// The worker was ordered to set up its part.
    Preparing,
    /// The worker has set up its part.
    Prepared,
    /// The worker's part is running.
    Running,
    /// The worker's part has ended.
    Done,
    /// The worker was lost during the run.
    Lost,
}

/// Parameters of a coordinator.
#[derive(Clone, Copy, Debug)]
pub struct CoordinatorRules {
    /// Number of workers that take part.
    pub machines: u32,
    /// Time allowed for the workers to join.
    pub join: Duration,
    /// Silence after which a worker counts as lost.
    pub loss: Duration,
}

/// The state of a coordinator: its workers, and what is to be done and reported next.
pub struct Coordinator {
    rules: CoordinatorRules,
    slots: Vec<WorkerSlot>,
    /// The parts of the workers, once known.
    job: Option<WorkerJobs>,
    /// Start of the wait for the workers.
    asked: Duration,
    /// Start of the offset measurement, after all workers have set up their parts.
    measuring: Option<Duration>,
    is_ready: bool,
    /// True if any run has started: from then on a lost worker is not replaced.
    has_run: bool,
    /// Time of the last check, and the end and length of this machine's last standstill.
    looked: Duration,
    stood_still: Option<(Duration, Duration)>,
    /// Start of the run, and length of time that one of its rows covers.
    started: Duration,
    row: Duration,
    /// Number of unproven connections that were closed to make room for others.
    pub strangers: u32,
    /// Actions to take, in order; the owner of the connections removes them.
    pub acts: VecDeque<ConnectionAction>,
    /// Events to report, in order; the owner of the connections removes them.
    pub told: VecDeque<CoordinatorEvent>,
}

impl Coordinator {
    /// A coordinator whose clock starts at zero and whose slots are all empty.
    pub fn new(rules: CoordinatorRules) -> Self {
        Self {
            slots: (0..rules.machines).map(|_| WorkerSlot::default()).collect(),
            rules,
            job: None,
            asked: Duration::ZERO,
            measuring: None,
            is_ready: false,
            has_run: false,
            looked: Duration::ZERO,
            stood_still: None,
            started: Duration::ZERO,
            row: Duration::ZERO,
            strangers: 0,
            acts: VecDeque::new(),
            told: VecDeque::new(),
        }
    }

    /// Assigns a proven worker to a slot: the one with its number, or the first empty one.
    ///
    /// # Errors
    ///
    /// Fails if the worker cannot take part, with the reason.
    pub fn join_worker(
        &mut self,
        peer: PeerId,
        name: &str,
        index: Option<u32>,
        now: Duration,
    ) -> Result<u32, JoinRefusal> {
        let is_empty = |slot: &WorkerSlot| slot.state == SlotState::Empty;
        if self.has_run {
            return Err(JoinRefusal::Begun);
        }
        let index = match index {
            Some(index) if index >= self.rules.machines => return Err(JoinRefusal::NoPart(self.rules.machines)),
            Some(index) if !is_empty(&self.slots[index as usize]) => return Err(JoinRefusal::Taken(index)),
            Some(index) => index,
            None => self.slots.iter().position(is_empty).ok_or(JoinRefusal::TooMany(self.rules.machines))? as u32,
        };
        self.slots[index as usize] = WorkerSlot {
            peer: Some(peer),
            name: name.to_owned(),
            state: SlotState::There,
            heard: now,
            ..WorkerSlot::default()
        };
        self.order_setup(index);
        self.report_waiting();
        Ok(index)
    }

    /// Carries out a command.
    pub fn handle_request(&mut self, ask: CoordinatorRequest, now: Duration) {
        match ask {
            CoordinatorRequest::Prepare(job) => {
                self.row = job.row;
                self.job = Some(job);
                self.asked = now;
                (self.measuring, self.is_ready) = (None, false);
                if let Some(lost) = self.slots.iter().position(|slot| slot.state == SlotState::Lost) {
                    let words = format!("{} was lost earlier", self.describe_worker(lost as u32));
                    self.told.push_back(CoordinatorEvent::Hopeless(words, false));
                }
                for index in 0..self.rules.machines {
                    if self.slots[index as usize].state == SlotState::Done {
                        self.slots[index as usize].state = SlotState::There;
                    }
                    self.order_setup(index);
                }
            }
            CoordinatorRequest::Start(at) => {
                (self.has_run, self.started, self.job) = (true, at, None);
                for slot in &mut self.slots {
                    let (Some(peer), Some(offset), SlotState::Prepared) = (slot.peer, slot.best, slot.state) else {
                        continue;
                    };
                    let theirs = (nanos(at) as i64).wrapping_add(offset.ns);
                    slot.state = SlotState::Running;
                    (slot.rows, slot.kinds) = (RowSums::default(), ErrorKinds::default());
                    (slot.bound, slot.bound_of_end) = (Bound::default(), Bound::default());
                    // Offsets measured from now on show the drift of the clock.
                    (slot.begun, slot.best) = (Some(offset), None);
                    self.acts.push_back(ConnectionAction::Send(peer, CoordinatorMessage::Start(theirs.max(0) as u64)));
                }
            }
            CoordinatorRequest::Stop => self.send_to_all(|| CoordinatorMessage::Stop),
            CoordinatorRequest::Dismiss => self.send_to_all(|| CoordinatorMessage::Dismiss),
        }
    }

    fn send_to_all(&mut self, order: impl Fn() -> CoordinatorMessage) {
        let peers = self.slots.iter().filter_map(|slot| slot.peer);
        self.acts.extend(peers.map(|peer| ConnectionAction::Send(peer, order())));
    }

    /// Orders a worker to set up its part, once the part is known.
    fn order_setup(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        let (Some(job), Some(peer), SlotState::There) = (&self.job, slot.peer, slot.state) else { return };
        let frames = &job.frames[index as usize];
        if !frames.is_empty() {
            slot.state = SlotState::Preparing;
            self.acts.push_back(ConnectionAction::Frames(peer, frames.clone()));
        }
    }

    fn send_ping(&mut self, index: u32, now: Duration) {
        let slot = &mut self.slots[index as usize];
        let Some(peer) = slot.peer else { return };
        slot.ping += 1;
        slot.pinged = now;
        self.acts.push_back(ConnectionAction::Send(peer, CoordinatorMessage::Ping(slot.ping)));
    }

    fn find_worker(&self, peer: PeerId) -> Option<u32> {
        self.slots.iter().position(|slot| slot.peer == Some(peer)).map(|index| index as u32)
    }

    /// Records that bytes arrived: a worker that is still sending a long message is not silent.
    pub fn record_arrival(&mut self, peer: PeerId, now: Duration) {
        if let Some(index) = self.find_worker(peer) {
            self.slots[index as usize].heard = now;
        }
    }

    /// Handles a message from a worker; one that is impossible or out of turn ends the connection.
    pub fn handle_message(&mut self, peer: PeerId, report: WorkerMessage, now: Duration) {
        let Some(index) = self.find_worker(peer) else { return };
        let machines = self.slots.len();
        let slot = &mut self.slots[index as usize];
        slot.heard = now;
        match (report, slot.state) {
            (WorkerMessage::Pong { number, clock_ns }, _) if number == slot.ping && number > 0 => {
                let trip = now.saturating_sub(slot.pinged);
                let middle = slot.pinged + trip / 2;
                let offset = Offset { ns: (clock_ns as i64).wrapping_sub(nanos(middle) as i64), trip_ns: nanos(trip) };
                if slot.best.is_none_or(|best| offset.trip_ns <= best.trip_ns) {
                    slot.best = Some(offset);
                }
                slot.worst_ns = slot.worst_ns.max(offset.trip_ns);
                slot.trips += 1;
                if self.measuring.is_some() && slot.trips < TRIPS {
                    self.send_ping(index, now);
                }
                self.check_readiness(now);
            }
            (WorkerMessage::Pong { .. }, _) => {}
            (WorkerMessage::Prepared(mut prepared), SlotState::Preparing) => {
                prepared.addresses.truncate(ADDRESSES);
                (slot.state, slot.prepared) = (SlotState::Prepared, prepared);
                self.report_waiting();
                self.check_readiness(now);
            }
            (WorkerMessage::Unprepared { reason, is_wrong }, SlotState::Preparing) => {
                let lines: Vec<_> = reason.lines().map(|line| escape_controls(&line.replace('\t', "    "))).collect();
                let words = format!("{}: {}", self.describe_worker(index), lines.join("\n"));
                self.told.push_back(CoordinatorEvent::Hopeless(words, is_wrong));
            }
            (WorkerMessage::Row { number, totals }, SlotState::Running) => {
                let row_ns = nanos(self.row).max(1);
                // The worker's clock may be slightly faster than this one.
                let passed_ns = nanos(now.saturating_sub(self.started));
                let most_ns = passed_ns + passed_ns / 1_000 + ROWS_AHEAD * row_ns;
                let is_in_time = totals.from_ns <= totals.until_ns && totals.until_ns <= most_ns + row_ns;
                if number != slot.rows.rows || number > most_ns / row_ns || !is_in_time {
                    return self.lose_worker(peer, "protocol error: unexpected row of measurements");
                }
                if !slot.bound.admit_figures(&totals, machines) {
                    return self.lose_worker(peer, IMPOSSIBLE);
                }
                if !slot.kinds.admit_row(&totals) {
                    return self
                        .lose_worker(peer, "protocol error: too many kinds of errors, or an example that is too long");
                }
                slot.rows.add_row(&totals);
                self.told.push_back(CoordinatorEvent::Row(index, totals));
            }
            (WorkerMessage::Done(mut done), SlotState::Running) => {
                for end in done.ends.iter_mut().flatten() {
                    end.working.truncate(ADDRESSES);
                    end.dropped.truncate(ADDRESSES);
                }
                let most_ns = nanos(now.saturating_sub(self.started)).saturating_mul(2) + SECONDS_AHEAD_NS;
                if done.elapsed_ns.max(longest_thread_ns(&done)) > most_ns {
                    return self
                        .lose_worker(peer, "protocol error: the worker claims to have run longer than the run lasted");
                }
                let times = (done.suspended_ns, done.beside_ns, done.late_ns);
                if !slot.bound_of_end.admit_figures(&(&done.ends, &done.shares, times), machines) {
                    return self.lose_worker(peer, IMPOSSIBLE);
                }
                if done.sum != slot.rows {
                    return self.lose_worker(peer, "protocol error: the rows do not add up to the totals");
                }
                slot.state = SlotState::Done;
                let drift_ns = slot.begun.zip(slot.best).and_then(|(begun, now)| begun.drift_until(now));
                self.told.push_back(CoordinatorEvent::Done(index, done, drift_ns));
            }
            _ => self.lose_worker(peer, "protocol error: unexpected message"),
        }
    }

    /// Measures clock offsets once all workers are set up, and then reports once that the run is ready.
    fn check_readiness(&mut self, now: Duration) {
        let Some(job) = self.job.as_ref().filter(|_| !self.is_ready) else { return };
        let is_set_up = |(slot, frames): (&WorkerSlot, &Vec<Arc<[u8]>>)| match slot.state {
            SlotState::There => frames.is_empty(),
            SlotState::Prepared => true,
            _ => false,
        };
        if !self.slots.iter().zip(&job.frames).all(is_set_up) {
            return;
        }
        let prepared = |slot: &WorkerSlot| slot.state == SlotState::Prepared;
        if self.measuring.is_none() {
            self.measuring = Some(now);
            for index in 0..self.rules.machines {
                let slot = &mut self.slots[index as usize];
                if prepared(slot) {
                    (slot.trips, slot.best, slot.worst_ns) = (0, None, 0);
                    self.send_ping(index, now);
                }
            }
        }
        let passed = self.measuring.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let enough = if passed < TRIPS_TAKE { TRIPS } else { 1 };
        if self.slots.iter().any(|slot| prepared(slot) && slot.trips < enough) {
            return;
        }
        self.is_ready = true;
        // The order should arrive in time even if it is lost once, and no earlier than needed: clocks drift until the
        // start.
        let longest = |trip: fn(&WorkerSlot) -> u64| {
            self.slots.iter().map(trip).max().map_or(Duration::ZERO, Duration::from_nanos)
        };
        let usual = longest(|slot| slot.best.map_or(0, |best| best.trip_ns));
        let ahead = AHEAD + (3 * longest(|slot| slot.worst_ns)).min(3 * usual + SENT_AGAIN);
        let trip = |slot: &WorkerSlot| Duration::from_nanos(slot.best.map_or(0, |best| best.trip_ns));
        let prepared =
            self.slots.iter().filter(|slot| prepared(slot)).map(|slot| (slot.prepared.clone(), trip(slot))).collect();
        self.told.push_back(CoordinatorEvent::Ready(prepared, ahead));
    }

    fn report_waiting(&mut self) {
        let count = |is: fn(SlotState) -> bool| self.slots.iter().filter(|slot| is(slot.state)).count() as u32;
        let there = count(|state| state != SlotState::Empty);
        self.told.push_back(CoordinatorEvent::Waiting { there, prepared: count(|state| state == SlotState::Prepared) });
    }

    /// Ends a connection; `why` is the reason for the user.
    pub fn lose_worker(&mut self, peer: PeerId, why: &str) {
        self.acts.push_back(ConnectionAction::Close(peer));
        let Some(index) = self.find_worker(peer) else { return };
        let words = self.describe_worker(index);
        // A worker hangs up if the coordinator is silent for too long.
        let is_recent =
            |(when, length): &(Duration, Duration)| self.looked < *when + RECENTLY && *length >= self.rules.loss;
        let still = self
            .stood_still
            .filter(is_recent)
            .map(|(_, length)| format!(", after the coordinator stalled for {} s", length.as_secs()));
        let why = &format!("{why}{}", still.unwrap_or_default());
        let slot = &mut self.slots[index as usize];
        slot.peer = None;
        match slot.state {
            SlotState::Running => {
                slot.state = SlotState::Lost;
                self.told.push_back(CoordinatorEvent::Lost(index, format!("{words}: {why}")));
            }
            // The worker's measurements have arrived, if it had a part. The next run of a search must not wait for it.
            SlotState::Done => slot.state = SlotState::Lost,
            SlotState::There if self.is_ready => slot.state = SlotState::Lost,
            SlotState::Empty | SlotState::There | SlotState::Preparing | SlotState::Prepared
                if self.is_ready || self.has_run =>
            {
                slot.state = SlotState::Lost;
                self.told.push_back(CoordinatorEvent::Lost(index, format!("{words}: {why}")));
            }
            SlotState::Lost => {}
            SlotState::Empty | SlotState::There | SlotState::Preparing | SlotState::Prepared => {
                *slot = WorkerSlot::default();
                self.measuring = None;
                self.told.push_back(CoordinatorEvent::Refused(format!(
                    "{words}: {why}; another worker can take its \
                                                                       place"
                )));
                self.report_waiting();
            }
        }
    }

    /// Describes a worker to the user: its number (from one) and the name of its machine.
    fn describe_worker(&self, index: u32) -> String {
        let name = onrush_text::escape(self.slots[index as usize].name.as_bytes());
        format!("machine {} ({name})", index + 1)
    }

    /// Detects whether this machine has stood still since the last call: it was suspended, or had no processor.
    pub fn detect_standstill(&mut self, now: Duration) {
        let stood_still = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        if stood_still >= self.rules.loss / 5 {
            self.slots.iter_mut().for_each(|slot| slot.heard += stood_still);
            self.stood_still = Some((now, stood_still));
        }
    }

    /// Drops workers that were silent for too long, and sends the pings that are due. Must be called regularly.
    pub fn on_tick(&mut self, now: Duration) {
        self.detect_standstill(now);
        if !self.is_ready && self.job.is_some() && now >= self.asked + self.rules.join {
            let missing = self.describe_missing();
            self.job = None;
            self.told.push_back(CoordinatorEvent::Hopeless(missing, false));
        }
        self.check_readiness(now);
        for index in 0..self.rules.machines {
            let slot = &self.slots[index as usize];
            let Some(peer) = slot.peer else { continue };
            let silent = now.saturating_sub(slot.heard);
            // A worker that is still receiving its files sends nothing; --join-timeout limits that time.
            let has_files = self.job.as_ref().is_some_and(|job| job.frames[index as usize].len() > 1);
            let is_receiving = slot.state == SlotState::Preparing && has_files;
            if silent >= self.rules.loss && !is_receiving {
                let why = format!("no message for {} s", silent.as_secs());
                self.lose_worker(peer, &why);
            } else if now.saturating_sub(slot.pinged) >= self.rules.loss / 5 {
                self.send_ping(index, now);
            }
        }
    }

    /// Lists the missing workers for the user.
    fn describe_missing(&self) -> String {
        let mut never = Vec::new();
        let mut unprepared = Vec::new();
        for (index, slot) in (0..).zip(&self.slots) {
            match slot.state {
                SlotState::Empty | SlotState::Lost => never.push(format!("{}", index + 1)),
                SlotState::There | SlotState::Preparing => unprepared.push(self.describe_worker(index)),
                _ => {}
            }
        }
        let there = self.slots.len() - never.len();
        let mut words =
            format!("{there} of {} machines joined within {} s", self.slots.len(), self.rules.join.as_secs());
        if !never.is_empty() {
            words += &format!("; missing: {}", shorten_list(&never));
        }
        if !unprepared.is_empty() {
            words += &format!("; still setting up: {}", shorten_list(&unprepared));
        }
        if self.strangers > 0 {
            let closed = format_count(u64::from(self.strangers), "connection");
            words += &format!("; {closed} without the secret made room for others");
        }
        let sent = if self.has_run { "" } else { "no request was sent; " };
        format!("{words}; {sent}--join-timeout allows more time")
    }
}

/// Running time of the thread that ran longest, in nanoseconds; zero without results.
fn longest_thread_ns(done: &Done) -> u64 {
    done.ends.iter().flatten().map(|end| end.elapsed_ns).max().unwrap_or_default()
}

/// The first ten entries of a list, and the number of the others.
fn shorten_list(all: &[String]) -> String {
    let (shown, rest) = all.split_at(all.len().min(10));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    shown.join(", ") + &more
}
