//! What was typed, each value already read, but nothing decided: no default is filled in, nothing is compared.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::flags::{Flag, Id, Origin};
use super::front::{Front, Item};
use super::request::{self, Header};
use super::tls::TypedTls;
use super::units::{self, Unreadable};
use super::way::TypedWay;
use super::{Refusal, compat, hints};
use crate::plan::limits::{CONNECTIONS_MAX, REQUESTS_MAX, THREADS_MAX, TIME_MAX};
use crate::plan::secrets;
use crate::plan::{Breakout, Dialect, Format, Io, Kind, Output, Percent, Spin};

/// Everything a command line said. Of a repeated option the last one counts; headers add up.
#[derive(Debug)]
pub(super) struct Typed {
    /// Whose grammar the values follow.
    pub dialect: Dialect,
    /// The URL, then arguments for a script.
    pub words: Vec<OsString>,
    /// `--connections`.
    pub connections: Option<u64>,
    /// `--threads`.
    pub threads: Option<u64>,
    /// `--duration`.
    pub duration: Option<Duration>,
    /// `--requests`.
    pub requests: Option<u64>,
    /// `--method`.
    pub method: Option<String>,
    /// `--header`, every one.
    pub headers: Vec<Header>,
    /// `--body`, not read yet.
    pub body: Option<OsString>,
    /// `--script`.
    pub script: Option<PathBuf>,
    /// `--basic-auth`.
    pub basic_auth: Option<String>,
    /// `--disable-keepalive`.
    pub disable_keepalive: bool,
    /// `--requests-per-connection`.
    pub requests_per_connection: Option<u64>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--give-up`.
    pub give_up: Option<Duration>,
    /// Everything about the way to the target.
    pub way: TypedWay,
    /// Everything about TLS.
    pub tls: TypedTls,
    /// `--io`.
    pub io: Io,
    /// `--spin`.
    pub spin: Spin,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--once`.
    pub once: bool,
    /// `--latency`.
    pub latency: bool,
    /// `--warmup` or `--delay-stats`.
    pub warmup: Option<Duration>,
    /// `--percentiles`.
    pub percents: Option<Vec<Percent>>,
    /// `--breakout`.
    pub breakout: Breakout,
    /// Whether an option was typed that brings wrk-cmm's layout.
    pub cmm_layout: bool,
    /// `--output`, every one.
    pub outputs: Vec<Output>,
    /// `--format`.
    pub format: Format,
    /// `--keep-secrets`.
    pub keep_secrets: bool,
    /// `--notes`.
    pub notes: bool,
    /// `--version`.
    pub version: bool,
    /// The first option that cannot be used yet.
    pub later: Option<&'static Flag>,
    /// What the user should know although the test can run, one line each.
    pub warnings: Vec<String>,
}

impl Typed {
    /// Nothing typed yet.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            words: Vec::new(),
            connections: None,
            threads: None,
            duration: None,
            requests: None,
            method: None,
            headers: Vec::new(),
            body: None,
            script: None,
            basic_auth: None,
            disable_keepalive: false,
            requests_per_connection: None,
            timeout: None,
            give_up: None,
            way: TypedWay::default(),
            tls: TypedTls::default(),
            io: Io::Auto,
            spin: Spin::Auto,
            seed: None,
            once: false,
            latency: false,
            warmup: None,
            percents: None,
            breakout: Breakout::None,
            cmm_layout: false,
            outputs: Vec::new(),
            format: Format::Text,
            keep_secrets: false,
            notes: false,
            version: false,
            later: None,
            warnings: Vec::new(),
        }
    }

    /// Takes in a whole command line, up to the first mistake; what stands before it is there afterwards.
    pub fn read(&mut self, front: &mut Front) -> Result<(), Refusal> {
        loop {
            match front.next() {
                Ok(Some(Item::Flag(flag, value))) => self.take(flag, value)?,
                Ok(Some(Item::Word(word))) => self.words.push(word),
                Ok(None) => return Ok(()),
                Err(misuse) if self.dialect.is_compat() => {
                    return Err(compat::getopt(&misuse).map_or(Refusal::Usage, Refusal::Misused));
                }
                Err(misuse) => return Err(Refusal::Misused(hints::hint(&misuse))),
            }
        }
    }

    fn take(&mut self, flag: &'static Flag, value: OsString) -> Result<(), Refusal> {
        let native = Dialect::Native;
        // Natively a source address says nothing about the layout; a tool that knows it prints this one.
        let is_native_option = self.dialect == native && flag.id == Id::BindIp;
        self.cmm_layout |= flag.origin == Origin::WrkCmm && !is_native_option;
        match flag.id {
            Id::Help => return Err(Refusal::Help),
            Id::Connections => self.connections = Some(count(flag, &value, self.dialect, CONNECTIONS_MAX)?),
            Id::Threads => self.threads = Some(count(flag, &value, self.dialect, THREADS_MAX)?),
            Id::Duration => self.duration = Some(time(flag, &value, self.dialect)?),
            Id::Timeout => self.timeout = Some(time(flag, &value, self.dialect)?),
            Id::Requests => self.requests = Some(count(flag, &value, native, REQUESTS_MAX)?),
            Id::GiveUp => self.give_up = Some(time(flag, &value, native)?),
            Id::Spin => self.spin = spin(flag, &value)?,
            Id::Seed => self.seed = Some(seed(flag, &value)?),
            Id::Method => self.method = Some(method(flag, &value)?),
            Id::Header => self.header(flag, &value)?,
            Id::Body => self.body = Some(value),
            Id::Io => self.io = io(flag, &value)?,
            Id::Compat => {
                let named = compat::named(&value);
                named.ok_or_else(|| wrong(flag, &value, "no tool onrush can follow; write wrk, wrk-cmm or wrk2"))?;
            }
            Id::BasicAuth => self.basic_auth = Some(user(flag, &value)?),
            Id::DisableKeepalive => self.disable_keepalive = true,
            Id::RequestsPerConnection => {
                self.requests_per_connection = Some(count(flag, &value, native, REQUESTS_MAX)?);
            }
            Id::Once => self.once = true,
            Id::Warmup => self.warmup = Some(time(flag, &value, native)?),
            Id::DelayStats => self.warmup = Some(time(flag, &value, self.dialect)?),
            Id::Percentiles => self.percentiles(flag, &value)?,
            Id::Breakout => self.breakout = breakout(flag, &value)?,
            Id::Output => self.output(flag, &value)?,
            Id::Format => self.format = format(flag, &value)?,
            Id::KeepSecrets => self.keep_secrets = true,
            Id::Latency => self.latency = true,
            Id::Notes => self.notes = true,
            Id::Version => self.version = true,
            Id::BindIp | Id::ConnectTo | Id::Resolve | Id::Ipv4 | Id::Ipv6 | Id::Unix | Id::HttpProxy => {
                self.way.take(flag, &value, self.dialect)?;
            }
            Id::Insecure
            | Id::CaCert
            | Id::Cert
            | Id::Key
            | Id::Sni
            | Id::TlsMin
            | Id::TlsMax
            | Id::TlsCiphers
            | Id::TlsGroups
            | Id::TlsResume => self.tls.take(flag, value)?,
            Id::Script => self.script = Some(PathBuf::from(value)),
            Id::Rate | Id::ULatency | Id::BatchLatency => self.later = self.later.or(Some(flag)),
        }
        Ok(())
    }

    /// Natively a header must be one; in the compat dialects one that is none is passed over, as in wrk, but not in
    /// silence.
    fn header(&mut self, flag: &Flag, value: &OsStr) -> Result<(), Refusal> {
        let shown = secrets::misspelt_header(&value.to_string_lossy());
        let text = value.to_str().ok_or_else(|| wrong(flag, OsStr::new(&shown), "not UTF-8"))?;
        match request::header(text, self.dialect) {
            Ok(header) => self.headers.push(header),
            Err(reason) if self.dialect.is_compat() => {
                self.warnings.push(format!("--{} {shown:?} is ignored: {reason}", flag.long));
            }
            Err(reason) => return Err(wrong(flag, OsStr::new(&shown), reason)),
        }
        Ok(())
    }

    /// Where all are less than 1, they are perhaps not meant in per cent.
    fn percentiles(&mut self, flag: &Flag, value: &OsStr) -> Result<(), Refusal> {
        let percents = percents(flag, value)?;
        if percents.iter().all(|percent| percent.value() < 1.0) {
            let shown = value.to_string_lossy();
            self.warnings.push(format!("--{} {shown}: these are per cent; the median is 50, not 0.5", flag.long));
        }
        self.percents = Some(percents);
        Ok(())
    }

    /// A file's name says what is written into it.
    fn output(&mut self, flag: &Flag, value: &OsStr) -> Result<(), Refusal> {
        let path = PathBuf::from(value);
        if self.outputs.iter().any(|output| output.path == path) {
            return Err(wrong(flag, value, "named twice; give each result a file of its own"));
        }
        let endings = match value.to_str() {
            Some("-" | "/dev/stdout") => {
                "what goes to standard output is chosen by --format, for instance --format json"
            }
            _ => "its ending says what is written: .json, .csv, .hgrm, .md or .ndjson",
        };
        let kind = Kind::of(&path).ok_or_else(|| wrong(flag, value, endings))?;
        self.outputs.push(Output { path, kind });
        Ok(())
    }
}

/// A value that cannot be read: the option, the value, and what would be right.
pub(super) fn wrong(flag: &Flag, value: &OsStr, reason: impl std::fmt::Display) -> Refusal {
    const SHOWN_MAX: usize = 80;
    let text = value.to_string_lossy();
    let shown: String = text.chars().take(SHOWN_MAX).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    Refusal::Misused(format!("--{} {shown:?}{dots}: {reason}", flag.long))
}

/// A count up to `most`. Zero is judged later in the compat dialects, where wrk has an order and words of its own.
fn count(flag: &Flag, value: &OsStr, dialect: Dialect, most: u64) -> Result<u64, Refusal> {
    match units::metric(&value.to_string_lossy(), dialect) {
        Ok(0) if !dialect.is_compat() => Err(wrong(flag, value, "at least 1")),
        Err(Unreadable::TooLarge) => Err(wrong(flag, value, format_args!("at most {most}"))),
        Ok(count) if count > most => Err(wrong(flag, value, format_args!("at most {most}"))),
        Ok(count) => Ok(count),
        Err(reason) => Err(wrong(flag, value, format_args!("{reason}; write for instance 100 or 10k"))),
    }
}

/// A time of at most [`TIME_MAX`]. What zero means is judged later.
fn time(flag: &Flag, value: &OsStr, dialect: Dialect) -> Result<Duration, Refusal> {
    let most =
        || wrong(flag, value, format_args!("at most {}h, which is {} days", hours(TIME_MAX), hours(TIME_MAX) / 24));
    let example = if dialect.is_compat() { "10s, 2m or 1h" } else { "500ms, 1.5s or 2m" };
    let is_data = |text: &str| text.contains('=') || text.starts_with(['{', '[', '@', '<']);
    if !dialect.is_compat() && flag.id == Id::Duration && is_data(&value.to_string_lossy()) {
        let shown = secrets::text(&value.to_string_lossy());
        return Err(wrong(flag, OsStr::new(&shown), "not a time; what curl's -d sends is onrush's --body"));
    }
    match units::time(&value.to_string_lossy(), dialect) {
        Err(Unreadable::TooLarge) => Err(most()),
        Ok(time) if time > TIME_MAX => Err(most()),
        Ok(time) => Ok(time),
        Err(reason) => {
            let meant = units::seconds_meant(&value.to_string_lossy());
            let right = meant.map_or_else(|| format!("for instance {example}"), |seconds| format!("{seconds}s"));
            Err(wrong(flag, value, format_args!("{reason}; write {right}")))
        }
    }
}

fn hours(time: Duration) -> u64 {
    time.as_secs() / 3600
}

fn seed(flag: &Flag, value: &OsStr) -> Result<u64, Refusal> {
    let number = value.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| wrong(flag, value, format_args!("not a number from 0 to {}", u64::MAX)))
}

fn method(flag: &Flag, value: &OsStr) -> Result<String, Refusal> {
    let token = value.to_str().filter(|text| request::is_token(text));
    token.map(str::to_owned).ok_or_else(|| wrong(flag, value, "not the name of a method; write for instance PUT"))
}

/// A user and a password; the user alone has an empty one.
fn user(flag: &Flag, value: &OsStr) -> Result<String, Refusal> {
    // What it says must not be shown.
    let bad = || wrong(flag, OsStr::new("…"), "no user in front of the colon; write for instance 'user:password'");
    let text = value.to_str().filter(|text| !text.is_empty() && !text.starts_with(':')).ok_or_else(bad)?;
    Ok(if text.contains(':') { text.to_owned() } else { format!("{text}:") })
}

fn spin(flag: &Flag, value: &OsStr) -> Result<Spin, Refusal> {
    match value.to_str() {
        Some("auto") => Ok(Spin::Auto),
        Some("on") => Ok(Spin::On),
        Some("off") => Ok(Spin::Off),
        _ => Err(wrong(flag, value, "unknown; write auto, on or off")),
    }
}

fn percents(flag: &Flag, value: &OsStr) -> Result<Vec<Percent>, Refusal> {
    let text = value.to_str().unwrap_or_default();
    let mut percents: Vec<Percent> = text
        .split(',')
        .map(|part| part.trim().parse().map_err(|reason| wrong(flag, OsStr::new(part), reason)))
        .collect::<Result<_, _>>()?;
    percents.sort_unstable();
    percents.dedup();
    Ok(percents)
}

fn breakout(flag: &Flag, value: &OsStr) -> Result<Breakout, Refusal> {
    match value.to_str() {
        Some("") => Ok(Breakout::WrkCmm),
        Some("all") => Ok(Breakout::All),
        _ => Err(wrong(flag, value, "unknown; write --breakout or --breakout=all")),
    }
}

fn format(flag: &Flag, value: &OsStr) -> Result<Format, Refusal> {
    match value.to_str() {
        Some("wrk") => Ok(Format::Text),
        Some("json") => Ok(Format::Json),
        Some("summary") => {
            Err(Refusal::Cannot("--format summary: summaries are not in onrush yet; wrk and json are".to_owned()))
        }
        _ => Err(wrong(flag, value, "unknown; write wrk or json")),
    }
}

fn io(flag: &Flag, value: &OsStr) -> Result<Io, Refusal> {
    match value.to_str() {
        Some("auto") => Ok(Io::Auto),
        Some("epoll") => Ok(Io::Epoll),
        Some("uring") => Ok(Io::Uring),
        Some(text) if text.starts_with("sim:") => Ok(Io::Sim(PathBuf::from(&text["sim:".len()..]))),
        _ => Err(wrong(flag, value, "unknown; write auto, uring or epoll")),
    }
}
