//! The work of a row: the requests that a generator sends, their target, and a simulation of the target.

use std::path::Path;
use std::{fs, io};

/// Path of onrush's result file, from the root of the repository.
pub const RESULT: &str = "target/bench/result.json";
/// A file of 1 MiB, written before the first round, for [`BenchWork::uploads`].
pub const UPLOADED: &str = "target/bench/uploaded";
/// A list of 10,000 requests, written before the first round.
pub const LIST: &str = "target/bench/list.txt";
/// This list, with 200 names.
pub const NAMED_LIST: &str = "target/bench/named.txt";

/// A file of 10,000 rows for placeholders, written before the first round.
pub const USERS: &str = "target/bench/users.csv";

/// Writes the files that the rows' options name.
///
/// # Errors
///
/// If a file cannot be written.
pub fn write_files(root: &Path) -> io::Result<()> {
    let lines = |name: fn(u32) -> String| -> String {
        (0..10_000).map(|number| format!("/item/{number}?page={}{}\n", number % 7, name(number))).collect()
    };
    fs::write(root.join(UPLOADED), "x".repeat(1 << 20))?;
    let users: String = (0..10_000).map(|number| format!("{},user {number}\n", 100_000 + number)).collect();
    fs::write(root.join(USERS), format!("id,name\n{users}"))?;
    fs::write(root.join(LIST), lines(|_| String::new()))?;
    fs::write(root.join(NAMED_LIST), lines(|number| format!(" name=item-{}", number % 200)))
}

/// Work of a generator.
#[derive(Clone, Copy, Debug)]
pub struct BenchWork {
    pub target: BenchTarget,
    /// The path that is requested.
    pub path: &'static str,
    /// Further options of onrush and wrk, such as a script, or of a bare loop. File paths are relative to the root of
    /// the repository.
    pub options: &'static [&'static str],
    /// The target as a scenario of `--io sim:FILE`. By default, a response is short except for its body. `None` if the
    /// target cannot be simulated.
    pub scenario: Option<&'static str>,
    /// Length of the bodies of responses, or of uploads.
    pub body_bytes: usize,
    /// True if each request has the body [`UPLOADED`].
    pub uploads: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// Connections of all threads.
    pub connections: u32,
    /// Requests in flight per HTTP/2 connection; zero for HTTP/1.1.
    pub streams: u32,
    /// Requests per second, for generators with a rate; zero for full speed.
    pub rate: u32,
    /// Duration of a round, in seconds.
    pub seconds: u32,
    /// Number of requests that onrush sends, instead of running for the duration; zero: the duration applies.
    pub requests: u32,
    /// True if a round is usable only with at least as many responses as connections.
    pub all_answer: bool,
    /// True to pin generator and target to one processor each.
    pub pinned: bool,
    /// True if the kernel determines the system calls per request: the pieces of a body, or the responses per wake-up.
    pub calls_vary: bool,
    /// Number of requests for counts of instructions and system calls.
    pub counted: u32,
}

impl BenchWork {
    /// This work with this number of requests. At a gate, there are as many connections, each of which sends one.
    pub const fn of_requests(self, requests: u32) -> Self {
        match self.target {
            BenchTarget::Gate(_) => {
                Self { target: BenchTarget::Gate(requests), connections: requests, requests, ..self }
            }
            _ => Self { requests, ..self },
        }
    }

    /// The scenario as text, including the response.
    pub fn simulation(&self) -> Option<String> {
        let scenario = self.scenario?;
        if scenario.contains("answer") {
            return Some(scenario.to_owned());
        }
        let (length, body) = (self.body_bytes, "x".repeat(self.body_bytes));
        let head = format!(r"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
        Some(format!("{scenario}\nanswer = \"{head}{body}\"\n"))
    }
}

impl BenchTarget {
    pub fn is_nginx(self) -> bool {
        matches!(self, Self::Tls | Self::Http1 | Self::Http2 | Self::TlsHttp2)
    }
}

/// Target of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BenchTarget {
    /// The bare server: as fast as possible, and independent of onrush.
    Bare,
    /// `onrush serve` of this build.
    Serve,
    /// `onrush serve` of the contender's build, as the measured program.
    Subject,
    /// nginx, over TLS.
    Tls,
    /// nginx, without TLS.
    Http1,
    /// nginx, with HTTP/2 without TLS.
    Http2,
    /// nginx, with HTTP/2 over TLS.
    TlsHttp2,
    /// A target that responds once this many connections have sent a request.
    Gate(u32),
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn scenarios_inherit_the_works_body() {
        let text = |scenario| BenchWork { scenario, body_bytes: 3, ..ROWS[0].work }.simulation();
        let plain = r#"answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nxxx""#;
        assert_eq!(text(Some("split = 9")), Some(format!("split = 9\n{plain}\n")));
        assert_eq!(text(Some("answer = \"\"")).as_deref(), Some("answer = \"\""));
        assert_eq!(text(None), None);
    }

    #[test]
    fn gates_have_one_request_per_connection() {
        let work = ROWS[0].work.of_requests(7);
        assert_eq!((work.target, work.connections, work.requests), (BenchTarget::Bare, 100, 7));
        let work = BenchWork { target: BenchTarget::Gate(9), ..work }.of_requests(5);
        assert_eq!((work.target, work.connections, work.requests), (BenchTarget::Gate(5), 5, 5));
    }
}
