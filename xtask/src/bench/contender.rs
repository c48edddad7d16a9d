//! The contenders: programs, with their command lines for the common work.

use super::outputs::ReportFormat;
use super::work::{BenchWork, UPLOADED};

/// A program, and how its work differs from that of the row.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    /// Unique name in tables.
    pub name: &'static str,
    /// The program that generates the load.
    pub program: GeneratorProgram,
    /// Adapts the work of the row to this contender.
    pub change: fn(BenchWork) -> BenchWork,
    /// True for the other build of onrush, with which this one is compared.
    pub is_before: bool,
}

/// A program that generates load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorProgram {
    /// onrush, with this value of `--io`.
    Onrush(&'static str),
    /// wrk, from Debian.
    Wrk,
    /// wrk2, if available.
    Wrk2,
    /// h2load, from Debian.
    H2load,
    /// shb, from crates.io.
    Shb,
    /// oha, from crates.io.
    Oha,
    /// The bare loop with this name, in `benches`.
    Bare(&'static str),
}

/// onrush on io_uring.
pub const ONRUSH: Contender = contender("onrush", GeneratorProgram::Onrush("uring"));
/// onrush on epoll.
pub const EPOLL: Contender = contender("onrush (epoll)", GeneratorProgram::Onrush("epoll"));
pub const WRK: Contender = contender("wrk", GeneratorProgram::Wrk);
pub const WRK2: Contender = contender("wrk2", GeneratorProgram::Wrk2);
/// h2load, on HTTP/1.1.
pub const H2LOAD: Contender = contender("h2load", GeneratorProgram::H2load);
pub const SHB: Contender = contender("shb", GeneratorProgram::Shb);
pub const OHA: Contender = contender("oha", GeneratorProgram::Oha);

/// Programs that `PEERS=` can select.
pub const PEERS: &[GeneratorProgram] = &[
    GeneratorProgram::Wrk,
    GeneratorProgram::Wrk2,
    GeneratorProgram::H2load,
    GeneratorProgram::Shb,
    GeneratorProgram::Oha,
];

/// A contender for exactly the work of the row.
pub const fn contender(name: &'static str, program: GeneratorProgram) -> Contender {
    Contender { name, program, change: |work| work, is_before: false }
}

impl PartialEq for Contender {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.is_before) == (other.name, other.is_before)
    }
}

impl Contender {
    /// onrush on io_uring, with its work changed by `change`.
    pub const fn onrush(name: &'static str, change: fn(BenchWork) -> BenchWork) -> Self {
        Self { name, change, ..ONRUSH }
    }

    /// This contender in the other build; `None` for other programs.
    pub fn before(self) -> Option<Self> {
        self.program.is_onrush().then_some(Self { is_before: true, ..self })
    }

    /// The name in tables, with ` before` for the other build.
    pub fn title(&self) -> String {
        format!("{}{}", self.name, if self.is_before { " before" } else { "" })
    }
}

impl GeneratorProgram {
    /// File name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onrush(_) => "onrush",
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::H2load => "h2load",
            Self::Shb => "shb",
            Self::Oha => "oha",
            Self::Bare(name) => name,
        }
    }

    pub fn is_onrush(self) -> bool {
        matches!(self, Self::Onrush(_))
    }

    /// Format of the program's report.
    pub fn format(self) -> ReportFormat {
        match self {
            Self::H2load => ReportFormat::H2load,
            Self::Shb => ReportFormat::Shb,
            Self::Oha => ReportFormat::Oha,
            _ => ReportFormat::Wrk,
        }
    }

    /// Arguments that make the program do `work` on the target at `origin` (scheme, host and port).
    pub fn arguments(self, work: &BenchWork, origin: &str) -> Vec<String> {
        let &BenchWork { path, threads, connections, streams, rate, seconds, requests, .. } = work;
        let line = match self {
            Self::Onrush(io) => {
                let end = if requests > 0 { format!("-n{requests}") } else { format!("-d{seconds}s") };
                let rate = if rate > 0 { format!(" -R{rate}") } else { String::new() };
                // The certificate is self-signed. onrush must be told not to check it; the peers never do.
                let unchecked = if origin.starts_with("https") { " -k" } else { "" };
                let http2 = if streams > 0 { format!(" --http2 --streams {streams}") } else { String::new() };
                format!("-t{threads} -c{connections} {end} --io {io}{rate}{unchecked}{http2}")
            }
            Self::Wrk => format!("-t{threads} -c{connections} -d{seconds}s"),
            Self::Wrk2 => format!("-t{threads} -c{connections} -d{seconds}s -R{rate}"),
            Self::H2load if streams > 0 => format!("-m{streams} -t{threads} -c{connections} -D{seconds}"),
            Self::H2load => format!("--h1 -t{threads} -c{connections} -D{seconds}"),
            Self::Shb if streams > 0 => format!("--http2 -p {streams} -t {threads} -c {connections} -z {seconds}s"),
            Self::Shb => format!("-t {threads} -c {connections} -z {seconds}s"),
            // oha starts a thread for every processor that it is pinned to.
            Self::Oha => format!("--no-tui --output-format json -c {connections} -z {seconds}s"),
            Self::Bare(_) => {
                let address = origin.rsplit('/').next().unwrap_or(origin);
                let streams = if streams > 0 { format!(" {streams}") } else { String::new() };
                format!("{address} {connections} {seconds}{streams}")
            }
        };
        let takes_options = matches!(self, Self::Onrush(_) | Self::Wrk | Self::Shb | Self::Bare(_));
        let is_spared = matches!(self, Self::Bare(_)) && streams > 0;
        let options = if takes_options && !is_spared { work.options } else { &[] };
        let body = match self {
            _ if !work.uploads => String::new(),
            Self::Onrush(_) => format!(" -X POST --body @{UPLOADED}"),
            Self::H2load => format!(" -d {UPLOADED}"),
            _ => format!(" -d @{UPLOADED}"),
        };
        let line = line + &body;
        let url = (!matches!(self, Self::Bare(_))).then(|| format!("{origin}{path}"));
        line.split(' ').chain(options.iter().copied()).map(str::to_owned).chain(url).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn every_program_gets_the_same_work() {
        let work = BenchWork {
            path: "/a",
            options: &["-s", "a b.lua"],
            connections: 100,
            rate: 1_000,
            seconds: 2,
            ..ROWS[0].work
        };
        for (program, expected) in [
            (GeneratorProgram::Onrush("epoll"), "-t1|-c100|-d2s|--io|epoll|-R1000|-s|a b.lua|http://h:1/a"),
            (GeneratorProgram::Wrk, "-t1|-c100|-d2s|-s|a b.lua|http://h:1/a"),
            (GeneratorProgram::Wrk2, "-t1|-c100|-d2s|-R1000|http://h:1/a"),
            (GeneratorProgram::H2load, "--h1|-t1|-c100|-D2|http://h:1/a"),
            (GeneratorProgram::Shb, "-t|1|-c|100|-z|2s|-s|a b.lua|http://h:1/a"),
            (GeneratorProgram::Oha, "--no-tui|--output-format|json|-c|100|-z|2s|http://h:1/a"),
            (GeneratorProgram::Bare("bare-epoll"), "h:1|100|2|-s|a b.lua"),
        ] {
            assert_eq!(program.arguments(&work, "http://h:1").join("|"), expected);
        }
        let many = BenchWork { streams: 32, rate: 0, options: &[], ..work };
        for (program, expected) in [
            (GeneratorProgram::Onrush("uring"), "-t1|-c100|-d2s|--io|uring|--http2|--streams|32|http://h:1/a"),
            (GeneratorProgram::H2load, "-m32|-t1|-c100|-D2|http://h:1/a"),
            (GeneratorProgram::Shb, "--http2|-p|32|-t|1|-c|100|-z|2s|http://h:1/a"),
            (GeneratorProgram::Bare("bare-http2"), "h:1|100|2|32"),
        ] {
            assert_eq!(program.arguments(&many, "http://h:1").join("|"), expected);
        }
        let uploads = BenchWork { streams: 1, uploads: true, ..many };
        for (program, expected) in [
            (
                GeneratorProgram::Onrush("uring"),
                "--http2|--streams|1|-X|POST|--body|@target/bench/uploaded|http://h:1/a",
            ),
            (GeneratorProgram::H2load, "-m1|-t1|-c100|-D2|-d|target/bench/uploaded|http://h:1/a"),
            (GeneratorProgram::Shb, "-d|@target/bench/uploaded|http://h:1/a"),
        ] {
            let arguments = program.arguments(&uploads, "http://h:1").join("|");
            assert!(arguments.ends_with(expected), "{arguments}");
        }
        let work = BenchWork { requests: 9, rate: 0, options: &[], ..work };
        let uring = GeneratorProgram::Onrush("uring");
        assert_eq!(uring.arguments(&work, "https://h:1").join("|"), "-t1|-c100|-n9|--io|uring|-k|https://h:1/a");
        assert_eq!(GeneratorProgram::Wrk.arguments(&work, "https://h:1").join("|"), "-t1|-c100|-d2s|https://h:1/a");
    }

    #[test]
    fn only_onrush_has_another_build() {
        assert_eq!(EPOLL.before().unwrap().title(), "onrush (epoll) before");
        assert_ne!(EPOLL.before(), Some(EPOLL));
        assert_eq!(WRK.before(), None);
    }
}
