//! The options as typed: values are parsed, but no default is filled in and nothing is compared.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use onrush_plan::limits::{CONNECTIONS_MAX, REQUESTS_MAX, THREADS_MAX};
use onrush_plan::list::ListOrder;
use onrush_plan::secrets;
use onrush_plan::{
    Breakout, Condition, Dialect, Format, Io, Output, OutputKind, Percent, SampleOptions, Spin, StopTerm,
};

use super::checks::TypedChecks;
use super::connect::TypedConnect;
use super::flags::{self, Flag, Id, Origin};
use super::front::{Front, Item, Misuse};
use super::http::TypedHttp;
use super::machines::TypedMachines;
use super::pace::TypedPace;
use super::probe::{self, TypedProbe};
use super::refusal::{Length, PlanRefusal, is_url, url_as_value_hint, wrong};
use super::request::{self, HeaderField};
use super::request_log::TypedLog;
use super::sampling::TypedSampling;
use super::search::TypedSearch;
use super::tls::TypedTls;
use super::values::{
    parse_breakout, parse_count, parse_format, parse_gate, parse_io, parse_label, parse_method, parse_notes,
    parse_order, parse_percents, parse_script_path, parse_seed, parse_spin, parse_time, parse_until, parse_user,
};
use super::{compat, hints, samples};

/// Everything on a command line. Of a repeated option the last one counts; headers add up.
#[derive(Debug, Default)]
pub struct Typed {
    /// Whose grammar the values follow.
    pub dialect: Dialect,
    /// The URL, then arguments for a script.
    pub words: Vec<OsString>,
    /// The last option that took a URL as its value, and that URL.
    pub taken_url: Option<(&'static Flag, OsString)>,
    /// `--connections`.
    pub connections: Option<u64>,
    /// `--threads`.
    pub threads: Option<u64>,
    /// `--duration`.
    pub duration: Option<Duration>,
    /// `--requests`.
    pub requests: Option<u64>,
    /// `--until`.
    pub until: Vec<StopTerm>,
    /// `--probe`.
    pub probe: Option<TypedProbe>,
    /// `--method`.
    pub method: Option<String>,
    /// `--header`, every one.
    pub headers: Vec<HeaderField>,
    /// `--body`, not read yet.
    pub body: Option<OsString>,
    /// `--form`, every one, not read yet.
    pub forms: Vec<OsString>,
    /// `--data-urlencode`, every one, not read yet.
    pub urlencoded: Vec<OsString>,
    /// `--urls`, not read yet.
    pub urls: Option<PathBuf>,
    /// Whether the URL is that of its first line.
    pub has_url_of_list: bool,
    /// `--templates`.
    pub templates: bool,
    /// `--urls-order`.
    pub urls_order: Option<ListOrder>,
    /// Everything about checks of responses.
    pub checks: TypedChecks,
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
    /// Everything about when requests are sent.
    pub pace: TypedPace,
    /// Everything about a search.
    pub search: TypedSearch,
    /// Everything about the way to the target.
    pub connect: TypedConnect,
    /// Everything about TLS.
    pub tls: TypedTls,
    /// Everything about versions of HTTP.
    pub http: TypedHttp,
    /// Everything about sockets that are sampled.
    pub sampling: TypedSampling,
    /// Everything about the log of requests.
    pub log: TypedLog,
    /// `--sample-responses`.
    pub samples: Option<SampleOptions>,
    /// Everything about several machines.
    pub machines: TypedMachines,
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
    /// `--u_latency`.
    pub u_latency: bool,
    /// `--batch_latency`.
    pub batch_latency: bool,
    /// `--warmup` or `--delay-stats`.
    pub warmup: Option<Duration>,
    /// `--delay-stats`.
    pub delay_stats: Option<Duration>,
    /// `--percentiles` with a list.
    pub percents: Option<Vec<Percent>>,
    /// `--percentiles full`.
    pub spectrum: bool,
    /// `--breakout`.
    pub breakout: Breakout,
    /// Whether an option was typed that brings wrk-cmm's layout.
    pub cmm_layout: bool,
    /// `--fail-if`, every one.
    pub gates: Vec<Condition>,
    /// `--strict`.
    pub strict: bool,
    /// `--annotate`.
    pub annotate: bool,
    /// `--output`, every one.
    pub outputs: Vec<Output>,
    /// `--format`.
    pub format: Format,
    /// `--keep-secrets`.
    pub keep_secrets: bool,
    /// `--label`, every one.
    pub labels: BTreeMap<String, String>,
    /// `--notes`, and whether it switches them on.
    pub notes: Option<bool>,
    /// `--quiet`.
    pub quiet: bool,
    /// `--version`.
    pub version: bool,
    /// Warnings to print before the run, one line each.
    pub warnings: Vec<String>,
}

impl Typed {
    /// Nothing typed yet.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// Reads a whole command line up to the first mistake; what comes before it is kept.
    pub fn read(&mut self, front: &mut Front) -> Result<(), PlanRefusal> {
        loop {
            match front.next() {
                Ok(Some(Item::Flag(flag, _))) if flag.id == Id::Help => {
                    let is_all = matches!(front.next(), Ok(Some(Item::Word(word))) if word == "all");
                    return Err(PlanRefusal::Help(if is_all { Length::All } else { Length::Common }));
                }
                Ok(Some(Item::Flag(flag, value))) => self.take_or_name_url(flag, value, front)?,
                Ok(Some(Item::Own(..))) => unreachable!("a run has no options but its own"),
                Ok(Some(Item::ShortHelp)) => return Err(PlanRefusal::Help(Length::Short)),
                Ok(Some(Item::Word(word))) => self.words.push(word),
                Ok(None) => {
                    self.has_values_attached()?;
                    return self.sampling.check_filter_is_attached(&self.words);
                }
                Err(misuse) if self.dialect.is_compat() => {
                    return Err(compat::getopt_message(&misuse).map_or(PlanRefusal::Usage, PlanRefusal::Misused));
                }
                Err(Misuse::Value(spelling)) if *spelling == flags::by_id(Id::Help).spelling => {
                    return Err(PlanRefusal::Help(Length::All));
                }
                Err(misuse) => return Err(PlanRefusal::Misused(hints::misuse_hint(&misuse))),
            }
        }
    }

    /// Refuses an optional value that was typed as a separate word, which would be taken for the URL.
    fn has_values_attached(&self) -> Result<(), PlanRefusal> {
        let Some(word) = self.words.first().and_then(|word| word.to_str()) else { return Ok(()) };
        let option = match word {
            "on" | "off" if self.notes == Some(true) => Id::Notes,
            _ if self.batch_latency && self.words.len() > 1 && word.parse::<IpAddr>().is_ok() => {
                let line = format!("-B takes no value; onrush's option for the -B of ab is -b {word}");
                return if self.dialect.is_compat() { Ok(()) } else { Err(PlanRefusal::Misused(line)) };
            }
            "all" if self.breakout == Breakout::WrkCmm => Id::Breakout,
            _ => return Ok(()),
        };
        if self.dialect.is_compat() {
            return Ok(());
        }
        let name = flags::by_id(option).spelling.long;
        Err(PlanRefusal::Misused(format!("--{name}: attach the value with an equals sign: --{name}={word}")))
    }

    /// Takes an option. If there is no value before the URL, the URL is taken for it: a value that is wrong is said to be
    /// the URL if no word is left that could be it.
    fn take_or_name_url(&mut self, flag: &'static Flag, value: OsString, front: &mut Front) -> Result<(), PlanRefusal> {
        // Only this one may be meant to have a URL.
        let may_be_target = flag.id != Id::HttpProxy && is_url(&value);
        if !may_be_target {
            return self.take(flag, value);
        }
        self.taken_url = Some((flag, value.clone()));
        match self.take(flag, value.clone()) {
            Err(PlanRefusal::Misused(_)) if self.words.is_empty() && !front.has_words() => {
                Err(PlanRefusal::Misused(url_as_value_hint(&flag.spelling, &value)))
            }
            // The reason may show a part of it.
            Err(PlanRefusal::Misused(line)) => Err(PlanRefusal::Misused(secrets::redact_text(&line))),
            taken => taken,
        }
    }

    fn take(&mut self, flag: &'static Flag, value: OsString) -> Result<(), PlanRefusal> {
        let native = Dialect::Native;
        self.cmm_layout |= self.brings_cmm_layout(flag);
        match flag.id {
            Id::Help => return Err(PlanRefusal::Help(Length::Common)),
            Id::Connections => self.connections = Some(parse_count(flag, &value, self.dialect, CONNECTIONS_MAX)?),
            Id::Threads => self.threads = Some(parse_count(flag, &value, self.dialect, THREADS_MAX)?),
            Id::Duration => self.duration = Some(parse_time(flag, &value, self.dialect)?),
            Id::Timeout => self.timeout = Some(parse_time(flag, &value, self.dialect)?),
            Id::Requests => self.requests = Some(parse_count(flag, &value, native, REQUESTS_MAX)?),
            Id::Until => self.until = parse_until(flag, &value)?,
            Id::Probe => self.probe = Some(probe::parse_probe(flag, &value)?),
            Id::GiveUp => self.give_up = Some(parse_time(flag, &value, native)?),
            Id::Spin => self.spin = parse_spin(flag, &value)?,
            Id::Seed => self.seed = Some(parse_seed(flag, &value)?),
            Id::Method => self.method = Some(parse_method(flag, &value)?),
            Id::Header => self.header(flag, &value)?,
            Id::Body => self.body = Some(value),
            Id::Form => self.forms.push(value),
            Id::DataUrlencode => self.urlencoded.push(value),
            Id::Urls => self.urls = Some(PathBuf::from(value)),
            Id::UrlsOrder => self.urls_order = Some(parse_order(flag, &value)?),
            Id::ExpectStatus | Id::ExpectBody | Id::ExpectHeader => self.checks.apply_option(flag, &value)?,
            Id::Templates => self.templates = true,
            Id::Io => self.io = parse_io(flag, &value)?,
            Id::Compat if compat::dialect_by_name(&value).is_some() => {}
            Id::Compat => return Err(wrong(flag, &value, "unknown; write wrk, wrk-cmm or wrk2")),
            Id::BasicAuth => self.basic_auth = Some(parse_user(flag, &value)?),
            Id::DisableKeepalive => self.disable_keepalive = true,
            Id::RequestsPerConnection => {
                self.requests_per_connection = Some(parse_count(flag, &value, native, REQUESTS_MAX)?);
            }
            Id::Once => self.once = true,
            Id::Warmup => self.warmup = Some(parse_time(flag, &value, native)?),
            Id::DelayStats => {
                self.warmup = Some(parse_time(flag, &value, self.dialect)?);
                self.delay_stats = self.warmup;
            }
            Id::Percentiles => self.percentiles(flag, &value)?,
            Id::Breakout => self.breakout = parse_breakout(flag, &value)?,
            Id::Output => self.output(flag, &value)?,
            Id::Sockets | Id::SocketsOutput => self.sampling.apply_option(flag, value)?,
            Id::RequestLog | Id::LogSample => self.log.apply_option(flag, value)?,
            Id::SampleResponses => self.samples = Some(samples::parse_samples(flag, &value)?),
            Id::Machines | Id::Coordinate | Id::TokenFile | Id::JoinTimeout | Id::LossTimeout | Id::OnLoss => {
                self.machines.apply_option(flag, value)?;
            }
            Id::FailIf => self.gates.push(parse_gate(flag, &value)?),
            Id::Strict => self.strict = true,
            Id::Annotate => self.annotate = true,
            Id::FindMax | Id::Over => self.search.apply_option(flag, &value)?,
            Id::Format => self.format = parse_format(flag, &value)?,
            Id::Label => self.labels.extend([parse_label(flag, &value, &self.labels)?]),
            Id::KeepSecrets => self.keep_secrets = true,
            Id::Latency => self.latency = true,
            Id::Notes => self.notes = Some(parse_notes(flag, &value)?),
            Id::Quiet => self.quiet = true,
            Id::Version => self.version = true,
            Id::BindIp | Id::ConnectTo | Id::Resolve | Id::Ipv4 | Id::Ipv6 | Id::Unix | Id::HttpProxy => {
                self.connect.apply_option(flag, &value, self.dialect)?;
            }
            Id::Rcvbuf | Id::Sndbuf | Id::Congestion => self.connect.apply_socket_option(flag, &value)?,
            Id::Insecure
            | Id::CaCert
            | Id::Cert
            | Id::Key
            | Id::Sni
            | Id::TlsMin
            | Id::TlsMax
            | Id::TlsCiphers
            | Id::TlsGroups
            | Id::TlsResume => self.tls.apply_option(flag, value)?,
            Id::Http2
            | Id::Http2PriorKnowledge
            | Id::Http11
            | Id::AlpnList
            | Id::Streams
            | Id::H2Window
            | Id::H2ConnectionWindow
            | Id::H2MaxFrame
            | Id::H2Table => self.http.apply_option(flag, &value)?,
            Id::Script => self.script = Some(parse_script_path(flag, value, self.dialect)?),
            Id::Rate | Id::Stages | Id::MaxInflight | Id::Arrivals | Id::CatchUp | Id::MaxLate | Id::SendSlice => {
                self.pace.apply_option(flag, &value, self.dialect)?
            }
            Id::ULatency => {
                self.u_latency = true;
                self.pace.apply_option(flag, &value, self.dialect)?;
            }
            Id::BatchLatency => {
                self.batch_latency = true;
                self.pace.apply_option(flag, &value, self.dialect)?;
            }
        }
        Ok(())
    }

    /// Whether an option selects wrk-cmm's layout. Natively a source address does not; in a tool that has the option it
    /// does.
    fn brings_cmm_layout(&self, flag: &Flag) -> bool {
        let is_native_option = self.dialect == Dialect::Native && flag.id == Id::BindIp;
        flag.origin == Origin::WrkCmm && !is_native_option
    }

    /// A malformed header is refused natively; in the compat dialects it is ignored as in wrk, but with a warning.
    fn header(&mut self, flag: &Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        let shown = secrets::misspelt_header(&value.to_string_lossy());
        let text = value.to_str().ok_or_else(|| wrong(flag, OsStr::new(&shown), "not UTF-8"))?;
        match request::parse_header(text, self.dialect) {
            Ok(header) => self.headers.push(header),
            Err(reason) if self.dialect.is_compat() => {
                self.warnings.push(format!("--{} {shown:?} is ignored: {reason}", flag.spelling.long));
            }
            Err(reason) => return Err(wrong(flag, OsStr::new(&shown), reason)),
        }
        Ok(())
    }

    /// Warns if all of them are below 1, because they may be meant as fractions.
    fn percentiles(&mut self, flag: &Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        self.spectrum = value == "full";
        if self.spectrum {
            self.percents = None;
            return Ok(());
        }
        let percents = parse_percents(flag, value)?;
        if percents.iter().all(|percent| percent.value() < 1.0) {
            let shown = value.to_string_lossy();
            self.warnings
                .push(format!("--{} {shown}: these are percentages; the median is 50, not 0.5", flag.spelling.long));
        }
        self.percents = Some(percents);
        Ok(())
    }

    /// The ending of a file's name selects its format; standard output gets the document instead of the report.
    fn output(&mut self, flag: &Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        if value == "-" {
            self.format = Format::Json;
            return Ok(());
        }
        let path = PathBuf::from(value);
        if self.outputs.iter().any(|output| output.path == path) {
            return Err(wrong(flag, value, "given twice; each result needs its own file"));
        }
        let endings = match value.to_str() {
            Some("/dev/stdout") => "standard output is -o -, which prints the JSON document",
            _ => "its ending selects the format: .json, .json.gz, .csv, .hgrm, .md, .ndjson or .xml",
        };
        let kind = OutputKind::for_path(&path).ok_or_else(|| wrong(flag, value, endings))?;
        self.outputs.push(Output { path, kind });
        Ok(())
    }
}
