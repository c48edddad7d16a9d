use std::fs;
use std::io::{self, BufReader, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases};
use crate::peers::{read_head, server};
use crate::servers::{LoggingServer, assert_no_errors};
use crate::simulation::simulated_document;
use crate::tls_peers::{Authority, TlsServer};
use crate::tls_processes::Process;

cases! {
    nginx_closes_connections_after_their_requests needs "nginx";
    python_closes_early_or_on_request (Once) needs "python3";
    tls_servers_close_the_transport;
    tls_servers_awaiting_close_notify_close_first (Once) needs "python3";
    only_last_requests_announce_closing;
    servers_not_closing_are_counted;
    servers_not_closing_cost_a_second_each (Once);
    servers_keep_the_ports needs "unshare -rn true", "ip -V";
    script_requests_differ_only_by_number (Once);
    oversized_script_batches_are_refused (Once);
    contradictory_limits_are_refused (Once);
    timeouts_between_requests_are_idle_closes;
    crossing_timeouts_lose_no_request;
}

/// Runs the program with a result file, and returns the output and the connections section of the file.
fn run(onrush: Onrush) -> (ProgramOutput, serde_json::Value) {
    let (output, result) = run_whole(onrush);
    (output, result["connections"].clone())
}

/// Like [`run`], but returns the whole file.
fn run_whole(onrush: Onrush) -> (ProgramOutput, serde_json::Value) {
    let scratch = Scratch::new("closing-result");
    let path = scratch.path().join("result.json");
    let output = onrush.word("-o").word(&path).run();
    let result: serde_json::Value = serde_json::from_slice(&fs::read(path).expect("it is there")).expect("JSON");
    (output, result)
}

fn number(connections: &serde_json::Value, name: &str) -> u64 {
    connections[name].as_u64().unwrap_or_else(|| panic!("no {name} in {connections}"))
}

fn nginx_closes_connections_after_their_requests(context: &Context) {
    for onrush in context.both() {
        let nginx = LoggingServer::nginx(1000);
        let onrush = onrush.words("-t2 -c4 -n200 --requests-per-connection 7").word(nginx.url("/hello"));
        let (output, connections) = run(onrush);
        assert_eq!((output.code, output.requests()), (0, 200), "{output:?}");
        assert_no_errors(&output);
        // Each thread has 100 requests, and needs 15 connections for them. Its two slots share these, and may open one
        // additional connection each.
        assert!((30..=36).contains(&number(&connections, "opened")), "{connections}");
        assert_eq!(number(&connections, "closed_first"), 0, "{connections}");
        assert_eq!(nginx.log().len(), 200);
    }
    // Here the server's own limit is lower.
    let nginx = LoggingServer::nginx(3);
    let (output, connections) =
        run(context.onrush().words("-t1 -c2 -n60 --requests-per-connection 7").word(nginx.url("/hello")));
    assert_eq!((output.code, output.requests()), (0, 60), "{output:?}");
    assert_no_errors(&output);
    assert!((20..=22).contains(&number(&connections, "opened")), "{connections}");
    assert_eq!(number(&connections, "closed_first"), 0, "{connections}");
}

fn python_closes_early_or_on_request(context: &Context) {
    for (protocol, opened) in [("HTTP/1.0", 60), ("HTTP/1.1", 12)] {
        let python = LoggingServer::python(protocol);
        let onrush = context.onrush().words("-t1 -c1 -n60 --requests-per-connection 5").word(python.url("/file.bin"));
        let (output, connections) = run(onrush);
        assert_eq!((output.code, output.requests()), (0, 60), "{output:?}");
        assert_no_errors(&output);
        let counted = (number(&connections, "opened"), number(&connections, "closed_first"));
        assert_eq!(counted, (opened, 0), "{protocol}: {connections}");
        assert_eq!(python.log().len(), 60);
    }
}

fn tls_servers_close_the_transport(context: &Context) {
    let (authority, scratch) = (Authority::new(), Scratch::new("closing"));
    let ca = scratch.file("ca.pem", authority.certificate());
    let server = TlsServer::new(&authority.issue(&["127.0.0.1"], |_| {}));
    for (limit, opened) in [("--requests-per-connection 5", 4), ("--disable-keepalive", 20)] {
        let before = server.heard(|heard| heard.handshakes);
        let onrush = context.onrush().words("-t1 -c1 -n20").words(limit).words("--cacert").word(&ca);
        let (output, connections) = run(onrush.word(server.url("/")));
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        assert_no_errors(&output);
        let counted = (number(&connections, "opened"), number(&connections, "closed_first"));
        assert_eq!(counted, (opened, 0), "{connections}");
        assert_eq!(server.heard(|heard| heard.handshakes) - before, opened);
    }
}

fn tls_servers_awaiting_close_notify_close_first(context: &Context) {
    let authority = Authority::new();
    let client = authority.issue(&["client.example"], |_| {});
    let python = Process::python(&authority.issue(&["127.0.0.1"], |_| {}), &authority.certificate());
    let identity = python.scratch.file("both.pem", client.certificate + &client.key);
    for version in ["1.2", "1.3"] {
        let onrush = context.onrush().words("-k -c2 -t1 -n20 --disable-keepalive --tls-max").word(version);
        let (output, connections) = run(onrush.words("--cert").word(&identity).word(python.url()));
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        assert_no_errors(&output);
        // The two slots share the requests: each may have opened a connection after the last request.
        assert!((20..=22).contains(&number(&connections, "opened")), "TLS {version}: {connections}");
        assert_eq!(number(&connections, "closed_first"), 0, "TLS {version}: {connections}");
    }
}

/// Request heads of each connection.
type RequestHeads = Arc<Mutex<Vec<Vec<String>>>>;

/// A server that records the requests it receives. `listens`: it closes a connection when a request asks for that.
fn listening(listens: bool) -> (SocketAddr, RequestHeads) {
    let heard = RequestHeads::default();
    let kept = Arc::clone(&heard);
    let address = server(move |stream| {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let number = {
            let mut kept = kept.lock().map_err(|_| io::ErrorKind::Other)?;
            kept.push(Vec::new());
            kept.len() - 1
        };
        loop {
            let head = read_head(&mut stream)?;
            let is_last = listens && says_so(&head);
            kept.lock().map_err(|_| io::ErrorKind::Other)?[number].push(head);
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
            if is_last {
                return Ok(());
            }
        }
    });
    (address, heard)
}

fn says_so(head: &str) -> bool {
    head.contains("\r\nConnection: close\r\n")
}

/// Number of requests on each connection, descending. Only the last request of each may announce the close.
fn counts(heard: &RequestHeads, most: usize) -> Vec<usize> {
    let heard = heard.lock().expect("no thread panics with the lock");
    for heads in heard.iter() {
        let last: Vec<usize> = (1..=heads.len()).filter(|place| says_so(&heads[place - 1])).collect();
        assert!(last.is_empty() || last == [heads.len()], "{last:?} of {}", heads.len());
        assert!(heads.len() < most || !last.is_empty(), "the last of {most} says so");
    }
    let mut counts: Vec<usize> = heard.iter().map(Vec::len).filter(|&count| count > 0).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

fn only_last_requests_announce_closing(context: &Context) {
    for onrush in context.both() {
        let (address, heard) = listening(true);
        let onrush = onrush.words("-t1 -c1 -n23 --requests-per-connection 5").word(format!("http://{address}/"));
        let (output, connections) = run(onrush);
        assert_eq!((output.code, output.requests()), (0, 23), "{output:?}");
        assert_no_errors(&output);
        assert_eq!(counts(&heard, 5), [5, 5, 5, 5, 3]);
        assert_eq!(number(&connections, "closed_first"), 0, "the answers do not say that they are the last");
    }
    // Settings of other options are kept.
    let (address, heard) = listening(true);
    let onrush = context.onrush().words("-X GET -H A:b -c1 -n2 --requests-per-connection 2");
    run(onrush.word(format!("http://{address}/")));
    let heads = heard.lock().expect("no thread panics with the lock").concat();
    let expected = format!("GET / HTTP/1.1\r\nHost: {address}\r\nA: b\r\n");
    assert_eq!(heads, [format!("{expected}\r\n"), format!("{expected}Connection: close\r\n\r\n")]);
}

fn servers_not_closing_are_counted(context: &Context) {
    let (address, heard) = listening(false);
    let onrush = context.onrush().words("-t1 -c2 -n16 --requests-per-connection 4").word(format!("http://{address}/"));
    let (output, connections) = run(onrush);
    assert_eq!((output.code, output.requests()), (0, 16), "{output:?}");
    assert_no_errors(&output);
    // Each of the first two connections is closed after a second.
    assert!(output.elapsed_ms() >= 1_000.0, "{output:?}");
    assert!(number(&connections, "closed_first") >= 2, "{connections}");
    assert_eq!(counts(&heard, 4), [4; 4]);
    // Without a limit, there is nothing to count.
    let (_, connections) = run(context.onrush().words("-c1 -n4").word(format!("http://{address}/")));
    assert!(connections.get("closed_first").is_none(), "{connections}");
}

fn servers_not_closing_cost_a_second_each(context: &Context) {
    let onrush = context.onrush().words("-t1 -c2 -d2900ms --requests-per-connection 4");
    let (output, document) = simulated_document(onrush, "connect_us = 0.0");
    assert_eq!((output.code, output.line("Socket errors")), (0, None), "{output:?}");
    // Both slots send four requests, wait a second, send four more, wait a second, and send the last four.
    let counted = ["opened", "closed_first"].map(|name| number(&document["connections"], name));
    assert_eq!((output.requests(), counted), (24, [6, 4]), "{output:?} {document}");
    assert_eq!(output.latency_us().max, 1_000.0, "that second is in no latency");
}

/// In a separate network, every connection in TIME_WAIT is ours, and the server closed each one first.
fn servers_keep_the_ports(context: &Context) {
    const SCRIPT: &str = "ip link set lo up; $0 serve --addr 127.0.0.1:8080 >/dev/null & \
                          until grep -q ':1F90 .* 0A ' /proc/net/tcp; do sleep 0.02; done; \
                          $0 -t1 -c4 -n400 \"$@\" http://127.0.0.1:8080/; kill $!; cat /proc/net/tcp";
    let mut command = Command::new("timeout");
    command.args(["30", "unshare", "-rn", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_onrush"), "--io", context.backend]);
    let output = command.args(["--requests-per-connection", "5"]).output().expect("it runs").stdout;
    let output = String::from_utf8(output).expect("valid UTF-8");
    assert!(output.contains("  400 requests in "), "{output}");
    let waiting = output.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(3) == Some(&"06")).then(|| (words[1].to_owned(), words[2].to_owned()))
    });
    let (server, client): (Vec<_>, Vec<_>) = waiting.partition(|(local, _)| local.ends_with(":1F90"));
    assert!(server.len() > 60 && client.len() <= 4, "those open at the end may be closed by us: {output}");
}

fn script_requests_differ_only_by_number(context: &Context) {
    // The script's `Connection` header is replaced only in the last request.
    let (address, heard) = listening(true);
    let script = "wrk.headers.connection = 'keep-alive'\n\
                  function request() return wrk.format('GET', '/1') .. wrk.format('GET', '/2') .. wrk.format('GET', '/3') end";
    let onrush = context.onrush().lua(script).words("-t1 -c1 -n24 --requests-per-connection 10");
    let (output, connections) = run(onrush.word(format!("http://{address}/")));
    assert_eq!((output.code, output.requests()), (0, 24), "{output:?}");
    assert_no_errors(&output);
    assert_eq!((number(&connections, "opened"), number(&connections, "closed_first")), (3, 0), "{connections}");
    assert_eq!(counts(&heard, 9), [9, 9, 6]);
    let heads = heard.lock().expect("no thread panics with the lock").concat();
    let kept = heads.iter().filter(|head| head.contains("\r\nconnection: keep-alive\r\n")).count();
    assert_eq!(kept, 22);
    // A constant request closes in the same way.
    let (address, heard) = listening(true);
    let onrush = context.onrush().lua("wrk.body = 'x'").words("-t1 -c1 -n7 --requests-per-connection 3");
    let (output, _) = run(onrush.word(format!("http://{address}/")));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(counts(&heard, 3).starts_with(&[3]), "{output:?}");
}

fn oversized_script_batches_are_refused(context: &Context) {
    let (address, heard) = listening(true);
    let script = "function request() return wrk.format():rep(3) end";
    for (option, expected) in [
        ("--requests-per-connection 2", "--requests-per-connection allows at most 2; raise it, or return fewer"),
        ("--disable-keepalive", "--disable-keepalive allows at most 1; leave it out, or return fewer"),
    ] {
        let onrush = context.onrush().lua(script).words("-c1 -n9").words(option);
        let output = onrush.word(format!("http://{address}/")).run();
        assert_eq!(output.code, 1, "{output:?}");
        let returned = "onrush: request() of the script returned a batch of 3 requests for one connection, but";
        assert_eq!(output.stderr.trim_end(), format!("{returned} {expected}"));
    }
    assert!(heard.lock().expect("no thread panics with the lock").is_empty());
    // The command line asks for one request per connection, and the server is told so.
    let script = "function request() return wrk.format('GET', '/one') end";
    let onrush = context.onrush().lua(script).words("-c1 -n3 --disable-keepalive");
    let output = onrush.word(format!("http://{address}/")).run();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(counts(&heard, 1), [1, 1, 1]);
}

fn contradictory_limits_are_refused(context: &Context) {
    for (words, expected) in [
        ("--requests-per-connection 0", "--requests-per-connection \"0\": must be at least 1"),
        ("--requests-per-connection x", "--requests-per-connection \"x\": not a number; try 100 or 10k"),
        (
            "--disable-keepalive --requests-per-connection 2",
            "--disable-keepalive and --requests-per-connection 2: the first means one request; leave one of the two out",
        ),
        (
            "--requests-per-connection 2 -H connection:keep-alive",
            "--requests-per-connection and the header 'Connection: keep-alive': leave one of the two out",
        ),
    ] {
        let output = context.onrush().words(words).words("http://127.0.0.1:1/").run_plain();
        assert_eq!((output.code, output.stderr), (1, format!("onrush: {expected}\n")));
    }
    let (address, _) = listening(true);
    let onrush = context.onrush().words("--once --disable-keepalive --requests-per-connection 1");
    let output = onrush.word(format!("http://{address}/")).run();
    assert!(output.code == 0 && output.stdout.contains("\n> Connection: close\n"), "{output:?}");
}

const HI: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const TIMEOUT: &[u8] = b"HTTP/1.1 408 Request Time-out\r\nContent-length: 4\r\nConnection: close\r\n\r\nslow";

/// A server like HAProxy, Node and Jetty: sends 408 before it closes a connection idle for 20 ms.
fn timeouts_between_requests_are_idle_closes(context: &Context) {
    let address = server(|stream| {
        let mut stream = BufReader::new(stream);
        // The clock of a connection starts with its first response: a 408 that crosses its first request is the
        // response.
        while read_head(&mut stream).is_ok() {
            stream.get_mut().write_all(HI)?;
            stream.get_mut().set_read_timeout(Some(Duration::from_millis(20)))?;
        }
        stream.get_mut().write_all(TIMEOUT)
    });
    let words = "-c1 -R10 -n8 --fail-if errors>0 http://";
    let (output, result) = run_whole(context.onrush().words(&format!("{words}{address}/")));
    assert_eq!((output.code, output.requests()), (0, 8), "{output:?}");
    assert_no_errors(&output);
    let closed = number(&result["connections"], "idle_closed");
    assert!(closed >= 5, "it was idle for 100 ms between two requests: {closed}");
    output.note(&format!("the server closed connections between requests {closed} times; onrush reconnected"));
}

/// The server's clock runs out while the third request of each connection is on its way.
fn crossing_timeouts_lose_no_request(context: &Context) {
    let address = server(|stream| {
        let mut stream = BufReader::new(stream);
        for response in [HI, HI, TIMEOUT] {
            read_head(&mut stream)?;
            stream.get_mut().write_all(response)?;
        }
        Ok(())
    });
    let words = format!("-c1 -n10 --fail-if errors>0 http://{address}/");
    let (output, result) = run_whole(context.onrush().words(&words));
    assert_eq!((output.code, output.requests()), (0, 10), "{output:?}");
    assert_no_errors(&output);
    assert_eq!((&result["requests"]["started"], &result["requests"]["returned"]), (&10.into(), &4.into()), "{result}");
    assert_eq!(number(&result["connections"], "idle_closed"), 4, "{result}");
    output
        .note("the server closed connections between requests, or answered a request with 408 and closed, 4 times; onrush reconnected and sent 4 requests again");
    // For wrk, the 408 is a response.
    let (output, result) =
        run_whole(context.onrush().compat().words("-t1").words(&words.replace(" --fail-if errors>0", "")));
    assert_eq!((output.requests(), &result["status"]["408"]), (10, &3.into()), "{output:?}");
}
