//! Tests the two kernel backends against the kernel: with ports of our choice and with gathered responses. Skipped
//! where the kernel does not support it.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use onrush_plan::ConnectOptions;
use onrush_plan::connect::SourceAddresses;

use super::ports::tests::only;
use super::*;

/// A port that was free a moment ago.
fn free(ip: &str) -> u16 {
    TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().port()
}

fn dialer(ports: &[u16], source: Option<&str>) -> Option<Dialer> {
    let connect = ConnectOptions {
        sources: source.map(|text| SourceAddresses::parse(text).unwrap()),
        ..ConnectOptions::default()
    };
    Some(Dialer::new(&connect, 0).unwrap().with_ports(Some(only(ports)?)))
}

fn on_both(ports: &[u16], source: Option<&str>, test: impl Fn(&mut dyn FnMut(ConnId, SocketAddr) -> What)) {
    fn connect(backend: &mut impl Backend, conn: ConnId, address: SocketAddr) -> What {
        backend.connect(conn, address);
        loop {
            let until = backend.now() + 5_000_000_000;
            backend.wait(until);
            if let Some(completion) = backend.next_completion() {
                return completion.what;
            }
        }
    }
    let Some(dialer) = dialer(ports, source) else { return };
    let mut epoll = Epoll::new(2, Clock::start(), dialer.clone()).unwrap();
    test(&mut |conn, address| connect(&mut epoll, conn, address));
    drop(epoll);
    let Ok(mut uring) = Uring::new(2, Clock::start(), dialer) else { return };
    test(&mut |conn, address| connect(&mut uring, conn, address));
}

#[test]
fn taken_ports_are_stepped_over() {
    for (ip, source) in [("127.0.0.1", None), ("127.0.0.1", Some("127.0.0.1")), ("::1", None), ("::1", Some("::1"))] {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let taken: Vec<_> = (0..3).map(|_| TcpListener::bind((ip, 0)).unwrap()).collect();
        let mut ports: Vec<u16> = taken.iter().map(|taken| taken.local_addr().unwrap().port()).collect();
        // Another test may take one of these ports in the meantime.
        let free: Vec<_> = (0..4).map(|_| TcpListener::bind((ip, 0)).unwrap()).collect();
        ports.extend(free.iter().map(|free| free.local_addr().unwrap().port()));
        drop(free);
        on_both(&ports, source, |connect| {
            assert_eq!(connect(ConnId(0), address), What::Connected(Ok(())));
            let (accepted, peer) = listener.accept().unwrap();
            assert_eq!(peer.ip(), ip.parse::<IpAddr>().unwrap(), "{source:?}");
            assert!(ports[3..].contains(&peer.port()), "{source:?} {peer} {ports:?}");
            // The server closes first, so that the port is free again.
            drop(accepted);
        });
    }
}

#[test]
fn only_taken_ports_mean_exhaustion() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = taken.iter().map(|taken| taken.local_addr().unwrap().port()).collect();
    on_both(&ports, None, |connect| {
        assert_eq!(connect(ConnId(0), listener.local_addr().unwrap()), What::Connected(Err(Errno::ADDRNOTAVAIL)));
    });
}

#[test]
fn long_port_searches_continue_next_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut ports = vec![taken.local_addr().unwrap().port(); 100];
    ports.push(free("127.0.0.1"));
    on_both(&ports, None, |connect| {
        assert_eq!(connect(ConnId(0), address), What::Postponed);
        assert_eq!(connect(ConnId(1), address), What::Connected(Ok(())));
        let (accepted, peer) = listener.accept().unwrap();
        assert_eq!(peer.port(), ports[100]);
        drop(accepted);
    });
}

#[test]
fn refused_connects_are_not_taken_ports() {
    let refusing = SocketAddr::from(([127, 0, 0, 1], free("127.0.0.1")));
    on_both(&[free("127.0.0.1"), free("127.0.0.1")], None, |connect| {
        assert_eq!(connect(ConnId(0), refusing), What::Connected(Err(Errno::CONNREFUSED)));
    });
}

/// In nanoseconds: time enough for anything immediate, and a longer time.
const SOON_NS: u64 = 100_000_000;
const LATE_NS: u64 = 500_000_000;

/// Gathers for this long. Returns the elapsed time and the completions with their times.
fn gather(backend: &mut impl Backend, ns: u64) -> (u64, Vec<(What, Nanos)>) {
    let began = backend.now();
    if !backend.gather(began + ns, began + 2 * ns) {
        backend.wait(began + ns);
    }
    let took_ns = backend.now().since(began);
    backend.wait(Nanos::default());
    let mut arrived = Vec::new();
    while let Some(Completion { what, at, .. }) = backend.next_completion() {
        arrived.push((what, at));
    }
    (took_ns, arrived)
}

/// Connects and receives responses until they can be gathered.
fn settle(backend: &mut impl Backend, listener: &TcpListener) -> TcpStream {
    backend.connect(ConnId(0), listener.local_addr().unwrap());
    gather(backend, SOON_NS);
    let mut peer = listener.accept().unwrap().0;
    for _ in 0..5_000 {
        // The kernel takes a moment before it timestamps anything.
        thread::sleep(Duration::from_millis(1));
        peer.write_all(b"x").unwrap();
        if gather(backend, SOON_NS).0 >= SOON_NS {
            return peer;
        }
    }
    panic!("nothing is gathered");
}

fn answers_are_gathered_and_have_the_time_of_their_arrival(backend: &mut impl Backend) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = settle(backend, &listener);
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_nanos(SOON_NS / 2));
        let before = Instant::now();
        peer.write_all(b"x").unwrap();
        (peer, before, Instant::now())
    });
    let (took_ns, arrived) = gather(backend, LATE_NS);
    let (mut peer, before, after) = writer.join().unwrap();
    let (before, after) = (backend.time_at(before), backend.time_at(after));
    let [(What::Received(Ok(1)), at)] = arrived[..] else { panic!("{arrived:?}") };
    assert!(took_ns >= LATE_NS, "{took_ns}");
    let noise_ns = 100_000;
    assert!(before <= at + noise_ns && at <= after + noise_ns, "{before:?} {at:?} {after:?}");

    // A connect has no timestamp, and the first response may take long.
    backend.connect(ConnId(1), listener.local_addr().unwrap());
    assert!(gather(backend, LATE_NS).0 < LATE_NS);
    backend.close(ConnId(1));
    backend.wait(Nanos::default());

    // If many bytes arrive at once, the server may be waiting until they are read.
    peer.write_all(&[b'x'; 20_000]).unwrap();
    let began = backend.now();
    let mut n = 0;
    while n < 20_000 && backend.now().since(began) < 10 * LATE_NS {
        for (what, _) in gather(backend, 2 * LATE_NS).1 {
            n += if let What::Received(Ok(n)) = what { n } else { 0 };
        }
    }
    peer.write_all(b"x").unwrap();
    gather(backend, 2 * LATE_NS);
    assert!(backend.now().since(began) < 3 * LATE_NS, "a pile is gathered once at most");
}

#[test]
fn both_backends_gather_responses() {
    let dialer = Dialer::default().with_timestamps(true);
    let mut epoll = Epoll::new(2, Clock::start(), dialer.clone()).unwrap();
    answers_are_gathered_and_have_the_time_of_their_arrival(&mut epoll);
    drop(epoll);
    let Ok(mut uring) = Uring::new(2, Clock::start(), dialer) else { return };
    answers_are_gathered_and_have_the_time_of_their_arrival(&mut uring);
}

#[test]
fn gathering_requires_timestamps() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut epoll = Epoll::new(1, Clock::start(), Dialer::default()).unwrap();
    epoll.connect(ConnId(0), listener.local_addr().unwrap());
    gather(&mut epoll, LATE_NS);
    let mut peer = listener.accept().unwrap().0;
    for _ in 0..10 {
        peer.write_all(b"x").unwrap();
        assert!(gather(&mut epoll, LATE_NS).0 < LATE_NS);
    }
}

/// The next completion, waiting repeatedly if a wait brings none.
fn await_one(backend: &mut impl Backend) -> Completion {
    loop {
        let until = backend.now() + 5 * SECOND_NS;
        assert!(backend.now() < until && backend.wait(until), "nothing happens");
        if let Some(completion) = backend.next_completion() {
            return completion;
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// Sends a request on a connection and provides the response while `meanwhile` runs.
fn ask(backend: &mut impl Backend, conn: ConnId, peer: &mut TcpStream, mut meanwhile: impl FnMut()) {
    assert_eq!(backend.send(conn, Transmit::Owned(b"ping".to_vec())), 4);
    backend.wait(Nanos::default());
    peer.read_exact(&mut [0; 4]).unwrap();
    peer.write_all(b"answer").unwrap();
    meanwhile();
    let completion = await_one(backend);
    assert_eq!((completion.conn, completion.what), (conn, What::Received(Ok(6))));
    assert_eq!(backend.received_bytes(), b"answer");
}

/// Passes connections from one backend to the next after some responses on the first.
fn hand_over<B: Backend>(make: impl Fn() -> B, answers: usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first = make();
    let [mut peer, closes, mut speaks] = [0, 1, 2].map(|number| {
        first.connect(ConnId(number), listener.local_addr().unwrap());
        assert_eq!(await_one(&mut first).what, What::Connected(Ok(())));
        listener.accept().unwrap().0
    });
    peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (0..answers).for_each(|_| ask(&mut first, ConnId(0), &mut peer, || ()));
    first.wait(Nanos::default());
    drop(closes);
    speaks.write_all(b"unasked").unwrap();
    let released = first.release(&[ConnId(0), ConnId(1), ConnId(2)]);
    let mut second = make();
    let adopted = released.into_iter().filter_map(|(conn, fd)| second.adopt(ConnId(2 - conn.0), fd).then_some(conn));
    assert_eq!(adopted.collect::<Vec<_>>(), [ConnId(0)], "{answers} answers");
    (0..3).for_each(|_| ask(&mut second, ConnId(2), &mut peer, || first.stop()));
    drop(first);
    second.close(ConnId(2));
    assert_eq!(peer.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn only_idle_connections_move_to_other_backends() {
    for answers in [0, 1, 2, 5] {
        for timestamps in [false, true] {
            let dialer = || Dialer::default().with_timestamps(timestamps);
            hand_over(|| Epoll::new(3, Clock::start(), dialer()).unwrap(), answers);
            if Uring::new(3, Clock::start(), dialer()).is_ok() {
                hand_over(|| Uring::new(3, Clock::start(), dialer()).unwrap(), answers);
            }
        }
    }
}

#[test]
fn large_bodies_are_discarded_in_large_pieces() {
    const BODY: usize = 1 << 20;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut epoll = Epoll::new(1, Clock::start(), Dialer::default()).unwrap();
    epoll.connect(ConnId(0), listener.local_addr().unwrap());
    assert_eq!(await_one(&mut epoll).what, What::Connected(Ok(())));
    let mut peer = listener.accept().unwrap().0;
    peer.write_all(b"head").unwrap();
    assert_eq!(await_one(&mut epoll).what, What::Received(Ok(4)));
    epoll.discard(ConnId(0), BODY as u64);
    peer.write_all(&[b'x'; 1_000]).unwrap();
    assert_eq!(gather(&mut epoll, SOON_NS).1, [], "it is not woken for a small piece");

    let writer = thread::spawn(move || {
        peer.write_all(&[b'x'; BODY - 1_000]).unwrap();
        peer
    });
    let mut left = BODY;
    while left > 0 {
        let What::Discarded(n) = await_one(&mut epoll).what else { panic!("{left} bytes are left") };
        left -= n;
    }
    let mut peer = writer.join().unwrap();
    epoll.wait(Nanos::default());
    assert_eq!(epoll.next_completion(), None);
    peer.write_all(&[b'x'; 20_000]).unwrap();
    let What::Received(Ok(n)) = await_one(&mut epoll).what else { panic!("nothing is received") };
    assert!(n < 20_000, "of the next large response little is copied: {n}");
}
