//! The thread that takes readings a few times a second and adds them up.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use super::connections::Connections;
use super::groups::Groups;
use super::holders::Holders;
use super::listeners::{Listener, Place};
use super::machine::Machine;
use super::processes::Processes;
use super::{Orders, Seen, Unseen};
use crate::backend::{monotonic_ns, thread_cpu_ns};
use crate::run::nanos;
use crate::verdict::{self, Listening, Network, Target};

/// How often queues and connections are read.
const LOOK: Duration = Duration::from_millis(250);
/// Processes are read in every this many-th round.
const LOOKS_PER_ROUND: u32 = 4;
/// A pause is at least this many times as long as the readings before it: watching takes less than 0.5 % of a
/// processor.
const REST: u32 = 200;
/// How much processor time the first search for processes may take, each later one, and the last one, which the end of
/// a run waits for.
const FIRST_SEARCH: Duration = Duration::from_millis(50);
const SEARCH: Duration = Duration::from_millis(5);
const LAST_SEARCH: Duration = Duration::from_millis(3);

/// The watcher thread.
pub(super) struct Watcher {
    place: Option<Place>,
    listeners: Result<Vec<Listener>, Unseen>,
    /// The longest queue that was seen, and its limit.
    queue: Option<(u32, u32)>,
    holders: Holders,
    processes: Processes,
    target_groups: Groups,
    connections: Connections,
    connections_unseen: Option<Unseen>,
    own_group: Groups,
    /// A reading taken before the run, if counting begins with it.
    before: Option<Machine>,
    /// When counting began, and a reading of the machine at that time.
    began: Option<(u64, Machine)>,
}

impl Watcher {
    /// Creates a watcher of the target at a place, or only of the machine; `before` is a reading taken before the run.
    pub fn new(place: Option<Place>, before: Option<Machine>) -> Self {
        let mut own_group = Groups::default();
        own_group.add("self");
        Self {
            place,
            listeners: Ok(Vec::new()),
            queue: None,
            holders: Holders::default(),
            processes: Processes::default(),
            target_groups: Groups::default(),
            connections: Connections::default(),
            connections_unseen: None,
            own_group,
            before,
            began: None,
        }
    }

    /// Watches until it is told to end, and drops `searched` after the first search.
    pub fn watch(mut self, orders: &Orders, searched: Sender<()>) -> Seen {
        let (mut looks, mut restarts) = (0_u32, 0);
        self.look();
        let is_late = limit(FIRST_SEARCH);
        self.search(&|| is_late() || orders.have_ended());
        drop(searched);
        loop {
            let cpu_ns = thread_cpu_ns();
            match orders.restarts.load(Ordering::Relaxed) {
                told if told != restarts => {
                    restarts = told;
                    self.restart();
                }
                _ if looks % LOOKS_PER_ROUND == 0 => self.look_around(SEARCH),
                _ => self.look(),
            }
            looks = looks.wrapping_add(1);
            let rest = Duration::from_nanos(thread_cpu_ns() - cpu_ns) * REST;
            orders.wait(restarts, rest.max(LOOK));
            // Both may have been ordered since the last round.
            if orders.have_ended() && orders.restarts.load(Ordering::Relaxed) == restarts {
                break;
            }
        }
        let Some((began_ns, before)) = self.began else { return Seen::default() };
        self.look_around(LAST_SEARCH);
        self.seen(Duration::from_nanos(monotonic_ns() - began_ns), &before)
    }

    /// Counting begins.
    fn restart(&mut self) {
        (self.queue, self.connections_unseen) = (None, None);
        self.connections.restart();
        self.look();
        self.target_groups.restart();
        self.own_group.restart();
        self.processes.restart(&limit(SEARCH));
        self.began = Some((monotonic_ns(), self.before.take().unwrap_or_else(Machine::read)));
    }

    /// Reads the queues and connections.
    fn look(&mut self) {
        let Some(place) = &self.place else { return };
        self.listeners = place.listeners();
        let listeners = self.listeners.as_deref().unwrap_or_default();
        let longest = listeners.iter().filter_map(|listener| listener.queue).max();
        self.queue = self.queue.max(longest);
        if let Place::Tcp(addresses) = place {
            let families: BTreeSet<bool> = listeners.iter().map(|listener| listener.v6).collect();
            let families: Vec<bool> = families.into_iter().collect();
            let looked = self.connections.look(addresses, &families, monotonic_ns() / 1_000);
            self.connections_unseen = looked.err().map(Unseen::Connections);
        }
    }

    /// Reads everything.
    fn look_around(&mut self, time: Duration) {
        self.look();
        // Reading thousands of sockets must leave time for the processes.
        let is_over = limit(time);
        // Known processes come first.
        self.processes.look(&is_over);
        if self.processes.have_ended() && !self.processes.is_empty() {
            // Before the target counts as dead, search once more: another process may have taken over.
            self.search(&limit(FIRST_SEARCH));
        } else {
            self.search(&is_over);
        }
    }

    /// Looks for processes that hold the listening sockets.
    fn search(&mut self, is_over: &dyn Fn() -> bool) {
        let inodes = self.listeners.iter().flatten().map(|listener| listener.inode).collect();
        for process in self.holders.search(inodes, is_over) {
            self.processes.add(process);
            self.target_groups.add(&process.to_string());
        }
    }

    /// What was seen since counting began.
    fn seen(&self, passed: Duration, before: &Machine) -> Seen {
        let now = Machine::read();
        let mut unseen: Vec<Unseen> = self.connections_unseen.into_iter().collect();
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let stolen = now.stolen_since(before);
        unseen.extend(stolen.is_none().then_some(Unseen::Stolen));
        let own = self.own_group.are_visible().then(|| seconds(self.own_group.throttled_ns()));
        unseen.extend(own.is_none().then_some(Unseen::OwnGroup));
        let target = match self.why_unseen() {
            Some(why) => {
                unseen.insert(0, why);
                None
            }
            None => Some(self.target(passed, &now, before, &mut unseen)),
        };
        let machine = verdict::Machine { stolen, clock_step_s: now.step_since_s(before), ..Default::default() };
        Seen { target, machine, throttled_s: own, unseen }
    }

    /// Why nothing can be said about the target.
    fn why_unseen(&self) -> Option<Unseen> {
        match (&self.place, &self.listeners) {
            (None, _) => Some(Unseen::Remote),
            _ if self.connections.are_forwarded() => Some(Unseen::Forwarded),
            _ if !self.processes.is_empty() => None,
            (_, Err(unseen)) => Some(*unseen),
            (_, Ok(listeners)) if listeners.is_empty() => Some(Unseen::NoListener),
            _ if !self.holders.are_complete => Some(Unseen::Unsearched),
            _ if self.holders.were_denied => Some(Unseen::Denied),
            _ => Some(Unseen::NoProcess),
        }
    }

    fn target(&self, passed: Duration, now: &Machine, before: &Machine, unseen: &mut Vec<Unseen>) -> Target {
        unseen.extend((!self.holders.are_complete).then_some(Unseen::Unsearched));
        let is_visible = self.target_groups.are_visible();
        unseen.extend((!is_visible).then_some(Unseen::TargetGroup));
        let overflows = now.overflows_since(before);
        unseen.extend((self.queue.is_some() && overflows.is_none()).then_some(Unseen::Overflows));
        let share = |ns: u64| ns as f64 / passed.as_nanos().max(1) as f64;
        let processors = self.processes.processors() as f64;
        Target {
            name: self.processes.name(),
            processes: self.processes.most,
            ended: self.processes.have_ended(),
            cpus_used: share(self.processes.cpu_ns()),
            cpus_allowed: self.target_groups.processors().map_or(processors, |limit| limit.min(processors)),
            busiest_thread: share(self.processes.busiest_ns()),
            throttled_s: is_visible.then(|| Duration::from_nanos(self.target_groups.throttled_ns()).as_secs_f64()),
            listening: self.queue.map(|(waiting_max, limit)| Listening { waiting_max, limit, overflows }),
            network: Network::of(self.connections.sums(), 0.0),
        }
    }
}

/// Returns whether this thread has used that much processor time from now on. The time of other threads does not count.
fn limit(time: Duration) -> impl Fn() -> bool {
    let until_ns = thread_cpu_ns() + nanos(time);
    move || thread_cpu_ns() >= until_ns
}
