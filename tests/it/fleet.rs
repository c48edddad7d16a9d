//! Cost of many machines, and precision of their common start. These are measurements, as in `machine`; in `make test`,
//! `machines` shows that the feature works.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onrush_load::run::Interrupt;
use onrush_load::run::machines::message::{CoordinatorMessage, Done, RowSums, WorkerMessage, WorkerSetup};
use onrush_load::run::machines::worker_client::{Joining, WorkerClient, WorkerCommand};
use onrush_load::token::Token;
use onrush_stats::{Cause, Phase, TlsFailure, Totals};

use crate::harness::{Context, Scratch, cases, finish, target, url};
use crate::machines::Coordinator;
use crate::results::number;

cases! {
    thousand_machines_need_one_coordinator_processor (Once);
    workers_cost_no_more_than_runs;
    machines_start_simultaneously needs "python3", "unshare -rnpf --mount-proc ip link add one type veth peer name other";
    busy_machines_are_not_lost (Once);
}

/// A row of a second with many different values.
fn full_row() -> Totals {
    let mut row = Totals::default();
    for value in 1..2_000 {
        row.latency.record(value * 7_919);
        row.phases.get_or_insert_default().ttfb.record(value * 900);
        row.counters.started += 1;
        row.counters.completed += 1;
    }
    row.statuses.record(200);
    row.ledger.record(Phase::Connect, Cause::Tls(TlsFailure::Alert(7)), 5, || b"x".to_vec());
    row
}

/// A worker that measures nothing and reports such rows.
fn pretend(member: &WorkerClient, interrupt: &Interrupt, row: &Totals, rows: u64) {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut sum = RowSums::default();
    loop {
        match member.next_command(interrupt) {
            Some(WorkerCommand::Order(CoordinatorMessage::Prepare { row_ns, .. })) => {
                assert_eq!(row_ns, SECOND_NS);
                let (backend, threads) = (("epoll".to_owned(), String::new()), 1);
                let addresses = vec!["127.0.0.1:1".parse().expect("an address")];
                member.send_report(WorkerMessage::Prepared(WorkerSetup {
                    backend,
                    threads,
                    addresses,
                    ..WorkerSetup::default()
                }));
            }
            Some(WorkerCommand::Order(CoordinatorMessage::Start(at_ns))) => {
                let start = member.origin + Duration::from_nanos(at_ns);
                for number in 0..rows {
                    let due = start + Duration::from_secs(number + 1);
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    let from_ns = number * SECOND_NS;
                    let totals = Totals { from_ns, until_ns: from_ns + SECOND_NS, ..row.clone() };
                    sum.add_row(&totals);
                    member.send_report(WorkerMessage::Row { number, totals: Box::new(totals) });
                }
                member.send_report(WorkerMessage::Done(Box::new(Done {
                    ends: vec![None],
                    elapsed_ns: rows * SECOND_NS,
                    batch: 1,
                    sum,
                    ..Done::default()
                })));
            }
            Some(WorkerCommand::Order(CoordinatorMessage::Dismiss) | WorkerCommand::Lost(_)) | None => return,
            Some(WorkerCommand::Order(_)) => {}
        }
    }
}

fn thousand_machines_need_one_coordinator_processor(context: &Context) {
    const MACHINES: u32 = 1_000;
    const SECONDS: u64 = 20;
    let server = target();
    let words = format!("--machines {MACHINES} -t1 -c{MACHINES} -d{SECONDS}s");
    let mut coordinator = Coordinator::start(context.onrush(), "fleet", &words, &url(&server, "/"));
    let token = Token::read(&coordinator.token).expect("it is made");
    let (interrupt, row) = (Interrupt::default(), full_row());
    // Every half second: the time, the processor time of the coordinator, and its peak memory.
    let mut seen: Vec<(Instant, f64, u64)> = Vec::new();
    thread::scope(|scope| {
        for index in 0..MACHINES {
            let (token, interrupt, row, address) = (&token, &interrupt, &row, &coordinator.address);
            let work = move || {
                let (name, patience) = (format!("m{index}"), Duration::from_secs(60));
                let joining = Joining {
                    coordinator: address,
                    token,
                    index: Some(index),
                    name: &name,
                    patience,
                    waiting: &|_| (),
                };
                pretend(&joining.join(interrupt).expect("it joins"), interrupt, row, SECONDS);
            };
            thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).expect("a thread");
        }
        while coordinator.child.try_wait().expect("it is a child").is_none() {
            if let Some((spent_s, most_kb)) = cost(coordinator.child.id()) {
                seen.push((Instant::now(), spent_s, most_kb));
            }
            thread::sleep(Duration::from_millis(500));
        }
    });
    let (output, document) = coordinator.end();
    assert_eq!(number(&document, "/requests/completed"), 1_999.0 * f64::from(MACHINES) * SECONDS as f64, "{output:?}");
    assert!(document["machines"].as_array().is_some_and(|machines| machines.iter().all(|it| it["lost"].is_null())));
    let windows = seen.iter().zip(seen.iter().skip(10));
    let share = windows.map(|(from, to)| (to.1 - from.1) / (to.0 - from.0).as_secs_f64()).fold(0.0, f64::max);
    let most_kb = seen.iter().map(|(.., most_kb)| *most_kb).max().unwrap_or_default();
    println!("{MACHINES} machines: {share:.2} processors in the busiest five seconds, {} MB", most_kb / 1_000);
    assert!(share <= 1.0 && most_kb <= 300_000, "{share} processors, {most_kb} kB");
}

/// Processor time of a process in seconds, and its peak memory in kilobytes.
fn cost(pid: u32) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    let ticks = fields[11].parse::<f64>().ok()? + fields[12].parse::<f64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some((ticks / 100.0, most.trim().trim_end_matches(" kB").parse().ok()?))
}

fn workers_cost_no_more_than_runs(context: &Context) {
    const ROUNDS: usize = 15;
    let server = target();
    let words = format!("--io {} -t1 -c20 -n800k", context.backend);
    let alone = || {
        let words = words.split(' ').map(str::to_owned).chain([url(&server, "/")]);
        spent_s(timed(words.collect()))
    };
    let as_worker = || {
        let words = format!("--machines 1 {words}");
        let coordinator = Coordinator::start(context.onrush(), "fleet-cost", &words, &url(&server, "/"));
        let token = coordinator.token.to_string_lossy();
        let words = ["worker", "--quiet", "--coordinator", &coordinator.address, "--token-file", &token];
        let worker = timed(words.map(str::to_owned).to_vec());
        let (output, _) = coordinator.end();
        assert_eq!(output.code, 0, "{output:?}");
        spent_s(worker)
    };
    let mut ratios: Vec<f64> = (0..ROUNDS).map(|_| as_worker() / alone()).collect();
    ratios.sort_by(f64::total_cmp);
    let [low, median, high] = [ROUNDS / 4, ROUNDS / 2, ROUNDS - 1 - ROUNDS / 4].map(|at| ratios[at]);
    println!(
        "the processor time of a worker by that of a run alone [{}]: {median:.3} [{low:.3}-{high:.3}]",
        context.backend
    );
    assert!(median <= 1.02, "{ratios:?}");
}

/// The program with these arguments, in a shell that prints its processor time at the end.
fn timed(words: Vec<String>) -> Child {
    let mut command = Command::new("bash");
    command.args(["-c", "\"$@\" >/dev/null; times", "-", env!("CARGO_BIN_EXE_onrush")]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Processor time of a [`timed`] program, in seconds.
fn spent_s(program: Child) -> f64 {
    let output = finish(program);
    // The last line of the output of `times` is for the shell's children: `0m0.844s 0m1.020s`.
    let line = output.stdout.lines().last().unwrap_or_else(|| panic!("{output:?}"));
    let seconds = |time: &str| time.strip_prefix("0m")?.strip_suffix('s')?.parse::<f64>().ok();
    line.split(' ').map(|time| seconds(time).unwrap_or_else(|| panic!("{output:?}"))).sum()
}

fn machines_start_simultaneously(context: &Context) {
    let scratch = Scratch::new("fleet-start");
    let script = scratch.file("start.sh", IN_NAMESPACES);
    let python = scratch.file("arrivals.py", ARRIVALS);
    let once = |_| -> [u64; 2] {
        let mut command = Command::new("unshare");
        command.args(["-rnpf", "--mount-proc", "--kill-child", "bash"]).arg(&script).arg(env!("CARGO_BIN_EXE_onrush"));
        let output = command.arg(&python).arg(context.backend).current_dir(scratch.path()).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let seen: Vec<[u64; 2]> = (0..9).map(once).collect();
    let [lags_us, firsts_us] = [0, 1].map(|at| {
        let mut all: Vec<u64> = seen.iter().map(|it| it[at]).collect();
        all.sort_unstable();
        all
    });
    println!(
        "two machines are so many microseconds apart [{}]: {lags_us:?}; in their first requests: {firsts_us:?}",
        context.backend
    );
    assert!(lags_us[8] <= 1_000 && firsts_us[8] <= 1_000, "{lags_us:?}, {firsts_us:?}");
}

/// A target and a coordinator in one network namespace, and a worker in each of two others.
const IN_NAMESPACES: &str = r#"set -eu
ip link set lo up
ip link add bridge0 type bridge
ip addr add 10.0.0.1/24 dev bridge0
ip link set bridge0 up
rm -f token; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >token; chmod 600 token
python3 "$2" >arrived &
target=$!
until (: >/dev/tcp/10.0.0.1/8080) 2>/dev/null; do sleep 0.05; done
"$1" --machines 2 --coordinate 10.0.0.1:7070 --token-file token --io "$3" -t1 -c2 -R 2000 -d300ms http://10.0.0.1:8080/ >said 2>&1 &
coordinator=$!
for n in 2 3; do
    unshare -n sh -c 'until ip link show eth0 >/dev/null 2>&1; do sleep 0.01; done
        ip addr add 10.0.0.$2/24 dev eth0; ip link set eth0 up
        exec "$1" worker --coordinator 10.0.0.1:7070 --token-file token --index $(($2 - 2)) >/dev/null 2>&1' - "$1" $n &
    worker=$!
    until [ "$(readlink /proc/$worker/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
    ip link add m$n type veth peer name eth0 netns $worker
    ip link set m$n master bridge0 up
done
wait $coordinator || { cat said >&2; exit 1; }
kill $target
wait $target || true
cat arrived
"#;

/// At its end, prints the lag between the requests of the two clients in microseconds, and the lag of their first
/// requests; the second client starts half a millisecond later. Of the requests due every millisecond, the one with the
/// least delay is used. The kernel timestamps the packets: the server itself may have to wait for a processor.
const ARRIVALS: &str = r#"import select, signal, socket, struct, sys
SO_TIMESTAMPNS = 35
class Client:
    def __init__(self):
        self.requests, self.first, self.least = 0, None, 1 << 63
clients, response = {}, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
def end(*_):
    one, other = clients["10.0.0.2"], clients["10.0.0.3"]
    lag, first = (abs(later - sooner - 500_000) for sooner, later in ((one.least, other.least), (one.first, other.first)))
    print(lag // 1000, first // 1000)
    sys.exit()
signal.signal(signal.SIGTERM, end)
listener = socket.create_server(("0.0.0.0", 8080))
listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
poll, peers = select.epoll(), {}
poll.register(listener, select.EPOLLIN)
while True:
    for fd, _ in poll.poll():
        if fd == listener.fileno():
            peer, address = listener.accept()
            peers[peer.fileno()] = peer, address[0]
            poll.register(peer, select.EPOLLIN)
            continue
        peer, address = peers[fd]
        try:
            data, notes, *_ = peer.recvmsg(65536, 64)
        except ConnectionResetError:
            data = b""
        if not data:
            poll.unregister(fd)
            peer.close()
            del peers[fd]
            continue
        seconds, part = struct.unpack("qq", notes[0][2])
        now = seconds * 1_000_000_000 + part
        client = clients.setdefault(address, Client())
        client.first = client.first or now
        client.least = min(client.least, now - client.requests * 1_000_000)
        client.requests += 1
        peer.send(response)
"#;

fn busy_machines_are_not_lost(context: &Context) {
    let server = target();
    for run in 0..20 {
        let words = "--machines 2 -t2 -c40 -d2s --loss-timeout 1s";
        let coordinator = Coordinator::start(context.onrush(), "fleet-busy", words, &url(&server, "/"));
        let workers = [0, 1].map(|index| coordinator.worker(&format!("--index {index}")));
        let (output, document) = coordinator.end();
        assert_eq!(output.code, 0, "run {run}: {output:?}");
        let machines = document["machines"].as_array().expect("there are two");
        assert!(machines.len() == 2 && machines.iter().all(|machine| machine["lost"].is_null()), "{machines:?}");
        workers.into_iter().for_each(|worker| drop(finish(worker)));
    }
}
