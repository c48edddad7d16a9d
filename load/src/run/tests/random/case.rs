//! A random run as data: a command line, the scenario of its servers, a script. Every run can be typed as a command,
//! except for limits on the requests in flight.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use onrush_engine::backend::sim::Scenario;
use onrush_plan::list::ListOrder;
use onrush_plan::{FileContents, Plan, RequestList};

use super::pace::{Pace, PaceStage};
use crate::cli::{self, Commands, Invocation};
use crate::input::InputFiles;
use crate::resolve::Addresses;

/// A run that can be typed as a command, with its files.
#[derive(Clone, Debug)]
pub struct Case {
    pub options: CaseOptions,
    pub scenario: Scenario,
    pub script: Option<Lua>,
}

/// The command line. Times are in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct CaseOptions {
    /// True to run as wrk, or as wrk2 with a pace: under its rules and without options that it lacks.
    pub as_wrk: bool,
    pub threads: u32,
    pub connections: u32,
    /// Stages of the number of connections: at most as many as in the first stage. Stages of the rate have the same
    /// lengths.
    pub levels: Vec<PaceStage>,
    /// Limits on the requests in flight, which no option sets: the duration of each in milliseconds, and the limit.
    pub limits: Vec<(u64, u32)>,
    /// Maximum number of connections, if requests have a pace.
    pub max_inflight: Option<u64>,
    /// Schedule of requests; `None` without a rate.
    pub pace: Option<Pace>,
    /// `None` with stages, which set the duration.
    pub duration_ms: Option<u64>,
    pub requests: Option<u64>,
    pub warmup_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
    pub give_up_ms: Option<u64>,
    /// Limit of a gate on a percentile. With such a gate, the load continues after the end of the run.
    pub limit_ms: Option<u64>,
    pub per_connection: Option<u64>,
    pub body_bytes: usize,
    pub is_head: bool,
    pub phases: bool,
    /// True if the target has an IPv4 and an IPv6 address.
    pub has_choice: bool,
    /// Length of the request list; zero for a single request. Every third request has no name.
    pub listed: u64,
    /// Order of the request list.
    pub order: ListOrder,
    /// True if responses are checked.
    pub checks: bool,
    /// True if placeholders are filled in for each request.
    pub templates: bool,
    pub seed: u64,
}

/// The random parts of a script.
#[derive(Clone, Debug, Default)]
pub struct Lua {
    /// Numbers of requests per batch, repeated in turn; empty if the script writes none.
    pub batches: Vec<u32>,
    /// Lengths of pauses in milliseconds, repeated in turn; empty without pauses.
    pub delays_ms: Vec<u64>,
    /// Number of parameters that `response` names; `None` without the function.
    pub response: Option<usize>,
    /// The response at which the script stops its thread.
    pub stops_at: Option<u64>,
    /// The function call at which the script fails.
    pub fails_at: Option<u64>,
}

impl Case {
    /// The arguments of the run, with the scenario, the script and the list in `folder`.
    pub fn arguments(&self, folder: &Path) -> Vec<String> {
        let mut words = self.arguments_without_list(folder);
        if self.options.listed > 0 {
            let order = self.options.order.name().to_owned();
            words.extend(["--urls".to_owned(), folder.join("urls.txt").display().to_string()]);
            words.extend(["--urls-order".to_owned(), order]);
        }
        words
    }

    fn arguments_without_list(&self, folder: &Path) -> Vec<String> {
        let CaseOptions { threads, connections, seed, .. } = &self.options;
        let pace = self.options.pace.as_ref();
        let name = match (self.options.as_wrk, pace) {
            (false, _) => "onrush",
            (true, None) => "wrk",
            (true, Some(_)) => "wrk2",
        };
        let mut words = vec![name.to_owned()];
        let mut add = |option: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        };
        let as_wrk = self.options.as_wrk;
        let ms =
            |ms: Option<u64>| ms.map(|ms| if as_wrk { format!("{}s", ms.div_ceil(1_000)) } else { format!("{ms}ms") });
        // With a rate, every thread needs a connection.
        let fewest = self.options.levels.iter().map(|level| level.from.min(level.to).max(1)).min();
        let threads = u64::from(*threads).min(fewest.filter(|_| pace.is_some() && !as_wrk).unwrap_or(u64::MAX));
        add("-t", Some(threads.to_string()));
        let levels = self.stage_arguments();
        let has_stages = !levels.is_empty() || !as_wrk && pace.is_some_and(|pace| !pace.stages.is_empty());
        add("-c", levels.is_empty().then(|| connections.to_string()));
        add("--stages", (!levels.is_empty()).then(|| format!("c={}", levels.join(","))));
        let most = self.options.max_inflight.filter(|_| pace.is_some() && levels.is_empty() && !as_wrk);
        add("--max-inflight", most.map(|most| most.max(u64::from(*connections)).to_string()));
        add("-d", ms(self.options.duration_ms.filter(|_| !has_stages)));
        pace.into_iter().flat_map(|pace| pace.arguments(as_wrk)).for_each(|(option, value)| add(option, Some(value)));
        add("-n", self.options.requests.map(|requests| requests.to_string()));
        add("--warmup", ms(self.options.warmup_ms));
        add("--timeout", ms(self.options.timeout_ms));
        add("--give-up", ms(self.options.give_up_ms));
        add("--fail-if", self.options.limit_ms.filter(|_| pace.is_some()).map(|limit_ms| format!("p99>{limit_ms}ms")));
        add("--requests-per-connection", self.options.per_connection.map(|most| most.to_string()));
        let body = (self.options.body_bytes > 0).then(|| "b".repeat(self.options.body_bytes));
        add("-X", self.options.is_head.then(|| "HEAD".to_owned()));
        add("--body", body);
        add("--seed", Some(seed.to_string()));
        add("--io", Some(format!("sim:{}", folder.join("scenario.toml").display())));
        add("-s", self.script.as_ref().map(|_| folder.join("script.lua").display().to_string()));
        words.extend(self.options.phases.then(|| "--breakout=all".to_owned()));
        if self.options.checks {
            let checks = ["--expect-status", "2xx,404", "--expect-header", "content-length", "--expect-body", "Hello"];
            words.extend(checks.map(str::to_owned));
        }
        let host = if self.options.has_choice { "localhost" } else { "127.0.0.1" };
        words.extend(self.options.templates.then(|| "--templates".to_owned()));
        let path = if self.options.templates { "{{seq}}?{{rand 1 9}}" } else { "" };
        words.push(format!("http://{host}:8080/{path}"));
        words
    }

    /// Stages of the connections, as typed.
    fn stage_arguments(&self) -> Vec<String> {
        let CaseOptions { levels, pace, as_wrk, .. } = &self.options;
        if *as_wrk || levels.is_empty() {
            return Vec::new();
        }
        let text = |length_ms: u64, level: &PaceStage| format!("{length_ms}ms:{}..{}", level.from, level.to);
        match pace.as_ref().map_or(&[][..], |pace| &pace.stages) {
            [] => levels.iter().map(|level| text(level.length_ms, level)).collect(),
            rates => rates.iter().zip(levels.iter().cycle()).map(|(rate, level)| text(rate.length_ms, level)).collect(),
        }
    }

    /// The plan that the program parses from the arguments.
    pub fn parse_plan(&self) -> Box<Plan> {
        let words = self.arguments_without_list(Path::new(""));
        match cli::parse(words.iter().map(Into::into), &Commands::NONE) {
            Invocation::Run { mut plan, .. } => {
                if let (Some(script), Some(lua)) = (&mut plan.script, &self.script) {
                    *script = onrush_plan::LuaScript {
                        file: FileContents::from_bytes("script.lua", lua.script_text().into()),
                        args: Vec::new(),
                    };
                }
                plan.list = self.request_list();
                InputFiles::default().read_files(&mut plan).expect("there are no other files");
                plan
            }
            other => panic!("{words:?}: {other:?}"),
        }
    }

    fn list_text(&self) -> String {
        let name = |number: u64| if number.is_multiple_of(3) { String::new() } else { format!(" name=n{number}") };
        (0..self.options.listed)
            .map(|number| format!("/{number} weight={}{}\n", 1 + number % 4, name(number)))
            .collect()
    }

    fn request_list(&self) -> Option<RequestList> {
        let CaseOptions { listed, order, seed, .. } = self.options;
        (listed > 0).then(|| RequestList {
            file: FileContents::from_bytes("urls.txt", self.list_text().into()),
            bodies: Vec::new(),
            order,
            seed,
            part: (0, 1),
            length: listed,
            is_safe: true,
            firsts: Vec::new(),
            names: (0..listed).filter(|number| !number.is_multiple_of(3)).map(|number| format!("n{number}")).collect(),
        })
    }

    /// The target's addresses: IPv4, and IPv6 before it if there is a choice.
    pub fn addresses(&self) -> Addresses {
        let addresses: &[&str] =
            if self.options.has_choice { &["[::1]:8080", "127.0.0.1:8080"] } else { &["127.0.0.1:8080"] };
        Addresses(addresses.iter().map(|address| address.parse().expect("an address")).collect())
    }

    /// Writes the files named by the arguments.
    pub fn write_files(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("scenario.toml"), self.scenario_text())?;
        if self.options.listed > 0 {
            fs::write(folder.join("urls.txt"), self.list_text())?;
        }
        self.script.as_ref().map_or(Ok(()), |script| fs::write(folder.join("script.lua"), script.script_text()))
    }

    /// The scenario's file, without defaults.
    pub fn scenario_text(&self) -> String {
        let table = |scenario: &Scenario| toml::Table::try_from(scenario).expect("a scenario is a table");
        let usual = table(&Scenario::default());
        let mut table = table(&self.scenario);
        table.retain(|key, value| usual.get(key) != Some(value));
        table.to_string()
    }
}

impl Lua {
    fn script_text(&self) -> String {
        let mut text = "local calls, told, batch, pause = 0, 0, 0, 0\n".to_owned();
        let numbers = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let _ = match self.fails_at {
            Some(at) => writeln!(text, "local function count() calls = calls + 1; assert(calls < {at}) end"),
            None => writeln!(text, "local function count() end"),
        };
        if !self.batches.is_empty() {
            let batches: Vec<u64> = self.batches.iter().copied().map(u64::from).collect();
            let _ = writeln!(text, "local batches = {{{}}}", numbers(&batches));
            text.push_str(
                "function request()\n  count()\n  batch = batch % #batches + 1\n  return wrk.format():rep(batches[batch])\nend\n",
            );
        }
        if !self.delays_ms.is_empty() {
            let _ = writeln!(text, "local pauses = {{{}}}", numbers(&self.delays_ms));
            text.push_str("function delay()\n  count()\n  pause = pause % #pauses + 1\n  return pauses[pause]\nend\n");
        }
        if let Some(named) = self.response {
            let names = ["status", "headers", "body"][..named].join(", ");
            let _ = writeln!(text, "function response({names})\n  count()\n  told = told + 1");
            if let Some(at) = self.stops_at {
                let _ = writeln!(text, "  if told == {at} then wrk.thread:stop() end");
            }
            text.push_str("end\n");
        }
        text
    }
}
