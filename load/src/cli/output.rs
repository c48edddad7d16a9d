//! Output: the options, and the resulting [`OutputOptions`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onrush_plan::column::is_column;
use onrush_plan::{
    Breakout, Condition, ConnectOptions, Dialect, Format, Output, OutputKind, OutputOptions, Percent,
    RequestLogOptions, SampleOptions,
};

use super::condition::Purpose;
use super::draft::PlanDraft;
use super::flag::Origin::{Wrk, Wrk2, WrkCmm};
use super::flag::{Flag, Need, flag, put, switch};
use super::pace::RATE_NEEDED;
use super::refusal::PlanRefusal;
use super::request_log::{parse_log_path, parse_sample_ratio};
use super::samples::parse_samples;
use super::sampling::{SamplingDraft, parse_filter_value};
use super::values::Value;

const ONE_LOG: &str = "an experiment has many runs; log one in a separate run";
const NO_LOG: &str = "has no log of requests";

/// The conditions of options that sample sockets.
const SAMPLED: &[Need] = &[
    (
        |draft| draft.has("sockets-output"),
        "there is no file for the samples; add --sockets-output, for instance --sockets-output s.ndjson",
    ),
    (|draft| !draft.is_simulated(), "the simulated servers are reached without sockets; leave one of the two out"),
    (|draft| !draft.is_once(), "--once is over before there is a sample; leave one of the two out"),
];

pub(super) const OPTIONS: &[Flag] = &[
    switch("-L, --latency").common().from(Wrk).help("print more percentiles of the latency").reference(
        "Prints more percentiles (up to 99.999 %); with a rate in wrk2's layout. Without `-L` there are 50, 75, \
         90, 99 and 99.9 %. Percentiles with fewer than ten requests above them are omitted. [Called as \
         wrk](#called-as-wrk), onrush prints wrk's lines, and only with `-L`.",
        "onrush --latency http://127.0.0.1:8080/",
    ),
    switch("-U, --u_latency")
        .from(Wrk2)
        .needs(&[RATE_NEEDED])
        .help("print the uncorrected latency too\n(since requests were sent, not due); implies -L")
        .reference(
            "Also prints percentiles of the service latency, which counts from when a request was sent, as *detailed \
             spectrum* or by `--percentiles`. Implies `-L` and needs a rate.",
            "onrush -R 10k -U http://127.0.0.1:8080/",
        ),
    switch("-B, --batch_latency")
        .from(Wrk2)
        .needs(&[
            RATE_NEEDED,
            (
                |draft| draft.dialect == Dialect::Wrk2,
                "needs --compat wrk2; result files (-o) have the latency of batches anyway",
            ),
        ])
        .help("record one latency per pipelined batch, as wrk2 does")
        .reference(
            "With `--compat wrk2`: records one latency per pipelined batch. Result files always contain both.",
            "onrush --compat wrk2 -R 10k -B http://127.0.0.1:8080/",
        ),
    flag("--percentiles LIST", set_percentiles)
        .common()
        .help(
            "percentiles in the report and in the files, such as\n50,90,99.9; full: the report has the whole spectrum",
        )
        .reference(
            "Percentiles in the report and in result files, above 0 and up to 100, with up to six decimals. All \
             are printed, however few requests there are.\n\n\
             ```console\n\
             $ onrush --percentiles 50,99,99.9 http://127.0.0.1:8080/\n\
             ```\n\n\
             `full` prints the percentiles of `-L` and wrk2's *detailed spectrum*:\n\n\
             ```console\n\
             $ onrush -R 1000 --percentiles full http://127.0.0.1:8080/\n\
             ```",
            "",
        ),
    flag("--breakout[=all]", |draft, value| {
        draft.output.breakout = match value.utf8() {
            Some("") => Breakout::WrkCmm,
            Some("all") => Breakout::All,
            _ => return Err(value.wrong("unknown; write --breakout or --breakout=all")),
        };
        Ok(())
    })
    .one_of(&["all"])
    .from(WrkCmm)
    .help("print rows for connect, first byte and last byte\nin wrk-cmm's layout; =all adds the TLS handshake")
    .reference(
        "Prints a row per [phase](output.md#phases), in wrk-cmm's layout: `Connect`, `TTFB`, `TTLB`; `=all` adds \
         `TLS`.",
        "onrush --breakout http://127.0.0.1:8080/",
    ),
    flag("-o, --output FILE", add_output)
        .common()
        .repeatable()
        .single_run_only("each run has its own file in the experiment's folder")
        .help(
            "also write the result: .json, .csv, .md, .xml (JUnit),\n\
             .hgrm or .ndjson (while it runs); may be repeated; -\n\
             is standard output",
        )
        .reference(
            "Also writes the result to a file. The ending selects the [format](output.md): `.json`, `.json.gz`, \
             `.csv`, `.hgrm`, `.md`, `.ndjson` or `.xml`. Repeatable. `-o -` is `--format json`.",
            "onrush -o result.json -o result.csv http://127.0.0.1:8080/",
        ),
    flag("--sockets[=FILTER]", |draft, value| put(&mut draft.output.sampling.filter, parse_filter_value(value)))
        .needs(SAMPLED)
        .help("sample sockets every second, as ss shows them: those\nof the run, or of 'state established sport = :80'")
        .reference(
            "Samples [sockets](sockets.md) every second, like `ss -tiem`, into the file of `--sockets-output`: the \
             run's connections, or those that an `ss` filter selects.",
            "onrush --sockets='state established sport = :8080' --sockets-output sockets.ndjson http://127.0.0.1:8080/",
        ),
    flag("--sockets-output FILE", |draft, value| {
        if OutputKind::for_path(Path::new(value.text)) != Some(OutputKind::Lines) {
            return Err(value.wrong("its ending must be .ndjson; try s.ndjson"));
        }
        draft.output.sampling.output = Some(value.path());
        Ok(())
    })
    .single_run_only("each run has its own file of samples in the experiment's folder")
    .needs(SAMPLED)
    .help("write the samples of sockets to this .ndjson file")
    .reference(
        "File for the socket samples (`.ndjson`), written during the run. Implies `--sockets`.",
        "onrush --sockets-output sockets.ndjson http://127.0.0.1:8080/",
    ),
    flag("--request-log FILE", |draft, value| put(&mut draft.output.log, parse_log_path(value)))
        .common()
        .single_run_only(ONE_LOG)
        .native_only(NO_LOG)
        .help("write a line for each request to this CSV file: its\ntimes, status, bytes, name and error")
        .reference(
            "Writes a CSV line per request during the run: times, status, bytes, name and error \
             ([columns](requests.md#a-log-of-every-request)).",
            "onrush --request-log requests.csv http://127.0.0.1:8080/",
        ),
    flag("--log-sample 1/N", |draft, value| put(&mut draft.output.log_one_of, parse_sample_ratio(value)))
        .single_run_only(ONE_LOG)
        .native_only(NO_LOG)
        .needs(&[(
            |draft| draft.has("request-log"),
            "there is no log; add --request-log, for instance --request-log requests.csv",
        )])
        .help("log one of N requests (1/1)")
        .reference(
            "Logs one of N requests, drawn at random.",
            "onrush --request-log requests.csv --log-sample 1/100 http://127.0.0.1:8080/",
        ),
    flag("--sample-responses N DIR", |draft, value| put(&mut draft.output.samples, parse_samples(value)))
        .single_run_only("an experiment has many runs; sample one in a separate run")
        .native_only("has no samples of responses")
        .help("keep the first N responses of each status and failed\ncheck in this folder, a file each")
        .reference(
            "Keeps the first N responses (at most 100) of each status, failed [check](requests.md#checks) and \
             failing `grpc-status`, one file each in DIR, such as `503-1.txt`, `check1-2.txt` or `grpc14-1.txt`: \
             head, up to 64 KiB of the body, trailers. At most 1,000 files. The folder is created, or must be \
             empty. Secrets are [redacted](output.md#secrets). Checks are numbered: headers in the order typed, \
             then texts.\n\n\
             ```console\n\
             $ onrush -n 100 --sample-responses 2 samples http://127.0.0.1:8080/status/503\n\
             $ head -n 2 samples/503-1.txt\n\
             HTTP/1.1 503 Service Unavailable\n\
             Content-Type: text/plain\n\
             ```",
            "",
        ),
    flag("--fail-if COND", |draft, value| {
        draft.output.gates.push(value.condition(Purpose::Gate)?);
        Ok(())
    })
    .common()
    .repeatable()
    .help("fail the run (exit code 3) if COND is met;\n'p99>50ms,rate>1k' means both; may be repeated")
    .reference(
        "Fails the run (exit code 3) if the [condition](conditions.md) is met, and prints the figure. Repeatable: \
         any one fails the run. [ci.md](ci.md) shows a pipeline.",
        "onrush -d1s --fail-if 'p99>5s' --fail-if 'errors>1%' http://127.0.0.1:8080/",
    ),
    switch("--strict")
        .common()
        .help("exit with code 4 if onrush itself limited the run:\nits threads, its script or local ports")
        .reference(
            "Ends with exit code 4 if [onrush itself](measuring.md#what-was-the-limit) limited the run.",
            "onrush -d1s --strict http://127.0.0.1:8080/",
        ),
    switch("--annotate").help("also print failures as GitHub annotations").reference(
        "Also prints failures on standard error as GitHub annotations (`::error …`).",
        "onrush --fail-if 'p99>5s' --annotate http://127.0.0.1:8080/",
    ),
    flag("--format NAME", |draft, value| {
        if value.text == "summary" {
            let line = "--format summary: onrush does not support summaries yet; write wrk or json";
            return Err(PlanRefusal::Cannot(line.to_owned()));
        }
        draft.output.format = value.choice(&[Format::Text, Format::Json])?;
        Ok(())
    })
    .one_of(&["wrk", "json"])
    .common()
    .single_run_only("an experiment prints tables")
    .help("what to print: wrk (its report) or json (wrk)")
    .reference(
        "Standard output: the report (`wrk`, default), or only the document of `-o FILE.json` (`json`).",
        "onrush --format json http://127.0.0.1:8080/",
    ),
    flag("--label KEY=VALUE", |draft, value| {
        draft.output.labels.extend([parse_label(value, &draft.output.labels)?]);
        Ok(())
    })
    .repeatable()
    .help("label the run in results; may be repeated")
    .reference(
        "Labels the run in its results. Repeatable, with different keys. [`onrush table`](tables.md) shows a \
         column per label and averages runs with equal labels.",
        "onrush -d 1s --label server=nginx --label workers=2 -o result.json http://127.0.0.1:8080/",
    ),
    switch("--keep-secrets").help("keep passwords, tokens and the like in results").reference(
        "Keeps passwords, tokens and the like in [results](output.md#secrets), where `REDACTED` replaces them by \
         default.",
        "onrush --keep-secrets -o result.json http://127.0.0.1:8080/?token=abc",
    ),
    flag("--notes[=WHEN]", |draft, value| {
        let is_on = if value.text.is_empty() { Ok(true) } else { value.choice(&[true, false]) };
        put(&mut draft.output.notes, is_on)
    })
    .one_of(&["on", "off"])
    .help("print notes and the verdict to stderr after the\nreport: on or off (on; off where a tool is imitated)")
    .reference(
        "Prints up to eight notes and the verdict on standard error (`on`; default unless a tool is imitated) \
         or not (`off`). `-v` prints all notes.\n\n\
         ```console\n\
         $ onrush --compat wrk --notes http://127.0.0.1:8080/\n\
         $ onrush --notes=off http://127.0.0.1:8080/\n\
         ```",
        "",
    ),
    switch("--quiet")
        .common()
        .single_run_only("an experiment prints its progress and its tables")
        .excludes(&[("version", "the one prints less than usual, the other more")])
        .help("print the report and errors only: no progress, no\nnotes, no warnings")
        .reference(
            "Prints only the report and errors: no progress, warnings, notes or verdict. A search prints only its \
             result.",
            "onrush --quiet http://127.0.0.1:8080/",
        ),
    switch("-v, --version").common().from(Wrk).help("print the version; with a URL, then run").reference(
        "Prints the version and the backend. With a URL the run follows, with more on standard error: why that \
         backend, all notes, wrk's mean, and how busy threads, connections and a local target were.\n\n\
         ```console\n\
         $ onrush -v\n\
         onrush 0.1.0 [uring]\n\
         ```",
        "",
    ),
    switch("-h, --help")
        .common()
        .from(Wrk)
        .single_run_only("onrush lab --help prints the help")
        .help("print these options\n(-h: the ten most used; --help: the common ones;\n--help all: all of them)")
        .reference(
            "`-h` prints the ten most used options, `--help` more with examples and exit codes, `--help all` all.\n\n\
             ```console\n\
             $ onrush --help\n\
             $ onrush --help all\n\
             ```",
            "",
        ),
];

/// The options on output, as typed.
#[derive(Debug, Default)]
pub struct OutputDraft {
    /// `--percentiles` with a list.
    percents: Option<Vec<Percent>>,
    /// `--percentiles full`.
    has_spectrum: bool,
    pub(super) breakout: Breakout,
    /// `--output`, every one.
    pub outputs: Vec<Output>,
    pub(super) sampling: SamplingDraft,
    log: Option<PathBuf>,
    log_one_of: Option<u64>,
    samples: Option<SampleOptions>,
    pub(super) gates: Vec<Condition>,
    pub(super) format: Format,
    labels: BTreeMap<String, String>,
    /// `--notes`, and whether it switches them on.
    pub(super) notes: Option<bool>,
}

impl PlanDraft {
    /// The output options of the plan.
    pub(super) fn to_output_options(
        &self,
        connect: &ConnectOptions,
        warnings: &mut Vec<String>,
    ) -> Result<OutputOptions, PlanRefusal> {
        let typed = &self.output;
        let (is_quiet, u_latency) = (self.has("quiet"), self.has("u_latency"));
        let is_detailed = self.has("latency") || u_latency || typed.has_spectrum;
        let spectrum = match self.dialect {
            // Natively a list that was asked for takes the place of the spectrum.
            Dialect::Native => typed.has_spectrum || u_latency && typed.percents.is_none(),
            Dialect::Wrk | Dialect::WrkCmm | Dialect::Wrk2 => is_detailed,
        };
        // Natively a source address does not bring wrk-cmm's layout; in a tool that has the option it does.
        let has_cmm_layout =
            |flag: &Flag| flag.origin == WrkCmm && (self.dialect.is_compat() || flag.name() != "bind-ip");
        let request_log = typed.log.clone();
        Ok(OutputOptions {
            machines: self.to_machines(warnings)?,
            percentiles: is_detailed || typed.percents.is_some(),
            spectrum,
            u_latency,
            batch_latency: self.has("batch_latency"),
            percents: typed.percents.clone(),
            breakout: typed.breakout,
            cmm_layout: self.dialect == Dialect::WrkCmm || self.typed().any(has_cmm_layout),
            format: typed.format,
            outputs: typed.outputs.clone(),
            sockets: typed.sampling.to_socket_sampling(connect)?,
            request_log: request_log.map(|path| RequestLogOptions { path, one_of: typed.log_one_of.unwrap_or(1) }),
            samples: typed.samples.clone(),
            gates: typed.gates.clone(),
            probing: None,
            is_strict: self.has("strict"),
            annotates: self.has("annotate"),
            command: String::new(),
            keeps_secrets: self.has("keep-secrets"),
            labels: typed.labels.clone(),
            position: None,
            verbose: self.has("version"),
            notes: typed.notes.unwrap_or(!self.dialect.is_compat()) && !is_quiet,
            is_quiet,
        })
    }
}

/// Sets the percentiles. Warns if all of them are below 1, because they may be meant as fractions.
fn set_percentiles(draft: &mut PlanDraft, value: Value) -> Result<(), PlanRefusal> {
    draft.output.has_spectrum = value.text == "full";
    if draft.output.has_spectrum {
        draft.output.percents = None;
        return Ok(());
    }
    let parts = value.utf8().unwrap_or_default().split(',');
    let percent = |part: &str| part.trim().parse().map_err(|reason| value.part(part).wrong(reason));
    let mut percents: Vec<Percent> = parts.map(percent).collect::<Result<_, _>>()?;
    percents.sort_unstable();
    percents.dedup();
    if percents.iter().all(|percent| percent.value() < 1.0) {
        let shown = value.lossy();
        draft.warnings.push(format!("--percentiles {shown}: these are percentages; the median is 50, not 0.5"));
    }
    draft.output.percents = Some(percents);
    Ok(())
}

/// Adds a file, whose ending selects its format; standard output gets the document instead of the report.
fn add_output(draft: &mut PlanDraft, value: Value) -> Result<(), PlanRefusal> {
    if value.text == "-" {
        draft.output.format = Format::Json;
        return Ok(());
    }
    let path = value.path();
    if draft.output.outputs.iter().any(|output| output.path == path) {
        return Err(value.wrong("given twice; each result needs its own file"));
    }
    let endings = match value.utf8() {
        Some("/dev/stdout") => "standard output is -o -, which prints the JSON document",
        _ => "its ending selects the format: .json, .json.gz, .csv, .hgrm, .md, .ndjson or .xml",
    };
    let kind = OutputKind::for_path(&path).ok_or_else(|| value.wrong(endings))?;
    draft.output.outputs.push(Output { path, kind });
    Ok(())
}

/// Parses a label and its value. A label must not be repeated, and must not be named like a column of the tables.
fn parse_label(value: Value, known: &BTreeMap<String, String>) -> Result<(String, String), PlanRefusal> {
    let pair = value.utf8().and_then(|text| text.split_once('=')).filter(|(key, _)| !key.is_empty());
    let (key, level) = pair.ok_or_else(|| value.wrong("not a label; try server=nginx"))?;
    if key.trim() != key {
        return Err(value.wrong("the name has blanks around it; try server=nginx"));
    }
    if is_column(key) {
        let reason = format_args!("onrush table already has a column {key:?}; choose another name");
        return Err(value.wrong(reason));
    }
    if known.contains_key(key) {
        return Err(value.wrong(format_args!("{key:?} already has a value; a run has one value per label")));
    }
    Ok((key.to_owned(), level.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags;

    fn read(text: &str, known: &BTreeMap<String, String>) -> Result<(String, String), String> {
        match parse_label(Value::new(flags::named("label"), text.as_ref(), Dialect::Native), known) {
            Ok(label) => Ok(label),
            Err(PlanRefusal::Misused(line)) => Err(line),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn labels_are_unique_and_no_columns() {
        let known = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        for (text, reason) in [
            ("host=a", "onrush table already has a column \"host\"; choose another name"),
            ("p99=a", "onrush table already has a column \"p99\"; choose another name"),
            ("a=2", "\"a\" already has a value; a run has one value per label"),
        ] {
            assert_eq!(read(text, &known), Err(format!("--label {text:?}: {reason}")));
        }
    }

    #[test]
    fn label_names_are_trimmed() {
        let none = BTreeMap::new();
        assert_eq!(read("my server= a=b ", &none).unwrap(), ("my server".to_owned(), " a=b ".to_owned()));
        for text in [" a=x", "a =x", " =x", "\ta=x"] {
            let line = read(text, &none).unwrap_err();
            assert!(line.ends_with("the name has blanks around it; try server=nginx"), "{line}");
        }
    }
}
