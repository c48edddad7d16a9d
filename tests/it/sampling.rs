use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{Context, Scratch, cases, finish, signal, target, url, wait_until};
use crate::results::document;

cases! {
    samples_agree_with_ss needs "ss -V";
    filters_select_like_ss (Once, Alone) needs "ss -V";
    warm_up_samples_are_in_no_summary;
    interrupted_runs_keep_their_samples;
    full_sample_files_are_named (Once);
}

/// The lines of a file of samples.
fn samples(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("there are samples");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Output of `ss` with these arguments, one line per socket.
fn ss(words: &str) -> Vec<String> {
    let output = Command::new("ss").args(words.split_whitespace()).output().expect("ss runs");
    assert!(output.status.success(), "ss {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// The value of `key:value` in a line of `ss`.
fn said<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split([' ', '\t', '(', ',', ')']).find_map(|word| word.strip_prefix(key)?.strip_prefix(':'))
}

/// One number in `skmem:(…)`.
fn memory<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let memory = line.split("skmem:(").nth(1)?.split(')').next()?;
    memory
        .split(',')
        .find_map(|word| word.strip_prefix(name).filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())))
}

fn samples_agree_with_ss(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("watching"));
    let path = scratch.path().join("samples.ndjson");
    let onrush = context.onrush().words("-t1 -c3 -R30 -d60s --io").word(context.backend);
    let child = onrush.word("--sockets-output").word(&path).word(url(&server, "/")).spawn();
    wait_until(|| lines(&path) >= 3);
    // `ss` prints two lines per socket, or one with a tab.
    let said_by_ss = ss(&format!("-HtinemO state established dport = :{}", server.address().port()));
    signal(&child, Signal::INT);
    assert_eq!(finish(child).code, 0);
    let samples = samples(&path);
    let mut compared = BTreeSet::new();
    for sample in &samples {
        let local = sample["local_address_port"].as_str().expect("it is text");
        let line = said_by_ss.iter().find(|line| line.contains(&format!(" {local} "))).expect("ss has seen it");
        compared.insert(local);
        for key in ["mss", "pmtu", "rcvmss", "advmss", "rcv_ssthresh", "sk"] {
            let here = sample.get(key).or_else(|| sample.get(key.replace('_', "")));
            let here = here.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            assert_eq!(here.as_deref(), said(line, key), "{key}: {line}");
        }
        assert_eq!(sample["inode"].to_string(), said(line, "ino").expect("it has one"));
        assert_eq!(sample["uid"].to_string(), said(line, "uid").unwrap_or("0"));
        let scales = said(line, "wscale").map(str::to_owned);
        assert_eq!(scales, Some(sample["snd_wscale"].to_string()), "{line}");
        let both = format!("wscale:{},{}", sample["snd_wscale"], sample["rcv_wscale"]);
        assert!(line.contains(&both), "{both}: {line}");
        for name in ["rb", "tb", "d"] {
            assert_eq!(Some(sample["skmem"][name].to_string().as_str()), memory(line, name), "{name}: {line}");
        }
        let cong = sample["cong"].as_str().expect("it is text");
        assert!(line.contains(&format!(" {cong} ")), "{cong}: {line}");
        for flag in ["ts", "sack", "ecn", "fastopen"] {
            assert_eq!(sample[flag] == json!(true), line.contains(&format!(" {flag} ")), "{flag}: {line}");
        }
        assert_eq!(sample["state"], "ESTAB");
    }
    assert_eq!((samples.len() % 3, compared.len()), (0, 3));
}

// Later cases compare with sockets of the whole machine: other tests must not open or close any meanwhile.

/// Sockets in many states, two of which have the same port at different ends.
struct TestSockets {
    kept: Vec<TcpStream>,
    listeners: Vec<TcpListener>,
}

impl TestSockets {
    fn open() -> Self {
        let mut sockets = Self { kept: Vec::new(), listeners: Vec::new() };
        for address in ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            sockets.connect(listener.local_addr().expect("it has one"), &listener);
            sockets.listeners.push(listener);
        }
        // IPv4 in IPv6.
        if let Ok(listener) = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            let port = listener.local_addr().expect("it has one").port();
            sockets.connect(SocketAddr::from(([127, 0, 0, 1], port)), &listener);
            sockets.listeners.push(listener);
        }
        sockets
    }

    /// Two established connections, one closed by the server, one closed by both, and one not accepted.
    fn connect(&mut self, address: SocketAddr, listener: &TcpListener) {
        let connect = || {
            let client = TcpStream::connect(address).expect("the listener is there");
            (client, listener.accept().expect("a client has connected").0)
        };
        for _ in 0..2 {
            let (client, server) = connect();
            self.kept.extend([client, server]);
        }
        let (client, server) = connect();
        drop(server);
        self.kept.push(client);
        let (mut client, server) = connect();
        drop(server);
        let _ = client.write_all(b"");
        drop(client);
        self.kept.push(TcpStream::connect(address).expect("the listener is there"));
    }

    fn ports(&self) -> Vec<u16> {
        self.listeners.iter().map(|listener| listener.local_addr().expect("it has one").port()).collect()
    }
}

/// The sockets selected by `ss`, as pairs of ends. `ss` does not print the state if the filter names a single one.
fn selected_by_ss(filter: &str) -> BTreeSet<(String, String)> {
    let number = |end: &str| end.replace(":*", ":0").replace("*:", "[::]:");
    let ends = |line: &String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., local, peer] = words[..] else { panic!("{line}") };
        (number(local), number(peer))
    };
    ss(&format!("-Htn {filter}")).iter().map(ends).collect()
}

fn filters_select_like_ss(context: &Context) {
    let (server, scratch, sockets) = (target(), Scratch::new("watching"), TestSockets::open());
    let [a, b, c, d] = sockets.ports()[..] else { panic!("there is no IPv6 here") };
    let client = sockets.kept[0].local_addr().expect("it has one").port();
    let filters = [
        format!("sport = :{a}"),
        format!("dport = :{a}"),
        format!("dport :{a}"),
        format!("state established sport = :{a} or dport = :{c}"),
        format!("state all sport = :{a} or sport = :{b} and not dst 127.0.0.1"),
        format!("state all sport = :{a} or ( sport = :{b} and not dst 127.0.0.1 )"),
        format!("state listening sport >= :{a} sport <= :{a}"),
        format!("state time-wait sport eq :{a} or sport eq :{b} or dport eq :{c}"),
        format!("state close-wait state fin-wait-2 dport = :{b} or sport = :{b}"),
        format!("exclude established sport = :{c}"),
        format!("state connected sport = :{c}"),
        format!("state synchronized dport = :{c} & src [::1]"),
        format!("state bucket sport = :{a} | dport = :{a}"),
        format!("state big sport = :{a}"),
        format!("src 127.0.0.2:{b}"),
        format!("src = 127.0.0.0/8 and sport = :{b} sport ne :{a}"),
        format!("dst [::1]:{c}"),
        format!("state all src [::ffff:127.0.0.1]:{d}"),
        format!("state all src 127.0.0.1:{d}"),
        format!("state listening src :{d}"),
        format!("dport > :{} dport < :{} and ! sport = :1", a - 1, a + 1),
        format!("sport = :{client} and dport = :{a}"),
        format!("sport = :{a} and dport = :{client}"),
    ];
    let paths: Vec<_> = (0..filters.len()).map(|number| scratch.path().join(format!("{number}.ndjson"))).collect();
    thread::scope(|scope| {
        for (filter, path) in filters.iter().zip(&paths) {
            let onrush = context.onrush().words("-t1 -c1 -R5 -d1s --sockets-output").word(path);
            let onrush = onrush.word(format!("--sockets={filter}")).word(url(&server, "/"));
            // 23 parallel runs may get no response in a second, but each takes its sample.
            scope.spawn(move || assert!([0, 5].contains(&onrush.run().code)));
        }
    });
    let mut found = 0;
    for (filter, path) in filters.iter().zip(&paths) {
        let end = |sample: &Value, key: &str| sample[key].as_str().expect("it is text").to_owned();
        let ends = |sample: &Value| (end(sample, "local_address_port"), end(sample, "peer_address_port"));
        let here: BTreeSet<_> = samples(path).iter().map(ends).collect();
        assert_eq!(here, selected_by_ss(filter), "{filter}");
        found += usize::from(!here.is_empty());
    }
    assert!(found > filters.len() - 4, "only {found} of them select anything");
}

fn warm_up_samples_are_in_no_summary(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("watching"));
    for program in context.both() {
        let path = scratch.path().join("samples.ndjson");
        // A sample is taken in the middle of each second.
        let program = program.words("-t1 -c2 -d1 --warmup 1s --sockets --sockets-output").word(&path);
        let (_, document) = document(program.word(url(&server, "/delay/10")), &scratch);
        let samples = samples(&path);
        let seconds: Vec<f64> = samples.iter().map(|sample| sample["at_s"].as_f64().expect("a number")).collect();
        let rounded: Vec<i64> = seconds.iter().map(|second| (second - 0.5).round() as i64).collect();
        assert_eq!(rounded, [-1, -1, 0, 0], "{seconds:?}");
        assert!(samples.iter().all(|sample| sample["time"].as_str().is_some_and(|time| time.ends_with('Z'))));
        let sampled = &document["sockets"]["sampled"];
        for (key, expected) in [("samples", 1), ("sockets", 2), ("readings", 2), ("retransmits", 0)] {
            assert_eq!(sampled[key], expected, "{key}: {sampled}");
        }
        let rtts = samples[2..].iter().map(|sample| sample["rtt"].as_f64().expect("there was an answer"));
        let (least, greatest) =
            rtts.fold((f64::MAX, 0.0), |(least, greatest), rtt| (rtt.min(least), rtt.max(greatest)));
        assert_eq!((&sampled["rtt"]["min"], &sampled["rtt"]["max"]), (&json!(least), &json!(greatest)));
    }
}

fn interrupted_runs_keep_their_samples(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("watching"));
    let path = scratch.path().join("samples.ndjson");
    let onrush =
        context.onrush().words("-t1 -c2 -d60s --io").word(context.backend).word("--sockets-output").word(&path);
    let child = onrush.word(url(&server, "/delay/10")).spawn();
    wait_until(|| lines(&path) >= 2);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    let kept = samples(&path).len();
    assert!(kept >= 2 && kept.is_multiple_of(2), "{kept}");
}

fn full_sample_files_are_named(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("watching"));
    let path = scratch.path().join("full.ndjson");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link can be made");
    let onrush = context.onrush().words("-t1 -c2 -d1s --sockets-output").word(&path).word(url(&server, "/delay/10"));
    let output = onrush.run();
    assert_eq!(output.code, 1, "{output:?}");
    let expected = format!("onrush: --sockets-output {path:?}: the disk is full; free some space, or choose another");
    assert!(output.stderr.contains(&expected), "{output:?}");
    assert!(output.requests() > 0, "it was measured all the same");
}
