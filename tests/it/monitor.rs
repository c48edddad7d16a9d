//! Observations of a target on this machine. `load/src/run/monitor/poller.rs` tests each step, and `machine.rs` whole
//! runs on a quiet machine: the poller takes so little processor time that its schedule is unknown on a busy machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use onrush_load::cli::{self, Commands, Invocation};
use onrush_load::run::{Interrupt, Outcome, Unobserved};
use onrush_load::session;

use crate::harness::{Context, cases};

cases! {
    missing_listeners_mean_no_target (Once);
}

/// Start of the scripts: `busy` uses seconds of processor time, `listen` makes a socket, `serve` responds at once or
/// after a pause, and `afterwards` responds after five milliseconds and does something else some seconds after the
/// first connection.
const BEGINNING: &str = "
import os, socket, sys, threading, time
def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def listen(backlog):
    listener = socket.create_server(('127.0.0.1', 0), backlog=backlog)
    print('127.0.0.1:%d' % listener.getsockname()[1], flush=True)
    return listener
def answer(peer, pause=0):
    try:
        while peer.recv(65536):
            time.sleep(pause)
            peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
    except ConnectionError: pass
def serve(listener, pause=0):
    while True: threading.Thread(target=answer, args=(listener.accept()[0], pause), daemon=True).start()
def afterwards(listener, seconds, task):
    def later():
        time.sleep(seconds)
        task()
    first = listener.accept()[0]
    threading.Thread(target=later).start()
    threading.Thread(target=answer, args=(first, 0.005), daemon=True).start()
    serve(listener, 0.005)
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

    /// Processor time so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
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

/// Runs in this process; the target is another one.
pub fn run(context: &Context, words: &str) -> Outcome {
    let words = format!("onrush --io {} {words}", context.backend);
    let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into), &Commands::NONE) else {
        panic!("{words}")
    };
    session::run(&plan, &Interrupt::default(), &mut []).unwrap().outcome
}

fn missing_listeners_mean_no_target(context: &Context) {
    let refusing = crate::peers::RefusingPort::new();
    let seen = run(context, &format!("-c1 -t1 -d300ms http://{}/", refusing.address)).seen.unwrap();
    assert_eq!((seen.target, &seen.unseen[..1]), (None, &[Unobserved::NoListener][..]));
}
