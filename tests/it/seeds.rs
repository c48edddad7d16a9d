//! Command lines published by users of wrk, with hosts and ports replaced by a local target, and with `-d` of 1 second,
//! wrk's minimum, instead of 10 or 30. A repeated line is run once, under either name.

use std::env;

use rustix::process::Signal;

use crate::harness::{
    Context, Onrush, ProgramOutput, Scratch, Served, cases, fetch_target_counts, finish, signal, target, wait_until,
};
use crate::results::{document, number};
use crate::servers::LoggingServer;
use crate::situations::{Class, RunVerdict, ServerWorkers, ServiceKind, Truth, VerdictTable, served_url};

cases! {
    published_tuning_command_lines_run (Once);
    published_400_connection_command_lines_run;
    soft_file_limits_are_raised;
    published_command_lines_get_a_verdict (Once) needs "nginx", "python3";
}

/// Runs a command line. `shown`: the report's second line.
fn assert_reports(program: Onrush, words: &str, url: &str, shown: &str) {
    let is_compat = program.is_compat();
    let output = program.words(words).word(url).run();
    assert_eq!(output.code, 0, "{words} {url}: {output:?}");
    assert_opens(&output, url, shown);
    match words.contains("--latency") {
        true if is_compat => output.assert_percentiles(),
        true => output.assert_native_percentiles(),
        false => {}
    }
    assert!(output.requests() > 0 && output.socket_errors("connect") == 0, "{words} {url}: {output:?}");
}

fn assert_opens(output: &ProgramOutput, url: &str, shown: &str) {
    output.assert_standard();
    assert!(output.stdout.starts_with(&format!("Running 1s test @ {url}\n  {shown}\n")), "{output:?}");
}

fn published_tuning_command_lines_run(context: &Context) {
    let server = target();
    let bare = format!("http://{}", server.address());
    let with_path = format!("{bare}/");
    let [native, wrk] = context.both();
    assert_reports(native, "-c 1 -t 1 --latency -d 1", &with_path, "1 threads and 1 connections");
    assert_reports(wrk, "-c 1 -t 1 --latency -d 1", &bare, "1 threads and 1 connections");
    let [native, wrk] = context.both();
    assert_reports(wrk, "-c 2 -t 2 --latency -d 1", &bare, "2 threads and 2 connections");
    assert_reports(native, "-c 4 -t 4 --latency -d 1", &bare, "4 threads and 4 connections");

    let [native, wrk] = context.both().map(|program| program.word("-h").run_plain());
    assert_eq!((native.code, wrk.code), (0, 1));
    for output in [native, wrk] {
        assert!(output.stdout.contains("-c, --connections") && output.stderr.is_empty(), "{output:?}");
    }
}

fn published_400_connection_command_lines_run(context: &Context) {
    let server = Served::start();
    // Similar command lines had other paths. The shell cut this one at its first semicolon.
    for (program, path) in context.both().into_iter().zip(["/test", "/asd;lfkwk;lef"]) {
        let url = format!("http://localhost:{}{path}", server.address.port());
        assert_reports(program, "-t4 -c400 -d1s", &url, "4 threads and 400 connections");
    }
}

/// wrk opened 1,019 connections, and called the others errors.
fn soft_file_limits_are_raised(context: &Context) {
    for compat in [false, true] {
        let server = Served::start();
        let url = format!("http://{}/delay/100", server.address);
        let program = context.limited("-Sn 1024");
        let program = if compat { program.compat().word("--notes") } else { program };
        let program = program.word("--latency").word("-H").word("Host: www.example.com");
        // Once all are open, and one has had a response, a signal ends the run.
        let program = program.words("-c 2048 -d 50 -t 2 --io").word(context.backend);
        let child = program.word(&url).spawn();
        let mut asked = 0;
        wait_until(|| {
            let counts = fetch_target_counts(server.address);
            asked += 1;
            counts.connections - (asked - 1) >= 2048 + u64::from(compat) && counts.requests > 2048 + u64::from(compat)
        });
        signal(&child, Signal::INT);
        let output = finish(child);
        assert_eq!(output.code, 0, "{output:?}");
        output.assert_standard();
        let opening = format!("Running 50s test @ {url}\n  2 threads and 2048 connections\n");
        assert!(output.stdout.starts_with(&opening), "{output:?}");
        if compat {
            output.assert_percentiles()
        } else {
            output.assert_native_percentiles()
        }
        assert_eq!(output.socket_errors("connect"), 0, "{output:?}");
        assert!(!output.stderr.contains("were established"), "{output:?}");
        assert_eq!(fetch_target_counts(server.address).connections - asked, 2048 + u64::from(compat), "{output:?}");
    }
}

/// A published command line, on an imitation of a server.
#[derive(Clone, Copy)]
struct Published {
    words: &'static str,
    seconds: u32,
    /// The rate of its target, if the machine is not the limit.
    per_s: f64,
    imitation: Imitation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Imitation {
    OneWorker,
    /// This many workers.
    Pool(u32),
    /// nginx in front of this many workers, with a connection to them per request.
    Proxy(u32),
    /// This many workers, at a distance with this round-trip time in milliseconds.
    Far(u32, u32),
    /// As fast as the machine.
    Nginx,
    /// nginx in front of nginx.
    NginxProxy,
}

use Imitation::{Far, Nginx, NginxProxy, OneWorker, Pool, Proxy};

const ONE: &str = "-c 1 -t 1 --latency";
const TWO: &str = "-c 2 -t 2 --latency";
const FOUR: &str = "-c 4 -t 4 --latency";
const SOME: &str = "-t8 -c96";
const HUNDRED: &str = "-t2 -c100";
const MANY: &str = "-t12 -c400";
const MANY_ON_FOUR: &str = "-t4 -c400";
const MOST: &str = "--latency -H Host:www.example.com -c 2048 -t 2";

/// As published, with their rates.
const PUBLISHED: [Published; 16] = [
    published(ONE, 10, 49_700.0, Nginx),
    published(TWO, 10, 81_620.0, Nginx),
    published(FOUR, 10, 85_894.0, Nginx),
    published(HUNDRED, 3, 32_394.0, Nginx),
    published(MOST, 10, 32_343.0, Nginx),
    published(MOST, 30, 11_951.0, NginxProxy),
    published(MANY, 10, 753.0, Far(8, 165)),
    published(MANY, 30, 753.0, Far(8, 165)),
    published(SOME, 10, 753.0, Far(8, 165)),
    published(MANY, 10, 2_387.0, Pool(8)),
    published(MANY, 10, 1_625.0, Pool(8)),
    published(SOME, 10, 2_304.0, Pool(8)),
    published(SOME, 30, 1_626.0, Pool(8)),
    published(MANY_ON_FOUR, 30, 443.0, OneWorker),
    published(MANY_ON_FOUR, 10, 938.0, OneWorker),
    published(MANY_ON_FOUR, 10, 1_897.0, OneWorker),
];

/// Command lines on other servers, with rates that their connections suggest.
const ELSEWHERE: [Published; 26] = [
    published(ONE, 10, 500.0, OneWorker),
    published(ONE, 10, 4_000.0, Pool(8)),
    published(ONE, 10, 4_000.0, Proxy(8)),
    published(TWO, 10, 500.0, OneWorker),
    published(TWO, 10, 4_000.0, Pool(8)),
    published(TWO, 10, 4_000.0, Proxy(8)),
    published(FOUR, 10, 500.0, OneWorker),
    published(FOUR, 10, 4_000.0, Pool(8)),
    published(FOUR, 10, 4_000.0, Proxy(8)),
    published(FOUR, 10, 4_000.0, Far(8, 10)),
    published(SOME, 10, 500.0, OneWorker),
    published(SOME, 10, 1_500.0, Proxy(8)),
    published(HUNDRED, 10, 500.0, OneWorker),
    published(HUNDRED, 10, 2_000.0, Pool(8)),
    published(HUNDRED, 10, 1_500.0, Proxy(8)),
    published(HUNDRED, 10, 753.0, Far(8, 165)),
    published(MANY, 10, 1_500.0, OneWorker),
    published(MANY, 10, 1_500.0, Proxy(8)),
    published(MANY_ON_FOUR, 10, 500.0, OneWorker),
    published(MANY_ON_FOUR, 10, 2_000.0, Pool(8)),
    published(MANY_ON_FOUR, 10, 1_500.0, Proxy(8)),
    published(MANY_ON_FOUR, 10, 753.0, Far(8, 165)),
    published(MOST, 10, 2_000.0, OneWorker),
    published(MOST, 10, 2_500.0, Pool(8)),
    published(MOST, 10, 2_000.0, Proxy(8)),
    published(MOST, 10, 2_500.0, Far(8, 40)),
];

/// These are run in every test run: a probe follows automatically from 10 seconds on.
const SHORT: [Published; 2] = [published(MANY_ON_FOUR, 10, 938.0, OneWorker), published(SOME, 10, 753.0, Far(8, 165))];

const fn published(words: &'static str, seconds: u32, per_s: f64, imitation: Imitation) -> Published {
    Published { words, seconds, per_s, imitation }
}

/// A script that forwards everything after half of a round-trip time.
const RELAY: &str = "
import asyncio, sys
async def pump(reader, writer):
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(65536): loop.call_later(DELAY_S, writer.write, data)
    except OSError: pass
    loop.call_later(DELAY_S, writer.close)
async def serve(reader, writer):
    theirs, ours = await asyncio.open_connection('127.0.0.1', PORT)
    await asyncio.gather(pump(reader, ours), pump(theirs, writer))
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
";

/// The servers for a command line, and the URL of its target.
struct Imitated {
    _servers: Vec<LoggingServer>,
    base: String,
    /// The workers that limit the rate; `None` if the machine is the limit.
    workers: Option<ServerWorkers>,
}

impl Imitated {
    fn start(served: &Served, Published { per_s, imitation, .. }: Published) -> Self {
        let workers = |workers: u32| {
            Some(ServerWorkers { workers, ms: f64::from(workers) / per_s * 1e3, service: ServiceKind::LogNormal(0.4) })
        };
        let through = |location: &str, to: &str| {
            LoggingServer::nginx_with("", &format!("location /{location} {{ proxy_pass http://{to}; }}"), |_| {})
        };
        let (servers, base, workers) = match imitation {
            OneWorker => (vec![], served_url(served, ""), workers(1)),
            Pool(count) => (vec![], served_url(served, ""), workers(count)),
            Proxy(count) => {
                let proxy = through("pool", &served.address.to_string());
                let base = proxy.url("");
                (vec![proxy], base, workers(count))
            }
            Far(count, rtt_ms) => {
                let delay_s = f64::from(rtt_ms) / 2e3;
                let script = RELAY.replace("DELAY_S", &delay_s.to_string());
                let relay = LoggingServer::python_script(&script.replace("PORT", &served.address.port().to_string()));
                let base = relay.url("");
                (vec![relay], base, workers(count))
            }
            Nginx => {
                let nginx = LoggingServer::nginx_workers(2);
                let base = nginx.url("/hello");
                (vec![nginx], base, None)
            }
            NginxProxy => {
                let nginx = LoggingServer::nginx(1_000);
                let proxy = through("through", &format!("{}/hello", nginx.address()));
                let base = proxy.url("/through");
                (vec![nginx, proxy], base, None)
            }
        };
        Self { _servers: servers, base, workers }
    }

    fn url(&self) -> String {
        format!("{}{}", self.base, self.workers.map_or(String::new(), ServerWorkers::path))
    }

    /// The rates with these numbers of requests in flight. Each request takes as long as a single one until all workers
    /// are busy.
    fn rates(&self, context: &Context, numbers: [u32; 2]) -> Option<[f64; 2]> {
        let constant = ServerWorkers { service: ServiceKind::Constant, ..self.workers? };
        let url = format!("{}{}", self.base, constant.path());
        let document =
            document(context.onrush().words("-t1 -c1 --probe off -d500ms").word(url), &Scratch::new("published")).1;
        let single_per_s = 1e6 / number(&document, "/evidence/latency/mean_us");
        Some(numbers.map(|n| (f64::from(n) * single_per_s).min(constant.per_s(u32::MAX))))
    }
}

fn value(words: &str, option: &str) -> u32 {
    let at = words.find(option).expect("it is there") + option.len();
    words[at..].split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

/// Judges onrush's verdict on a published command line, run as users would run it. Also returns a row to print.
fn verdict_of(context: &Context, published: Published) -> (Class, String) {
    let Published { words, seconds, imitation, .. } = published;
    let served = Served::start();
    let imitated = Imitated::start(&served, published);
    let (c, threads, url) = (value(words, "-c"), value(words, "-t"), imitated.url());
    let judged = RunVerdict::from_program(context.onrush().words(&format!("{words} -d{seconds}s")).word(&url));
    let other = judged.compared.map_or(if c == 1 { 2 } else { c / 2 }, |[_, other]| other);
    let numbers = [c, other];
    let known = [(); 3].map(|()| imitated.rates(context, numbers));
    // A busy proxy may take longer or shorter over one request than over several.
    let is_as_known = |[c_per_s, _]: &[f64; 2]| (judged.per_s / c_per_s - 1.0).abs() <= 0.1;
    let truth = match known {
        [Some(one), Some(two), Some(three)] if is_as_known(&two) => Truth::computed(numbers, [one, two, three]),
        _ => Truth::measured(context, &url, threads, numbers),
    };
    let most_per_s = known[0].map_or(f64::INFINITY, |[c_per_s, _]| c_per_s);
    let class = judged.is_machine(most_per_s).unwrap_or_else(|| truth.judge(&judged.limited_by));
    let RunVerdict { per_s, sentence, .. } = &judged;
    (class, format!("{imitation:?}: {words} -d{seconds}s {url}: {per_s:.0}/s, {truth}: {sentence}"))
}

/// Each is decided, unless other tests run in parallel. With `CHECK_MACHINE`, all command lines, on all kinds of
/// servers.
fn published_command_lines_get_a_verdict(context: &Context) {
    let is_whole = env::var_os("CHECK_MACHINE").is_some();
    let all: Vec<Published> = if is_whole { PUBLISHED.into_iter().chain(ELSEWHERE).collect() } else { SHORT.to_vec() };
    let mut table = VerdictTable::default();
    for published in all {
        let (class, row) = verdict_of(context, published);
        // Other tests may have taken the processors.
        let is_taken = !is_whole && row.contains(": generator_cpu: ");
        let class = if is_taken { Class::Machine } else { class };
        println!("{class:?} {row}");
        table.add(row.split([':', '(']).next().unwrap_or_default(), class);
    }
    table.print();
    assert_eq!(table.wrong(), 0, "a verdict is confidently wrong");
    assert!(!is_whole || table.undecided() == 0, "some are not decided");
}
