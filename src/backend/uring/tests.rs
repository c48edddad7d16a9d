//! What a server can do that reads nothing, against the kernel itself.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use super::*;

/// Bytes of one send, small enough to be silent.
const BYTES: usize = 16 * 1024;

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
fn what_waits_to_be_sent_stays_what_it_is_and_where_it_is() {
    for burst in [1, 2, 3] {
        // Where there is no io_uring there is nothing to test.
        let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();

        // The engine sends the next request when the one before has been accepted, here without an answer: as many in
        // one turn as may be, until the kernel takes no more.
        let (mut sends, mut accepted) = (0, 0);
        while sends < 1_000 && accepted == sends * BYTES {
            for _ in 0..burst {
                if accepted == sends * BYTES {
                    let bytes: Rc<[u8]> = (sends as u32).to_le_bytes().repeat(BYTES / 4).into();
                    accepted += uring.send(ConnId(0), Transmit::Shared(bytes, 0..BYTES));
                    sends += 1;
                }
            }
            accepted += work(&mut uring);
        }
        assert!((2..1_000).contains(&sends), "{sends} sends");

        let received = read(&mut uring, &mut peer, sends * BYTES);
        for (index, word) in received.chunks_exact(4).enumerate() {
            assert_eq!(u32::from_le_bytes(word.try_into().unwrap()) as usize, index * 4 / BYTES, "word {index}");
        }
    }
}

#[test]
fn what_waits_to_be_sent_goes_with_its_connection() {
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for length in [BYTES, 64 * BYTES] {
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let _peer = listener.accept().unwrap();
        // One that the kernel has, one that it could not take, one behind, and one that it has not seen.
        while uring.send(ConnId(0), Transmit::Owned(vec![b'x'; length])) == length {
            work(&mut uring);
        }
        uring.close(ConnId(0));
        assert_eq!(work(&mut uring), 0);

        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();
        uring.send(ConnId(0), Transmit::Owned(b"and now".to_vec()));
        assert_eq!(read(&mut uring, &mut peer, 7), b"and now");
        uring.send(ConnId(0), Transmit::Owned(vec![b'y'; length]));
        uring.close(ConnId(0));
        work(&mut uring);
        assert!(uring.orphans.is_empty() && uring.closing.is_empty(), "nothing is kept for longer than it is needed");
    }
}

/// Reads so many bytes while the backend works.
fn read(uring: &mut Uring, peer: &mut TcpStream, length: usize) -> Vec<u8> {
    peer.set_nonblocking(true).unwrap();
    let (mut received, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
    while received.len() < length {
        match peer.read(&mut buffer) {
            Ok(n) => received.extend_from_slice(&buffer[..n]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        work(uring);
    }
    received
}
