//! The worker beside a coordinator that takes part itself. It is a process of its own, as on any other machine, so that
//! memory, signals and processor time are separate. It ends with the coordinator, whatever ends that.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onrush_plan::machines::Machines;

/// Time for it to end after its dismissal, and the interval of looks.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(1);

/// The process. Dropping this waits for its end.
pub struct OwnWorker(Child);

impl OwnWorker {
    /// Starts it, if the coordinator takes part.
    ///
    /// # Errors
    ///
    /// If there can be no process.
    pub fn start(machines: &Machines) -> io::Result<Option<Self>> {
        let Some(place) = &machines.place else { return Ok(None) };
        let mut command = Command::new("/proc/self/exe");
        command.arg("worker").args(machines.arguments_of(place)).stdin(Stdio::null());
        // Ctrl-C is for this process, which tells the worker how the run goes on.
        command.process_group(0);
        Ok(Some(Self(command.spawn()?)))
    }
}

impl Drop for OwnWorker {
    fn drop(&mut self) {
        let begun = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if begun.elapsed() >= PATIENCE {
                // It has nothing left to say, or has never joined.
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}
