//! Measures the processor time of the target's processes and their threads.

use std::collections::{BTreeMap, HashMap, HashSet};

use onrush_engine::backend::{monotonic_ns, suspended_ns};

use crate::proc::{self, ProcStat, parse_list};

/// Minimum number of threads read per process when time is short.
const THREADS: usize = 4;

/// The processes of the target.
#[derive(Debug, Default)]
pub struct Processes {
    all: BTreeMap<u32, Process>,
    /// Start of counting, since boot.
    began_ns: u64,
    /// The distinct processor lists that the threads may run on.
    allowed: HashSet<String>,
    /// Maximum number of processes at the same time.
    pub most: usize,
}

#[derive(Debug)]
struct Process {
    stat: ProcStat,
    /// Processor time of the process at the start of counting.
    base_ns: u64,
    threads: HashMap<u32, ThreadTimes>,
    /// True if all threads of the process were read, so that any other is new.
    knows_threads: bool,
    /// Maximum processor time of a thread, including ended ones.
    busiest_ns: u64,
    /// Maximum time that a thread was ready to run without a processor; `None` if the kernel does not report it.
    queued_ns: Option<u64>,
}

/// Processor time and run-queue time of a thread, at the start of counting and now.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadTimes {
    base_ns: u64,
    now_ns: u64,
    queued_base_ns: Option<u64>,
    queued_now_ns: Option<u64>,
}

impl ThreadTimes {
    fn gained_ns(&self) -> u64 {
        self.now_ns.saturating_sub(self.base_ns)
    }

    fn queued_ns(&self) -> Option<u64> {
        Some(self.queued_now_ns?.saturating_sub(self.queued_base_ns?))
    }

    fn reset_base(&mut self) {
        (self.base_ns, self.queued_base_ns) = (self.now_ns, self.queued_now_ns);
    }
}

impl Processes {
    /// Adds a process by its ID, unless it has ended.
    pub fn add_process(&mut self, id: u32) {
        let Some(stat) = proc::read_stat(&id.to_string()).filter(|stat| stat.is_alive) else { return };
        // If a process started after counting did, all of its time counts.
        let is_new = stat.started_ns >= self.began_ns && self.began_ns > 0;
        let base_ns = if is_new { 0 } else { stat.cpu_ns };
        let process =
            Process { stat, base_ns, threads: HashMap::new(), knows_threads: is_new, busiest_ns: 0, queued_ns: None };
        self.all.entry(id).or_insert(process);
        self.update_most();
    }

    /// Counts processor time from now on.
    pub fn restart_counts(&mut self, is_over: &dyn Fn() -> bool) {
        self.read_processes(is_over);
        self.began_ns = monotonic_ns().saturating_add_signed(suspended_ns());
        self.all.retain(|_, process| process.stat.is_alive);
        self.most = self.all.len();
        for process in self.all.values_mut() {
            process.base_ns = process.stat.cpu_ns;
            (process.busiest_ns, process.queued_ns) = (0, None);
            process.threads.values_mut().for_each(ThreadTimes::reset_base);
        }
    }

    /// Reads all processes; when time is up, only a few threads of each.
    pub fn read_processes(&mut self, is_over: &dyn Fn() -> bool) {
        for (&id, process) in self.all.iter_mut().filter(|(_, process)| process.stat.is_alive) {
            // Process IDs are reused.
            let now = proc::read_stat(&id.to_string()).filter(|now| now.started_ns == process.stat.started_ns);
            match now {
                Some(now) => process.stat = now,
                None => process.stat.is_alive = false,
            }
            if process.stat.is_alive {
                process.read_threads(id, is_over, &mut self.allowed);
            }
        }
        self.update_most();
    }

    fn update_most(&mut self) {
        self.most = self.most.max(self.all.values().filter(|process| process.stat.is_alive).count());
    }

    /// True if no process has been found.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// True if all processes that were found have ended, or none was found.
    pub fn have_ended(&self) -> bool {
        self.all.values().all(|process| !process.stat.is_alive)
    }

    /// Name of the process that has run longest; empty if none was found.
    pub fn oldest_name(&self) -> String {
        let first = self.all.iter().min_by_key(|(id, process)| (process.stat.started_ns, **id));
        first.map(|(_, process)| process.stat.name.clone()).unwrap_or_default()
    }

    /// Total processor time of the processes since counting started.
    pub fn cpu_ns(&self) -> u64 {
        self.all.values().map(Process::cpu_ns).sum()
    }

    /// Processor time of the busiest thread since counting started.
    pub fn busiest_ns(&self) -> u64 {
        self.all.values().map(Process::busiest_ns).max().unwrap_or_default()
    }

    /// Maximum time that a thread was ready to run without a processor; `None` if the kernel does not report it.
    pub fn queued_ns(&self) -> Option<u64> {
        self.all.values().filter_map(|process| process.queued_ns).max()
    }

    /// Number of online processors on which any of the threads may run; all online ones if that is unknown.
    pub fn allowed_processors(&self) -> usize {
        let online = proc::online_processors().and_then(|list| parse_list(&list)).unwrap_or_default();
        let allowed: HashSet<u32> = self.allowed.iter().filter_map(|list| parse_list(list)).flatten().collect();
        // The kernel's lists include offline processors.
        let count = online.iter().filter(|&processor| allowed.contains(processor)).count();
        if count > 0 { count } else { online.len().max(1) }
    }
}

impl Process {
    /// Processor time of the busiest thread: at least the mean over all known threads, if there was no time to read
    /// them again.
    fn busiest_ns(&self) -> u64 {
        let mean_ns = self.cpu_ns().checked_div(self.threads.len() as u64).filter(|_| self.knows_threads);
        self.busiest_ns.max(mean_ns.unwrap_or(0))
    }

    fn read_threads(&mut self, id: u32, is_over: &dyn Fn() -> bool, allowed: &mut HashSet<String>) {
        let Ok(mut ids) = proc::numeric_entries(&format!("/proc/{id}/task")) else { return };
        self.threads.retain(|thread, _| ids.binary_search_by(|other| thread.cmp(other)).is_ok());
        // Read the busiest threads first, in case time runs out.
        ids.sort_by_key(|thread| std::cmp::Reverse(self.threads.get(thread).map_or(0, ThreadTimes::gained_ns)));
        let mut are_all = true;
        for (index, thread) in ids.into_iter().enumerate() {
            // A few threads are always read: most processes have no more.
            if index >= THREADS && is_over() {
                are_all = false;
                break;
            }
            let Some((now_ns, queued_now_ns)) = proc::thread_ns(id, thread) else { continue };
            let knows_threads = self.knows_threads;
            let known = self.threads.entry(thread).or_insert_with(|| {
                allowed.extend(proc::allowed_processors(id, thread));
                let (base_ns, queued_base_ns) = if knows_threads { (0, Some(0)) } else { (now_ns, queued_now_ns) };
                ThreadTimes { base_ns, now_ns, queued_base_ns, queued_now_ns }
            });
            (known.now_ns, known.queued_now_ns) = (now_ns, queued_now_ns);
            self.queued_ns = self.queued_ns.max(known.queued_ns());
            self.busiest_ns = self.busiest_ns.max(known.gained_ns());
        }
        self.knows_threads |= are_all;
    }

    /// Processor time since the start of counting: from ticks, or from the threads, some of which may have ended.
    fn cpu_ns(&self) -> u64 {
        let by_threads = self.threads.values().map(ThreadTimes::gained_ns).sum();
        self.stat.cpu_ns.saturating_sub(self.base_ns).max(by_threads).max(self.busiest_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use onrush_engine::backend::thread_cpu_ns;

    use super::*;

    #[test]
    fn busiest_thread_is_found() {
        let (ready, is_ready) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        // The thread exists when counting starts, and still exists after its work.
        let thread = thread::spawn(move || {
            for took_ns in [0, 30_000_000] {
                let until_ns = thread_cpu_ns() + took_ns;
                while thread_cpu_ns() < until_ns {}
                ready.send(()).unwrap();
                may_go.recv().unwrap();
            }
        });
        is_ready.recv().unwrap();
        let mut processes = Processes::default();
        processes.add_process(std::process::id());
        processes.restart_counts(&|| false);
        go.send(()).unwrap();
        is_ready.recv().unwrap();
        processes.read_processes(&|| false);
        // Other tests may be busier.
        let (busiest_ns, all_ns) = (processes.busiest_ns(), processes.cpu_ns());
        assert!(busiest_ns >= 29_000_000 && busiest_ns <= all_ns, "{busiest_ns} of {all_ns}");
        go.send(()).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn allowed_processors_are_counted() {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = rustix::process::Pid::from_child(&child);
        let all = sched_getaffinity(Some(id)).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&processor| all.is_set(processor)).unwrap();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(Some(id), &one).unwrap();
        let mut processes = Processes::default();
        processes.add_process(child.id());
        processes.read_processes(&|| false);
        assert_eq!(processes.allowed_processors(), 1);
        child.kill().and_then(|()| child.wait()).unwrap();
    }
}
