//! The backend against the kernel itself. Where there is no io_uring there is nothing to test.

mod sending;
mod waiting;

use super::*;

/// Lets the backend work for a moment; returns how many bytes of sends it has reported.
fn work(uring: &mut Uring) -> usize {
    let until = uring.now() + 5_000_000;
    uring.wait(until);
    let mut sent = 0;
    while let Some(completion) = uring.next() {
        if let What::Sent(outcome) = completion.what {
            sent += outcome.expect("the peer is there");
        }
    }
    sent
}
