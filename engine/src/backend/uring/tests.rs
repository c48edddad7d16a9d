//! Tests against the kernel with servers that read nothing or close early. Skipped where there is no io_uring.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use super::*;

/// Bytes of one send, small enough to be silent.
const BYTES: usize = 16 * 1024;

/// Runs the backend for a moment. Returns the number of sent bytes it has reported.
fn work(uring: &mut Uring) -> usize {
    let until = uring.now() + 5_000_000;
    uring.wait(until);
    let mut sent = 0;
    while let Some(completion) = uring.next_completion() {
        if let What::Sent(outcome) = completion.what {
            sent += outcome.expect("the peer is there");
        }
    }
    sent
}

#[test]
fn lingering_waits_end_by_count_or_time() {
    // Skipped where there is no io_uring.
    let Ok(mut uring) = Uring::new(2, Clock::start(), Dialer::default()) else { return };
    if !uring.ring.can_linger() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peers: Vec<TcpStream> = (0..2)
        .map(|number| {
            uring.connect(ConnId(number), listener.local_addr().unwrap());
            work(&mut uring);
            listener.accept().unwrap().0
        })
        .collect();
    let mut wait = |lasts_ns: u64, linger_ns: u64, peers: &mut [TcpStream]| {
        peers.iter_mut().for_each(|peer| peer.write_all(b"answer").unwrap());
        let began = uring.now();
        assert_eq!(uring.wait_for_several(2, linger_ns, began + lasts_ns) > 0, linger_ns > 0);
        let waited_ns = uring.now().since(began);
        assert_eq!(std::iter::from_fn(|| uring.next_completion()).count(), peers.len());
        waited_ns
    };
    const MS: u64 = 1_000_000;
    assert!(wait(20_000 * MS, 10_000 * MS, &mut peers) < 5_000 * MS, "both are there");
    let waited_ns = wait(20_000 * MS, 20 * MS, &mut peers[..1]);
    assert!((20 * MS..5_000 * MS).contains(&waited_ns), "{waited_ns}");
    let waited_ns = wait(20 * MS, 10_000 * MS, &mut peers[..1]);
    assert!((20 * MS..5_000 * MS).contains(&waited_ns), "it ends with the wait: {waited_ns}");
    assert!(wait(20_000 * MS, 0, &mut peers[..1]) < 5_000 * MS, "there is no moment");
}

#[test]
fn queued_bytes_stay_unchanged_until_sent() {
    for burst in [1, 2, 3] {
        // Skipped where there is no io_uring.
        let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();

        // The engine sends the next request once the last one has been accepted, here without a response: as many as
        // possible in one turn, until the kernel takes no more.
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
        assert_eq!(uring.take_sent_count(), received.len() as u64);
    }
}

#[test]
fn wide_connections_narrow_without_large_buffers() {
    const CONNECTIONS: u32 = 40;
    let Ok(mut uring) = Uring::new(CONNECTIONS, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|number| {
            uring.connect(ConnId(number), listener.local_addr().unwrap());
            work(&mut uring);
            listener.accept().unwrap().0
        })
        .collect();
    let mut received = vec![Vec::new(); peers.len()];
    let mut longest = 0;
    let mut exchange = |uring: &mut Uring, text: &[u8], widens: bool| {
        received.iter_mut().for_each(Vec::clear);
        peers.iter_mut().for_each(|peer| peer.write_all(text).unwrap());
        while received.iter().any(|received| received.len() < text.len()) {
            let until = uring.now() + 1_000_000_000;
            assert!(uring.wait(until), "nothing is lost");
            while let Some(Completion { conn, what, .. }) = uring.next_completion() {
                assert!(matches!(what, What::Received(Ok(1..))), "{what:?}");
                let piece = uring.received_bytes();
                longest = longest.max(piece.len());
                received[conn.index()].extend_from_slice(piece);
                if widens {
                    uring.receive_in_large_pieces(conn);
                }
            }
        }
        assert!(received.iter().all(|received| received == text));
        std::mem::take(&mut longest)
    };
    let numbers: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
    assert!((0..3).all(|_| exchange(&mut uring, b"small", false) == 5));
    exchange(&mut uring, &numbers, true);
    assert!(exchange(&mut uring, &numbers, true) > buffers::SMALL_BYTES);
    // More simultaneous responses than large buffers; the kernel passes on a few at a time.
    (0..CONNECTIONS).for_each(|number| uring.receive_in_large_pieces(ConnId(number)));
    for _ in 0..10 {
        exchange(&mut uring, b"small", false);
    }
    assert!(uring.sockets.iter().any(|socket| !socket.is_wide));
}

#[test]
fn queued_bytes_are_dropped_with_their_connection() {
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for length in [BYTES, 64 * BYTES] {
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();
        // A send that the kernel has, one it could not take, one after that, and one the kernel has not seen.
        while uring.send(ConnId(0), Transmit::Owned(vec![b'x'; length])) == length {
            work(&mut uring);
        }
        uring.close(ConnId(0));
        assert_eq!(work(&mut uring), 0);
        assert_eq!(uring.take_sent_count(), rest(&mut peer).len() as u64, "what it took of those counts");

        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();
        uring.send(ConnId(0), Transmit::Owned(b"and now".to_vec()));
        assert_eq!(read(&mut uring, &mut peer, 7), b"and now");
        uring.send(ConnId(0), Transmit::Owned(vec![b'y'; length]));
        uring.close(ConnId(0));
        work(&mut uring);
        assert!(uring.orphans.is_empty() && uring.closing.is_empty(), "nothing is kept longer than needed");
        assert_eq!(uring.take_sent_count(), 7 + rest(&mut peer).len() as u64);
    }
}

#[test]
fn sends_before_a_close_leave_first() {
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    for _ in 0..2 {
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();
        // After the second response the receive stays armed, and the socket is in the kernel's table.
        for _ in 0..2 {
            uring.send(ConnId(0), Transmit::Owned(b"ask".to_vec()));
            assert_eq!(read(&mut uring, &mut peer, 3), b"ask");
            peer.write_all(b"answer").unwrap();
            work(&mut uring);
        }
        assert_eq!(uring.take_sent_count(), 6);
        // The response makes room for the next request. The next event is that the peer has closed.
        uring.send(ConnId(0), Transmit::Owned(b"ask".to_vec()));
        uring.close(ConnId(0));
        work(&mut uring);
        assert_eq!((uring.take_sent_count(), rest(&mut peer)), (3, b"ask".to_vec()));
        assert!(uring.closing.is_empty());
    }
}

#[test]
fn closed_connections_send_nothing() {
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    uring.connect(ConnId(0), listener.local_addr().unwrap());
    work(&mut uring);
    let (peer, _) = listener.accept().unwrap();
    // Much more than the kernel takes, to a peer that closes its side and reads nothing.
    assert_eq!(uring.send(ConnId(0), Transmit::Owned(vec![b'x'; 1024 * BYTES])), 0);
    assert_eq!(work(&mut uring), 0);
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(work(&mut uring), 0);
    uring.close(ConnId(0));
    assert_eq!(work(&mut uring), 0);
    assert!(uring.orphans.is_empty(), "the kernel has let go of it");
    assert_eq!(uring.send(ConnId(0), Transmit::Owned(vec![b'x'])), 0, "the connection is gone");
    assert!(uring.ring.queued_count() == 0);
}

#[test]
fn refusals_after_the_next_send_end_connections() {
    for length in [BYTES, 64 * BYTES] {
        let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_socket_recv_buffer_size(&listener, 1).unwrap();
        uring.connect(ConnId(0), listener.local_addr().unwrap());
        work(&mut uring);
        let (mut peer, _) = listener.accept().unwrap();
        set_socket_send_buffer_size(uring.sockets[0].fd.as_ref().unwrap(), 1).unwrap();
        peer.write_all(b"1").unwrap();
        work(&mut uring);
        // The next receive is queued and finds bytes; behind it is a send that the kernel takes in part.
        peer.write_all(b"2").unwrap();
        assert_eq!(uring.send(ConnId(0), Transmit::Owned(vec![b'a'; BYTES])), BYTES);
        let until = uring.now() + 1_000_000_000;
        uring.wait(until);
        let (mut is_next_sent, mut failed) = (false, None);
        for _ in 0..20 {
            while let Some(completion) = uring.next_completion() {
                match completion.what {
                    What::Received(Ok(1)) if !is_next_sent => {
                        uring.send(ConnId(0), Transmit::Owned(vec![b'b'; length]));
                        is_next_sent = true;
                    }
                    What::Sent(Err(errno)) => failed = failed.or(Some((is_next_sent, errno))),
                    _ => {}
                }
            }
            let until = uring.now() + 1_000_000;
            uring.wait(until);
        }
        assert_eq!(failed, Some((true, Errno::CONNABORTED)));
        uring.close(ConnId(0));
        work(&mut uring);
        assert!(uring.orphans.is_empty() && uring.closing.is_empty());
        let received = rest(&mut peer);
        assert_eq!(uring.take_sent_count(), received.len() as u64);
        assert!(received.len() < BYTES && received.iter().all(|byte| *byte == b'a'), "nothing overtakes anything");
    }
}

#[test]
fn bytes_of_unfinished_sends_count() {
    for (is_handed_over, is_closed) in [(true, true), (true, false), (false, true), (false, false)] {
        for length in [BYTES, 1024 * BYTES] {
            let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            uring.connect(ConnId(0), listener.local_addr().unwrap());
            work(&mut uring);
            let (mut peer, _) = listener.accept().unwrap();
            uring.send(ConnId(0), Transmit::Owned(vec![b'x'; length]));
            if is_handed_over {
                work(&mut uring);
            }
            if is_closed {
                uring.close(ConnId(0));
            }
            uring.stop();
            let taken = uring.take_sent_count();
            drop(uring);
            assert_eq!(rest(&mut peer).len() as u64, taken, "{is_handed_over} {is_closed} {length}");
            assert_eq!(taken > 0, is_handed_over);
            assert!(taken < length as u64 || length == BYTES);
        }
    }
}

/// Reads to the end of the stream.
fn rest(peer: &mut TcpStream) -> Vec<u8> {
    peer.set_nonblocking(false).unwrap();
    let mut received = Vec::new();
    let _ = peer.read_to_end(&mut received);
    received
}

/// Reads this many bytes while the backend runs.
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
