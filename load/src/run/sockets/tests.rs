//! Tests of readings of real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use onrush_plan::Random;

use super::keys::KEYS;
use super::own::OwnConnections;
use super::reservoir::Reservoir;
use super::*;

/// All names and values of a reading.
fn all_values(reading: &SocketReading) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let each = |key, value: SocketValue<'_>| {
        all.push((key, serde_json::to_string(&value).unwrap()));
        Ok::<_, ()>(())
    };
    reading.for_each_value(each).unwrap();
    all
}

fn value_of(reading: &SocketReading, name: &str) -> Option<String> {
    all_values(reading).into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The sockets of this process connected to this address, up to `most`.
fn own_sockets(address: SocketAddr, most: usize) -> (Vec<SocketReading>, u64) {
    let mut reservoir = Reservoir::new(7, most);
    OwnConnections::new(&[address]).offer_connections(&mut reservoir).unwrap();
    reservoir.into_readings()
}

#[test]
fn readings_keep_all_kernel_fields() {
    for ip in ["127.0.0.1", "::1"] {
        let Ok(listener) = TcpListener::bind((ip, 0)) else { continue };
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"12345").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"123").unwrap();
        let (readings, left_out) = own_sockets(address, 10);
        let [reading] = &readings[..] else { panic!("{readings:?}") };
        assert_eq!(left_out, 0);
        let local = client.local_addr().unwrap();
        for (key, value) in [
            ("state", "\"ESTAB\"".to_owned()),
            ("local_address_port", format!("\"{local}\"")),
            ("peer_address_port", format!("\"{address}\"")),
            ("recv_q", "3".to_owned()),
            ("bytessent", "5".to_owned()),
            ("bytesreceived", "3".to_owned()),
            ("retrans_total", "0".to_owned()),
            ("uid", rustix::process::geteuid().as_raw().to_string()),
        ] {
            assert_eq!(value_of(reading, key), Some(value), "{key}");
        }
        for key in ["rto", "mss", "cwnd", "advmss", "cong", "skmem", "send", "snd_wscale"] {
            assert!(value_of(reading, key).is_some_and(|value| value != "0"), "{key}");
        }
        assert!(reading.rtt_us().unwrap() > 0 && reading.cwnd().unwrap() > 0 && reading.retransmits() == Some(0));
        let [receive, _] = reading.buffer_use().unwrap();
        assert!(receive > 0.0 && receive < 1.0, "three bytes were not read");
    }
}

#[test]
fn older_kernels_leave_fields_empty() {
    let info: Vec<u8> = (0..240).map(|byte| byte as u8).collect();
    for length in 0..=info.len() {
        let known = KEYS.iter().filter(|key| key.read_value(&info[..length]).is_some()).count();
        assert_eq!(known == KEYS.len(), length == 240, "{length}");
    }
    // The kernel added the segment counters after the byte counters.
    let read =
        |length: usize, name: &str| KEYS.iter().find(|key| key.name == name).unwrap().read_value(&info[..length]);
    assert_eq!(read(136, "segsout"), None);
    assert_eq!(read(140, "segsout"), Some(SocketValue::Whole(u32::from_ne_bytes([136, 137, 138, 139]).into())));
    let mut info = vec![0; 240];
    info[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
    info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
    info[104..120].fill(0xff);
    let unknown: Vec<&str> = KEYS.iter().filter(|key| key.read_value(&info).is_none()).map(|key| key.name).collect();
    assert_eq!(unknown, ["rtt", "ssthresh", "pacing_rate", "max_pacing_rate", "rcvrtt", "minrtt"]);
    info[68..72].copy_from_slice(&1_500_u32.to_ne_bytes());
    let rtt = KEYS.iter().find(|key| key.name == "rtt").unwrap();
    assert_eq!(rtt.read_value(&info), Some(SocketValue::Decimal(1.5)));
}

#[test]
fn socket_key_names_are_unique() {
    let names: std::collections::HashSet<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len());
}

#[test]
fn sampling_keeps_the_same_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let names = |most: usize| -> (Vec<u64>, u64) {
        let (readings, left_out) = own_sockets(address, most);
        (readings.iter().map(SocketReading::cookie).collect(), left_out)
    };
    let (all, none) = names(20);
    assert_eq!((all.len(), none), (20, 0));
    assert_eq!(names(6), (all[..6].to_vec(), 14));
    assert_eq!(names(6), names(6));
    drop(clients);
}

#[test]
fn sockets_of_other_processes_are_excluded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let kept = TcpStream::connect(address).unwrap();
    let given = TcpStream::connect(address).unwrap();
    let mut other =
        std::process::Command::new("sleep").arg("60").stdin(std::os::fd::OwnedFd::from(given)).spawn().unwrap();
    let mut own = OwnConnections::new(&[address]);
    for round in 0..3 {
        if round == 2 {
            own = OwnConnections::new(&[(std::net::Ipv4Addr::UNSPECIFIED, address.port()).into()]);
        }
        let mut reservoir = Reservoir::new(1, 10);
        own.offer_connections(&mut reservoir).unwrap();
        let (readings, _) = reservoir.into_readings();
        let ports: Vec<_> = readings.iter().map(|reading| value_of(reading, "local_address_port").unwrap()).collect();
        assert_eq!(ports, [format!("\"{}\"", kept.local_addr().unwrap())]);
    }
    other.kill().and_then(|()| other.wait()).unwrap();
}

/// The kernel's message about a socket, with these attributes.
fn socket_message(cookie: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![0; 72];
    (body[0], body[1]) = (2, 1);
    body[44..48].copy_from_slice(&cookie.to_ne_bytes());
    for (kind, value) in attributes {
        body.extend([(value.len() + 4) as u16, *kind].map(u16::to_ne_bytes).as_flattened());
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body
}

#[test]
fn socket_counts_start_at_the_previous_sample() {
    let reading = |cookie: u32, retransmits: u32, rtt_us: u32| {
        let mut info = [0; 104];
        info[68..72].copy_from_slice(&rtt_us.to_ne_bytes());
        info[100..104].copy_from_slice(&retransmits.to_ne_bytes());
        let memory: Vec<u8> = [50_u32, 100, 0, 1_000, 0, 250].map(u32::to_ne_bytes).concat();
        SocketReading::from_message(&socket_message(cookie, &[(2, &info), (7, &memory)])).unwrap()
    };
    let mut summary = SampleSums::default();
    let mut add = |at_s: f64, left_out: u64, failure: Option<Errno>, readings: Vec<SocketReading>| {
        summary.add_sample(&SocketSample {
            at: Instant::now(),
            at_s,
            time: Duration::ZERO,
            readings,
            left_out,
            failure,
        });
    };
    add(-0.5, 9, Some(Errno::PERM), vec![reading(1, 5, 9_000)]);
    add(0.5, 2, None, vec![reading(1, 7, 2_000), reading(2, 4, 1_000)]);
    add(1.5, 3, None, vec![reading(2, 5, 3_000), reading(3, 90, 0)]);
    add(2.5, 0, Some(Errno::PERM), Vec::new());
    let sampled = summary.into_sums();
    let counts = [sampled.samples, sampled.failed, sampled.sockets, sampled.readings, sampled.left_out];
    assert_eq!(counts, [3, 1, 3, 4, 5]);
    assert_eq!(sampled.retransmits, 3, "two of the first, one of the second");
    assert_eq!((sampled.rtt_us.min(), sampled.rtt_us.max(), sampled.rtt_us.count()), (Some(1_000), Some(3_000), 3));
    assert_eq!((sampled.rcvbuf_use.min(), sampled.sndbuf_use.max()), (Some(500_000), Some(250_000)));
}

#[test]
fn malformed_readings_are_harmless() {
    let mut random = Random::new(1);
    let bytes: Vec<u8> = (0..300).map(|_| random.below(256) as u8).collect();
    for kind in 0..20 {
        for length in 0..bytes.len() {
            let whole = socket_message(kind.into(), &[(kind, &bytes[..length]), (2, &bytes[length..])]);
            for cut in [whole.len(), 72 + length] {
                let reading = SocketReading::from_message(&whole[..cut]).unwrap();
                assert!(all_values(&reading).len() >= 8);
                reading.buffer_use();
            }
        }
    }
    let mut lost = socket_message(1, &[]);
    lost[0] = 77;
    assert_eq!(SocketReading::from_message(&lost), None);
    assert_eq!(SocketReading::from_message(&socket_message(1, &[])[..71]), None);
}

#[test]
fn manual_documents_every_socket_key() {
    let manual = include_str!("../../../../docs/sockets.md");
    let table = manual.split("| key | what it says |").nth(1).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let explained: Vec<&str> = rows.flat_map(|keys| keys.trim_end_matches('`').split("`, `")).collect();
    let (zeros, options) = ([0; 240], [0, 0, 0, 0, 0, 4, 0, 0]);
    let info = [&options[..], &[1; 232]].concat();
    let mut known = socket_message(
        1,
        &[(2, &info), (3, &zeros[..16]), (4, b"x\0"), (7, &zeros[..36]), (9, &zeros[..16]), (16, &zeros[..20])],
    );
    known[2] = 1;
    let said: Vec<&str> =
        all_values(&SocketReading::from_message(&known).unwrap()).iter().map(|(key, _)| *key).collect();
    let sorted = |mut keys: Vec<&str>| {
        keys.sort_unstable();
        keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(sorted(explained), sorted([&["at_s", "time"][..], &said].concat()));
}
