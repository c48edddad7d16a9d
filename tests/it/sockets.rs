use std::fs;
use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Barrier, Mutex};

use serde_json::json;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::peers::{read_head, server, unix};
use crate::results::document;

cases! {
    kernel_state_matches_documents needs "ss -V";
    kernel_caps_are_reported (Once);
    unix_sockets_have_send_buffers;
    unknown_congestion_controls_list_available_ones (Once);
    forbidden_congestion_controls_list_allowed_ones (Once) needs "setpriv --bounding-set -net_admin true";
}

/// Output of `ss` about the client's side of each connection when its first request arrives.
type SsLines = Arc<Mutex<Vec<String>>>;

/// A server that asks `ss` about its clients, and responds only after it has asked about this many.
fn asking(clients: usize) -> (SocketAddr, SsLines) {
    let (seen, all) = (SsLines::default(), Barrier::new(clients));
    let said = Arc::clone(&seen);
    let address = server(move |mut stream| {
        let port = stream.peer_addr()?.port();
        let mut reader = BufReader::new(stream.try_clone()?);
        read_head(&mut reader)?;
        let output = Command::new("ss").args(["-Htinm", "sport", "=", &format!(":{port}")]).output()?;
        said.lock().map_err(|_| io::ErrorKind::Other)?.push(String::from_utf8_lossy(&output.stdout).into_owned());
        all.wait();
        loop {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
            read_head(&mut reader)?;
        }
    });
    (address, seen)
}

fn kernel_state_matches_documents(context: &Context) {
    let scratch = Scratch::new("sockets");
    for program in context.both() {
        let (address, seen) = asking(4);
        let program = program.words("-t2 -c4 -n8 --rcvbuf 20k --sndbuf 40000 --congestion reno");
        let (_, document) = document(program.word(format!("http://{address}/")), &scratch);
        let buffer = |requested: u32| json!({ "requested": requested, "effective_min": 2 * requested, "effective_max": 2 * requested });
        assert_eq!(document["sockets"], json!({ "rcvbuf": buffer(20_000), "sndbuf": buffer(40_000) }));
        let way = json!({ "rcvbuf": 20_000, "sndbuf": 40_000, "congestion": "reno" });
        assert_eq!(document["plan"]["way"], way);
        let seen = seen.lock().expect("no thread panics with the lock");
        assert_eq!(seen.len(), 4, "{seen:?}");
        for socket in seen.iter() {
            for part in [",rb40000,", ",tb80000,", " reno "] {
                assert!(socket.contains(part), "no {part:?} in {socket}");
            }
        }
    }
}

fn kernel_caps_are_reported(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("sockets"));
    let most = |name: &str| -> u32 {
        let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).expect("Linux has it");
        text.trim().parse().expect("it is a number")
    };
    for (option, setting) in [("rcvbuf", "rmem_max"), ("sndbuf", "wmem_max")] {
        let program = context.onrush().words("-c2 -n10").word(format!("--{option}=1073741823")).word(url(&server, "/"));
        let (output, document) = document(program, &scratch);
        let had = 2 * most(setting);
        let buffer = json!({ "requested": 1_073_741_823, "effective_min": had, "effective_max": had });
        assert_eq!(document["sockets"], json!({ option: buffer }));
        let note = format!("net.core.{setting} allows no more; 'sysctl -w net.core.{setting}=1073741823' raises it");
        assert!(output.stderr.contains(&note), "{output:?}");
        assert!(document["notes"].to_string().contains(&note), "{document}");
    }
}

fn unix_sockets_have_send_buffers(context: &Context) {
    let scratch = Scratch::new("sockets");
    let path = scratch.path().join("app.sock");
    unix(&path);
    let program = context.onrush().words("-c2 -n10 --sndbuf 40k --unix").word(&path).word("http://h/");
    let (_, document) = document(program, &scratch);
    let buffer = json!({ "requested": 40_000, "effective_min": 80_000, "effective_max": 80_000 });
    assert_eq!(document["sockets"], json!({ "sndbuf": buffer }));
}

/// The available or allowed congestion controls, as listed by the kernel.
fn controls(which: &str) -> String {
    fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control")).expect("Linux has it")
}

fn unknown_congestion_controls_list_available_ones(context: &Context) {
    let server = target();
    let output = context.onrush().words("-d1s --congestion nonesuch").word(url(&server, "/")).run_plain();
    let available = controls("available");
    let expected = format!(
        "onrush: --congestion \"nonesuch\": not available in this kernel; load its module, or use one of: {available}"
    );
    assert_eq!((output.code, output.stdout.as_str(), output.stderr), (1, "", expected));
}

fn forbidden_congestion_controls_list_allowed_ones(context: &Context) {
    let (available, allowed) = (controls("available"), controls("allowed"));
    let is_allowed = |name: &str| allowed.split_whitespace().any(|allowed| allowed == name);
    // If all are allowed, there is nothing to test.
    let Some(name) = available.split_whitespace().find(|name| !is_allowed(name)) else { return };
    let server = target();
    let unprivileged = context.after("exec setpriv --bounding-set -net_admin \"$0\" \"$@\"");
    let output = unprivileged.words("-d1s --congestion").word(name).word(url(&server, "/")).run_plain();
    let expected = format!("onrush: --congestion \"{name}\": needs CAP_NET_ADMIN; without it, use one of: {allowed}");
    assert_eq!((output.code, output.stdout.as_str(), output.stderr), (1, "", expected));
}
