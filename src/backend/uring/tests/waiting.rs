//! When a wait ends, and which time it gives to what it brings.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::super::*;
use super::work;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(10);

/// A backend with so many connections that had an answer each, and their peers.
fn settled(count: u32) -> Option<(Uring, Vec<TcpStream>)> {
    let mut uring = Uring::new(count + 1, Clock::start(), Dialer::default()).ok()?;
    uring.linger(Linger { count: 2, ns: 1_000 });
    if !uring.dates {
        return None;
    }
    let peers = (0..count).map(|number| {
        let mut peer = connected(&mut uring, ConnId(number));
        // The kernel takes a moment until it tells when they come.
        for round in 0..5_000 {
            peer.write_all(b"x").unwrap();
            work(&mut uring);
            if round > 0 && uring.is_stamped {
                return peer;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("the kernel never tells when bytes came");
    });
    let peers = peers.collect();
    uring.linger(Linger::default());
    assert_eq!(uring.urgent, 0, "nothing but armed receives is under way");
    Some((uring, peers))
}

fn connected(uring: &mut Uring, conn: ConnId) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    uring.connect(conn, listener.local_addr().unwrap());
    work(uring);
    listener.accept().unwrap().0
}

/// Waits once; returns what arrived where and when, and how long that took.
fn wait(uring: &mut Uring) -> (Vec<(u32, Nanos)>, Duration) {
    let began = uring.now();
    let mut arrived = Vec::new();
    while arrived.is_empty() {
        uring.wait(began + 2 * LONG.as_nanos() as u64);
        while let Some(completion) = uring.next() {
            assert_eq!(completion.what, What::Received(Ok(1)));
            assert_eq!(uring.received(), b"x");
            arrived.push((completion.conn.0, completion.at));
        }
    }
    (arrived, Duration::from_nanos(uring.now().since(began)))
}

#[test]
fn bytes_have_the_time_at_which_they_came_however_late_we_look() {
    let Some((mut uring, mut peers)) = settled(2) else { return };
    let before = uring.now();
    peers[0].write_all(b"x").unwrap();
    let after = uring.now();
    thread::sleep(Duration::from_millis(50));
    let (arrived, _) = wait(&mut uring);
    let tolerance_ns = 5_000_000;
    let [(0, at)] = arrived[..] else { panic!("{arrived:?}") };
    assert!(before <= at + tolerance_ns && at <= after + tolerance_ns, "{before:?} {at:?} {after:?}");
}

#[test]
fn a_wait_that_lingers_brings_several_completions_with_their_own_times() {
    let Some((mut uring, mut peers)) = settled(2) else { return };
    uring.linger(Linger { count: 2, ns: LONG.as_nanos() as u64 });
    let gap = Duration::from_millis(50);
    let writer = thread::spawn(move || {
        peers[0].write_all(b"x").unwrap();
        thread::sleep(gap);
        peers[1].write_all(b"x").unwrap();
        peers
    });
    let (arrived, took) = wait(&mut uring);
    let mut peers = writer.join().unwrap();
    assert!(took < LONG, "two are enough");
    let [(0, first), (1, second)] = arrived[..] else { panic!("{arrived:?}") };
    assert!(second.since(first) + 5_000_000 > gap.as_nanos() as u64, "{first:?} {second:?}");

    uring.linger(Linger { count: 2, ns: gap.as_nanos() as u64 });
    peers[0].write_all(b"x").unwrap();
    let (arrived, took) = wait(&mut uring);
    assert_eq!(arrived.len(), 1);
    assert!((gap..LONG).contains(&took), "{took:?}: it lingers, but no longer than it may");

    // In the microseconds of the kernel this is no time, and no time means for ever there.
    uring.linger(Linger { count: 2, ns: 999 });
    peers[0].write_all(b"x").unwrap();
    let (_, took) = wait(&mut uring);
    assert!(took < LONG, "{took:?}");
}

#[test]
fn bytes_have_their_time_though_more_have_come_than_one_wait_brings() {
    let count = 200;
    let Some((mut uring, mut peers)) = settled(count) else { return };
    peers.iter_mut().for_each(|peer| peer.write_all(b"x").unwrap());
    let after = uring.now();
    thread::sleep(Duration::from_millis(50));
    let mut arrived = Vec::new();
    while arrived.len() < count as usize {
        arrived.extend(wait(&mut uring).0);
    }
    let late = arrived.iter().filter(|(_, at)| *at > after + 5_000_000).count();
    assert_eq!(late, 0, "of {count}");
}

#[test]
fn nothing_is_lost_when_armed_receives_are_made_anew() {
    let Ok(mut uring) = Uring::new(1, Clock::start(), Dialer::default()) else { return };
    let mut peer = connected(&mut uring, ConnId(0));
    let mut received = Vec::new();
    for number in 0..200_u8 {
        if number == 100 {
            assert_eq!((uring.sockets[0].mode, uring.sockets[0].is_dated), (Mode::Small, false));
            uring.linger(Linger { count: 2, ns: 1_000 });
        }
        peer.write_all(&[number]).unwrap();
        let until = uring.now() + 5_000_000;
        uring.wait(until);
        while let Some(completion) = uring.next() {
            assert!(matches!(completion.what, What::Received(Ok(1..))), "{completion:?}");
            received.extend_from_slice(uring.received());
        }
    }
    assert!(received.into_iter().eq(0..200), "each once, and in order");
    assert_eq!(uring.sockets[0].is_dated, uring.ring.params().is_feature_min_timeout());
    assert_eq!((uring.sockets[0].mode, uring.urgent), (Mode::Small, 0));
}

#[test]
fn time_in_which_we_slept_is_never_taken_back() {
    let Some((mut uring, mut peers)) = settled(1) else { return };
    let began = uring.now();
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        peers[0].write_all(b"x").unwrap();
        peers
    });
    let (arrived, _) = wait(&mut uring);
    writer.join().unwrap();
    assert!(arrived[0].1 >= began + 49_000_000);
    // Whatever the kernel says: the network may have changed the order of what came.
    let (told_until, reaped_at) = (began.0, uring.reaped_at.0);
    assert!(uring.earliest.0 - told_until >= 49_000_000, "{told_until} {:?} {reaped_at}", uring.earliest);
}

#[test]
fn no_wait_lingers_while_something_is_under_way_whose_time_only_we_know() {
    let Some((mut uring, mut peers)) = settled(2) else { return };
    uring.linger(Linger { count: 2, ns: LONG.as_nanos() as u64 });
    // It waits for its first answer.
    let _peer = connected(&mut uring, ConnId(2));
    peers[0].write_all(b"x").unwrap();
    let (_, took) = wait(&mut uring);
    assert!(took < LONG, "{took:?}");

    uring.close(ConnId(2));
    work(&mut uring);
    assert_eq!(uring.urgent, 0, "what is closed delays nobody");

    // Nor while a connection leaves the small way: what comes next on it nobody dates.
    let (began, length) = (uring.now(), 100_000);
    uring.discard(ConnId(0), length as u64);
    peers[0].write_all(&vec![b'y'; length]).unwrap();
    let mut came = 0;
    while came < length {
        uring.wait(began + 2 * LONG.as_nanos() as u64);
        while let Some(completion) = uring.next() {
            match completion.what {
                What::Discarded(n) | What::Received(Ok(n)) => came += n,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(uring.now().since(began) < LONG.as_nanos() as u64);
}
