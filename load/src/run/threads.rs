//! The worker threads: sets them up, releases them together and joins them.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onrush_engine::backend;
use onrush_engine::{Config, Control, OfThread, Pacer, Stayed, WorkerEnd};
use onrush_plan::limits::SCRIPT_STACK_BYTES;
use onrush_text::error_reason as words;
use onrush_text::units::format_count;
use rustix::io::Errno;
use thiserror::Error;

use super::host::{self, Cramped};
use super::worker::Worker;

/// Time between two checks for a stop by a worker that waits for its start.
const LOOK: Duration = Duration::from_millis(20);
/// Time between two checks by the supervisor whether a worker that is about to return has returned.
const RETURN: Duration = Duration::from_millis(1);

/// The workers could not be set up. Nothing was sent.
#[derive(Debug, Error)]
pub enum NotStarted {
    /// A thread could not be created.
    #[error("unable to create thread {number}: {}; fewer threads (-t) need less memory and processes", words(.reason))]
    Thread {
        /// Number of the thread, from 1.
        number: usize,
        /// The reason.
        reason: io::Error,
    },
    /// A thread other than a worker could not be created.
    #[error("cannot create a thread for {job}: {}; raise the limit on memory ('ulimit -v') or processes ('ulimit -u')", words(.reason))]
    Helper {
        /// Purpose of the thread.
        job: &'static str,
        /// The reason.
        reason: io::Error,
    },
    /// The address-space limit is too low.
    #[error(
        "{} and {} need about {} MiB of address space, but the limit leaves {} MiB; raise it with 'ulimit -v', or use \
         fewer threads (-t), connections (-c, --max-inflight) or streams (--streams)",
        format_count(.0.threads.into(), "thread"),
        format_count(.0.connections.into(), "connection"),
        .0.needed_mib,
        .0.left_mib
    )]
    AddressSpace(Cramped),
    /// Several machines cannot run the plan: names the machines and the reason.
    #[error("{0}")]
    Machines(String),
    /// The backend of a thread could not be created.
    #[error("cannot set up a thread: {}{remedy}", words(.reason))]
    Backend {
        /// The reason.
        reason: io::Error,
        /// The remedy, if known.
        remedy: String,
    },
}

/// The return value of a worker's thread, or the panic that ended it.
type Worked = thread::Result<ThreadResult>;

/// Return value of a worker's thread: its measurements, or its final results if it handed over its measurements and
/// stayed.
enum ThreadResult {
    Ended(Box<WorkerEnd>),
    Stayed(Box<Stayed>),
}

/// Where a worker that stays after the run leaves its results.
#[derive(Default)]
struct Handover {
    end: Mutex<Option<Box<WorkerEnd>>>,
    /// True after the end of the worker, even if its results were taken.
    has_ended: AtomicBool,
}

impl Handover {
    fn hand_over(&self, end: Box<WorkerEnd>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.has_ended.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// Workers that are set up and wait for a common release. Dropping this ends them without sending anything.
pub(super) struct Threads {
    gate: Arc<StartGate>,
    /// Number of workers that have returned or are about to.
    returning: Arc<AtomicUsize>,
    /// Workers not yet joined.
    workers: Vec<Option<JoinHandle<Option<Worked>>>>,
    handovers: Vec<Arc<Handover>>,
}

impl Threads {
    /// Creates every worker in its own thread, which also creates the backend, because only that thread can use it.
    /// `files`: number of open files that the requested load needs, for the remedy in an error.
    ///
    /// # Errors
    ///
    /// Fails if a worker could not be set up.
    pub fn spawn<B: OfThread>(
        workers: Vec<Worker>,
        files: u64,
        make: impl Fn(&Config) -> io::Result<B> + Clone + Send + 'static,
    ) -> Result<Self, NotStarted> {
        let mut threads = Self {
            gate: Arc::default(),
            returning: Arc::default(),
            handovers: workers.iter().map(|_| Arc::default()).collect(),
            workers: Vec::with_capacity(workers.len()),
        };
        let (ready, set_up) = mpsc::channel();
        for (index, worker) in workers.into_iter().enumerate() {
            let thread = thread_builder(index, &worker);
            let (make, ready, gate) = (make.clone(), ready.clone(), Arc::clone(&threads.gate));
            let (returning, supervisor) = (Arc::clone(&threads.returning), thread::current());
            let handover = Arc::clone(&threads.handovers[index]);
            let thread = thread.spawn(move || {
                let hand_over = |end| {
                    handover.hand_over(end);
                    supervisor.unpark();
                };
                let worked = run_worker(worker, make, ready, &gate, hand_over);
                returning.fetch_add(1, Ordering::Relaxed);
                supervisor.unpark();
                worked
            });
            threads.workers.push(Some(thread.map_err(|reason| NotStarted::Thread { number: index + 1, reason })?));
        }
        drop(ready);
        let failed = set_up.iter().find_map(Result::err);
        failed.map_or(Ok(threads), |reason| {
            let too_many_files = Errno::from_io_error(&reason) == Some(Errno::MFILE);
            let no_memory = reason.kind() == io::ErrorKind::OutOfMemory;
            let remedy = match () {
                () if too_many_files => host::descriptor_remedy(files),
                () if no_memory => "; fewer threads (-t) and connections (-c) need less memory".to_owned(),
                () => host::kernel_too_old_message(&rustix::system::uname().release().to_string_lossy())
                    .unwrap_or_default(),
            };
            Err(NotStarted::Backend { reason, remedy })
        })
    }

    /// Starts the workers at this moment.
    pub fn release(&self, start: Instant) {
        self.gate.open(Some(start));
    }

    /// Waits for this long, or until a worker has returned. May also return early for no reason.
    pub fn wait(&self, length: Duration) {
        let joined = self.workers.iter().filter(|worker| worker.is_none()).count();
        let returns = self.returning.load(Ordering::Relaxed) > joined;
        thread::park_timeout(if returns { length.min(RETURN) } else { length });
    }

    /// True if worker `index` has not ended.
    pub fn is_at_work(&self, index: usize) -> bool {
        !self.handovers[index].has_ended() && self.workers[index].as_ref().is_some_and(|worker| !worker.is_finished())
    }

    /// Takes the results of worker `index`; `None` before its end, the second time, and from a worker that panicked.
    pub fn take_end(&mut self, index: usize) -> Option<WorkerEnd> {
        let handover = &self.handovers[index];
        if handover.has_ended() {
            return handover.end.lock().unwrap_or_else(PoisonError::into_inner).take().map(|end| *end);
        }
        match self.join(index)? {
            ThreadResult::Ended(end) => Some(*end),
            ThreadResult::Stayed(_) => None,
        }
    }

    /// Takes the final results of worker `index`, if it stayed after the run and has been stopped; `None` from a worker
    /// that panicked.
    pub fn take_stayed(&mut self, index: usize) -> Option<Stayed> {
        match self.join(index)? {
            ThreadResult::Ended(_) => None,
            ThreadResult::Stayed(stayed) => Some(*stayed),
        }
    }

    /// True if the thread of worker `index` has returned.
    pub fn has_returned(&self, index: usize) -> bool {
        self.workers[index].as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self, index: usize) -> Option<ThreadResult> {
        self.workers[index].take_if(|worker| worker.is_finished())?.join().ok()??.ok()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.gate.open(None);
    }
}

/// The builder of the thread of worker `index`.
pub(super) fn thread_builder(index: usize, worker: &Worker) -> thread::Builder {
    let thread = thread::Builder::new().name(format!("worker-{index}"));
    if worker.script.is_some() { thread.stack_size(SCRIPT_STACK_BYTES) } else { thread }
}

/// Sets up a worker, reports readiness, waits for the release and runs the worker. A worker that stays hands over its
/// results first. `None` if it was never released.
fn run_worker<B: OfThread>(
    worker: Worker,
    make: impl Fn(&Config) -> io::Result<B>,
    ready: Sender<io::Result<()>>,
    gate: &StartGate,
    hand_over: impl FnOnce(Box<WorkerEnd>),
) -> Option<Worked> {
    let backend = match make(&worker.config) {
        Ok(backend) => backend,
        Err(error) => {
            // `spawn` waits for this.
            let _ = ready.send(Err(error));
            return None;
        }
    };
    if let Pacer::Scheduled(_) = worker.pacer {
        backend::request_precise_timers();
    }
    let control = Arc::clone(&worker.control);
    let engine = worker.into_engine(backend).with_schedstat(host::open_schedstat(host::SCHEDSTAT));
    drop(ready);
    let run = |begin| match B::run(engine, begin) {
        (end, None) => ThreadResult::Ended(Box::new(end)),
        (end, Some(engine)) => {
            hand_over(Box::new(end));
            ThreadResult::Stayed(Box::new(B::stay(engine)))
        }
    };
    let worked = gate.wait(&control).map(|begin| catch_unwind(AssertUnwindSafe(|| run(begin))));
    if worked.as_ref().is_some_and(Result::is_err) {
        control.stop();
    }
    worked
}

/// Holds workers back until all are set up and the start is reached.
#[derive(Default)]
struct StartGate(OnceLock<Option<Instant>>);

impl StartGate {
    /// Releases the workers to start at this moment, or to end without a start. Later calls have no effect.
    fn open(&self, begin: Option<Instant>) {
        let _ = self.0.set(begin);
    }

    /// Waits for the release, then for the start or for a stop. Returns the start; `None` if the workers should end
    /// without one.
    fn wait(&self, control: &Control) -> Option<Instant> {
        let begin = (*self.0.wait())?;
        loop {
            let left = begin.saturating_duration_since(Instant::now());
            if left.is_zero() || control.is_stopped() {
                return Some(begin);
            }
            thread::sleep(left.min(LOOK));
        }
    }
}
