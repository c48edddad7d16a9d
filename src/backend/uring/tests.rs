//! What a server can do that reads nothing, against the kernel itself.

use std::io::Read;
use std::net::TcpListener;

use super::*;

/// Bytes of one send, small enough to be silent.
const BYTES: usize = SILENT_MAX;

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

#[test]
fn what_waits_to_be_sent_stays_what_it_is() {
    // Where there is no io_uring there is nothing to test.
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    uring.connect(ConnId(0), listener.local_addr().unwrap());
    work(&mut uring);
    let (mut peer, _) = listener.accept().unwrap();

    // The engine sends the next request when the one before has been accepted and answered, read or not.
    let (mut sends, mut accepted) = (0, 0);
    while sends < 1_000 && accepted == sends * BYTES {
        let bytes: Rc<[u8]> = (sends as u32).to_le_bytes().repeat(BYTES / 4).into();
        accepted += uring.send(ConnId(0), Transmit::Shared(bytes, 0..BYTES)) + work(&mut uring);
        sends += 1;
    }
    assert!(sends > 1, "{sends} sends");

    peer.set_nonblocking(true).unwrap();
    let (mut received, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    while received.len() < sends * BYTES {
        match peer.read(&mut buffer) {
            Ok(n) => received.extend_from_slice(&buffer[..n]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        work(&mut uring);
    }
    for (index, word) in received.chunks_exact(4).enumerate() {
        assert_eq!(u32::from_le_bytes(word.try_into().unwrap()) as usize, index * 4 / BYTES, "word {index}");
    }
}
