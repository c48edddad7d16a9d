//! The work of a row: a generator's requests, their target, and that target in simulation.

use std::path::Path;
use std::{fs, io};

/// Where onrush writes a result file, from the root of the repository.
pub const RESULT: &str = "target/bench/result.json";
/// A file of 1 MiB, written before the first round, for [`BenchWork::uploads`].
pub const UPLOADED: &str = "target/bench/uploaded";
/// A list of 10,000 requests, written then, too.
pub const LIST: &str = "target/bench/list.txt";
/// The list with 200 names.
pub const NAMED_LIST: &str = "target/bench/named.txt";

/// A file of 10,000 rows for placeholders, written then, too.
pub const USERS: &str = "target/bench/users.csv";

/// Writes the files that options name.
///
/// # Errors
///
/// If one cannot be written.
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

/// Work for a generator.
#[derive(Clone, Copy, Debug)]
pub struct BenchWork {
    /// The target.
    pub target: BenchTarget,
    /// The path.
    pub path: &'static str,
    /// Further options of onrush and wrk, such as a script, or of a bare loop. Paths of files start at the root of the
    /// repository.
    pub options: &'static [&'static str],
    /// The target as a scenario of `--io sim:FILE`. Unless it says otherwise, a response is short but for its body.
    /// `None`: it cannot be simulated.
    pub scenario: Option<&'static str>,
    /// The length of the bodies: of responses, or of uploads.
    pub body_bytes: usize,
    /// True if each request has the body [`UPLOADED`].
    pub uploads: bool,
    /// Threads of the generator.
    pub threads: u32,
    /// Connections, all threads together.
    pub connections: u32,
    /// Requests in flight on each connection, of HTTP/2; zero: HTTP/1.1.
    pub streams: u32,
    /// Requests per second, for generators that hold a rate; zero: as many as possible.
    pub rate: u32,
    /// How long a round lasts.
    pub seconds: u32,
    /// How many requests onrush sends instead, however long that takes; zero: until the time is up.
    pub requests: u32,
    /// True if a round counts only if there were as many responses as connections.
    pub all_answer: bool,
    /// True if generator and target have a processor each.
    pub pinned: bool,
    /// True if the kernel decides how many system calls a request takes: in how many pieces a body moves, or for how
    /// many responses it wakes the generator once.
    pub calls_vary: bool,
    /// For how many requests instructions and system calls are counted.
    pub counted: u32,
}

impl BenchWork {
    /// The work with this number of requests. At a gate each connection sends one.
    pub const fn of_requests(self, requests: u32) -> Self {
        match self.target {
            BenchTarget::Gate(_) => {
                Self { target: BenchTarget::Gate(requests), connections: requests, requests, ..self }
            }
            _ => Self { requests, ..self },
        }
    }

    /// The text of the scenario, with its response.
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

/// The target of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BenchTarget {
    /// The bare server: as fast as possible, and never changed by work on onrush.
    Bare,
    /// `onrush serve` of this build.
    Serve,
    /// `onrush serve` of the contender's build: it is the target that is measured.
    Subject,
    /// nginx, over TLS.
    Tls,
    /// nginx, without TLS.
    Http1,
    /// nginx, which speaks HTTP/2 without TLS.
    Http2,
    /// nginx, which speaks HTTP/2 over TLS.
    TlsHttp2,
    /// A target that responds once that many connections have sent a request.
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
