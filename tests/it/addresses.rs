use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::harness::{Context, Scratch, cases, fetch_target_counts, target};
use crate::peers::{read_head, server, unix};
use crate::tls_peers::{Authority, TlsServer};

cases! {
    connections_use_source_ranges_in_turn;
    ranges_of_two_use_both_addresses;
    wrk_cmm_binds_all_except_its_probe;
    unusable_sources_are_named (Once);
    ipv6_ranges_work (Once) needs "::1";
    redirected_connections_keep_the_url_host (Once);
    names_resolve_to_given_addresses (Once);
    address_families_can_be_chosen (Once) needs "::1";
    logins_and_closing_become_headers (Once);
    port_shortage_is_foreseen_and_explained needs "unshare -rn true", "ip -V";
    unix_sockets_serve_small_and_large_bodies;
    missing_unix_sockets_are_named_by_path;
    url_names_are_checked_on_redirected_connections (Once);
}

/// Number of connections per client address, and a condition variable signalled when the number changes.
type Peers = Arc<(Mutex<BTreeMap<IpAddr, u32>>, Condvar)>;

/// A server that counts its clients by address, and responds only once `connections` have connected.
fn counting(connections: u32) -> (SocketAddr, Peers) {
    let peers = Peers::default();
    let counted = Arc::clone(&peers);
    let address = server(move |mut stream| {
        let peer = stream.peer_addr()?.ip();
        let (peers, changed) = &*counted;
        let mut peers = peers.lock().map_err(|_| io::ErrorKind::Other)?;
        *peers.entry(peer).or_default() += 1;
        changed.notify_all();
        let are_missing = |peers: &mut BTreeMap<_, u32>| peers.values().sum::<u32>() < connections;
        drop(changed.wait_while(peers, are_missing).map_err(|_| io::ErrorKind::Other)?);
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut reader)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
        }
    });
    (address, peers)
}

fn seen(peers: &Peers) -> BTreeMap<String, u32> {
    let peers = peers.0.lock().expect("no thread panics with the lock");
    peers.iter().map(|(peer, count)| (peer.to_string(), *count)).collect()
}

/// How often 20 connections use the addresses 127.0.0.1 to 127.0.0.15: the first five twice, the others once.
fn twenty_of_a_28() -> BTreeMap<String, u32> {
    (1..=15).map(|last| (format!("127.0.0.{last}"), if last <= 5 { 2 } else { 1 })).collect()
}

fn connections_use_source_ranges_in_turn(context: &Context) {
    for threads in [1, 2, 3] {
        let (address, peers) = counting(20);
        let onrush = context.onrush().words(&format!("-t{threads} -c20 -n60 -b 127.0.0.1/28"));
        let output = onrush.word(format!("http://{address}/")).run();
        assert_eq!((output.code, output.socket_errors("connect")), (0, 0), "{output:?}");
        assert_eq!(seen(&peers), twenty_of_a_28(), "{threads} threads");
    }
}

fn ranges_of_two_use_both_addresses(context: &Context) {
    let (address, peers) = counting(4);
    let output = context.onrush().words("-t1 -c4 -n8 -b 127.0.0.7/31").word(format!("http://{address}/")).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(seen(&peers), BTreeMap::from([("127.0.0.6".to_owned(), 2), ("127.0.0.7".to_owned(), 2)]));
}

fn wrk_cmm_binds_all_except_its_probe(context: &Context) {
    let (address, peers) = counting(21);
    let onrush = context.called("wrk-cmm").words("-t1 -c20 -n60 -b 127.0.0.2/28");
    let output = onrush.word(format!("http://{address}/")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let mut expected = twenty_of_a_28();
    *expected.get_mut("127.0.0.1").expect("it is there") += 1;
    assert_eq!(seen(&peers), expected);
}

fn unusable_sources_are_named(context: &Context) {
    let plain = target();
    let url = format!("http://{}/", plain.address());
    let table = [
        (
            "8.8.8.8",
            "onrush: bind(8.8.8.8): Cannot assign requested address; 'ip address' lists this machine's \
                     addresses",
        ),
        ("1.2.3", "onrush: --bind-ip \"1.2.3\": not an address; try 10.0.0.5 or 10.0.0.0/28"),
        ("300.0.0.1", "onrush: --bind-ip \"300.0.0.1\": not an address"),
        ("127.0.0.1/33", "onrush: --bind-ip \"127.0.0.1/33\": the number after the slash is the length"),
        ("127.0.0.1/0", "onrush: --bind-ip \"127.0.0.1/0\": more than 65536 addresses"),
        ("127.0.0.1/15", "onrush: --bind-ip \"127.0.0.1/15\": more than 65536 addresses"),
        ("::1", "cannot resolve 127.0.0.1:"),
    ];
    for (sources, expected) in table {
        let output = context.onrush().words("-d1s -b").word(sources).word(&url).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{sources}: {output:?}");
        assert!(
            output.stderr.trim_start_matches("onrush: ").contains(expected.trim_start_matches("onrush: ")),
            "{output:?}"
        );
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    for (sources, expected) in [
        ("8.8.8.8", "wrk-cmm: bind(8.8.8.8): Cannot assign requested address\n"),
        ("1.2.3", "could not parse range: 1.2.3\n"),
        ("127.0.0.1/33", "invalid mask in range: 127.0.0.1/33\n"),
    ] {
        let output = context.called("wrk-cmm").words("-d1 -b").word(sources).word(&url).run_plain();
        assert_eq!((output.code, output.stderr.as_str()), (1, expected), "{output:?}");
        assert!(!output.stdout.contains("Requests/sec"), "{output:?}");
    }
}

fn ipv6_ranges_work(context: &Context) {
    let served = onrush_serve::ServeConfig { address: "[::1]:0".parse().expect("an address"), threads: 1, tls: false };
    let served = onrush_serve::EmbeddedServer::start(&served).expect("it starts");
    for (sources, code) in [("::1", 0), ("::1/128", 0), ("::2", 1), ("::1/126", 1)] {
        let onrush = context.onrush().words("-c2 -n20 -b").word(sources);
        let output = onrush.word(format!("http://{}/", served.address())).run_plain();
        assert_eq!(output.code, code, "{sources}: {output:?}");
        assert!(code == 0 || output.stderr.contains("bind(::"), "{output:?}");
    }
}

fn redirected_connections_keep_the_url_host(context: &Context) {
    let plain = target();
    let (host, port) = (plain.address().ip(), plain.address().port());
    for (there, url) in [
        (format!("{host}:{port}"), "http://www.example.invalid/headers".to_owned()),
        (host.to_string(), format!("http://www.example.invalid:{port}/headers")),
        (format!("localhost:{port}"), "http://www.example.invalid:1/headers".to_owned()),
    ] {
        let output = context.onrush().words("--once --connect-to").word(&there).word(&url).run();
        assert_eq!(output.code, 0, "{there}: {output:?}");
        assert!(output.stdout.contains("> Host: www.example.invalid"), "{output:?}");
    }
    for there in ["", ":80", "h:", "h:0", "h:x", "[::1"] {
        let output = context.onrush().words("--connect-to").word(there).word("http://h/").run_plain();
        assert_eq!(output.code, 1, "{there}: {output:?}");
    }
}

fn names_resolve_to_given_addresses(context: &Context) {
    let plain = target();
    let port = plain.address().port();
    let url = format!("http://www.example.invalid:{port}/");
    for entry in ["www.example.invalid:127.0.0.1".to_owned(), format!("WWW.example.invalid:{port}:127.0.0.1")] {
        let output = context.onrush().words("-n4 -c2 --resolve").word(entry).word(&url).run();
        assert_eq!((output.code, output.requests()), (0, 4), "{output:?}");
        assert_eq!(output.stderr, "", "{output:?}");
    }
    assert_eq!(fetch_target_counts(plain.address()).requests, 8);
    let other = context.onrush().words("-d1s --resolve other.invalid:127.0.0.1").word(&url).run_plain();
    assert_eq!(other.code, 1, "{other:?}");
    assert!(
        other
            .stderr
            .starts_with("onrush: --resolve other.invalid:127.0.0.1 is ignored: the URL is for www.example.invalid:")
    );
    for entry in ["www.example.invalid", ":127.0.0.1", "h:80:", "h:x:127.0.0.1", "h:elsewhere"] {
        let output = context.onrush().words("--resolve").word(entry).word(&url).run_plain();
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.stderr.contains("write a host and an address"), "{output:?}");
    }
}

fn address_families_can_be_chosen(context: &Context) {
    let plain = target();
    let port = plain.address().port();
    // Keeps other processes from listening on this port meanwhile.
    let taken = socket(AddressFamily::INET6, SocketType::STREAM, None).expect("a socket");
    bind(&taken, &SocketAddr::from((Ipv6Addr::LOCALHOST, port))).expect("the port is free over IPv6");
    let entries = format!("--resolve both.invalid:::1 --resolve both.invalid:127.0.0.1 http://both.invalid:{port}/");
    let four = context.onrush().words("-4 -n4 -c2").words(&entries).run();
    assert_eq!((four.code, four.requests(), four.stderr.as_str()), (0, 4, ""), "{four:?}");
    let six = context.onrush().words("-6 -c2 -d1s").words(&entries).run();
    assert_eq!(six.code, 2, "{six:?}");
    assert!(six.stderr.contains(&format!("unable to connect to [::1]:{port}")), "{six:?}");
    let both = context.onrush().words("-n4 -c2").words(&entries).run();
    assert!(both.note("was left out").contains(&format!("[::1]:{port}")), "{both:?}");
}

fn logins_and_closing_become_headers(context: &Context) {
    let plain = target();
    let url = format!("http://{}/echo", plain.address());
    let output = context
        .onrush()
        .words("--once --keep-secrets --disable-keepalive --basic-auth user:pass:word")
        .word(&url)
        .run();
    assert!(output.stdout.contains("\n> Authorization: Basic dXNlcjpwYXNzOndvcmQ=\n"), "{output:?}");
    assert!(output.stdout.contains("\n> Connection: close\n"), "{output:?}");
    for (options, expected) in [
        ("--basic-auth :secret", "no user before the colon"),
        ("--disable-keepalive -H Connection:keep-alive", "leave one of the two out"),
    ] {
        let output = context.onrush().words(options).word(&url).run_plain();
        assert!(output.code == 1 && output.stderr.contains(expected), "{output:?}");
        assert!(!output.stderr.contains("secret"), "{output:?}");
    }
}

/// Runs in a separate network with few ports.
fn port_shortage_is_foreseen_and_explained(context: &Context) {
    const SCRIPT: &str = "ip link set lo up; echo 40000 40004 > /proc/sys/net/ipv4/ip_local_port_range; \
                          $0 serve --addr 127.0.0.1:8080 >/dev/null & \
                          until grep -q ':1F90 .* 0A ' /proc/net/tcp; do sleep 0.02; done; \
                          $0 -t1 -c10 -d1s \"$@\" http://127.0.0.1:8080/delay/20; kill $!";
    let run = |options: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["30", "unshare", "-rn", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_onrush")]);
        command.args(["--io", context.backend]).args(options);
        String::from_utf8(command.output().expect("it runs").stderr).expect("valid UTF-8")
    };
    let few = run(&[]);
    assert!(
        few.contains("note: 10 connections need as many local ports, but there are only 5; use more source"),
        "{few}"
    );
    assert!(few.contains("no local port left (EADDRNOTAVAIL)"), "{few}");
    assert!(few.contains("there are 5 per pair of addresses, and "), "{few}");
    let many = run(&["-b", "127.0.0.1/28"]);
    assert!(!many.contains("local port"), "{many}");
}

fn unix_sockets_serve_small_and_large_bodies(context: &Context) {
    let scratch = Scratch::new("unix");
    let path = scratch.path().join("app.sock");
    unix(&path);
    for onrush in context.both() {
        let output = onrush.words("-t2 -c10 -n100 --unix").word(&path).word("http://www.example.com/").run();
        assert_eq!((output.code, output.requests()), (0, 100), "{output:?}");
        assert_eq!((output.socket_errors("connect"), output.socket_errors("read")), (0, 0), "{output:?}");
    }
    // No kernel discards the bytes of a Unix socket.
    let large = context.onrush().words("-t1 -c2 -n10 --unix").word(&path).word("http://www.example.com/large").run();
    assert_eq!((large.code, large.requests(), large.socket_errors("read")), (0, 10, 0), "{large:?}");
    assert!(large.stdout.contains("10.00MB read"), "{large:?}");
}

fn missing_unix_sockets_are_named_by_path(context: &Context) {
    let output = context.onrush().words("-d1s --unix /nonexistent/app.sock http://h/").run();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(
        output.stderr.starts_with("onrush: unable to connect to /nonexistent/app.sock: No such file"),
        "{output:?}"
    );
    let long = context.onrush().words("-d1s --unix").word("x".repeat(200)).word("http://h/").run_plain();
    assert_eq!(long.code, 1, "{long:?}");
    assert!(long.stderr.contains("--unix") && long.stderr.contains("1 to 107 bytes"), "{long:?}");
    let both = context.onrush().words("--unix a --connect-to b http://h/").run_plain();
    assert!(
        both.code == 1 && both.stderr.contains("--unix and --connect-to: a Unix socket has no address"),
        "{both:?}"
    );
}

fn url_names_are_checked_on_redirected_connections(context: &Context) {
    let authority = Authority::new();
    let scratch = Scratch::new("tls");
    let ca = scratch.file("ca.pem", authority.certificate());
    let server = TlsServer::new(&authority.issue(&["www.example.com"], |_| {}));
    let there = server.address.to_string();
    for (host, code) in [("www.example.com", 0), ("www.example.org", 2)] {
        let onrush = context.onrush().words("-n4 -c2 --cacert").word(&ca).words("--connect-to").word(&there);
        let output = onrush.word(format!("https://{host}/")).run();
        assert_eq!(output.code, code, "{output:?}");
        assert!(
            code == 0 || output.stderr.contains("it is for www.example.com, not for www.example.org"),
            "{output:?}"
        );
    }
}
