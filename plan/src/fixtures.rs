//! Hand-made plans for tests.

use std::time::Duration;

use crate::schedule::{Arrivals, Rate, Stage};
use crate::target::Scheme;
use crate::{
    Checks, ConnectOptions, Dialect, Http, Io, Load, OutputOptions, Partition, Plan, Request, Schedule, Spin, Stop,
    Target,
};

/// A load of `seconds` on `url`.
pub fn plan(dialect: Dialect, url: &str, seconds: u64, threads: u32, connections: u32) -> Plan {
    let target = Target {
        typed: url.to_owned(),
        scheme: Scheme::Http,
        host: "127.0.0.1".to_owned(),
        port: None,
        port_text: None,
        path: "/".to_owned(),
        userinfo: None,
    };
    Plan {
        target,
        connect: ConnectOptions::default(),
        tls: None,
        http: Http::default(),
        request: Request::default(),
        body: None,
        load: Load::new(threads, connections),
        in_flight_max: None,
        first_connection: 0,
        schedule: None,
        levels: None,
        requests_per_connection: None,
        stop: Stop { duration: Some(Duration::from_secs(seconds)), requests: None },
        run_on: Duration::ZERO,
        until: Vec::new(),
        warmup: Duration::ZERO,
        timeout: Some(Duration::from_secs(2)),
        give_up: Some(Duration::from_secs(30)),
        dialect,
        io: Io::Auto,
        phases: false,
        once: false,
        spin: Spin::Auto,
        list: None,
        checks: Checks::default(),
        templates: None,
        script: None,
        seed: 1,
        output: OutputOptions { cmm_layout: dialect == Dialect::WrkCmm, notes: true, ..OutputOptions::default() },
    }
}

/// A schedule of `per_s` evenly spaced requests per second, until the run ends.
pub fn schedule(per_s: u64) -> Schedule {
    let rate = Rate::from_per_second(per_s).expect("a rate");
    Schedule {
        arrivals: Arrivals::Uniform,
        stages: vec![Stage::open_ended(rate)],
        part: Partition::WHOLE,
        catch_up: None,
        max_late: None,
        send_slice: None,
    }
}
