//! Durations of the phases of connections and requests, against servers with known delays.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::peers::{crowded, read_head, server};
use crate::results::{document, number};
use crate::tls_peers::{config, self_signed};
use crate::tls_processes::Process;

cases! {
    dropped_syns_extend_connect_times;
    phases_include_server_delays;
    handshakes_include_server_delays;
    openssl_tickets_are_no_first_byte needs "openssl";
    wrk_cmm_breakouts_match_to_the_byte (Once);
    wrk_cmm_breakout_latency_and_json_work_together (Once);
}

/// Server delay of each phase, and sleep after the arrival of a handshake.
const FIRST: Duration = Duration::from_millis(40);
const REST: Duration = Duration::from_millis(25);
const SHAKE: Duration = Duration::from_millis(60);

/// A figure of a phase or of the latency, in milliseconds.
fn ms(document: &Value, figure: &str) -> f64 {
    number(document, figure) / 1e3
}

/// Checks the phases of responses that come [slowly](answer_slowly). On a busy machine, each side is sometimes, but not
/// always, woken late; no sleep is too short.
fn assert_delayed(document: &Value) {
    let phase = |name: &str| ms(document, &format!("/phases/{name}_us"));
    let [first, rest] = [FIRST, REST].map(|time| time.as_secs_f64() * 1e3);
    assert!(phase("ttfb/min") >= first && phase("ttfb/min") < first + rest, "{document}");
    assert!(phase("ttlb/max") >= rest && phase("ttlb/min") < first, "{document}");
    let both = phase("ttfb/mean") + phase("ttlb/mean");
    let service = ms(document, "/latency/service/mean_us");
    assert!(both >= first + rest && (both - service).abs() < 0.01, "{both} of {service}: {document}");
}

/// Checks that everything on single connections together took no longer than the run.
fn assert_fits(document: &Value, connections: f64) {
    let all_of =
        |figures: &str| number(document, &format!("{figures}/count")) * ms(document, &format!("{figures}/mean_us"));
    let together = all_of("/phases/connect") + all_of("/latency/service");
    assert!(together <= connections * number(document, "/duration_s") * 1e3, "{together} ms: {document}");
}

/// If the accept queue of a listening socket is full, Linux drops the SYN, and the client's kernel retransmits it after
/// a second.
fn dropped_syns_extend_connect_times(context: &Context) {
    let address = crowded(|mut stream| {
        let mut requests = BufReader::new(stream.try_clone()?);
        loop {
            read_head(&mut requests)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    });
    let scratch = Scratch::new("connect");
    let (_, document) = document(context.onrush().words("-n 5 -c 1").word(format!("http://{address}/")), &scratch);
    assert!(ms(&document, "/phases/connect/min_us") >= 1_000.0, "{document}");
    // The delay is in no other phase, and not in the latency.
    assert_fits(&document, 1.0);
}

/// Sends the head and the start of the body late, and the rest of the body even later.
fn answer_slowly(mut stream: impl Read + Write) -> io::Result<()> {
    loop {
        read_head(&mut BufReader::with_capacity(1, &mut stream))?;
        thread::sleep(FIRST);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nHello")?;
        stream.flush()?;
        thread::sleep(REST);
        stream.write_all(b"World")?;
        stream.flush()?;
    }
}

fn phases_include_server_delays(context: &Context) {
    let address = server(move |stream| {
        // Without this, the kernel would delay the end until the start is acknowledged.
        stream.set_nodelay(true)?;
        answer_slowly(stream)
    });
    let scratch = Scratch::new("phases");
    let program = context.onrush().words("-n 16 -c 2 -t 1 --breakout").word(format!("http://{address}/"));
    let (output, document) = document(program, &scratch);
    assert_delayed(&document);
    assert_fits(&document, 2.0);
    assert_eq!((number(&document, "/phases/ttfb/count"), number(&document, "/phases/ttlb/count")), (16.0, 16.0));
    assert_eq!(number(&document, "/phases/connect/count"), 2.0);
    for row in ["Connect", "TTFB", "TTLB"] {
        assert!(output.line(row).is_some(), "{output:?}");
    }
}

/// The server delays its part of the handshake, sends two tickets after it, then responds slowly.
fn handshakes_include_server_delays(context: &Context) {
    let config = Arc::new(config(&self_signed(&["localhost"])));
    let address = server(move |stream| {
        stream.set_nodelay(true)?;
        answer_slowly(shake_hands_slowly(&config, stream)?)
    });
    let scratch = Scratch::new("handshake");
    let program = context.onrush().words("-k -n 9 -c 3 -t 1 --breakout=all").word(format!("https://{address}/"));
    let (output, document) = document(program, &scratch);
    assert_delayed(&document);
    assert_fits(&document, 3.0);
    let shake = SHAKE.as_secs_f64() * 1e3;
    let phase = |name: &str| ms(&document, &format!("/phases/{name}_us"));
    assert!(phase("tls/min") >= shake, "{document}");
    // Connect without TLS is TCP; at least one takes less time than the server's delay.
    assert!(
        phase("connect/mean") >= phase("tls/mean") && phase("connect/min") < phase("tls/min") + shake,
        "{document}"
    );
    assert_eq!((number(&document, "/phases/tls/count"), number(&document, "/phases/ttfb/count")), (3.0, 9.0));
    assert!(output.line("TLS").is_some(), "{output:?}");
}

fn shake_hands_slowly(
    config: &Arc<ServerConfig>,
    mut stream: TcpStream,
) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
    let mut connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    connection.read_tls(&mut stream)?;
    connection.process_new_packets().map_err(io::Error::other)?;
    thread::sleep(SHAKE);
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// OpenSSL sends two tickets after the handshake, and typed text some time after a request.
fn openssl_tickets_are_no_first_byte(context: &Context) {
    let mut openssl = Process::openssl(&self_signed(&["localhost"]), &[]);
    let (url, (mut input, lines)) = (openssl.url(), openssl.take_streams());
    let typist = thread::spawn(move || {
        let requests = lines.iter().filter(|line| line.starts_with("GET / "));
        for _ in requests.inspect(|_| thread::sleep(FIRST)) {
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n";
            input.write_all(answer.as_bytes()).and_then(|()| input.flush()).expect("it reads");
        }
    });
    let scratch = Scratch::new("tickets");
    let (output, document) = document(context.onrush().words("-k -n 4 -c 1").word(url), &scratch);
    drop(openssl);
    typist.join().expect("it types");
    assert_eq!(output.requests(), 4, "{output:?}");
    assert!(ms(&document, "/phases/ttfb/min_us") >= FIRST.as_secs_f64() * 1e3, "{document}");
}

fn wrk_cmm_breakouts_match_to_the_byte(context: &Context) {
    let server = target();
    for (program, rows) in [
        (context.called("wrk-cmm").words("--breakout -t1"), "Latency Connect TTFB TTLB Req/Sec"),
        (context.called("wrk").words("--breakout -t1"), "Latency Connect TTFB TTLB Req/Sec"),
        (context.onrush().words("--breakout=all"), "Latency Connect TTFB TTLB Req/Sec"),
        (context.called("wrk-cmm").words("-t1"), "Latency Req/Sec"),
    ] {
        let is_compat = program.is_compat();
        let output = program.words("--latency -c2 -n100").word(url(&server, "/")).run();
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines[2], "  Thread Stats   Avg     Stdev       Max       Min   +/- Stdev", "{output:?}");
        let rows: Vec<&str> = rows.split(' ').collect();
        for (line, name) in lines[3..].iter().zip(&rows) {
            assert!(line.starts_with(&format!("    {name:<10}")) && line.len() == 4 + 10 + 38 + 8 + 1, "{line:?}");
        }
        let percentiles = &lines[3 + rows.len()..];
        assert_eq!(percentiles[0], "  Latency Distribution");
        let labels = percent_labels(is_compat);
        for (line, label) in percentiles[1..].iter().zip(labels) {
            assert!(line.starts_with(label) && line.len() == 8 + 10, "{line:?}");
        }
        assert!(percentiles[1 + labels.len()].contains(" requests in "), "{output:?}");
        assert_eq!(output.line("TLS"), None, "no TLS is spoken");
    }
}

/// Starts of the percentile lines after 100 requests: wrk-cmm's, or natively the meaningful ones.
fn percent_labels(is_compat: bool) -> &'static [&'static str] {
    match is_compat {
        true => &["  50.00%", "  75.00%", "  90.00%", "  95.00%", "  99.00%", "  99.99%"],
        false => &["     50%", "     75%", "     90%", "     max"],
    }
}

/// `--breakout --latency -s json.lua`: the table, six percentiles, and after an empty line the JSON of the script.
fn wrk_cmm_breakout_latency_and_json_work_together(context: &Context) {
    let server = target();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/scripts/json.lua");
    for program in [context.called("wrk-cmm"), context.called("wrk"), context.onrush()] {
        let is_compat = program.is_compat();
        let program = program.words("--breakout --latency -s").word(script);
        let output = program.words("-t1 -c2 -n100").word(url(&server, "/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let (text, json) =
            output.stdout.split_once("\n\nJSON Output\n-----------\n\n").expect("an empty line before it");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "  Thread Stats   Avg     Stdev       Max       Min   +/- Stdev", "{output:?}");
        for (line, name) in lines[3..8].iter().zip(["Latency", "Connect", "TTFB", "TTLB", "Req/Sec"]) {
            assert!(line.starts_with(&format!("    {name:<10}")) && line.len() == 4 + 10 + 38 + 8 + 1, "{line:?}");
        }
        assert_eq!(lines[8], "  Latency Distribution");
        let labels = percent_labels(is_compat);
        for (line, label) in lines[9..].iter().zip(labels) {
            assert!(line.starts_with(label) && line.len() == 8 + 10, "{line:?}");
        }
        let last = 11 + labels.len();
        assert!(lines[last].starts_with("Transfer/sec: ") && lines.len() == last + 1, "{output:?}");
        assert!(json.starts_with("{\n\t\"requests\": ") && json.ends_with("\n\t]\n}\n"), "{json}");
        let document: Value = serde_json::from_str(json).expect("it is JSON");
        assert_eq!(document["requests"], output.requests());
        let rows = document["latency_distribution"].as_array().expect("a list");
        let percents: Vec<f64> = rows.iter().map(|row| row["percentile"].as_f64().expect("a number")).collect();
        assert_eq!(percents, [50.0, 75.0, 90.0, 99.0, 99.999]);
    }
}
