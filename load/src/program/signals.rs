//! Handles Ctrl-C: the first SIGINT, SIGTERM or SIGHUP ends a run early, with its report. The second one quits. On
//! request, SIGQUIT is handled in the same way. Otherwise it ends the process at once, with a core file, but without a
//! partially written file.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use libc::SIGXFSZ;
use onrush_text::error_reason;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{self, emulate_default_handler};

use super::exit::EXIT_WRONG;
use super::screen::say;
use crate::run::{self, Interrupt, NotStarted};
use crate::script;

/// Exit code of a run after a second signal.
pub const EXIT_QUIT: i32 = 130;

/// A repeated signal within this time counts as an echo: timeout(1), for instance, signals the process and then its
/// group.
const ECHO: Duration = Duration::from_millis(20);

/// Time between two checks whether the process should end.
const LOOK: Duration = Duration::from_millis(100);

/// Time limit for the last flush of all streams.
const FLUSH_MAX: Duration = Duration::from_millis(200);

/// Work to do before a signal ends the process, in this order. By then the commands of scripts have been ended.
#[derive(Clone, Default)]
struct Before(Arc<Mutex<Vec<SignalWork>>>);

type SignalWork = Box<dyn Fn() + Send>;

impl Before {
    fn add(&self, work: impl Fn() + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(work));
    }

    fn run_all(&self) {
        script::end_commands();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|work| work());
    }
}

/// Handles signals, in a thread of its own, until the process ends.
#[expect(missing_debug_implementations, reason = "what is to be done is code")]
pub struct Signals {
    /// The first signal asks this to end the run.
    pub interrupt: Interrupt,
    before: Before,
}

impl Signals {
    /// Starts to handle SIGINT, SIGTERM, SIGHUP and `also`, in a separate thread. An experiment handles SIGQUIT like
    /// the others, to restore host settings.
    ///
    /// # Errors
    ///
    /// Fails if a handler or the thread cannot be installed.
    pub fn listen(also: &[i32]) -> anyhow::Result<Self> {
        let (listen, signals) = Self::install_handlers(also)
            .map_err(|error| anyhow!("cannot listen for signals: {}", error_reason(&error)))?;
        run::spawn_detached("signals", listen).map_err(|reason| NotStarted::Helper { job: "signals", reason })?;
        Ok(signals)
    }

    /// Installs the handlers, and returns the work of their thread.
    fn install_handlers(also: &[i32]) -> io::Result<(impl FnOnce() + Send + 'static + use<>, Self)> {
        // Under nohup(1), the loss of the terminal must not end the run. The quit key must not end a run in the
        // background.
        let can_end = |signal: &i32| ![SIGHUP, SIGQUIT].contains(signal) || !is_ignored(*signal);
        let handled: Vec<_> = [SIGINT, SIGTERM, SIGHUP].iter().chain(also).copied().filter(can_end).collect();
        // A signal during the exit ends the process at once. This handler is registered first, so it checks the flag
        // before the thread below receives the signal and decides to quit.
        let is_quitting = Arc::<AtomicBool>::default();
        for &signal in &handled {
            flag::register_conditional_shutdown(signal, EXIT_QUIT, Arc::clone(&is_quitting))?;
        }
        let mut signals = signal_hook::iterator::Signals::new(
            handled.iter().chain([&SIGQUIT].into_iter().filter(|signal| can_end(signal))),
        )?;
        let (interrupt, before) = (Interrupt::default(), Before::default());
        let listen = {
            let (interrupt, before) = (interrupt.clone(), before.clone());
            move || {
                let mut first: Option<(i32, Instant)> = None;
                for signal in signals.forever() {
                    if signal == SIGQUIT && !handled.contains(&SIGQUIT) {
                        before.run_all();
                        // Never returns: the default action of the signal ends the process.
                        let _ = emulate_default_handler(SIGQUIT);
                    }
                    match first {
                        Some((same, at)) if same == signal && at.elapsed() < ECHO => {}
                        _ if interrupt.is_blocked() => quit(&is_quitting, &before),
                        None => first = Some((signal, Instant::now())),
                        Some(_) => quit(&is_quitting, &before),
                    }
                    interrupt.request_end();
                }
            }
        };
        Ok((listen, Self { interrupt, before }))
    }

    /// Adds work to do before a signal ends the process, after work that was added earlier. Runs on the thread for
    /// signals.
    pub fn before_quitting(&self, work: impl Fn() + Send + 'static) {
        self.before.add(work);
    }
}

/// Turns SIGXFSZ into an ordinary write error: a file over the shell's limit does not kill the process.
pub fn outlive_file_limits() {
    // Without a handler, the signal kills the process.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Returns the exit code to return from `main`. If a thread is still inside its script, ends the process here instead:
/// the thread may wait forever, and block the exit handlers of the C library.
pub fn leave(code: u8) -> ExitCode {
    if script::are_threads_inside() {
        script::end_commands();
        exit_at_once(code.into());
    }
    ExitCode::from(code)
}

/// Ends the process with this code. Flushes a script's output first: standard output, then briefly all other streams,
/// one of which the script may hold forever.
fn exit_at_once(code: i32) -> ! {
    script::flush_printed();
    let (done, is_done) = mpsc::channel();
    let flush_all = move || {
        script::flush_all_streams();
        let _ = done.send(());
    };
    if run::spawn_detached("flush", flush_all).is_ok() {
        let _ = is_done.recv_timeout(FLUSH_MAX);
    }
    low_level::exit(code)
}

/// Ends the process because of a signal.
fn quit(is_quitting: &AtomicBool, before: &Before) -> ! {
    is_quitting.store(true, Ordering::Relaxed);
    before.run_all();
    exit_at_once(EXIT_QUIT)
}

/// True if the process was started with the signal ignored; false if unknown.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Ends the process with this message if it is still running at the end of `grace`, counted from when `is_over` becomes
/// true. Loading a script or resolving a name cannot be interrupted.
///
/// # Errors
///
/// Fails if the thread cannot be created.
pub fn end_after(is_over: Arc<AtomicBool>, grace: Duration, words: &'static str) -> io::Result<()> {
    run::spawn_detached("end", move || {
        while !is_over.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        thread::sleep(grace);
        say(words);
        script::end_commands();
        exit_at_once(EXIT_WRONG.into())
    })
}
