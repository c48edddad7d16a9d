//! What the backends of the system owe, with local ports that we choose, against the kernel itself. Where the kernel
//! cannot do it there is nothing to test.

use std::net::{IpAddr, TcpListener};

use super::ports::tests::only;
use super::*;
use crate::plan::Way;
use crate::plan::way::Sources;

/// A port that is free, at least a moment ago.
fn free(ip: &str) -> u16 {
    TcpListener::bind((ip, 0)).unwrap().local_addr().unwrap().port()
}

fn dialer(ports: &[u16], source: Option<&str>) -> Option<Dialer> {
    let way = Way { sources: source.map(|text| Sources::parse(text).unwrap()), ..Way::default() };
    Some(Dialer::new(&way, 0).unwrap().with_ports(Some(only(ports)?)))
}

/// Runs a test on both.
fn on_both(ports: &[u16], source: Option<&str>, test: impl Fn(&mut dyn FnMut(ConnId, SocketAddr) -> What)) {
    fn connect(backend: &mut impl Backend, conn: ConnId, address: SocketAddr) -> What {
        backend.connect(conn, address);
        loop {
            let until = backend.now() + 5_000_000_000;
            backend.wait(until);
            if let Some(completion) = backend.next() {
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
fn a_port_that_is_taken_is_stepped_over() {
    for (ip, source) in [("127.0.0.1", None), ("127.0.0.1", Some("127.0.0.1")), ("::1", None), ("::1", Some("::1"))] {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let taken: Vec<_> = (0..3).map(|_| TcpListener::bind((ip, 0)).unwrap()).collect();
        let mut ports: Vec<u16> = taken.iter().map(|taken| taken.local_addr().unwrap().port()).collect();
        ports.push(free(ip));
        on_both(&ports, source, |connect| {
            assert_eq!(connect(ConnId(0), address), What::Connected(Ok(())));
            let (accepted, peer) = listener.accept().unwrap();
            assert_eq!((peer.ip(), peer.port()), (ip.parse::<IpAddr>().unwrap(), ports[3]), "{source:?}");
            // The server closes first, so that the port is free again.
            drop(accepted);
        });
    }
}

#[test]
fn a_whole_round_of_taken_ports_is_exhaustion() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = taken.iter().map(|taken| taken.local_addr().unwrap().port()).collect();
    on_both(&ports, None, |connect| {
        assert_eq!(connect(ConnId(0), listener.local_addr().unwrap()), What::Connected(Err(Errno::ADDRNOTAVAIL)));
    });
}

#[test]
fn a_long_search_goes_on_in_another_turn() {
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
fn who_refuses_is_no_port_that_is_taken() {
    let refusing = SocketAddr::from(([127, 0, 0, 1], free("127.0.0.1")));
    on_both(&[free("127.0.0.1"), free("127.0.0.1")], None, |connect| {
        assert_eq!(connect(ConnId(0), refusing), What::Connected(Err(Errno::CONNREFUSED)));
    });
}
