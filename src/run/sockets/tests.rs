//! What the kernel says of real sockets, and what is made of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::choice::Choice;
use super::keys::KEYS;
use super::own::Own;
use super::*;

/// Everything that a reading says, by its name.
fn all(reading: &Reading) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let each = |key, value: Value<'_>| {
        all.push((key, serde_json::to_string(&value).unwrap()));
        Ok::<_, ()>(())
    };
    reading.each(each).unwrap();
    all
}

fn of(reading: &Reading, name: &str) -> Option<String> {
    all(reading).into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// The sockets of this process that are connected there, at most so many of them.
fn own(address: SocketAddr, most: usize) -> (Vec<Reading>, u64) {
    let mut choice = Choice::new(7, most);
    Own::new(&[address]).sample(&mut choice).unwrap();
    choice.end()
}

#[test]
fn a_connection_is_read_with_everything_that_the_kernel_says_of_it() {
    for ip in ["127.0.0.1", "::1"] {
        let Ok(listener) = TcpListener::bind((ip, 0)) else { continue };
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"12345").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        server.write_all(b"123").unwrap();
        let (readings, left_out) = own(address, 10);
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
            assert_eq!(of(reading, key), Some(value), "{key}");
        }
        for key in ["rto", "mss", "cwnd", "advmss", "cong", "skmem", "send", "snd_wscale"] {
            assert!(of(reading, key).is_some_and(|value| value != "0"), "{key}");
        }
        assert!(reading.rtt_us().unwrap() > 0 && reading.cwnd().unwrap() > 0 && reading.retransmits() == Some(0));
        let [receive, _] = reading.buffer_use().unwrap();
        assert!(receive > 0.0 && receive < 1.0, "three bytes were not read");
    }
}

#[test]
fn an_older_kernel_says_less_and_no_figure_is_made_up() {
    let info: Vec<u8> = (0..240).map(|byte| byte as u8).collect();
    for length in 0..=info.len() {
        let known = KEYS.iter().filter(|key| key.read(&info[..length]).is_some()).count();
        assert_eq!(known == KEYS.len(), length == 240, "{length}");
    }
    // The counters of segments came after those of bytes.
    let read = |length: usize, name: &str| KEYS.iter().find(|key| key.name == name).unwrap().read(&info[..length]);
    assert_eq!(read(136, "segsout"), None);
    assert_eq!(read(140, "segsout"), Some(Value::Whole(u32::from_ne_bytes([136, 137, 138, 139]).into())));
    let mut info = vec![0; 240];
    info[76..80].copy_from_slice(&0x7fff_ffff_u32.to_ne_bytes());
    info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
    info[104..120].fill(0xff);
    let unknown: Vec<&str> = KEYS.iter().filter(|key| key.read(&info).is_none()).map(|key| key.name).collect();
    assert_eq!(unknown, ["rtt", "ssthresh", "pacing_rate", "max_pacing_rate", "rcvrtt", "minrtt"]);
    info[68..72].copy_from_slice(&1_500_u32.to_ne_bytes());
    let rtt = KEYS.iter().find(|key| key.name == "rtt").unwrap();
    assert_eq!(rtt.read(&info), Some(Value::Decimal(1.5)));
}

#[test]
fn no_name_is_there_twice() {
    let names: std::collections::HashSet<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len());
}

#[test]
fn too_many_sockets_are_the_same_ones_in_every_sample_and_the_rest_are_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let names = |most: usize| -> (Vec<u64>, u64) {
        let (readings, left_out) = own(address, most);
        (readings.iter().map(Reading::cookie).collect(), left_out)
    };
    let (all, none) = names(20);
    assert_eq!((all.len(), none), (20, 0));
    assert_eq!(names(6), (all[..6].to_vec(), 14));
    assert_eq!(names(6), names(6));
    drop(clients);
}

#[test]
fn sockets_of_others_to_the_same_target_are_not_the_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let kept = TcpStream::connect(address).unwrap();
    let given = TcpStream::connect(address).unwrap();
    let mut other =
        std::process::Command::new("sleep").arg("60").stdin(std::os::fd::OwnedFd::from(given)).spawn().unwrap();
    let mut own = Own::new(&[address]);
    for _ in 0..2 {
        let mut choice = Choice::new(1, 10);
        own.sample(&mut choice).unwrap();
        let (readings, _) = choice.end();
        let ports: Vec<_> = readings.iter().map(|reading| of(reading, "local_address_port").unwrap()).collect();
        assert_eq!(ports, [format!("\"{}\"", kept.local_addr().unwrap())]);
    }
    other.kill().and_then(|()| other.wait()).unwrap();
}
