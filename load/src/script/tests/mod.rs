//! Tests with scripts as users write them, each loaded from a file.

mod calls;
mod recursion;
mod results;
mod start;
mod values;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::path::PathBuf;
use std::thread;

use mlua::FromLua;
use onrush_engine::{Callbacks, Response, ScriptFailure, Source};
use onrush_proto::Request;
use onrush_stats::Distribution;
use tempfile::TempDir;

use super::*;

const ADDRESSES: [SocketAddr; 2] = [
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080)),
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::LOCALHOST, 8080, 0, 0)),
];

/// A folder with a script, its path, and its contents.
struct Folder {
    folder: TempDir,
    path: PathBuf,
    source: String,
}

impl Folder {
    fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = source.replace("$DIR", folder.path().to_str().unwrap());
        Self { path: folder.path().join("test.lua"), folder, source }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load<'a>(&'a self, change: impl FnOnce(&mut ScriptSetting<'a>)) -> anyhow::Result<LoadedScript> {
        let mut setting = ScriptSetting {
            path: &self.path,
            file: self.source.as_bytes(),
            args: &[],
            url: "http://localhost:8080/p?q",
            scheme: "http",
            host: "localhost",
            port: Some("8080"),
            method: "GET",
            target: "/p?q",
            headers: &[],
            body: None,
            proxy: None,
            addresses: &ADDRESSES,
            listener: Arc::new(|line| eprint!("{}", String::from_utf8_lossy(line))),
            threads: 2,
            seed: 7,
            is_compat: false,
            is_wrk2: false,
        };
        change(&mut setting);
        LoadedScript::load(&setting, ScriptPhase::default())
    }
}

fn load_script(source: &str) -> LoadedScript {
    Folder::new(source).load(|_| ()).unwrap()
}

/// Error for a rejected script, without the name of its folder.
fn load_error(source: &str) -> String {
    let folder = Folder::new(source);
    let error = folder.load(|_| ()).err().expect("the script should be refused");
    format!("{error:#}").replace(&format!("{}/", folder.folder.path().display()), "")
}

/// A global of thread `index`, counted from 0.
fn thread_global<T: FromLua>(script: &LoadedScript, index: usize, name: &str) -> T {
    lock_holder(&script.threads[index]).as_ref().unwrap().lua().globals().get(name).unwrap()
}

fn main_global<T: FromLua>(script: &LoadedScript, name: &str) -> T {
    script.main.lua().globals().get(name).unwrap()
}

fn prebuilt_text(source: &str) -> String {
    String::from_utf8(load_script(source).prebuilt_requests(0).expect("the script has no request()").to_vec()).unwrap()
}

/// The script of one thread, called as by a worker.
struct Called {
    source: Option<Box<dyn Source>>,
    callbacks: Callbacks,
}

impl Called {
    fn from_callbacks(make: MakeCallbacks) -> Self {
        let (source, callbacks) = make();
        Self { source, callbacks }
    }

    fn next_batch(&mut self) -> Result<Vec<Request>, String> {
        let mut batch = Vec::new();
        let source = self.source.as_mut().expect("it has a request()");
        source.next_batch(&mut batch).map(|_| batch).map_err(|failure| failure.to_string())
    }

    fn pass_response(&mut self, response: &Response<'_>) -> Result<(), ScriptFailure> {
        (self.callbacks.response.as_mut().expect("it has a response()").call)(response)
    }

    fn delay_ns(&mut self) -> Result<Option<u64>, ScriptFailure> {
        self.callbacks.think_ns.as_mut().expect("it has a delay()")()
    }

    fn is_stopped(&self) -> bool {
        self.callbacks.is_stopped.as_ref().is_some_and(|ask| ask())
    }

    fn address(&self) -> Option<SocketAddr> {
        self.callbacks.address.as_ref().and_then(|ask| ask())
    }

    fn spent_ns(&self) -> u64 {
        self.callbacks.spent_ns.as_ref().map_or(0, |ask| ask())
    }
}

fn first_thread(script: &mut LoadedScript) -> Called {
    Called::from_callbacks(script.take_callbacks().swap_remove(0))
}

/// Bytes of a request written by the script.
fn request_bytes(request: &Request) -> &[u8] {
    match request {
        Request::Http1(wire) => wire.bytes(),
        Request::Parts(_) => unreachable!("scripts write HTTP/1"),
    }
}

const RESPONSE: Response<'_> = Response {
    status: 201,
    head: b"HTTP/1.1 201 Created\r\nServer: a\r\nX-Two: 1\r\nX-Two: 2\r\nEmpty:\r\n\r\n",
    trailers: b"X-Trail: t\r\n\r\n",
    body: b"hello\0world",
    latency_ns: 1_500,
    remark: None,
};

fn summary(latency: StatisticsView) -> ScriptSummary {
    ScriptSummary {
        duration_us: 1_000_123,
        requests: 7,
        bytes: 51,
        errors: Errors { connect: 1, read: 2, write: 3, timeout: 4, status: 5, check: 0, abandoned: 0 },
        ledger: vec![LedgerRow { phase: "connect".into(), cause: "refused".into(), count: 9 }],
        latency,
        rates: StatisticsView::new(5.0, 0.0, [(5.0, 2)]),
        is_native: false,
    }
}

fn latencies() -> StatisticsView {
    StatisticsView::new(20.0, 10.0, [(10.0, 3), (20.0, 4), (40.0, 3)])
}
