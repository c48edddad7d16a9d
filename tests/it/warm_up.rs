//! Load before anything is measured.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Context, Scratch, cases, finish, signal, target, url, wait_for_load};
use crate::results::{document, number};
use crate::tls_peers::{TlsServer, self_signed};

cases! {
    warm_ups_measure_nothing;
    signals_in_warm_ups_measure_nothing;
    warm_up_connections_keep_their_parameters;
    warm_ups_reach_no_file_or_script;
}

/// Row 28 of wrk-cmm's users' trials: there it reported 735 requests per second, because requests during the delay were
/// counted.
fn warm_ups_measure_nothing(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("warm-up"));
    let slow = url(&server, "/delay/10");
    for (program, words, least_s) in
        [(context.onrush(), "--warmup 500ms -d300ms", 0.3), (context.called("wrk-cmm"), "-D 1 -d1", 1.0)]
    {
        let (output, document) = document(program.words(words).words("-t1 -c4").word(&slow), &scratch);
        let (requests, duration_s) = (output.requests(), number(&document, "/duration_s"));
        // Each of the four connections gets at most a hundred responses per second, plus one to a request in flight at
        // the start.
        assert!(requests > 0 && requests as f64 <= 4.0 * (duration_s / 0.01 + 1.0), "{output:?}");
        assert!(duration_s >= least_s, "{output:?}");
        let service = &document["latency"]["service"];
        assert!(number(service, "/mean_us") >= number(service, "/min_us") && number(service, "/min_us") >= 10_000.0);
        assert_eq!(number(&document, "/connections/opened"), 0.0);
        assert_eq!(number(&document, "/connections/established"), 4.0);
        let rows = document["timeline"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), requests);
        assert!(rows.len() as f64 <= duration_s.ceil(), "{rows:?}");
    }
}

fn signals_in_warm_ups_measure_nothing(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("early"));
    let path = scratch.path().join("r.json");
    let program = context.onrush().words("--warmup 30s -d 1s --io").word(context.backend).word("-o").word(&path);
    let child = program.word(url(&server, "/delay/10")).spawn();
    wait_for_load(&server);
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!((output.code, output.requests()), (5, 0), "{output:?}");
    output.note("interrupted before anything was measured: the warm-up was not over");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((number(&document, "/duration_s"), number(&document, "/bytes_received")), (0.0, 0.0));
}

/// The handshakes were not measured, but the measured connections came from them.
fn warm_up_connections_keep_their_parameters(context: &Context) {
    let (server, scratch) = (TlsServer::new(&self_signed(&["localhost"])), Scratch::new("warm-tls"));
    let agreed = |document: &Value, keys: [&str; 3]| {
        let agreed = document.pointer("/tls/negotiated/0").unwrap_or_else(|| panic!("nothing agreed in {document}"));
        keys.map(|key| agreed[key].as_str().unwrap_or("").to_owned())
    };
    let keys = ["version", "suite", "group"];
    // Slow enough that all four connections exist before the end of the warm-up.
    let program = || context.onrush().words("-k -t2 -c4 -R100 -d300ms --warmup 500ms");
    let (output, kept) = document(program().word(server.url("/")), &scratch);
    assert!(output.requests() > 0, "{output:?}");
    assert_eq!((number(&kept, "/tls/handshakes"), number(&kept, "/tls/resumed")), (0.0, 0.0));
    assert_eq!(agreed(&kept, keys), ["1.3", "TLS_AES_256_GCM_SHA384", "X25519"]);
    assert_eq!(number(&kept, "/tls/negotiated/0/connections"), 4.0);
    // If connections are constantly replaced, there are handshakes to measure, and they resume sessions.
    let (output, replaced) = document(program().words("--disable-keepalive").word(server.url("/")), &scratch);
    let (handshakes, resumed) = (number(&replaced, "/tls/handshakes"), number(&replaced, "/tls/resumed"));
    assert!(handshakes > 0.0 && handshakes == resumed, "{replaced}");
    let in_use =
        replaced["tls"]["negotiated"].as_array().unwrap().iter().map(|agreed| agreed["connections"].as_f64().unwrap());
    assert!((handshakes..=handshakes + 4.0).contains(&in_use.sum::<f64>()), "{replaced}");
    assert!(output.note("resumed an earlier session").contains("--tls-resume off"), "{output:?}");
}

fn warm_ups_reach_no_file_or_script(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("warm-files"));
    let path = scratch.path().join("r.ndjson");
    let script = "function done(summary) print('done ' .. summary.requests .. ' ' .. summary.errors.status) end";
    // A row lasts a second, so the warm-up would have one.
    let program = context.onrush().words("-t1 -c2 -d300ms --warmup 1100ms -o").word(&path).lua(script);
    let output = program.word(url(&server, "/delay/10")).run();
    let requests = output.requests();
    assert!(requests > 0, "{output:?}");
    assert!(output.stdout.ends_with(&format!("done {requests} 0\n")), "{output:?}");
    let lines = fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| row["completed"].as_u64().unwrap()).sum::<u64>(), requests, "{lines}");
    assert!(rows.len() == 1 && rows[0]["start_s"] == 0.0, "{lines}");
}
