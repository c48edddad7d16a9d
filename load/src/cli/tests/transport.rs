//! Random plans that are sent, parsed and divided.

use std::sync::Arc;

use onrush_plan::{FileContents, OutputOptions, Partition, Plan, Random, TlsOptions};

use crate::cli::{self, Commands, Invocation};

/// A plan with random choices for all options.
fn any(random: &mut Random) -> Plan {
    let mut words: Vec<String> = vec!["onrush".to_owned()];
    let options: &[&[&str]] = &[
        &["-t3", "-c7"],
        &["-t1", "-c100"],
        &["-d7s"],
        &["-n12345"],
        &["-d", "90m", "-n", "3"],
        &["-R", "90/m", "--catch-up", "1.5", "--send-slice", "200us"],
        &["-R", "1k", "--arrivals", "poisson"],
        &["--stages", "12345678us:1..20k,30s:7/m", "--arrivals", "burst:7", "--max-late", "5ms"],
        &["-R", "5", "--max-inflight", "333"],
        &["--stages", "c=30s:0..200,12345678us:7"],
        &["--warmup", "1500ms"],
        &["--until", "p99+-2%,mean±0.3%"],
        &["--timeout", "0"],
        &["--give-up", "77us"],
        &["--body", "caf\u{e9}"],
        &["--body", "0123456789\0".trim_end_matches('\0')],
        &["-H", "A: \u{fc}\t"],
        &["-X", "PUT"],
        &["--requests-per-connection", "9"],
        &["--disable-keepalive"],
        &["-s", "x.lua"],
        &["--cacert", "ca.pem", "--cert", "c.pem", "--tls-max", "1.2"],
        &["-k", "--tls-groups", "X25519:P-256"],
        &["--cert", "c.pem", "--key", "k.pem", "--sni", "a.example"],
        &["--http2", "--streams", "7", "--h2-window", "70000", "--h2-table", "0"],
        &["--http1.1"],
        &["-b", "127.0.0.1/28"],
        &["--unix", "/run/x.sock"],
        &["--connect-to", "other:81"],
        &["--resolve", "h:443:127.0.0.1,::1"],
        &["--http-proxy", "u:p@proxy:3128"],
        &["-4"],
        &["--sndbuf", "1", "--rcvbuf", "1073741823"],
        &["--congestion", "bbr"],
        &["--io", "epoll"],
        &["--io", "sim:x.toml"],
        &["--spin", "on"],
        &["--seed", "18446744073709551615"],
        &["--breakout=all"],
        &["-o", "x.json", "--percentiles", "50,99.9", "-L"],
        &["--once"],
    ];
    for option in options {
        if random.below(4) == 0 {
            words.extend(option.iter().map(|word| (*word).to_owned()));
        }
    }
    words.push(["http://h/", "https://u:p%20w@[::1]:8443/a?b=c", "https://h"][random.below(3) as usize].to_owned());
    match cli::parse(words.into_iter().map(Into::into), &Commands::NONE) {
        Invocation::Run { plan, .. } => *plan,
        // Some settings exclude each other: draw again.
        _ => any(random),
    }
}

/// Fills all files of a plan with contents derived from their names.
fn read(mut plan: Plan) -> Plan {
    let script = plan.script.iter_mut().map(|script| &mut script.file);
    for file in script.chain(plan.tls.iter_mut().flat_map(TlsOptions::files_mut)) {
        *file = FileContents::from_bytes(&file.name, file.name.clone().into_bytes());
    }
    plan
}

#[test]
fn sent_plans_come_back_equal() {
    let mut random = Random::new(1);
    for _ in 0..500 {
        let plan = read(any(&mut random));
        let mut back = Plan::from_json(&plan.to_json().unwrap()).unwrap();
        assert_eq!(back, Plan { output: OutputOptions::default(), ..plan.clone() });
        for file in plan.files() {
            assert!(back.attach(&Arc::from(file.contents().unwrap())), "{}", file.name);
        }
        assert!(back.files().all(|file| file.contents().is_ok()));
        assert_eq!(back.body(), plan.body());
    }
}

#[test]
fn shares_sum_to_the_whole() {
    let mut random = Random::new(2);
    for _ in 0..500 {
        let plan = any(&mut random);
        let parts = 1 + random.below(9) as u32;
        let shares: Vec<Plan> = (0..parts).filter_map(|index| plan.share(index, parts)).collect();
        let requests: Option<u64> = shares.iter().map(|share| share.stop.requests).sum();
        assert_eq!(requests, plan.stop.requests);
        assert_eq!(shares.iter().map(|share| share.load.connections).sum::<u32>(), plan.load.connections);
        assert_eq!(shares.iter().map(|share| share.load.max_inflight).sum::<u32>(), plan.load.max_inflight);
        for (index, share) in shares.iter().enumerate() {
            assert!(share.load.threads >= 1 && share.load.connections >= share.load.threads);
            let before: u32 = shares[..index].iter().map(|share| share.load.max_inflight).sum();
            assert_eq!(share.first_connection, before);
            assert!(share.until.is_empty() || shares.len() == 1);
            assert!(share.load.max_inflight >= share.load.connections);
            let part = Partition::new(index as u32, shares.len() as u32);
            assert_eq!(share.levels.as_ref().map(|levels| levels.part), plan.levels.as_ref().map(|_| part));
            let most = share.levels.as_ref().map(|levels| levels.most_held_for(1, u64::MAX));
            assert!(most.is_none_or(|most| most == share.load.connections), "{share:?}");
            assert_eq!(share.schedule.as_ref().map(|schedule| schedule.part), plan.schedule.as_ref().map(|_| part));
        }
        assert_eq!(plan.share(0, 1), Some(plan));
    }
}

#[test]
fn bad_plans_and_versions_are_refused() {
    let plan = any(&mut Random::new(3)).to_json().unwrap();
    let refused = |text: &str| Plan::from_json(text).unwrap_err().to_string();
    assert!(refused("{}").starts_with("not a valid plan: missing field"));
    let newer = plan.replace("\"onrush_plan\":1", "\"onrush_plan\":2");
    assert_eq!(refused(&newer), "the plan has version 2, but this onrush supports version 1");
    let mut value: serde_json::Value = serde_json::from_str(&plan).unwrap();
    value["plan"]["load"]["threads"] = 0.into();
    assert!(refused(&value.to_string()).contains("a connection for every thread"));
    value["plan"]["load"] = serde_json::json!({ "threads": 1, "connections": 2, "max_inflight": 1 });
    assert!(refused(&value.to_string()).contains("the limit on connections is below their initial number"));
    value["plan"]["load"] = serde_json::json!({ "threads": 1, "connections": 1, "max_inflight": 1 });
    value["plan"]["stop"] = serde_json::json!({});
    assert!(refused(&value.to_string()).contains("nothing ends the run"));
    value["plan"]["stop"] = serde_json::json!({ "requests": 1 });
    value["plan"]["schedule"] =
        serde_json::json!({ "arrivals": "Uniform", "stages": [], "part": { "index": 0, "of": 1 } });
    assert!(refused(&value.to_string()).contains("the schedule has no stage"));
    value["plan"]["schedule"]["stages"] = serde_json::json!([{ "from": u64::MAX, "to": 1 }]);
    assert!(refused(&value.to_string()).contains("the rate is too high"));
    value["plan"]["schedule"] = serde_json::Value::Null;
    let level =
        |seconds: u64, to: u32| serde_json::json!({ "length": { "secs": seconds, "nanos": 0 }, "from": 0, "to": to });
    for (stages, contradiction) in [
        (vec![], "the stages have no connections, or too many"),
        (vec![level(1, 0)], "the stages have no connections, or too many"),
        (vec![level(1, 1_000_001)], "the stages have no connections, or too many"),
        (vec![level(1, 1), level(0, 1)], "a stage of connections has no length"),
        (vec![level(u64::MAX, 1), level(1, 1)], "the stages of connections are too long"),
    ] {
        value["plan"]["levels"] = serde_json::json!({ "stages": stages, "part": { "index": 0, "of": 1 } });
        assert!(refused(&value.to_string()).contains(contradiction), "{contradiction}");
    }
    let words = ["onrush", "-t1", "--stages", "c=2s:1..3", "--stages", "2s:5", "http://h/"];
    let Invocation::Run { plan, .. } = cli::parse(words.map(Into::into), &Commands::NONE) else { panic!() };
    let staged: serde_json::Value = serde_json::from_str(&plan.to_json().unwrap()).unwrap();
    let changed = |place: &str, to: serde_json::Value| {
        let mut value = staged.clone();
        *value.pointer_mut(place).unwrap() = to;
        Plan::from_json(&value.to_string()).err().map(|unfit| unfit.to_string())
    };
    let longer = "the run does not last as long as its stages";
    let other = "the stages have a different number of connections";
    assert_eq!(changed("/plan/seed", 7.into()), None);
    for (place, to, contradiction) in [
        ("/plan/stop/duration/secs", 3, longer),
        ("/plan/levels/stages/0/length/secs", 3, longer),
        ("/plan/schedule/stages/0/length/secs", 1, longer),
        ("/plan/levels/stages/0/to", 4, other),
        ("/plan/load/max_inflight", 4, other),
    ] {
        let said = changed(place, to.into());
        assert_eq!(said, Some(format!("not a valid plan: {contradiction}")), "{place}");
    }
}
