//! The worker beside a coordinator that takes part itself. As on any other machine, the worker is a separate process
//! with its own memory, signals and processor time. The worker ends with the coordinator, however that ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onrush_plan::machines::Machines;

/// Time allowed for the worker to end after its dismissal, and time between two checks whether it has.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(1);

/// The worker process. Dropping this waits for it to end, and kills it after two seconds.
pub struct OwnWorker(Child);

impl OwnWorker {
    /// Starts the worker process; `Ok(None)` if the coordinator does not take part in the run.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be created.
    pub fn start(machines: &Machines) -> io::Result<Option<Self>> {
        let Some(place) = &machines.place else { return Ok(None) };
        let mut command = Command::new("/proc/self/exe");
        command.arg("worker").args(machines.worker_arguments(place)).stdin(Stdio::null());
        // Ctrl-C is meant for this process, which tells the worker how to proceed.
        command.process_group(0);
        Ok(Some(Self(command.spawn()?)))
    }
}

impl Drop for OwnWorker {
    fn drop(&mut self) {
        let begun = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if begun.elapsed() >= PATIENCE {
                // The worker has nothing left to report, or never joined.
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            thread::sleep(LOOK);
        }
    }
}
