//! What a run was asked to do, as it stands in a document.

use serde::{Deserialize, Serialize};

use crate::plan::secrets::{self, REDACTED};
use crate::plan::{self, Io, Percent, Spin};

/// A body is shown up to this length, in bytes.
const BODY_SHOWN: usize = 4096;

/// What a run was asked to do; secrets are redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The body, if it is text of at most 4,096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The script, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Script>,
    /// Threads.
    pub threads: u32,
    /// Connections, all threads together.
    pub connections: u32,
    /// The longest the run may last, warm-up not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How many requests are started, if that is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// How long load is put on the target before anything is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// When a request counts as timed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<f64>,
    /// When a request is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_s: Option<f64>,
    /// Whose rules are followed: `onrush`, `wrk`, `wrk-cmm` or `wrk2`.
    pub dialect: String,
    /// Which backend was asked for: `auto`, `uring`, `epoll` or `sim:` and a file.
    pub io: String,
    /// When threads look instead of sleep: `auto`, `on` or `off`.
    pub spin: String,
    /// Start of the random sequences.
    pub seed: u64,
    /// Which percentiles were asked for, if any were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<String>>"))]
    pub percentiles: Option<Vec<Percent>>,
}

/// A header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Script {
    /// Its file, as typed.
    pub path: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Plan {
    /// A plan as files show it.
    pub fn of(plan: &plan::Plan) -> Self {
        let seconds = |duration: std::time::Duration| duration.as_secs_f64();
        let body = &plan.request.body;
        let text = std::str::from_utf8(body).ok().filter(|text| !text.is_empty() && text.len() <= BODY_SHOWN);
        let shown = |text: &str| if plan.keeps_secrets { text.to_owned() } else { secrets::text(text) };
        Self {
            url: if plan.keeps_secrets { plan.target.typed.clone() } else { secrets::url(&plan.target.typed) },
            method: plan.request.method.clone(),
            headers: plan.request.headers.iter().map(|header| Header::of(header, plan.keeps_secrets)).collect(),
            body_bytes: (!body.is_empty()).then_some(body.len()),
            body: text.map(shown),
            script: plan.script.as_ref().map(|script| Script {
                path: script.path.display().to_string(),
                args: match plan.keeps_secrets {
                    true => script.args.clone(),
                    false => secrets::words(script.args.iter().map(String::as_str)),
                },
            }),
            threads: plan.load.threads,
            connections: plan.load.connections,
            duration_s: plan.stop.duration.map(seconds),
            requests: plan.stop.requests,
            warmup_s: (!plan.warmup.is_zero()).then(|| seconds(plan.warmup)),
            timeout_s: plan.timeout.map(seconds),
            give_up_s: plan.give_up.map(seconds),
            dialect: plan.dialect.name().to_owned(),
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
            percentiles: plan.percents.clone(),
        }
    }

    /// The first thing in which a run of this plan measures something else than one of the other, if there is any: its
    /// name here. What repeats a run with other random numbers, or shows it otherwise, is no difference.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let fields = |plan: &Self| serde_json::to_value(Self { seed: 0, percentiles: None, ..plan.clone() });
        let (Ok(serde_json::Value::Object(mine)), Ok(serde_json::Value::Object(theirs))) =
            (fields(self), fields(other))
        else {
            return None;
        };
        let differs = |name: &&String| mine.get(*name) != theirs.get(*name);
        mine.keys().chain(theirs.keys()).find(differs).cloned()
    }
}

impl Header {
    fn of((name, value): &(String, String), keeps_secrets: bool) -> Self {
        let value = match keeps_secrets {
            true => value.clone(),
            false if secrets::is_secret(name) => REDACTED.to_owned(),
            false => secrets::text(value),
        };
        Self { name: name.clone(), value }
    }
}
