//! A connection's bytes in memory: the library reads and writes here, and never touches a socket.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::resources::OUTPUT_BYTES;

/// Bytes between a socket and the library. Clones share the bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBytes(Arc<Mutex<Bytes>>);

#[derive(Debug, Default)]
pub(super) struct Bytes {
    /// Bytes received from the client, of which the library has read the first `taken`.
    pub input: Vec<u8>,
    /// Number of input bytes that the library has read.
    pub taken: usize,
    /// True if no more input will be received.
    pub ended: bool,
    /// Bytes that the library wants to send.
    pub output: Vec<u8>,
    /// True if the library has output for which there is no room at the moment.
    pub blocked: bool,
}

impl SharedBytes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Bytes> {
        // All handles belong to one thread, so no other thread can have panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bytes {
    /// True if there is input that the library has not read.
    pub(super) fn has_input(&self) -> bool {
        self.taken < self.input.len()
    }
}

// No waker is called: the library gets a turn whenever its connection does.
impl AsyncRead for SharedBytes {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = self.lock();
        let rest = &bytes.input[bytes.taken..];
        if rest.is_empty() && !bytes.ended {
            return Poll::Pending;
        }
        let here = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..here]);
        bytes.taken += here;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SharedBytes {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, piece: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(piece)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut bytes = self.lock();
        if bytes.output.len() >= OUTPUT_BYTES {
            bytes.blocked = true;
            return Poll::Pending;
        }
        let before = bytes.output.len();
        pieces.iter().for_each(|piece| bytes.output.extend_from_slice(piece));
        Poll::Ready(Ok(bytes.output.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
