//! The coordinator's view of its workers and its next steps, without sockets and without a clock: input comes by
//! [`Coordinator::hear`] and [`Coordinator::order`]; messages to send and events to report come out.
//!
//! No request is sent before every worker has joined and set up its part. Each then begins at the same moment, given on
//! its own clock: the shortest of several round trips gives the offset from the coordinator's clock, to half that trip.
//! Clocks are never compared otherwise, and never corrected.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use onrush_stats::Totals;
use onrush_text::printable;
use onrush_text::units::counted;

use super::figures::{Bound, Kinds};
use super::message::{Done, Order, Prepared, Refusal, Report, Sum};
use crate::run::nanos;

/// How many round trips a worker has before it begins, once everybody has set its part up, and how long they may take
/// altogether: clocks drift meanwhile.
const TRIPS: u32 = 12;
const TRIPS_TAKE: Duration = Duration::from_millis(500);
/// How long a run is announced ahead, beside a few of the longest round trips.
const AHEAD: Duration = Duration::from_millis(50);
/// Linux sends a lost packet again after this time, besides a round trip.
const SENT_AGAIN: Duration = Duration::from_millis(200);
/// A standstill is named as the reason of events for this long afterwards.
const RECENTLY: Duration = Duration::from_secs(1);
/// How many rows more than time has passed a worker may send: it may have been stalled.
const ROWS_AHEAD: u64 = 20;
/// Addresses of a worker that are compared with others'; a name has fewer.
const ADDRESSES: usize = 256;
/// How much longer a part may have lasted than the run, in nanoseconds.
const SECONDS_AHEAD_NS: u64 = 10_000_000_000;

/// Why a worker is lost whose figures cannot be added up.
const IMPOSSIBLE: &str = "it sent figures that no machine can measure";

/// A connection, by its number.
pub type Peer = u64;

/// A command to the coordinator.
pub enum Ask {
    /// Have each worker set its part up.
    Prepare(Job),
    /// Begin at this moment.
    Start(Duration),
    /// End the run.
    Stop,
    /// Let all workers go.
    Dismiss,
}

/// The work that the workers are to set up.
pub struct Job {
    /// For each, the order and the pieces of the files, as frames; none for one that has no part in this run.
    pub frames: Vec<Vec<Arc<[u8]>>>,
    /// How long their rows are.
    pub row: Duration,
}

/// An action on a connection.
pub enum Act {
    /// Send an order.
    Send(Peer, Order),
    /// Send frames.
    Frames(Peer, Vec<Arc<[u8]>>),
    /// Close it.
    Close(Peer),
}

/// An event to report.
pub enum Told {
    /// Workers that have come, and workers that have set their part up.
    Waiting {
        /// Workers that have come.
        there: u32,
        /// How many have set their part up.
        prepared: u32,
    },
    /// All have set their parts up, in this way, and with this shortest round trip. The run may begin in so long.
    Ready(Vec<(Prepared, Duration)>, Duration),
    /// A worker cannot set its part up, or there are too few: why, for people, and whether the command line is at
    /// fault.
    Hopeless(String, bool),
    /// Measurements of a worker in one row.
    Row(u32, Box<Totals>),
    /// End of a worker's part, with the drift of its clock against ours during the run, in nanoseconds, if it exceeds
    /// the error of both round trips.
    Done(u32, Box<Done>, Option<i64>),
    /// A worker was lost in the run: why, for people.
    Lost(u32, String),
    /// A worker was refused, or has left before the run: which and why, for people.
    Refused(String),
}

/// Offset of a worker's clock from ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// Its clock minus ours, in nanoseconds.
    pub ns: i64,
    /// The round trip that this was found with, in nanoseconds: the error is at most half of it.
    pub trip_ns: u64,
}

impl Offset {
    /// Drift of the clock up to the later offset, in nanoseconds; `None` if it is within the error of both.
    fn drift_until(self, later: Self) -> Option<i64> {
        let moved_ns = later.ns.wrapping_sub(self.ns);
        (moved_ns.unsigned_abs() > (self.trip_ns / 2).saturating_add(later.trip_ns / 2)).then_some(moved_ns)
    }
}

/// A worker's part of the run.
#[derive(Default)]
struct Seat {
    peer: Option<Peer>,
    name: String,
    state: State,
    /// Time of its last message.
    heard: Duration,
    /// When the last ping was sent, and its number.
    pinged: Duration,
    ping: u64,
    trips: u32,
    best: Option<Offset>,
    /// The longest of the round trips.
    worst_ns: u64,
    /// The offset when the run began, and the best round trip's since.
    begun: Option<Offset>,
    prepared: Prepared,
    rows: Sum,
    kinds: Kinds,
    /// The bounds on the figures of its rows, and of its end, which are equal for all.
    bound: Bound,
    bound_of_end: Bound,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Has not come, or has gone again.
    #[default]
    Empty,
    /// Has come.
    There,
    /// Was told to set its part up.
    Preparing,
    /// Has set its part up.
    Prepared,
    /// Runs.
    Running,
    /// Its part has ended.
    Done,
    /// Was lost in the run.
    Lost,
}

/// Rules of a coordinator.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How many workers take part.
    pub machines: u32,
    /// How long they may take to come.
    pub join: Duration,
    /// How long a worker may be silent.
    pub loss: Duration,
}

/// The coordinator.
pub struct Coordinator {
    rules: Rules,
    seats: Vec<Seat>,
    /// The work of each worker, if it is known.
    job: Option<Job>,
    /// Start of waiting for them.
    asked: Duration,
    /// Since when all have set their parts up and their clocks' offsets are being measured.
    measuring: Option<Duration>,
    is_ready: bool,
    /// True if any run has begun: a lost worker is not replaced after that.
    has_run: bool,
    /// Time of the last look at everything, and the last standstill of this machine: its end and its length.
    looked: Duration,
    stood_still: Option<(Duration, Duration)>,
    /// When the run began, and how long its rows are.
    started: Duration,
    row: Duration,
    /// How many connections that had not proved the secret were closed to make room for others.
    pub strangers: u32,
    /// Actions to take next.
    pub acts: VecDeque<Act>,
    /// Events to report.
    pub told: VecDeque<Told>,
}

impl Coordinator {
    /// A coordinator, at time zero.
    pub fn new(rules: Rules) -> Self {
        Self {
            seats: (0..rules.machines).map(|_| Seat::default()).collect(),
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

    /// Gives a worker that has proved itself a seat: the one with its number, or the first that is empty.
    ///
    /// # Errors
    ///
    /// Why it takes no part.
    pub fn join(&mut self, peer: Peer, name: &str, index: Option<u32>, now: Duration) -> Result<u32, Refusal> {
        let is_empty = |seat: &Seat| seat.state == State::Empty;
        if self.has_run {
            return Err(Refusal::Begun);
        }
        let index = match index {
            Some(index) if index >= self.rules.machines => return Err(Refusal::NoPart(self.rules.machines)),
            Some(index) if !is_empty(&self.seats[index as usize]) => return Err(Refusal::Taken(index)),
            Some(index) => index,
            None => self.seats.iter().position(is_empty).ok_or(Refusal::TooMany(self.rules.machines))? as u32,
        };
        self.seats[index as usize] =
            Seat { peer: Some(peer), name: name.to_owned(), state: State::There, heard: now, ..Seat::default() };
        self.prepare(index);
        self.tell_waiting();
        Ok(index)
    }

    /// Carries out a command.
    pub fn order(&mut self, ask: Ask, now: Duration) {
        match ask {
            Ask::Prepare(job) => {
                self.row = job.row;
                self.job = Some(job);
                self.asked = now;
                (self.measuring, self.is_ready) = (None, false);
                if let Some(lost) = self.seats.iter().position(|seat| seat.state == State::Lost) {
                    let words = format!("{} was lost before", self.words(lost as u32));
                    self.told.push_back(Told::Hopeless(words, false));
                }
                for index in 0..self.rules.machines {
                    if self.seats[index as usize].state == State::Done {
                        self.seats[index as usize].state = State::There;
                    }
                    self.prepare(index);
                }
            }
            Ask::Start(at) => {
                (self.has_run, self.started, self.job) = (true, at, None);
                for seat in &mut self.seats {
                    let (Some(peer), Some(offset), State::Prepared) = (seat.peer, seat.best, seat.state) else {
                        continue;
                    };
                    let theirs = (nanos(at) as i64).wrapping_add(offset.ns);
                    seat.state = State::Running;
                    (seat.rows, seat.kinds) = (Sum::default(), Kinds::default());
                    (seat.bound, seat.bound_of_end) = (Bound::default(), Bound::default());
                    // Offsets found from now on tell how the clock drifts.
                    (seat.begun, seat.best) = (Some(offset), None);
                    self.acts.push_back(Act::Send(peer, Order::Start(theirs.max(0) as u64)));
                }
            }
            Ask::Stop => self.tell_all(|| Order::Stop),
            Ask::Dismiss => self.tell_all(|| Order::Dismiss),
        }
    }

    fn tell_all(&mut self, order: impl Fn() -> Order) {
        let peers = self.seats.iter().filter_map(|seat| seat.peer);
        self.acts.extend(peers.map(|peer| Act::Send(peer, order())));
    }

    /// Has a worker set its part up, if it is known.
    fn prepare(&mut self, index: u32) {
        let seat = &mut self.seats[index as usize];
        let (Some(job), Some(peer), State::There) = (&self.job, seat.peer, seat.state) else { return };
        let frames = &job.frames[index as usize];
        if !frames.is_empty() {
            seat.state = State::Preparing;
            self.acts.push_back(Act::Frames(peer, frames.clone()));
        }
    }

    fn ping(&mut self, index: u32, now: Duration) {
        let seat = &mut self.seats[index as usize];
        let Some(peer) = seat.peer else { return };
        seat.ping += 1;
        seat.pinged = now;
        self.acts.push_back(Act::Send(peer, Order::Ping(seat.ping)));
    }

    fn find(&self, peer: Peer) -> Option<u32> {
        self.seats.iter().position(|seat| seat.peer == Some(peer)).map(|index| index as u32)
    }

    /// Records that bytes have arrived: a long message is no silence.
    pub fn heard(&mut self, peer: Peer, now: Duration) {
        if let Some(index) = self.find(peer) {
            self.seats[index as usize].heard = now;
        }
    }

    /// Takes a worker's report.
    pub fn hear(&mut self, peer: Peer, report: Report, now: Duration) {
        let Some(index) = self.find(peer) else { return };
        let machines = self.seats.len();
        let seat = &mut self.seats[index as usize];
        seat.heard = now;
        match (report, seat.state) {
            (Report::Pong { number, clock_ns }, _) if number == seat.ping && number > 0 => {
                let trip = now.saturating_sub(seat.pinged);
                let middle = seat.pinged + trip / 2;
                let offset = Offset { ns: (clock_ns as i64).wrapping_sub(nanos(middle) as i64), trip_ns: nanos(trip) };
                if seat.best.is_none_or(|best| offset.trip_ns <= best.trip_ns) {
                    seat.best = Some(offset);
                }
                seat.worst_ns = seat.worst_ns.max(offset.trip_ns);
                seat.trips += 1;
                if self.measuring.is_some() && seat.trips < TRIPS {
                    self.ping(index, now);
                }
                self.see_whether_ready(now);
            }
            (Report::Pong { .. }, _) => {}
            (Report::Prepared(mut prepared), State::Preparing) => {
                prepared.addresses.truncate(ADDRESSES);
                (seat.state, seat.prepared) = (State::Prepared, prepared);
                self.tell_waiting();
                self.see_whether_ready(now);
            }
            (Report::Unprepared { reason, is_wrong }, State::Preparing) => {
                let lines: Vec<_> = reason.lines().map(|line| printable(&line.replace('\t', "    "))).collect();
                let words = format!("{}: {}", self.words(index), lines.join("\n"));
                self.told.push_back(Told::Hopeless(words, is_wrong));
            }
            (Report::Row { number, totals }, State::Running) => {
                let row_ns = nanos(self.row).max(1);
                // A clock may be a little faster than this one.
                let passed_ns = nanos(now.saturating_sub(self.started));
                let most_ns = passed_ns + passed_ns / 1_000 + ROWS_AHEAD * row_ns;
                let is_in_time = totals.from_ns <= totals.until_ns && totals.until_ns <= most_ns + row_ns;
                if number != seat.rows.rows || number > most_ns / row_ns || !is_in_time {
                    return self.lose(peer, "it sent a row out of turn");
                }
                if !seat.bound.admits(&totals, machines) {
                    return self.lose(peer, IMPOSSIBLE);
                }
                if !seat.kinds.admit(&totals) {
                    return self.lose(peer, "it sent more kinds of errors, or longer examples, than there can be");
                }
                seat.rows.add(&totals);
                self.told.push_back(Told::Row(index, totals));
            }
            (Report::Done(mut done), State::Running) => {
                for end in done.ends.iter_mut().flatten() {
                    end.working.truncate(ADDRESSES);
                    end.dropped.truncate(ADDRESSES);
                }
                let most_ns = nanos(now.saturating_sub(self.started)).saturating_mul(2) + SECONDS_AHEAD_NS;
                if done.elapsed_ns.max(longest_ns(&done)) > most_ns {
                    return self.lose(peer, "it says that it lasted longer than the run");
                }
                let times = (done.suspended_ns, done.beside_ns, done.late_ns);
                if !seat.bound_of_end.admits(&(&done.ends, &done.shares, times), machines) {
                    return self.lose(peer, IMPOSSIBLE);
                }
                if done.sum != seat.rows {
                    return self.lose(peer, "what it measured does not add up to what it sent");
                }
                seat.state = State::Done;
                let drift_ns = seat.begun.zip(seat.best).and_then(|(begun, now)| begun.drift_until(now));
                self.told.push_back(Told::Done(index, done, drift_ns));
            }
            _ => self.lose(peer, "it said something out of turn"),
        }
    }

    /// Measures clock offsets when all have set their parts up, and then reports once that everybody is ready.
    fn see_whether_ready(&mut self, now: Duration) {
        let Some(job) = self.job.as_ref().filter(|_| !self.is_ready) else { return };
        let is_set_up = |(seat, frames): (&Seat, &Vec<Arc<[u8]>>)| match seat.state {
            State::There => frames.is_empty(),
            State::Prepared => true,
            _ => false,
        };
        if !self.seats.iter().zip(&job.frames).all(is_set_up) {
            return;
        }
        let prepared = |seat: &Seat| seat.state == State::Prepared;
        if self.measuring.is_none() {
            self.measuring = Some(now);
            for index in 0..self.rules.machines {
                let seat = &mut self.seats[index as usize];
                if prepared(seat) {
                    (seat.trips, seat.best, seat.worst_ns) = (0, None, 0);
                    self.ping(index, now);
                }
            }
        }
        let passed = self.measuring.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let enough = if passed < TRIPS_TAKE { TRIPS } else { 1 };
        if self.seats.iter().any(|seat| prepared(seat) && seat.trips < enough) {
            return;
        }
        self.is_ready = true;
        // The order should arrive in time even if it is lost once, and no sooner: clocks drift until the beginning,
        // too.
        let longest =
            |trip: fn(&Seat) -> u64| self.seats.iter().map(trip).max().map_or(Duration::ZERO, Duration::from_nanos);
        let usual = longest(|seat| seat.best.map_or(0, |best| best.trip_ns));
        let ahead = AHEAD + (3 * longest(|seat| seat.worst_ns)).min(3 * usual + SENT_AGAIN);
        let trip = |seat: &Seat| Duration::from_nanos(seat.best.map_or(0, |best| best.trip_ns));
        let prepared =
            self.seats.iter().filter(|seat| prepared(seat)).map(|seat| (seat.prepared.clone(), trip(seat))).collect();
        self.told.push_back(Told::Ready(prepared, ahead));
    }

    fn tell_waiting(&mut self) {
        let count = |is: fn(State) -> bool| self.seats.iter().filter(|seat| is(seat.state)).count() as u32;
        let there = count(|state| state != State::Empty);
        self.told.push_back(Told::Waiting { there, prepared: count(|state| state == State::Prepared) });
    }

    /// Ends a connection; `why`: for people.
    pub fn lose(&mut self, peer: Peer, why: &str) {
        self.acts.push_back(Act::Close(peer));
        let Some(index) = self.find(peer) else { return };
        let words = self.words(index);
        // Workers leave a coordinator that is silent.
        let is_recent =
            |(when, length): &(Duration, Duration)| self.looked < *when + RECENTLY && *length >= self.rules.loss;
        let still = self
            .stood_still
            .filter(is_recent)
            .map(|(_, length)| format!(", after the coordinator had stood still for {} s", length.as_secs()));
        let why = &format!("{why}{}", still.unwrap_or_default());
        let seat = &mut self.seats[index as usize];
        seat.peer = None;
        match seat.state {
            State::Running => {
                seat.state = State::Lost;
                self.told.push_back(Told::Lost(index, format!("{words}: {why}")));
            }
            // Its measurements have arrived, if it had a part; the next run of a search would wait for it in vain.
            State::Done => seat.state = State::Lost,
            State::There if self.is_ready => seat.state = State::Lost,
            State::Empty | State::There | State::Preparing | State::Prepared if self.is_ready || self.has_run => {
                seat.state = State::Lost;
                self.told.push_back(Told::Lost(index, format!("{words}: {why}")));
            }
            State::Lost => {}
            State::Empty | State::There | State::Preparing | State::Prepared => {
                *seat = Seat::default();
                self.measuring = None;
                self.told.push_back(Told::Refused(format!("{words}: {why}; another may take its place")));
                self.tell_waiting();
            }
        }
    }

    /// A worker, for people: its number, from one, and the name of its machine.
    fn words(&self, index: u32) -> String {
        let name = onrush_text::escape(self.seats[index as usize].name.as_bytes());
        format!("machine {} ({name})", index + 1)
    }

    /// Notices that this machine stood still since the last call: it was suspended, or had no processor.
    pub fn look(&mut self, now: Duration) {
        let stood_still = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        if stood_still >= self.rules.loss / 5 {
            self.seats.iter_mut().for_each(|seat| seat.heard += stood_still);
            self.stood_still = Some((now, stood_still));
        }
    }

    /// Looks for workers that were silent for too long, and pings workers when it is time.
    pub fn tick(&mut self, now: Duration) {
        self.look(now);
        if !self.is_ready && self.job.is_some() && now >= self.asked + self.rules.join {
            let missing = self.missing();
            self.job = None;
            self.told.push_back(Told::Hopeless(missing, false));
        }
        self.see_whether_ready(now);
        for index in 0..self.rules.machines {
            let seat = &self.seats[index as usize];
            let Some(peer) = seat.peer else { continue };
            let silent = now.saturating_sub(seat.heard);
            // A worker that is still receiving its files sends nothing; --join-timeout ends that.
            let has_files = self.job.as_ref().is_some_and(|job| job.frames[index as usize].len() > 1);
            let is_receiving = seat.state == State::Preparing && has_files;
            if silent >= self.rules.loss && !is_receiving {
                let why = format!("it was silent for {} s", silent.as_secs());
                self.lose(peer, &why);
            } else if now.saturating_sub(seat.pinged) >= self.rules.loss / 5 {
                self.ping(index, now);
            }
        }
    }

    /// Who is missing, for people.
    fn missing(&self) -> String {
        let mut never = Vec::new();
        let mut unprepared = Vec::new();
        for (index, seat) in (0..).zip(&self.seats) {
            match seat.state {
                State::Empty | State::Lost => never.push(format!("{}", index + 1)),
                State::There | State::Preparing => unprepared.push(self.words(index)),
                _ => {}
            }
        }
        let there = self.seats.len() - never.len();
        let mut words =
            format!("{there} of {} machines had joined after {} s", self.seats.len(), self.rules.join.as_secs());
        if !never.is_empty() {
            words += &format!("; missing: {}", shortened(&never));
        }
        if !unprepared.is_empty() {
            words += &format!("; still setting up: {}", shortened(&unprepared));
        }
        if self.strangers > 0 {
            let closed = counted(u64::from(self.strangers), "connection");
            words += &format!("; {closed} without the secret had to make room for others");
        }
        let sent = if self.has_run { "" } else { "no request was sent. " };
        format!("{words}; {sent}--join-timeout allows more time")
    }
}

/// How long the longest thread of a part lasted, in nanoseconds.
fn longest_ns(done: &Done) -> u64 {
    done.ends.iter().flatten().map(|end| end.elapsed_ns).max().unwrap_or_default()
}

/// The first of many.
fn shortened(all: &[String]) -> String {
    let (shown, rest) = all.split_at(all.len().min(10));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    shown.join(", ") + &more
}
