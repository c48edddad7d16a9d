//! Ctrl-C: the first SIGINT, SIGTERM or SIGHUP ends a run early and its report is printed, the second one quits.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use libc::SIGXFSZ;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// The exit code of a run that was quit by a second signal.
pub const EXIT_QUIT: i32 = 130;

/// A second signal of the same kind that comes sooner is the first one heard twice: timeout(1), for instance, sends one
/// to the process and one to its group.
const ECHO: Duration = Duration::from_millis(20);

/// Tells whether somebody asked the process to end.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Flags>);

#[derive(Default)]
struct Flags {
    /// A signal came.
    asked: AtomicBool,
    /// The first signal quits.
    quits: AtomicBool,
    /// The process is about to quit: a signal now ends it without more ado.
    is_quitting: Arc<AtomicBool>,
    /// What is done before that.
    before: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Flags {
    /// Ends the process. What a script has printed is written out before, which lasts as long as nobody reads it.
    fn quit(&self) -> ! {
        self.is_quitting.store(true, Ordering::Relaxed);
        if let Some(before) = self.before.get() {
            before();
        }
        process::exit(EXIT_QUIT)
    }
}

impl Interrupt {
    /// Starts to listen, in a thread that does nothing else.
    ///
    /// # Errors
    ///
    /// When the kernel takes no handler or gives no thread.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        // Under nohup(1) a terminal that goes away is to end nothing.
        let heard = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
        let heard: Vec<_> = heard.collect();
        let (mut signals, Self(flags)) = (Signals::new(&heard)?, interrupt.clone());
        for signal in heard {
            flag::register_conditional_shutdown(signal, EXIT_QUIT, Arc::clone(&flags.is_quitting))?;
        }
        // A file that grows beyond a limit of the shell is an error of its own, and no reason to be killed.
        flag::register(SIGXFSZ, Arc::default())?;
        let listen = move || {
            let mut first: Option<(i32, Instant)> = None;
            for signal in signals.forever() {
                match first {
                    Some((same, at)) if same == signal && at.elapsed() < ECHO => {}
                    _ if flags.quits.load(Ordering::Relaxed) => flags.quit(),
                    None => first = Some((signal, Instant::now())),
                    Some(_) => flags.quit(),
                }
                flags.asked.store(true, Ordering::Relaxed);
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
        Ok(interrupt)
    }

    /// What a second signal does before it quits; only the first call counts.
    pub fn before_quitting(&self, work: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.before.set(Box::new(work));
    }

    /// Does what may never come back: meanwhile the first signal quits.
    pub fn quitting<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.quits.store(true, Ordering::Relaxed);
        let done = work();
        self.0.quits.store(false, Ordering::Relaxed);
        done
    }

    /// Whether a signal came.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }
}

/// Whether whoever started the process has it ignore a signal. Where the kernel does not say: no.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
