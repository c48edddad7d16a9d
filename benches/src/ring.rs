//! io_uring for bare loops: registered sockets, multishot receives into [`ProvidedBuffers`], and sends without
//! completions.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::ProvidedBuffers;

/// Marks the completion of a receive. A send completes only on failure.
const RECEIVE: u64 = 1 << 32;
/// Longest wait between clock reads.
const TICK: Timespec = Timespec::new().nsec(100_000_000);
/// `IORING_ENTER_GETEVENTS`: completions are requested.
const ENTER_GETEVENTS: u32 = 1;

/// The ring of a loop. Connections are identified by number.
pub struct Ring {
    /// Declared first, to be dropped before the memory that the kernel writes.
    uring: IoUring,
    buffers: ProvidedBuffers,
}

impl Ring {
    /// Creates a ring that receives on these connections.
    ///
    /// # Errors
    ///
    /// If the kernel refuses the ring or a part of it.
    pub fn new(connections: &[OwnedFd]) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_cqsize(16384);
        let uring = builder.build(4096)?;
        let files: Vec<i32> = connections.iter().map(AsRawFd::as_raw_fd).collect();
        uring.submitter().register_files(&files)?;
        let buffers = ProvidedBuffers::register(&uring)?;
        let mut ring = Self { uring, buffers };
        (0..files.len() as u32).try_for_each(|number| ring.receive(number))?;
        Ok(ring)
    }

    /// Queues a send for the connection with this number. The send never waits for room in the socket, but fails, so
    /// the kernel has read the bytes when the next wait returns.
    ///
    /// # Safety
    ///
    /// The bytes must stay unchanged until the next wait returns.
    ///
    /// # Errors
    ///
    /// If the kernel does not accept the queued operations.
    pub unsafe fn send(&mut self, number: u32, bytes: &[u8]) -> io::Result<()> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        let send = opcode::Send::new(Fixed(number), bytes.as_ptr(), bytes.len() as u32).flags(flags);
        self.push(&send.build().flags(squeue::Flags::SKIP_SUCCESS).user_data(u64::from(number)))
    }

    /// Submits the queued operations, and blocks until there is a completion. For the first `linger_us` microseconds,
    /// waits for `several` completions.
    ///
    /// # Errors
    ///
    /// Any error of the system call, except that the time is up.
    pub fn wait(&mut self, several: usize, linger_us: u32) -> io::Result<()> {
        let arguments = SubmitArgs::new().timespec(&TICK).min_wait_usec(linger_us);
        let several = if linger_us > 0 { several } else { 1 };
        match self.uring.submitter().submit_with_args(several, &arguments) {
            Err(error) if error.raw_os_error() != Some(libc::ETIME) => Err(error),
            _ => Ok(()),
        }
    }

    /// Submits the queued operations, and polls the completion queue until there is a completion.
    ///
    /// # Errors
    ///
    /// If the kernel does not accept the queued operations.
    pub fn spin(&mut self) -> io::Result<()> {
        let mut queued = self.uring.submission().len() as u32;
        while queued > 0 || self.uring.completion().is_empty() {
            if queued > 0 || self.uring.submission().taskrun() {
                // SAFETY: no argument is passed, and the memory of the operations outlives them, as in `push`.
                unsafe { self.uring.submitter().enter::<libc::sigset_t>(queued, 0, ENTER_GETEVENTS, None)? };
                queued = 0;
            }
        }
        Ok(())
    }

    /// Moves the available completions to `completions`.
    pub fn take_completions(&mut self, completions: &mut Vec<cqueue::Entry>) {
        completions.extend(self.uring.completion());
    }

    /// Passes the connection and the received bytes of a completion to `read`, and restarts the receive.
    ///
    /// # Errors
    ///
    /// If a send failed, or the server closed the connection.
    pub fn handle_receive<T>(
        &mut self,
        completion: &cqueue::Entry,
        read: impl FnOnce(u32, &[u8]) -> T,
    ) -> io::Result<T> {
        let number = completion.user_data() as u32;
        match completion.result() {
            0 => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
            error @ ..0 => return Err(io::Error::from_raw_os_error(-error)),
            // Only failed sends complete.
            _ => debug_assert!(completion.user_data() & RECEIVE != 0),
        }
        let Some(buffer) = cqueue::buffer_select(completion.flags()) else { return Err(io::ErrorKind::Other.into()) };
        let result = read(number, self.buffers.bytes(buffer, completion.result() as usize));
        self.buffers.give_back(buffer);
        if !cqueue::more(completion.flags()) {
            self.receive(number)?;
        }
        Ok(result)
    }

    /// Gives buffers back to the kernel once they have been read.
    pub fn publish(&self) {
        self.buffers.publish();
    }

    fn receive(&mut self, number: u32) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fixed(number), 0).build();
        self.push(&receive.user_data(RECEIVE | u64::from(number)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the buffers live as long as the ring. The caller of `send` guarantees the bytes of sends.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            self.uring.submit()?;
        }
        Ok(())
    }
}
