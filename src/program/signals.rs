//! Ctrl-C: the first SIGINT, SIGTERM or SIGHUP ends a run early and its report is printed, the second one quits. SIGQUIT
//! does the same where that is wanted.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use libc::SIGXFSZ;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::run::{self, Interrupt};

/// The exit code of a run that was quit by a second signal.
pub const EXIT_QUIT: i32 = 130;

/// A second signal of the same kind that comes sooner is the first one heard twice: timeout(1), for instance, sends one
/// to the process and one to its group.
const ECHO: Duration = Duration::from_millis(20);

/// What is done before a signal ends the process.
type Before = Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>;

/// Hears signals for as long as the process lasts.
pub struct Signals {
    /// What the first one asks.
    pub interrupt: Interrupt,
    before: Before,
}

impl Signals {
    /// Starts to listen to SIGINT, SIGTERM, SIGHUP and `also`, in a thread that does nothing else. A single run leaves
    /// SIGQUIT to the kernel, which writes a core file; whoever changes settings of the machine has to hear it.
    ///
    /// # Errors
    ///
    /// When the kernel takes no handler or gives no thread.
    pub fn listen(also: &[i32]) -> io::Result<Self> {
        // Under nohup(1) a terminal that goes away is to end nothing.
        let ends = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(signal));
        let heard: Vec<_> = ends.chain(also.iter().copied()).collect();
        // A signal that comes while the process is about to quit ends it without more ado. Registered first, this is looked
        // at before the thread below hears the same signal and decides to quit.
        let is_quitting = Arc::<AtomicBool>::default();
        for &signal in &heard {
            flag::register_conditional_shutdown(signal, EXIT_QUIT, Arc::clone(&is_quitting))?;
        }
        let mut signals = signal_hook::iterator::Signals::new(&heard)?;
        // A file that grows beyond a limit of the shell is an error of its own, and no reason to be killed.
        flag::register(SIGXFSZ, Arc::default())?;
        let (interrupt, before) = (Interrupt::default(), Before::default());
        let listen = {
            let (interrupt, before) = (interrupt.clone(), Arc::clone(&before));
            move || {
                let mut first: Option<(i32, Instant)> = None;
                for signal in signals.forever() {
                    match first {
                        Some((same, at)) if same == signal && at.elapsed() < ECHO => {}
                        _ if interrupt.is_unheard() => quit(&is_quitting, &before),
                        None => first = Some((signal, Instant::now())),
                        Some(_) => quit(&is_quitting, &before),
                    }
                    interrupt.ask();
                }
            }
        };
        run::beside("signals", listen)?;
        Ok(Self { interrupt, before })
    }

    /// What is done before a signal ends the process; only the first call counts.
    pub fn before_quitting(&self, work: impl Fn() + Send + Sync + 'static) {
        let _ = self.before.set(Box::new(work));
    }
}

/// Ends the process. What a script has printed is written out before, which lasts as long as nobody reads it.
fn quit(is_quitting: &AtomicBool, before: &Before) -> ! {
    is_quitting.store(true, Ordering::Relaxed);
    if let Some(before) = before.get() {
        before();
    }
    process::exit(EXIT_QUIT)
}

/// Whether whoever started the process has it ignore a signal. Where the kernel does not say: no.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
