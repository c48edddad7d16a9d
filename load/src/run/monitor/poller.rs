//! The thread that takes and accumulates readings a few times a second.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use onrush_engine::backend::{monotonic_ns, thread_cpu_ns};

use super::connections::Connections;
use super::groups::ControlGroups;
use super::holders::Holders;
use super::listeners::{Listener, LocalTarget};
use super::machine::MachineReading;
use super::processes::Processes;
use super::seen::{self, Listening, MonitorReport, Network, Target};
use super::{PollerOrders, Unobserved};
use crate::run::nanos;

/// Time between two readings of queues and connections.
const LOOK: Duration = Duration::from_millis(250);
/// Number of rounds between two readings of processes.
const LOOKS_PER_ROUND: u32 = 4;
/// A pause is at least this many times as long as the readings before it, so watching takes less than 0.5 % of a
/// processor.
const REST: u32 = 200;
/// Processor time allowed for the first search for processes, for each later search, and for the last one, which delays
/// the end of the run.
const FIRST_SEARCH: Duration = Duration::from_millis(50);
const SEARCH: Duration = Duration::from_millis(5);
const LAST_SEARCH: Duration = Duration::from_millis(3);

/// State of the monitor thread.
pub(super) struct Poller {
    place: Option<LocalTarget>,
    listeners: Result<Vec<Listener>, Unobserved>,
    /// Longest accept queue seen, and its limit.
    queue: Option<(u32, u32)>,
    holders: Holders,
    processes: Processes,
    target_groups: ControlGroups,
    connections: Connections,
    connections_unseen: Option<Unobserved>,
    own_group: ControlGroups,
    /// Reading from before the run, if counting starts with the run.
    before: Option<MachineReading>,
    /// Start of counting, and the machine's reading at that time.
    began: Option<(u64, MachineReading)>,
}

impl Poller {
    /// Creates a poller of a local target, or only of the machine; `before` is a reading from before the run.
    pub fn new(place: Option<LocalTarget>, before: Option<MachineReading>) -> Self {
        let mut own_group = ControlGroups::default();
        own_group.add_process("self");
        Self {
            place,
            listeners: Ok(Vec::new()),
            queue: None,
            holders: Holders::default(),
            processes: Processes::default(),
            target_groups: ControlGroups::default(),
            connections: Connections::default(),
            connections_unseen: None,
            own_group,
            before,
            began: None,
        }
    }

    /// Watches until ordered to end. Drops `searched` after the first search.
    pub fn run_poller(mut self, orders: &PollerOrders, searched: Sender<()>) -> MonitorReport {
        let (mut looks, mut restarts) = (1_u32, 0);
        // There are no connections yet, and each search for them costs the kernel a millisecond or two.
        self.read_listeners();
        let is_late = cpu_time_limit(FIRST_SEARCH);
        self.search_holders(&|| is_late() || orders.is_end_ordered());
        drop(searched);
        loop {
            let cpu_ns = thread_cpu_ns();
            match orders.restarts.load(Ordering::Relaxed) {
                asked if asked != restarts => {
                    restarts = asked;
                    self.restart_counts();
                }
                _ if looks % LOOKS_PER_ROUND == 0 => self.read_everything(SEARCH),
                _ => self.read_queues_and_connections(),
            }
            looks = looks.wrapping_add(1);
            let rest = Duration::from_nanos(thread_cpu_ns() - cpu_ns) * REST;
            orders.wait_for_order(restarts, rest.max(LOOK));
            // Both orders may have arrived since the previous round.
            if orders.is_end_ordered() && orders.restarts.load(Ordering::Relaxed) == restarts {
                break;
            }
        }
        self.finish_report(LAST_SEARCH)
    }

    /// Reads everything one last time.
    fn finish_report(mut self, time: Duration) -> MonitorReport {
        let Some((began_ns, before)) = self.began.take() else { return MonitorReport::default() };
        self.read_everything(time);
        self.build_report(Duration::from_nanos(monotonic_ns() - began_ns), &before)
    }

    /// Restarts all counts.
    fn restart_counts(&mut self) {
        (self.queue, self.connections_unseen) = (None, None);
        self.connections.reset_sums();
        self.read_listeners();
        // The first connections may be opening right now.
        if self.connections.are_watched() {
            self.read_connections();
        }
        self.target_groups.restart_counts();
        self.own_group.restart_counts();
        self.processes.restart_counts(&cpu_time_limit(SEARCH));
        self.began = Some((monotonic_ns(), self.before.take().unwrap_or_else(MachineReading::read)));
    }

    /// Finds the listeners and reads their queues.
    fn read_listeners(&mut self) {
        self.read_listeners_of(&[false, true]);
    }

    /// Finds the listeners of these families and reads their queues.
    fn read_listeners_of(&mut self, families: &[bool]) {
        let Some(place) = &self.place else { return };
        self.listeners = place.find_listeners(families);
        let longest = self.listeners.iter().flatten().filter_map(|listener| listener.queue).max();
        self.queue = self.queue.max(longest);
    }

    /// Address families of the listeners, true for IPv6.
    fn listener_families(&self) -> Vec<bool> {
        let families: BTreeSet<bool> = self.listeners.iter().flatten().map(|listener| listener.v6).collect();
        families.into_iter().collect()
    }

    /// Reads the queues of known listeners, and the connections.
    fn read_queues_and_connections(&mut self) {
        match &self.listener_families()[..] {
            [] => self.read_listeners(),
            families => self.read_listeners_of(families),
        }
        self.read_connections();
    }

    fn read_connections(&mut self) {
        let families = self.listener_families();
        if let Some(LocalTarget::Tcp(addresses)) = &self.place {
            let looked = self.connections.refresh_connections(addresses, &families, monotonic_ns() / 1_000);
            self.connections_unseen = looked.err().map(Unobserved::Connections);
        }
    }

    /// Reads everything and finds new listeners.
    fn read_everything(&mut self, time: Duration) {
        self.read_listeners();
        self.read_connections();
        // Reading thousands of sockets must leave time for the processes.
        let is_over = cpu_time_limit(time);
        // Read the known processes first.
        self.processes.read_processes(&is_over);
        if self.processes.have_ended() && !self.processes.is_empty() {
            // Search once more before the target counts as dead: another process may have taken over.
            self.search_holders(&cpu_time_limit(FIRST_SEARCH));
        } else {
            self.search_holders(&is_over);
        }
    }

    /// Searches for processes that hold the listening sockets.
    fn search_holders(&mut self, is_over: &dyn Fn() -> bool) {
        let inodes = self.listeners.iter().flatten().map(|listener| listener.inode).collect();
        for process in self.holders.search_processes(inodes, is_over) {
            self.processes.add_process(process);
            self.target_groups.add_process(&process.to_string());
        }
    }

    /// Observations since the start of counting.
    fn build_report(&self, passed: Duration, before: &MachineReading) -> MonitorReport {
        let now = MachineReading::read();
        let mut unseen: Vec<Unobserved> = self.connections_unseen.into_iter().collect();
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let stolen = now.stolen_since(before);
        unseen.extend(stolen.is_none().then_some(Unobserved::Stolen));
        let own = self.own_group.are_visible().then(|| seconds(self.own_group.throttled_ns()));
        unseen.extend(own.is_none().then_some(Unobserved::OwnGroup));
        let target = match self.why_unseen() {
            Some(why) => {
                unseen.insert(0, why);
                None
            }
            None => Some(self.build_target(passed, &now, before, &mut unseen)),
        };
        let machine = seen::Machine { stolen, clock_step_s: now.step_since_s(before), ..Default::default() };
        MonitorReport { target, machine, throttled_s: own, unseen }
    }

    /// Reason why the target cannot be observed.
    fn why_unseen(&self) -> Option<Unobserved> {
        match (&self.place, &self.listeners) {
            (None, _) => Some(Unobserved::Remote),
            _ if self.connections.are_forwarded() => Some(Unobserved::Forwarded),
            _ if !self.processes.is_empty() => None,
            (_, Err(unseen)) => Some(*unseen),
            (_, Ok(listeners)) if listeners.is_empty() => Some(Unobserved::NoListener),
            _ if !self.holders.are_complete => Some(Unobserved::Unsearched),
            _ if self.holders.were_denied => Some(Unobserved::Denied),
            _ => Some(Unobserved::NoProcess),
        }
    }

    fn build_target(
        &self,
        passed: Duration,
        now: &MachineReading,
        before: &MachineReading,
        unseen: &mut Vec<Unobserved>,
    ) -> Target {
        unseen.extend((!self.holders.are_complete).then_some(Unobserved::Unsearched));
        let is_visible = self.target_groups.are_visible();
        unseen.extend((!is_visible).then_some(Unobserved::TargetGroup));
        let overflows = now.overflows_since(before);
        unseen.extend((self.queue.is_some() && overflows.is_none()).then_some(Unobserved::Overflows));
        let share = |ns: u64| ns as f64 / passed.as_nanos().max(1) as f64;
        let processors = self.processes.allowed_processors() as f64;
        Target {
            name: self.processes.oldest_name(),
            processes: self.processes.most,
            ended: self.processes.have_ended(),
            cpus_used: share(self.processes.cpu_ns()),
            cpus_allowed: self.target_groups.allowed_processors().map_or(processors, |limit| limit.min(processors)),
            busiest_thread: share(self.processes.busiest_ns()),
            queued: self.processes.queued_ns().map(share),
            throttled_s: is_visible.then(|| Duration::from_nanos(self.target_groups.throttled_ns()).as_secs_f64()),
            listening: self.queue.map(|(waiting_max, limit)| Listening { waiting_max, limit, overflows }),
            network: Network::from_sockets(self.connections.sums(), 0.0),
        }
    }
}

/// Returns a function that returns true once the calling thread has used this much more processor time.
fn cpu_time_limit(time: Duration) -> impl Fn() -> bool {
    let until_ns = thread_cpu_ns() + nanos(time);
    move || thread_cpu_ns() >= until_ns
}

/// Tests the poller without its thread, whose scheduling is unpredictable on a busy machine.
#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixListener;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::thread;

    use rustix::net::listen;

    use super::*;
    use crate::proc;
    use crate::resolve::Addresses;

    /// Enough time for everything.
    const LONG: Duration = Duration::from_secs(3_600);

    /// `work` uses some hundredths of a second of processor time, `next` waits for [`ListeningShell::continue_script`].
    const BEGINNING: &str = "
        exec 3<&0
        work() { i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; }
        next() { echo; read line <&3; }
        ";

    /// A shell that holds a listening socket as its standard error.
    struct ListeningShell {
        child: Child,
        /// Closing this ends the shell, unless it has ended already.
        input: ChildStdin,
        said: BufReader<ChildStdout>,
    }

    impl ListeningShell {
        fn start(listener: impl Into<OwnedFd>, script: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{BEGINNING}{script}")]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(listener.into()).spawn().unwrap();
            let (input, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
            let mut target = Self { child, input, said };
            target.wait_until_idle();
            target
        }

        fn wait_until_idle(&mut self) {
            self.said.read_line(&mut String::new()).unwrap();
        }

        /// Lets the shell continue until it waits again.
        fn continue_script(&mut self) {
            self.input.write_all(b"\n").unwrap();
            self.wait_until_idle();
        }

        /// Processor time of the shell so far.
        fn cpu_ns(&self) -> u64 {
            proc::read_stat(&self.child.id().to_string()).unwrap().cpu_ns
        }

        fn close_input(&mut self) {
            self.child.kill().and_then(|()| self.child.wait()).unwrap();
        }
    }

    fn bind_listener(backlog: i32) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listen(&listener, backlog).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// A poller of this address after its first look, with counting started.
    fn started_poller(place: Option<LocalTarget>) -> Poller {
        let mut poller = Poller::new(place, None);
        poller.read_queues_and_connections();
        poller.search_holders(&|| false);
        poller.restart_counts();
        poller
    }

    fn tcp_target(address: SocketAddr) -> Option<LocalTarget> {
        LocalTarget::for_addresses(None, Addresses(vec![address]))
    }

    #[test]
    fn target_cpu_time_counts_from_the_start() {
        let (listener, address) = bind_listener(64);
        let mut shell = ListeningShell::start(listener, "work; next; work; next");
        let mut poller = started_poller(tcp_target(address));
        let before_ns = shell.cpu_ns();
        shell.continue_script();
        let took_ns = shell.cpu_ns() - before_ns;
        poller.read_everything(LONG);
        // The shell's time is exact to a tick, the poller's to a tick or a nanosecond.
        let used_ns = poller.processes.cpu_ns();
        assert!(took_ns > proc::TICK_NS && used_ns.abs_diff(took_ns) <= 2 * proc::TICK_NS, "{used_ns} of {took_ns}");
        let target = poller.finish_report(LONG).target.unwrap();
        assert_eq!((target.name.as_str(), target.processes, target.ended), ("sh", 1, false));
        assert!(target.busiest_thread > 0.0 && target.busiest_thread <= target.cpus_used, "{target:?}");
        assert_eq!(target.listening.map(|queue| (queue.waiting_max, queue.limit)), Some((0, 64)));
        shell.close_input();
    }

    #[test]
    fn all_processes_of_a_target_are_counted() {
        let (listener, address) = bind_listener(64);
        let mut shell = ListeningShell::start(listener, "sleep 60 & a=$!; sleep 60 & next; kill $a $!; next");
        let poller = started_poller(tcp_target(address));
        let target = poller.finish_report(LONG).target.unwrap();
        assert_eq!((target.processes, target.ended), (3, false), "{target:?}");
        shell.continue_script();
        shell.close_input();
    }

    #[test]
    fn replacement_child_processes_are_counted() {
        let (listener, address) = bind_listener(64);
        let mut shell = ListeningShell::start(listener, "next; { work; next; } & exit");
        let poller = started_poller(tcp_target(address));
        // The kernel reports the start time in ticks.
        thread::sleep(Duration::from_nanos(2 * proc::TICK_NS));
        shell.continue_script();
        shell.child.wait().unwrap();
        let target = poller.finish_report(LONG).target.unwrap();
        assert!(!target.ended && target.processes == 1 && target.cpus_used > 0.0, "{target:?}");
    }

    #[test]
    fn dead_targets_are_reported_ended() {
        let (listener, address) = bind_listener(64);
        let mut shell = ListeningShell::start(listener, "next");
        let poller = started_poller(tcp_target(address));
        shell.close_input();
        let target = poller.finish_report(LONG).target.unwrap();
        assert!(target.ended && target.processes == 1, "{target:?}");
    }

    #[test]
    fn accept_queue_overflows_are_seen() {
        let (listener, address) = bind_listener(1);
        let mut shell = ListeningShell::start(listener, "next");
        let poller = started_poller(tcp_target(address));
        // The kernel queues one connection more than the backlog, and drops the packets of further ones.
        let _waiting = [(); 2].map(|()| TcpStream::connect(address).unwrap());
        TcpStream::connect_timeout(&address, Duration::from_millis(50)).unwrap_err();
        let seen = poller.finish_report(LONG);
        let target = seen.target.unwrap();
        let listening = target.listening.unwrap();
        assert_eq!((listening.waiting_max, listening.limit), (2, 1), "{target:?}");
        assert!(listening.overflows.unwrap() >= 1, "{target:?}");
        assert!(!seen.unseen.contains(&Unobserved::Overflows), "{:?}", seen.unseen);
        shell.close_input();
    }

    #[test]
    fn unix_socket_targets_are_found() {
        let path = std::env::temp_dir().join(format!("onrush-monitor-{}", std::process::id()));
        let mut shell = ListeningShell::start(UnixListener::bind(&path).unwrap(), "next");
        let target = started_poller(LocalTarget::for_addresses(Some(path.clone()), Addresses(Vec::new())))
            .finish_report(LONG)
            .target
            .unwrap();
        assert_eq!((target.name.as_str(), target.processes), ("sh", 1), "{target:?}");
        shell.close_input();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn missing_listeners_mean_no_target() {
        let (listener, address) = bind_listener(1);
        drop(listener);
        let seen = started_poller(tcp_target(address)).finish_report(LONG);
        assert_eq!((seen.target, &seen.unseen[..1]), (None, &[Unobserved::NoListener][..]));
    }
}
