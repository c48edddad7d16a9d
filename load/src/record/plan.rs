//! What a run was asked to do, as a document has it, and how two plans differ.

use aws_lc_rs::digest;
use onrush_plan::checks::{self, StatusList};
use onrush_plan::secrets::{self, KnownSecrets};
use onrush_plan::{FileContents, Io, Percent, Spin};
use onrush_text::escape;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::{AskedHttp2, Endpoints, Level, Offer, Schedule};

/// Maximum length of a body that is shown, in bytes.
const BODY_SHOWN: usize = 4096;

/// What a run was asked to do; secrets are redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Plan {
    /// The URL as typed.
    pub url: String,
    /// The request's method.
    pub method: String,
    /// The request's headers in the order sent, without the length of the body.
    pub headers: Vec<Header>,
    /// The length of the request's body, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<usize>,
    /// The body, if it is a form (`name=value&…`) of at most 4,096 bytes; with `--keep-secrets` any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The SHA-256 of any other body, in hexadecimal, taken after its secrets were redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
    /// The way to the target, where it is not simply the host of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<Endpoints>,
    /// How TLS is spoken, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Offer>,
    /// How HTTP/2 is spoken, if it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<AskedHttp2>,
    /// The list of requests, if there is one; each is a difference from the method, the headers and the body above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<List>,
    /// What responses were checked for, if for anything but a status below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
    /// The files with values for placeholders, where placeholders are filled in (`--templates`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<Vec<ValuesFile>>,
    /// The script, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// Threads.
    pub threads: u32,
    /// Connections, all threads together.
    pub connections: u32,
    /// The maximum number of connections, where more are opened while due requests wait for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inflight: Option<u32>,
    /// The planned number over time, one stage after the other, where it changes; `connections` is the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_stages: Option<Vec<Level>>,
    /// Maximum number of requests on one connection, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<u64>,
    /// When requests are due, in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The longest the run may last, warm-up not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// The precision at which the run ends early (`--until`), if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The number of requests to start, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// The warm-up: how long load is put on the target before measuring begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// When a request counts as timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// When a request is abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_s: Option<f64>,
    /// The tool whose rules apply: `onrush`, `wrk`, `wrk-cmm` or `wrk2`.
    pub dialect: String,
    /// Only one request is sent (`--once`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Which backend was asked for: `auto`, `uring`, `epoll` or `sim:` and a file.
    pub io: String,
    /// When threads busy-poll: `auto`, `on` or `off`.
    pub spin: String,
    /// The seed of the random sequences.
    pub seed: u64,
    /// The percentiles asked for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<Vec<String>>"))]
    pub percentiles: Option<Vec<Percent>>,
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A list of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct List {
    /// Its file, as typed.
    pub path: String,
    /// The SHA-256 of the file and of the bodies that it names, in hexadecimal, taken after the secrets in the first 4 MiB of
    /// each were redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The length of the file.
    pub bytes: u64,
    /// How many requests it has.
    pub requests: u64,
    /// In which order they were sent: `seq`, `shuffle` or `weighted`.
    pub order: String,
}

/// What responses were checked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Expected {
    /// The statuses of success, as typed; left out: those below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub status: Option<StatusList>,
    /// Headers, each with its value or, for any, without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<ExpectedHeader>,
    /// Texts in the body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<String>,
}

/// An expected header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct ExpectedHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A file with values for placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct ValuesFile {
    /// Its name, as in placeholders.
    pub path: String,
    /// Its SHA-256, in hexadecimal, taken after the secrets in its first 4 MiB were redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its length.
    pub bytes: u64,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Script {
    /// Its file, as typed.
    pub path: String,
    /// The SHA-256 of the file, in hexadecimal, taken after its secrets were redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Plan {
    /// A plan as files show it. `known` has all secrets, because a secret may appear in another place where it is not
    /// recognizable.
    pub fn of(plan: &onrush_plan::Plan, known: &KnownSecrets) -> Self {
        let seconds = |duration: std::time::Duration| duration.as_secs_f64();
        let body = plan.body().unwrap_or_default();
        let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty() && text.len() <= BODY_SHOWN);
        let text = text.filter(|text| plan.output.keeps_secrets || secrets::is_form(text));
        let shown = |text: &str, redacted: fn(&str) -> String| known.redact_typed(text, redacted);
        let header = |(name, value): &(String, String)| Header {
            name: name.clone(),
            value: known.redact_typed(value, |value| secrets::redact_value(name, value)),
        };
        let expected = |checks::ExpectedHeader { name, value }: &checks::ExpectedHeader| ExpectedHeader {
            name: name.clone(),
            value: value.as_ref().map(|value| header(&(name.clone(), value.clone())).value),
        };
        Self {
            url: shown(&plan.target.typed, secrets::redact_url),
            method: plan.request.method.clone(),
            headers: plan.request.headers.iter().map(header).collect(),
            body_bytes: (!body.is_empty()).then_some(body.len()),
            body_sha256: (text.is_none() && !body.is_empty()).then(|| digest_without_secrets(body)),
            body: text.map(|text| shown(text, secrets::redact_text)),
            way: Endpoints::of(&plan.connect, plan.output.keeps_secrets),
            tls: plan.tls.as_ref().map(Offer::of),
            http2: AskedHttp2::of(&plan.http),
            list: plan.list.as_ref().map(|list| List {
                path: list.file.name.clone(),
                sha256: digest_of(list.files()),
                bytes: list.file.contents().map_or(0, <[u8]>::len) as u64,
                requests: list.length,
                order: list.order.name().to_owned(),
            }),
            expected: (!plan.checks.is_empty()).then(|| Expected {
                status: plan.checks.status.clone(),
                headers: plan.checks.headers.iter().map(expected).collect(),
                body: plan.checks.body.iter().map(|text| shown(text, secrets::redact_text)).collect(),
            }),
            templates: plan.templates.as_ref().map(|templates| {
                let file = |file: &FileContents| ValuesFile {
                    path: file.name.clone(),
                    sha256: digest_of([file]),
                    bytes: file.contents().map_or(0, <[u8]>::len) as u64,
                };
                templates.files.iter().map(file).collect()
            }),
            script: plan.script.as_ref().map(|onrush_plan::LuaScript { file, args }| Script {
                path: file.name.clone(),
                sha256: file.contents().ok().map(digest_without_secrets),
                args: match plan.output.keeps_secrets {
                    true => args.clone(),
                    false => secrets::redact_words(args.iter().map(String::as_str))
                        .iter()
                        .map(|it| known.hide_in(it))
                        .collect(),
                },
            }),
            threads: plan.load.threads,
            connections: plan.load.connections,
            max_inflight: plan.load.may_grow().then_some(plan.load.max_inflight),
            connection_stages: plan.levels.as_ref().map(Level::of),
            requests_per_connection: plan.requests_per_connection.map(|limit| limit.most),
            schedule: plan.schedule.as_ref().map(Schedule::of),
            duration_s: plan.stop.duration.map(seconds),
            until: (!plan.until.is_empty()).then(|| {
                let terms: Vec<&str> = plan.until.iter().map(|term| term.text.as_str()).collect();
                terms.join(",")
            }),
            requests: plan.stop.requests,
            warmup_s: (!plan.warmup.is_zero()).then(|| seconds(plan.warmup)),
            timeout_s: plan.timeout.map(seconds),
            give_up_s: plan.give_up.map(seconds),
            dialect: plan.dialect.name().to_owned(),
            once: plan.once,
            io: match &plan.io {
                Io::Auto => "auto".to_owned(),
                Io::Uring => "uring".to_owned(),
                Io::Epoll => "epoll".to_owned(),
                Io::Sim(path) => format!("sim:{}", path.display()),
            },
            spin: match plan.spin {
                Spin::Auto => "auto",
                Spin::On => "on",
                Spin::Off => "off",
            }
            .to_owned(),
            seed: plan.seed,
            percentiles: plan.output.percents.clone(),
        }
    }

    /// The statuses of success; `None`: those below 400.
    pub fn expected_status(&self) -> Option<&StatusList> {
        self.expected.as_ref()?.status.as_ref()
    }

    /// Whether stages determine how long the run lasts.
    pub fn is_staged(&self) -> bool {
        let stages = self.schedule.iter().flat_map(|schedule| &schedule.stages);
        self.connection_stages.is_some() || stages.into_iter().any(|stage| stage.length_s.is_some())
    }

    /// The first difference that makes a run of this plan measure something else than one of the other, if any. Seeds,
    /// display options and secrets do not count as differences.
    pub fn difference(&self, other: &Self) -> Option<Different> {
        self.differences(other).into_iter().next()
    }

    /// All of them.
    pub fn differences(&self, other: &Self) -> Vec<Different> {
        let value = |plan: &Self| {
            let mut value = serde_json::to_value(plan.compared()).unwrap_or_default();
            value["headers"] = plan.compared().named_headers();
            value
        };
        let mut found = Vec::new();
        find_differences("", &value(self), &value(other), &mut found);
        let rates = self.constant_rate().zip(other.constant_rate());
        let is_rate = |it: &Different| it.name.starts_with("schedule.stages[0].");
        if let (Some((was, is)), Some(at)) = (rates, found.iter().position(is_rate)) {
            found.retain(|it| !is_rate(it));
            found.insert(at, Different { name: RATE.to_owned(), is: plain(is), was: plain(was) });
        }
        // A closed loop and a schedule differ in the option that was typed for one of them.
        for it in found.iter_mut().filter(|it| it.name == "schedule") {
            let schedule = |plan: &Self| plan.schedule.as_ref().map_or(Value::Null, |it| Value::from(it.asked()));
            let rate = |plan: &Self| plan.constant_rate().map_or(Value::Null, plain);
            *it = match self.constant_rate().or(other.constant_rate()) {
                Some(_) => Different { name: RATE.to_owned(), is: rate(other), was: rate(self) },
                None => Different { name: STAGES.to_owned(), is: schedule(other), was: schedule(self) },
            };
        }
        found
    }

    /// The values of the headers by name. A `Host` that follows from the URL differs wherever that does.
    fn named_headers(&self) -> Value {
        let after_scheme = self.url.split_once("://").map_or(&self.url[..], |(_, rest)| rest);
        let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let follows = |it: &&Header| it.name.eq_ignore_ascii_case("Host") && it.value.eq_ignore_ascii_case(host);
        let mut names = serde_json::Map::new();
        for Header { name, value } in self.headers.iter().filter(|it| !follows(it)) {
            let before = names.remove(name);
            let value =
                before.map_or(value.clone(), |before| format!("{}, {value}", before.as_str().unwrap_or_default()));
            names.insert(name.clone(), Value::from(value));
        }
        names.into()
    }

    /// The rate, if it is the same from the beginning to the end of the run.
    fn constant_rate(&self) -> Option<f64> {
        match &self.schedule.as_ref()?.stages[..] {
            [only] if only.length_s.is_none() && only.from_per_s == only.to_per_s => Some(only.from_per_s),
            _ => None,
        }
    }

    /// The plan without what makes no difference.
    fn compared(&self) -> Self {
        // The length of a body would reveal that of its secrets; its text or digest identifies it anyway.
        let mut plan = Self { seed: 0, percentiles: None, body_bytes: None, ..self.clone() };
        plan.url = secrets::redact_url(&plan.url);
        if let Some(proxy) = plan.way.as_mut().and_then(|way| way.http_proxy.as_mut()) {
            *proxy = secrets::redact_url(proxy);
        }
        for header in &mut plan.headers {
            header.value = secrets::redact_value(&header.name, &header.value);
        }
        match plan.body.take() {
            Some(form) if secrets::is_form(&form) => plan.body = Some(secrets::redact_text(&form)),
            Some(body) => plan.body_sha256 = Some(digest_without_secrets(body.as_bytes())),
            None => {}
        }
        if let Some(expected) = &mut plan.expected {
            for ExpectedHeader { name, value } in &mut expected.headers {
                *value = value.as_deref().map(|value| secrets::redact_value(name, value));
            }
            expected.body.iter_mut().for_each(|text| *text = secrets::redact_text(text));
        }
        if let Some(script) = &mut plan.script {
            script.args = secrets::redact_words(script.args.iter().map(String::as_str));
        }
        plan
    }
}

/// The digest of bytes without their secrets; with them, a reader who knows the rest could find the secrets by trial.
fn digest_without_secrets(bytes: &[u8]) -> String {
    // In pieces, because a body may be as large as the memory.
    const PIECE: usize = 1 << 20;
    let mut digest = digest::Context::new(&digest::SHA256);
    bytes.chunks(PIECE).for_each(|piece| digest.update(&secrets::redact_bytes(piece)));
    hexadecimal(digest)
}

/// The digest of files of any length; `None`: their contents did not come with the plan.
fn digest_of<'a>(files: impl IntoIterator<Item = &'a FileContents>) -> Option<String> {
    let mut digest = digest::Context::new(&digest::SHA256);
    for file in files {
        let (searched, rest) = secrets::contents(file).ok()?;
        digest.update(&searched);
        digest.update(rest);
    }
    Some(hexadecimal(digest))
}

fn hexadecimal(digest: digest::Context) -> String {
    digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A difference between two plans.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} is {} instead of {}", escape(.name.as_bytes()), shown(.is), shown(.was))]
pub struct Different {
    /// Its place in the plan.
    name: String,
    /// The value in the second plan; null: none.
    is: Value,
    /// The value in the first plan.
    was: Value,
}

/// The name of a difference between two constant rates.
const RATE: &str = "-R";
/// That of a difference between schedules of which one is none.
const STAGES: &str = "--stages";

/// A number, without a fraction if it is whole.
fn plain(number: f64) -> Value {
    if number.fract() == 0.0 { Value::from(number as u64) } else { Value::from(number) }
}

/// The beginning of a value, with terminal control characters escaped.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("\"{}\"", escape(text.as_bytes())),
        value => escape(value.to_string().as_bytes()),
    }
}

impl Different {
    /// The key of the plan in which it is.
    pub fn key(&self) -> &str {
        if [RATE, STAGES].contains(&&self.name[..]) {
            return "schedule";
        }
        self.name.split(['.', '[']).next().unwrap_or_default()
    }
}

/// Collects the differences between two values.
fn find_differences(name: &str, was: &Value, is: &Value, found: &mut Vec<Different>) {
    match (was, is) {
        (was, is) if was == is => {}
        (Value::Object(before), Value::Object(after)) => {
            let added = after.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(added) {
                let inside = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                let value = |map: &serde_json::Map<_, _>| map.get(key).cloned().unwrap_or_default();
                find_differences(&inside, &value(before), &value(after), found);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (was, is)) in before.iter().zip(after).enumerate() {
                find_differences(&format!("{name}[{index}]"), was, is, found);
            }
        }
        _ => found.push(Different { name: name.to_owned(), is: is.clone(), was: was.clone() }),
    }
}
