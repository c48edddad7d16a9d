//! The local ports of connections, in separate networks with few ports.

use std::process::Command;

use crate::harness::{Context, Scratch, cases};

cases! {
    ports_are_used_in_order needs "unshare -rn true", "ip -V";
    two_runs_share_all_unreserved_ports needs "unshare -rn true", "ip -V";
    other_sources_reuse_the_same_ports needs "unshare -rn true", "ip -V";
    closed_connections_free_their_ports needs "unshare -rn true", "ip -V";
}

/// Runs a script in a separate network with an embedded target on port 8080 and the local ports 40000 to 40119, the
/// first ten of which are reserved. `$run` is onrush, and `established N` waits for N connections to the target and
/// lists them. Returns the output, including notes.
fn run(context: &Context, script: &str) -> String {
    let scratch = Scratch::new("ports");
    let script = format!(
        "ip link set lo up; cd /proc/sys/net/ipv4; echo 40000 40119 > ip_local_port_range
         echo 40000-40009 > ip_local_reserved_ports; run=\"$0 --io $1\"
         $0 serve --addr 127.0.0.1:8080 >$2/said & server=$!
         until grep -q http $2/said; do sleep 0.02; done
         # At most ten seconds.
         established() {{
             for _ in $(seq 500); do
                 [ $(grep -c ':1F90 01 ' /proc/net/tcp) -ge $1 ] && break
                 sleep 0.02
             done
             cat /proc/net/tcp
         }}
         {{ {script}
         }} 2>&1; kill $server"
    );
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush"), context.backend]).arg(scratch.path());
    String::from_utf8(command.output().expect("it runs").stdout).expect("valid UTF-8")
}

/// Local ports of connections to the target, in the order of `/proc/net/tcp`.
fn local_ports(shown: &str) -> Vec<u16> {
    let port = |address: &str| u16::from_str_radix(address.split_once(':')?.1, 16).ok();
    let established = shown.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (local, remote, state) = (words.get(1)?, words.get(2)?, words.get(3)?);
        (*state == "01" && remote.ends_with(":1F90")).then(|| port(local)).flatten()
    });
    let mut ports: Vec<u16> = established.collect();
    ports.sort_unstable();
    ports
}

/// Arguments of a run with slow responses. These runs are about connections, and are ended once the connections have
/// been seen.
const SLOW: &str = "-d60s http://127.0.0.1:8080/delay/50";

fn ports_are_used_in_order(context: &Context) {
    let shown = run(context, &format!("$run -t1 -c20 {SLOW} & pid=$!; established 20; kill -INT $pid; wait $pid"));
    let ports = local_ports(&shown);
    assert_eq!(ports.len(), 20, "{shown}");
    // The ports may wrap around the end of the range.
    let gaps = ports.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps == 0 || (gaps == 1 && ports[0] == 40_010 && ports[19] == 40_119), "{ports:?}");
}

fn two_runs_share_all_unreserved_ports(context: &Context) {
    let one = format!("$run -t2 -c55 {SLOW} &");
    let shown = run(
        context,
        &format!(
            "{one} first=$!; {one} second=$!; established 110; kill -INT $first $second; wait $first; wait $second"
        ),
    );
    assert_eq!(local_ports(&shown), (40_010..=40_119).collect::<Vec<_>>(), "{shown}");
    assert!(!shown.contains("were established") && !shown.contains("Socket errors"), "{shown}");
}

fn other_sources_reuse_the_same_ports(context: &Context) {
    let one = format!("$run -t2 -c330 -b 127.0.0.4/30 {SLOW} &");
    let shown = run(context, &format!("{one} pid=$!; established 330; kill -INT $pid; wait $pid"));
    assert_eq!(local_ports(&shown), (40_010..=40_119).flat_map(|port| [port; 3]).collect::<Vec<_>>(), "{shown}");
    assert!(!shown.contains("were established") && !shown.contains("Socket errors"), "{shown}");
}

fn closed_connections_free_their_ports(context: &Context) {
    let shown = run(context, "$run -t2 -c20 -n500 http://127.0.0.1:8080/close");
    assert!(shown.contains("  500 requests in ") && !shown.contains("Socket errors"), "{shown}");
}
