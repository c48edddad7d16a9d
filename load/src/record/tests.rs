//! Documents of hand-made outcomes: written, read, added up.

use std::time::Duration;

use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Dialect, FileContents, Percent};
use onrush_stats::{Activity, Cause, Interval, Phase};

use super::gate::Judged;
use super::*;
use crate::files::export;
use crate::fixtures::{flawless, plan as fixture};
use crate::run::{Outcome, WorkerShare};

pub(super) fn plan(dialect: Dialect) -> onrush_plan::Plan {
    fixture(dialect, "http://127.0.0.1:8080/", 10, 1, 10)
}

/// A run of these latencies, all in its first second, with one of everything else.
fn outcome(latencies_us: impl IntoIterator<Item = u64>) -> Outcome {
    let mut interval = Interval { until_ns: 100_000_000, ..Interval::default() };
    for us in latencies_us {
        interval.latency.record(us * 1_000);
        interval.counters.completed += 1;
        interval.counters.started += 1;
        interval.statuses.record(200);
        let phases = interval.phases.get_or_insert_default();
        phases.ttfb.record(us * 900);
        phases.ttlb.record(us * 100);
    }
    interval.counters.batches = interval.counters.completed;
    interval.counters.slots_opened = 10;
    interval.phases.get_or_insert_default().connect.record(5_000);
    interval.ledger.record(Phase::Head, Cause::Late, 3, || b"Set-Cookie: abc\x00".to_vec());
    let mut outcome = flawless(0, 1);
    outcome.totals.clear();
    outcome.totals += &interval;
    outcome.timeline.record(&interval);
    outcome.elapsed = Duration::from_secs(1);
    outcome.timeline.end_run(1_000_000_000);
    let activity = Activity {
        wall_ns: 10_000_000_000,
        user_ns: 1_000_000_000,
        system_ns: 2_000_000_000,
        spun_ns: 1_000_000_000,
        queued_ns: Some(500_000_000),
        waits: 100,
        completions: 1_000,
        completions_max: 30,
        ..Activity::default()
    };
    outcome.workers = vec![WorkerShare { connections: 10, counters: interval.counters, activity: Some(activity) }];
    outcome
}

pub(super) fn document(latencies_us: impl IntoIterator<Item = u64>) -> Document {
    Document::judged(&plan(Dialect::Native), &outcome(latencies_us))
}

/// The document that is read from a document's file.
pub(super) fn read(document: &Document) -> Document {
    let result = RunResult::parse(std::path::Path::new("x.json"), document.to_json().as_bytes());
    crate::judge::judge_result(result.unwrap(), |_| None)
}

/// The same with a schedule: each request was sent 1 ms after it was due, one was never sent, and one got no response.
pub(super) fn scheduled(latencies_us: impl IntoIterator<Item = u64>) -> Document {
    let mut interval = Interval { until_ns: 100_000_000, ..Interval::default() };
    let mut outcome = outcome([]);
    let open_loop = interval.open_loop.get_or_insert_default();
    for us in latencies_us {
        interval.latency.record(us * 1_000);
        open_loop.record_response(us * 1_000 + 1_000_000, us * 1_000, false);
        open_loop.lateness.record(1_000_000);
        interval.counters.completed += 1;
        interval.statuses.record(200);
        let phases = interval.phases.get_or_insert_default();
        phases.ttfb.record(us * 900);
        phases.ttlb.record(us * 100);
    }
    open_loop.lateness.record(1_000_000);
    [30_000_000, 1_000_000].into_iter().for_each(|age_ns| open_loop.censored.record(age_ns));
    [30_000_000, 1_000_000].into_iter().for_each(|age_ns| open_loop.open.get_or_insert_default().record(age_ns));
    (open_loop.late, open_loop.unsent) = (3, 1);
    interval.counters.open_at_end = 1;
    interval.censored.get_or_insert_default().record(30_000_000);
    interval.counters.started = interval.counters.completed + 1;
    (open_loop.due, open_loop.carried) = (interval.counters.started, 1);
    interval.counters.idle_closed = 2;
    outcome.totals += &interval;
    outcome.timeline.record(&interval);
    outcome.workers[0].counters = outcome.totals.counters;
    let mut plan = plan(Dialect::Native);
    plan.schedule = Some(crate::fixtures::schedule(1_000));
    Document::judged(&plan, &outcome)
}

#[test]
fn a_schedule_brings_both_latencies_and_an_account_of_all_due() {
    let document = scheduled(1..=98);
    let (requests, latency) = (document.requests, &document.latency);
    assert_eq!((requests.due, requests.due_before, requests.late), (Some(99), Some(1), Some(3)));
    assert_eq!((requests.dropped, requests.unsent, document.connections.idle_closed), (Some(0), Some(1), Some(2)));
    assert_eq!((latency.service.mean_us, latency.wrk_mean_us), (Some(49.5), None));
    let scheduled = latency.scheduled.as_ref().unwrap();
    assert_eq!((scheduled.count, scheduled.mean_us), (98, Some(1_049.5)));
    assert_eq!(document.shown_latency(), scheduled);
    let open_loop = document.open_loop.as_ref().unwrap();
    assert_eq!((open_loop.due_per_s, open_loop.sent_per_s), (99.0, 99.0));
    assert_eq!((open_loop.lateness.count, open_loop.lateness.max_us), (99, Some(1_000.0)));
    assert_eq!(open_loop.censored.as_ref().map(|censored| censored.count), Some(2));
    let between = |percent: &str| serde_json::to_value(open_loop.percentiles_us[&percent.parse().unwrap()]).unwrap();
    let median = between("50");
    assert!(median["lower"].as_f64().unwrap() <= median["upper"].as_f64().unwrap(), "{median}");
    assert_eq!(between("99"), serde_json::json!({ "lower": 30_000.0 }));
    let row = document.timeline[0].scheduled.as_ref().unwrap();
    assert_eq!((row.mean_us, row.max_us), (Some(1_049.5), Some(1_098.0)));
    let plan = serde_json::to_value(&document.plan.schedule).unwrap();
    let stage = serde_json::json!({ "from_per_s": 1_000.0, "to_per_s": 1_000.0 });
    assert_eq!(plan, serde_json::json!({ "arrivals": "uniform", "stages": [stage] }));
    assert_eq!(read(&document), document);
}

#[test]
fn without_a_schedule_nothing_of_it_is_there() {
    let text = document([5]).to_json();
    let text = text.split("\n  \"result\"").next().unwrap();
    for absent in ["scheduled", "open_loop", "\"due", "unsent", "idle_closed", "\"late\""] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn the_schema_is_that_of_these_structs() {
    schema::check::<Document>("docs/result.schema.json", "A result of onrush");
}

#[test]
fn what_is_written_is_read_again_and_keys_that_do_not_apply_are_left_out() {
    let document = document(1..=1_000);
    let text = document.to_json();
    assert_eq!(read(&document), document);
    let text = text.split("\n  \"result\"").next().unwrap();
    assert!(!text.contains("null"), "{text}");
    for absent in ["\"wrk\"", "\"tls\"", "\"censored\"", "\"warmup_s\"", "\"body\""] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn a_distribution_says_what_was_measured() {
    let service = document(1..=1_000).latency.service;
    assert_eq!(
        (service.count, service.mean_us, service.min_us, service.max_us),
        (1_000, Some(500.5), Some(1.0), Some(1_000.0))
    );
    let percents: Vec<String> = service.percentiles_us.keys().map(Percent::to_string).collect();
    assert_eq!(percents, ["50", "75", "90", "95", "99", "99.9", "99.99", "99.999"]);
    let values = service.values().unwrap();
    assert_eq!(values.values().map(|(_, count)| count).sum::<u64>(), 1_000);
    assert_eq!(values.moments(), outcome(1..=1_000).totals.latency.moments());
}

#[test]
fn nothing_measured_has_a_count_and_no_figures() {
    let service = serde_json::to_value(document([]).latency.service).unwrap();
    let keys: Vec<&String> = service.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["count"]);
}

#[test]
fn an_imitated_tool_has_its_view_beside_what_was_measured() {
    // Ten responses on each connection are 100 ms apart: wrk counts one that took 450 ms as four.
    let mut latencies = vec![1_000; 99];
    latencies.push(450_000);
    let document = Document::judged(&plan(Dialect::Wrk), &outcome(latencies));
    assert_eq!(document.latency.service.count, 100);
    let wrk = document.latency.wrk.as_ref().unwrap();
    assert_eq!((wrk.count, wrk.values().unwrap().count()), (103, 103));
    assert_eq!(document.shown_latency(), wrk);
}

#[test]
fn natively_wrks_mean_is_a_number_and_no_sentence() {
    let mut latencies = vec![1_000; 99];
    latencies.push(450_000);
    let document = Document::judged(&plan(Dialect::Native), &outcome(latencies));
    assert!(document.latency.wrk_mean_us > Some(2.0 * document.latency.service.mean_us.unwrap()), "{document:?}");
    assert!(!document.notes.iter().any(|note| note.text.contains("wrk")), "{:?}", document.notes);
}

/// The first difference between two plans that differ only in this, starting from a common plan. Both directions agree.
fn difference(common: impl Fn(&mut onrush_plan::Plan), change: impl Fn(&mut onrush_plan::Plan)) -> String {
    let mut plans = [plan(Dialect::Native), plan(Dialect::Native)];
    plans.iter_mut().for_each(common);
    change(&mut plans[1]);
    let [mine, other] = plans.map(|plan| Document::judged(&plan, &outcome([5])).plan);
    assert_eq!(mine.difference(&other).is_some(), other.difference(&mine).is_some());
    mine.difference(&other).map_or_else(String::new, |different| different.to_string())
}

#[test]
fn plans_differ_in_what_is_measured_and_not_in_how_it_is_shown() {
    let of = |change: fn(&mut onrush_plan::Plan)| difference(|_| {}, change);
    let header = |value: &str| vec![("Cookie".to_owned(), value.to_owned())];
    assert_eq!(of(|plan| plan.seed = 9), "");
    assert_eq!(of(|plan| plan.output.percents = Some(vec!["50".parse().unwrap()])), "");
    assert_eq!(of(|plan| plan.output.command = "onrush -o other.json".to_owned()), "");
    assert_eq!(of(|plan| plan.load.connections = 11), "connections is 11 instead of 10");
    assert_eq!(of(|plan| plan.stop.requests = Some(7)), "requests is 7 instead of nothing");
    assert_eq!(of(|plan| plan.timeout = None), "timeout_s is nothing instead of 2.0");
    let rate = |per_s| move |plan: &mut onrush_plan::Plan| plan.schedule = Some(crate::fixtures::schedule(per_s));
    assert_eq!(difference(rate(1_000), rate(3_500)), "-R is 3500 instead of 1000");
    assert_eq!(difference(|_| {}, rate(500)), "-R is 500 instead of nothing");
    let at = |port: u16, more: &str| {
        let headers = vec![("Host".to_owned(), format!("h:{port}")), ("X-A".to_owned(), more.to_owned())];
        move |plan: &mut onrush_plan::Plan| {
            (plan.target.typed, plan.request.headers) = (format!("http://me:pw@h:{port}/a"), headers.clone());
        }
    };
    assert_eq!(difference(at(8_000, "1"), at(8_000, "2")), "headers.X-A is \"2\" instead of \"1\"");
    let url = "url is \"http://REDACTED@h:8001/a\" instead of \"http://REDACTED@h:8000/a\"";
    assert_eq!(difference(at(8_000, "1"), at(8_001, "1")), url);
    let plans = [at(8_000, "1"), at(8_001, "1")].map(|change| {
        let mut plan = plan(Dialect::Native);
        change(&mut plan);
        Document::judged(&plan, &outcome([5])).plan
    });
    assert_eq!(plans[0].differences(&plans[1]).len(), 1, "a Host that follows from the URL is no second difference");
    let secret = |kept: bool| {
        difference(
            |plan| (plan.request.headers, plan.target.typed) = (header("a"), "http://h/?token=1".to_owned()),
            |plan| {
                (plan.request.headers, plan.target.typed) = (header("b"), "http://h/?token=2".to_owned());
                plan.output.keeps_secrets = kept;
            },
        )
    };
    assert_eq!([secret(false), secret(true)], ["", ""], "secrets are not compared, kept or not");
    let body = |plan: &mut onrush_plan::Plan| plan.body = Some(FileContents::from_bytes("", b"{\"a\":1}".to_vec()));
    let kept = |plan: &mut onrush_plan::Plan| {
        body(plan);
        plan.output.keeps_secrets = true;
    };
    assert_eq!(difference(body, kept), "", "a body is compared, kept or not");
}

#[test]
fn plans_differ_in_bodies_but_not_in_secrets() {
    let long = |text: &str| [&[b'x'; 5_000], text.as_bytes()].concat();
    let of = |was: Vec<u8>, is: Vec<u8>| {
        let body = |body: Vec<u8>| {
            move |plan: &mut onrush_plan::Plan| plan.body = Some(FileContents::from_bytes("", body.clone()))
        };
        difference(body(was), body(is))
    };
    assert_eq!(of(b"a=1".to_vec(), b"a=2".to_vec()), "body is \"a=2\" instead of \"a=1\"");
    assert_eq!(of(b"a=1".to_vec(), b"a=\x1b[m".to_vec()), r#"body is "a=\x1b[m" instead of "a=1""#);
    assert!(of(b"{\"a\":1}".to_vec(), b"{\"a\":2}".to_vec()).starts_with("body_sha256 is \""));
    assert_eq!(of(b"{\"token\":\"1\"}".to_vec(), b"{\"token\":\"2\"}".to_vec()), "");
    assert_eq!(of(b"password=a".to_vec(), b"password=longer".to_vec()), "");
    assert!(of(long("&a=1"), long("&a=2")).starts_with("body_sha256 is \""));
    assert!(of(vec![0xff, 1], vec![0xff, 2]).starts_with("body_sha256 is \""));
    assert_eq!(of(long("&token=1"), long("&token=longer")), "");
    assert_eq!(of(b"\xff&token=1".to_vec(), b"\xff&token=2".to_vec()), "");
    assert!(of(Vec::new(), b"x=".to_vec()).starts_with("body is \"x=\" instead of nothing"));
}

#[test]
fn the_digest_is_the_one_that_others_compute() {
    let mut plan = plan(Dialect::Native);
    plan.body = Some(FileContents::from_bytes("", vec![b'a'; 1_000_000]));
    // The third example of the standard, FIPS 180-2.
    let digest = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    assert_eq!(Document::judged(&plan, &outcome([5])).plan.body_sha256.as_deref(), Some(digest));
    plan.body = Some(FileContents::from_bytes("", b"short=".to_vec()));
    assert_eq!(Document::judged(&plan, &outcome([5])).plan.body_sha256, None);
}

#[test]
fn plans_differ_in_what_their_script_says() {
    let of = |file: &[u8]| {
        let script =
            onrush_plan::LuaScript { file: FileContents::from_bytes("a.lua", file.to_vec()), args: Vec::new() };
        Document::judged(&onrush_plan::Plan { script: Some(script), ..plan(Dialect::Native) }, &outcome([5])).plan
    };
    let was = of(b"token = '1'\nx = 1");
    assert_eq!(was.difference(&of(b"token = '2'\nx = 1")), None, "a secret is no difference");
    let different = was.difference(&of(b"token = '1'\nx = 2")).unwrap().to_string();
    assert!(different.starts_with("script.sha256 is \""), "{different}");
    // The first example of the standard, FIPS 180-2.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(of(b"abc").script.unwrap().sha256.as_deref(), Some(digest));
}

#[test]
fn plans_differ_in_the_way_to_the_target() {
    type Change = fn(&mut onrush_plan::ConnectOptions);
    let sources = |text| Some(onrush_plan::connect::SourceAddresses::parse(text).unwrap());
    let table: [(Change, &str); 11] = [
        (
            |way| way.sources = onrush_plan::connect::SourceAddresses::parse("10.0.0.5").ok(),
            r#"["10.0.0.5"] instead of nothing"#,
        ),
        (
            |way| way.sources = onrush_plan::connect::SourceAddresses::parse("10.0.0.5/28").ok(),
            r#"["10.0.0.1","10.0.0.15"] instead of nothing"#,
        ),
        (|way| way.instead = Some(("h".to_owned(), None)), r#""h" instead of nothing"#),
        (|way| way.instead = Some(("::1".to_owned(), Some(80))), r#""[::1]:80" instead of nothing"#),
        (|way| way.instead = Some(("h".to_owned(), Some(80))), r#""h:80" instead of nothing"#),
        (|way| way.resolved = vec!["10.0.0.5".parse().unwrap()], r#"["10.0.0.5"] instead of nothing"#),
        (|way| way.family = Some(onrush_plan::connect::Family::V6), r#""IPv6" instead of "IPv4""#),
        (|way| way.socket.rcvbuf = Some(4096), "4096 instead of nothing"),
        (|way| way.socket.sndbuf = Some(4096), "4096 instead of nothing"),
        (|way| way.socket.congestion = Some("reno".to_owned()), r#""reno" instead of nothing"#),
        (|way| way.unix = Some("/run/app.sock".into()), r#""/run/app.sock" instead of nothing"#),
    ];
    for (change, expected) in table {
        let words = difference(
            |plan| plan.connect.family = Some(onrush_plan::connect::Family::V4),
            |plan| change(&mut plan.connect),
        );
        assert!(words.starts_with("way.") && words.ends_with(expected), "{words} for {expected}");
    }
    let none = difference(|_| {}, |plan| plan.connect.sources = sources("::1"));
    assert_eq!(none, r#"way is {"bind_ip":["::1"]} instead of nothing"#);
}

#[test]
fn plans_differ_in_how_tls_is_to_be_spoken() {
    use onrush_plan::tls::{ClientCertificate, TlsOptions, TlsVersion};
    type Change<'a> = (&'a dyn Fn(&mut TlsOptions), &'a str);
    let tls = || TlsOptions {
        name: "h".to_owned(),
        check: true,
        roots: None,
        identity: None,
        oldest: TlsVersion::V12,
        newest: TlsVersion::V13,
        suites: Vec::new(),
        groups: Vec::new(),
        alpn: vec![onrush_plan::http::HttpVersion::Http11],
        resume: true,
    };
    let identity = |key: &str| {
        Some(ClientCertificate { certificates: FileContents::unread("c.pem"), key: Some(FileContents::unread(key)) })
    };
    let table: [Change<'_>; 10] = [
        (&|tls| tls.name = "other".to_owned(), r#"tls.name is "other" instead of "h""#),
        (&|tls| tls.check = false, "tls.check is false instead of true"),
        (&|tls| tls.roots = Some(FileContents::unread("ca.pem")), r#"tls.cacert is "ca.pem" instead of nothing"#),
        (&|tls| tls.identity = identity("k.pem"), r#"tls.cert is "c.pem" instead of nothing"#),
        (&|tls| tls.oldest = TlsVersion::V13, r#"tls.min is "1.3" instead of "1.2""#),
        (&|tls| tls.newest = TlsVersion::V12, r#"tls.max is "1.2" instead of "1.3""#),
        (&|tls| tls.suites = vec![0x1301], r#"tls.ciphers is ["TLS_AES_128_GCM_SHA256"] instead of nothing"#),
        (&|tls| tls.groups = vec![0x17], r#"tls.groups is ["P-256"] instead of nothing"#),
        (&|tls| tls.alpn.clear(), r#"tls.alpn is nothing instead of ["http/1.1"]"#),
        (&|tls| tls.resume = false, "tls.resume is false instead of true"),
    ];
    for (change, expected) in table {
        let change = |plan: &mut onrush_plan::Plan| plan.tls.iter_mut().for_each(change);
        assert_eq!(difference(|plan| plan.tls = Some(tls()), change), expected);
    }
    let key = |key: &'static str| {
        move |plan: &mut onrush_plan::Plan| {
            plan.tls = Some(TlsOptions { identity: identity(key), ..tls() });
        }
    };
    assert_eq!(difference(key("k.pem"), key("l.pem")), r#"tls.key is "l.pem" instead of "k.pem""#);
    assert!(difference(|_| {}, |plan| plan.tls = Some(tls())).starts_with("tls is {"));
}

#[test]
fn no_secret_is_in_any_form_of_a_document_unless_it_is_to_be_kept() {
    let mut plan = plan(Dialect::Native);
    plan.target.typed = "http://me:HIDE1@h/?api_key=HIDE2".to_owned();
    plan.request.headers = vec![
        ("Cookie".to_owned(), "HIDE3".to_owned()),
        ("Referer".to_owned(), "http://h/?token=HIDE4".to_owned()),
        ("X-Session".to_owned(), "HIDE5".to_owned()),
    ];
    plan.body = Some(FileContents::from_bytes("", b"user=me&password=HIDE6".to_vec()));
    let mut outcome = outcome([5]);
    outcome.totals.ledger.record(Phase::Body, Cause::Unanswered, 0, || b"Authorization: HIDE7".to_vec());
    outcome.totals.location = Some("/login?session=HIDE8".to_owned());
    (0..9).for_each(|_| outcome.totals.statuses.record(302));
    outcome.known = KnownSecrets::from_plan(&plan);
    let hidden = Document::judged(&plan, &outcome);
    let json = hidden.to_json();
    assert!(!json.contains("HIDE"), "{json}");
    assert!(json.contains("redirect") && json.contains("me&password=REDACTED"), "{json}");
    for kind in [onrush_plan::OutputKind::Csv, onrush_plan::OutputKind::Markdown, onrush_plan::OutputKind::Hgrm] {
        assert!(!export::render_output(kind, &hidden).unwrap().contains("HIDE"));
    }
    plan.output.keeps_secrets = true;
    outcome.known = KnownSecrets::from_plan(&plan);
    let kept = Document::judged(&plan, &outcome).to_json();
    (1..=8).for_each(|number| assert!(kept.contains(&format!("HIDE{number}")), "HIDE{number} in {kept}"));
}

#[test]
fn processor_time_is_told_apart_from_looking() {
    let threads = document([5]).threads;
    assert_eq!((threads[0].cpu_s, threads[0].busy_polled_s, threads[0].completed), (Some(2.0), Some(1.0), 1));
    assert_eq!((threads[0].user_s, threads[0].system_s), (Some(1.0), Some(2.0)));
}

/// The thread that is made of this activity, as it is written.
fn thread(change: impl FnOnce(&mut Option<Activity>)) -> serde_json::Value {
    let mut outcome = outcome([5]);
    change(&mut outcome.workers[0].activity);
    serde_json::to_value(&Document::judged(&plan(Dialect::Native), &outcome).threads[0]).unwrap()
}

#[test]
fn where_the_time_of_a_thread_went_is_said_as_far_as_it_is_known() {
    let change = |change: fn(&mut Activity)| thread(|activity| change(activity.as_mut().unwrap()));
    let known = change(|_| {});
    assert_eq!((&known["queued_s"], &known["asleep_s"]), (&0.5.into(), &6.5.into()));
    assert_eq!(known["waits"], serde_json::json!({ "count": 100, "completions": 1_000, "completions_max": 30 }));
    assert_eq!((known.get("lateness"), known.get("script_s")), (None, None));
    let in_flight: Vec<&String> = known["in_flight"].as_object().unwrap().keys().collect();
    assert_eq!(in_flight, ["busy_connections", "mean"], "the sums are those of the run");
    let unqueued = change(|activity| activity.queued_ns = None);
    assert_eq!((unqueued.get("queued_s"), unqueued.get("asleep_s")), (None, None));
    assert_eq!(unqueued["user_s"], known["user_s"]);
    let late = change(|activity| [1_000, 4_000].into_iter().for_each(|late_ns| activity.count_submission(late_ns)));
    assert_eq!(late["lateness"], serde_json::json!({ "mean_us": 2.5, "max_us": 4.0 }));
    let script = onrush_plan::LuaScript { file: FileContents::from_bytes("a.lua", Vec::new()), args: Vec::new() };
    let mut scripted = outcome([5]);
    scripted.workers[0].activity.as_mut().unwrap().script_ns = 250_000_000;
    let scripted = Document::judged(&onrush_plan::Plan { script: Some(script), ..plan(Dialect::Native) }, &scripted);
    assert_eq!(scripted.threads[0].script_s, Some(0.25));
    let lost = thread(|activity| *activity = None);
    let keys: Vec<&String> = lost.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["completed", "connections", "opened", "started"]);
}

#[test]
fn a_thread_that_ended_early_is_busy_for_a_share_of_the_run() {
    let mut outcome = outcome([5]);
    let ended = Activity { wall_ns: 1_000_000, user_ns: 900_000, queued_ns: Some(0), ..Activity::default() };
    outcome.workers[0].activity = Some(ended);
    let evidence = Document::judged(&plan(Dialect::Native), &outcome).evidence.unwrap();
    assert_eq!(evidence.generator.threads[0].busy, 9e-4);
}

#[test]
fn the_time_line_is_a_table_of_a_row_a_second() {
    let text = export::render_output(onrush_plan::OutputKind::Csv, &document([100, 300])).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), rows[0].len(), rows[1].len()), (2, 20, 20));
    assert_eq!(rows[1][..9], ["0", "1", "2", "2", "2.00", "0", "0", "0", "1"]);
    assert_eq!((rows[1][15], rows[1][19]), ("200.0", "300.0"));
    let with_schedule = export::render_output(onrush_plan::OutputKind::Csv, &scheduled([100, 300])).unwrap();
    let rows: Vec<Vec<&str>> = with_schedule.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows[0].len(), rows[0][20], rows[1].len()), (28, "scheduled_mean_us", 28));
    assert_eq!((rows[1][15], rows[1][20], rows[1][24]), ("200.0", "1200.0", "1300.0"));
    assert_eq!((&rows[0][25..], &rows[1][25..]), (&["late", "dropped", "unavailable_s"][..], &["3", "0", ""][..]));
    let empty = export::render_output(onrush_plan::OutputKind::Csv, &document([])).unwrap();
    assert!(empty.ends_with(",,,,,\n"), "{empty}");
}

#[test]
fn the_percentile_table_has_the_plotters_columns() {
    let text = export::render_output(onrush_plan::OutputKind::Hgrm, &document(1..=1_000)).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("       Value     Percentile TotalCount 1/(1-Percentile)"));
    assert_eq!(lines.next(), Some(""));
    assert_eq!(lines.next(), Some("       0.001 0.000000000000          1           1.00"));
    assert!(text.contains("\n       1.000 1.000000000000       1000\n#[Mean    =        0.50"), "{text}");
    assert!(text.contains("\n#[Max     =        1.000, Total count    =         1000]\n"), "{text}");
}

#[test]
fn open_requests_are_in_all_files() {
    use onrush_plan::OutputKind;
    let mut document = scheduled(1..=98);
    let markdown = export::render_output(OutputKind::Markdown, &document).unwrap();
    let row =
        "\n| latency since due | p50 1.05ms, max 1.10ms (2 requests without a response, the oldest after 30.00ms) |\n";
    assert!(markdown.contains(row), "{markdown}");
    let hgrm = export::render_output(OutputKind::Hgrm, &document).unwrap();
    let below = [
        "      30.000 1.000000000000        100",
        "#[Mean    =        1.050, StdDeviation   =        0.028]",
        "#[Max     =        1.098, Total count    =           98]",
        "#[Open    =            2 still open at the end, counted like others of their age]",
    ];
    let lines: Vec<&str> = hgrm.lines().collect();
    assert_eq!(lines[lines.len() - 5..lines.len() - 1], below, "{hgrm}");
    document.plan.dialect = Dialect::Wrk2.name().to_owned();
    let markdown = export::render_output(OutputKind::Markdown, &document).unwrap();
    let row = "\n| latency since due | p50 1.05ms, max 1.10ms |\n";
    assert!(markdown.contains(row), "wrk2 counts complete responses only: {markdown}");
    let hgrm = export::render_output(OutputKind::Hgrm, &document).unwrap();
    assert!(hgrm.contains("1.098 1.000000000000         98\n#[Mean"), "{hgrm}");
}

#[test]
fn the_markdown_says_what_a_ticket_must_say() {
    use onrush_plan::OutputKind;
    let mut plan = plan(Dialect::Native);
    plan.output.command = "onrush -o sum.md 'http://h/?a|b'".to_owned();
    let mut outcome = outcome(1..=1_000);
    outcome.totals.statuses.clear();
    (0..1_000).for_each(|_| outcome.totals.statuses.record(404));
    (0..1_000).for_each(|_| outcome.totals.ledger.record(Phase::Status, Cause::Status(404), 0, Vec::new));
    outcome.totals.counters.unsuccessful = 1_000;
    let mut document = Document::judged(&plan, &outcome);
    document.plan.url = "http://h/?a|b\x1b".to_owned();
    let text = export::render_output(OutputKind::Markdown, &document).unwrap();
    let verdict = document.verdict.as_ref().unwrap();
    let expected = format!(
        "`onrush -o sum.md 'http://h/?a|b'`

| | |
|---|---|
| URL | http://h/?a\\|b\\u{{1b}} |
| verdict | {verdict} |
| requests | 1,000 in 1.00s |
| rate | 1,000 requests/s, 0.00B/s |
| latency | p50 501.12us, p99 0.99ms, max 1.00ms |
| statuses | 404: 1,000 |
| errors | 100 % of 1,000 requests (1,000 with a late or unsuccessful response) |
| socket errors | read 1 |

* "
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(verdict.to_string().contains("100 % of the responses were 404"), "{text}");
    // A gate, a percentile that was asked for, and no response.
    let term = Judged { term: "p99>1ms".to_owned(), was: Some("2.00ms".to_owned()), holds: true, undecided: false };
    document.gates = vec![Gate::of(vec![term])];
    document.plan.percentiles = Some(vec!["99.9".parse().unwrap()]);
    let text = export::render_output(OutputKind::Markdown, &document).unwrap();
    assert!(text.contains("| latency | p99.9 1.00ms, max 1.00ms |\n"), "{text}");
    assert!(text.contains("| broken gates | p99>1ms: it was 2.00ms |\n"), "{text}");
    document.gates[0].broken = false;
    document.command = "onrush --label 'a=``'".to_owned();
    let text = export::render_output(OutputKind::Markdown, &document).unwrap();
    assert!(text.contains("| broken gates | none |\n"), "{text}");
    assert!(text.starts_with("``` onrush --label 'a=``' ```\n\n"), "{text}");
    let nothing = export::render_output(OutputKind::Markdown, &self::document([])).unwrap();
    assert!(
        nothing.contains("| errors | none |\n| socket errors | read 1 |\n") && !nothing.contains("| latency"),
        "{nothing}"
    );
}

#[test]
fn unavailability_is_in_markdown_and_in_each_row() {
    let mut document = scheduled([100, 300]);
    let row = document.timeline[0].clone();
    document.timeline = [0.0, 1.0, 2.0].map(|start_s| Row { start_s, ..row.clone() }).to_vec();
    let spans = vec![Span { start_s: 0.25, length_s: 0.25 }, Span { start_s: 0.75, length_s: 0.5 }];
    let unavailable = Unavailable { share: 0.25, longer_than_s: 0.2, due: Some(9), spans, times: Vec::new() };
    document.open_loop.as_mut().unwrap().unavailable = Some(unavailable);
    let csv = export::render_output(onrush_plan::OutputKind::Csv, &document).unwrap();
    let last: Vec<&str> = csv.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
    assert_eq!(last, ["unavailable_s", "0.5", "0.25", "0"]);
    let markdown = export::render_output(onrush_plan::OutputKind::Markdown, &document).unwrap();
    assert!(markdown.contains("\n| unavailable | 25 % of the time |\n"), "{markdown}");
}

#[test]
fn markdown_shows_the_bounds_of_a_latency_where_they_differ() {
    let mut document = scheduled((1..=98).map(|ms| ms * 1_000));
    let row = |document: &Document| {
        let text = export::render_output(onrush_plan::OutputKind::Markdown, document).unwrap();
        text.lines().find(|line| line.starts_with("| latency since due")).unwrap().to_owned()
    };
    // One request is in flight, the other was never sent.
    let some = row(&document);
    let words = "p50 ≥49.99ms, max 99.00ms (2 requests without a response)";
    assert!(some.contains(words), "{some}");
    let open_loop = document.open_loop.as_mut().unwrap();
    (open_loop.censored, open_loop.open, open_loop.unsteady) = (None, None, false);
    let none = row(&document);
    assert!(none.contains(", max 99.00ms |") && !none.contains('≥'), "{none}");
}
