//! What is seen of a target on this machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use onrush::cli::{self, Invocation};
use onrush::run::{Interrupt, Observer, Outcome, Unseen};
use onrush::session;
use onrush::verdict::Target;

use crate::harness::{Context, Scratch, cases};
use crate::servers::Server;

cases! {
    the_time_of_a_busy_target_and_its_busiest_thread_is_seen needs "python3";
    all_processes_of_a_target_are_counted needs "nginx";
    a_child_that_takes_over_is_counted needs "python3";
    what_a_target_did_in_the_warm_up_does_not_count needs "python3";
    a_listening_queue_that_overflows_is_seen needs "python3";
    a_target_that_dies_is_seen needs "python3";
    the_target_at_a_unix_socket_is_seen needs "python3";
    where_nothing_listens_is_no_target;
}

/// The beginning of the scripts: a listening socket, a function that uses seconds of processor time, and one that
/// responds.
const BEGINNING: &str = "
import os, socket, sys, threading, time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def listen(backlog):
    listener = socket.create_server(('127.0.0.1', 0), backlog=backlog)
    print('127.0.0.1:%d' % listener.getsockname()[1], flush=True)
    return listener
def answer(peer):
    try:
        while peer.recv(65536): peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
    except ConnectionError: pass
def serve(listener):
    while True: threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()
";

/// A server written in Python.
pub struct Python {
    child: Child,
    address: String,
}

impl Python {
    pub fn start(script: &str) -> Self {
        let mut command = Command::new("python3");
        command.arg("-c").arg(format!("{BEGINNING}{script}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 starts");
        let mut address = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        output.read_line(&mut address).expect("it says where it listens");
        Self { child, address: address.trim().to_owned() }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Its processor time so far, in seconds.
    fn cpu_s(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        [fields[12], fields[13]].map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).iter().sum()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Silent;

impl Observer for Silent {}

/// Runs in this process; the target is another one.
fn run(context: &Context, words: &str) -> Outcome {
    let words = format!("onrush --io {} {words}", context.backend);
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into)) else { panic!("{words}") };
    session::run(&plan, &Interrupt::default(), &mut Silent).unwrap().outcome
}

/// The same, if the target was seen.
fn target(context: &Context, words: &str) -> Target {
    let seen = run(context, words).seen.expect("the target was watched");
    let why = format!("{words}: {:?}", seen.unseen);
    seen.target.expect(&why)
}

fn the_time_of_a_busy_target_and_its_busiest_thread_is_seen(context: &Context) {
    // One thread that works without requests, and others that respond.
    let server = Python::start("threading.Thread(target=busy, args=(60,)).start()\nserve(listen(64))");
    let before_s = server.cpu_s();
    let outcome = run(context, &format!("-c4 -t1 -d2s {}", server.url()));
    let (took_s, elapsed_s) = (server.cpu_s() - before_s, outcome.elapsed.as_secs_f64());
    let target = outcome.seen.unwrap().target.unwrap();
    let used_s = target.cpus_used * elapsed_s;
    assert!(took_s > 0.2 && used_s > 0.8 * took_s - 0.05 && used_s < took_s + 0.05, "{took_s}: {target:?}");
    assert!(target.name.starts_with("python") && !target.ended && target.processes == 1, "{target:?}");
    assert!(target.busiest_thread > 0.3 * target.cpus_used && target.busiest_thread < target.cpus_used, "{target:?}");
    assert!(target.cpus_allowed >= 1.0 && target.cpus_used < target.cpus_allowed + 0.1, "{target:?}");
    let listening = target.listening.unwrap();
    assert_eq!((listening.limit, listening.overflows.is_some()), (64, true), "{target:?}");
    let network = target.network.unwrap();
    assert!(network.readings >= 4 && network.rtt_us > 0.0 && network.retransmitted == 0.0, "{target:?}");
    assert!(network.busy.unwrap() > 0.0 && network.out_of_order == Some(0.0), "{target:?}");
}

fn all_processes_of_a_target_are_counted(context: &Context) {
    let server = Server::nginx_workers(2);
    let target = target(context, &format!("-c4 -t1 -d1s {}", server.url("/hello")));
    assert_eq!((target.name.as_str(), target.processes), ("nginx", 3), "{target:?}");
    assert!(target.cpus_used >= target.busiest_thread && target.busiest_thread > 0.0, "{target:?}");
}

fn a_child_that_takes_over_is_counted(context: &Context) {
    let script = "
listener = listen(64)
peer = listener.accept()[0]
time.sleep(0.5)
if os.fork() > 0: os._exit(0)
answer(peer)";
    let server = Python::start(script);
    let target = target(context, &format!("-c1 -t1 -d3s {}", server.url()));
    assert!(!target.ended && target.cpus_used > 0.0, "{target:?}");
}

fn what_a_target_did_in_the_warm_up_does_not_count(context: &Context) {
    let server = Python::start("listener = listen(64)\npeer = listener.accept()[0]\nbusy(0.5)\nanswer(peer)");
    // Half a second of work before the first response; after that, a request per second.
    let target = target(context, &format!("-c1 -t1 -R 1 --warmup 2s -d1s {}", server.url()));
    assert!(target.cpus_used < 0.2, "{target:?}");
}

fn a_listening_queue_that_overflows_is_seen(context: &Context) {
    let server = Python::start("listener = listen(1)\nsys.stdin.read()");
    let target = target(context, &format!("-c8 -t1 -d1s {}", server.url()));
    let listening = target.listening.unwrap();
    // The kernel lets one more connection wait than the backlog.
    assert_eq!((listening.waiting_max, listening.limit), (2, 1), "{target:?}");
    assert!(listening.overflows.unwrap() >= 1, "{target:?}");
}

fn a_target_that_dies_is_seen(context: &Context) {
    let server = Python::start("listener = listen(64)\nlistener.accept()\ntime.sleep(0.7)\nos._exit(1)");
    let target = target(context, &format!("-c2 -t1 -d2s {}", server.url()));
    assert!(target.ended && target.processes == 1, "{target:?}");
}

fn the_target_at_a_unix_socket_is_seen(context: &Context) {
    let scratch = Scratch::new("sight");
    let path = scratch.path().join("socket");
    let script = format!(
        "listener = socket.socket(socket.AF_UNIX)\nlistener.bind('{}')\nlistener.listen()\nprint(flush=True)\nserve(listener)",
        path.display()
    );
    let _server = Python::start(&script);
    let target = target(context, &format!("-c2 -t1 -d1s --unix {} http://host/", path.display()));
    assert!(target.name.starts_with("python") && target.cpus_used > 0.0 && target.listening.is_none(), "{target:?}");
}

fn where_nothing_listens_is_no_target(context: &Context) {
    let refusing = crate::peers::Refusing::new();
    let seen = run(context, &format!("-c1 -t1 -d1s http://{}/", refusing.address)).seen.unwrap();
    assert_eq!((seen.target, &seen.unseen[..1]), (None, &[Unseen::NoListener][..]));
}
