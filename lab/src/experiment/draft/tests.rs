//! Experiments from files and command lines, and all their possible faults.

use onrush_load::cli::flags;
use onrush_plan::{Dialect, Order};

use super::file::parse_outline;
use super::typed::SHORTHAND;
use super::*;

/// The experiment that TOML describes, or its fault.
fn decided(text: &str) -> Result<Experiment, String> {
    let outline =
        parse_outline(text).map_err(|wrong| format!("{}: {}", wrong.line.unwrap_or_default(), wrong.words))?;
    let around = Circumstances { folder: ResultDestination::New(None), may_change_host: false, retries: None };
    design::decide_experiment(outline, around).map(|(experiment, _)| experiment)
}

const WHOLE: &str = r#"
name = "proxies"
rounds = 2
order = "random"
seed = 7
retry = 1
baseline = { url = "nginx", load = "heavy" }
attach = ["/etc/hostname"]
[run]
duration = "30s"
header = ["A: 1", "Cookie: secret"]
latency = true
[[factor]]
name = "url"
levels = [{ label = "proxy", url = "http://h:1/" }, { label = "nginx", url = "http://u:p@h:2/" }]
[[factor]]
name = "load"
levels = [{ threads = 12, connections = 400 }, { label = "heavy", threads = 8, connections = 9_600 }]
[[factor]]
name = "sysctl.net.core.rmem_max"
levels = [4096, "8192"]
[target]
command = "server"
ready = "http://h:1/"
timeout = "5s"
[hooks]
before_point = "systemctl restart nginx"
timeout = "1m"
on_error = "stop"
"#;

#[test]
fn levels_are_crossed() {
    let experiment = decided(WHOLE).unwrap();
    assert_eq!((experiment.points.len(), experiment.planned_runs(), experiment.order), (8, 16, Order::Random));
    let files: Vec<&str> = experiment.points.iter().map(|point| point.file.as_str()).collect();
    assert_eq!(files[0], "url-proxy-connections-400-threads-12-rmem_max-4096");
    assert_eq!(files[7], "url-nginx-load-heavy-rmem_max-8192");
    let last = &experiment.points[7];
    assert_eq!((last.plan.load.threads, last.plan.load.connections), (8, 9600));
    assert_eq!(last.settings, [("net.core.rmem_max".to_owned(), "8192".to_owned())]);
    assert_eq!(experiment.levels_in_words(last), "url=nginx load=heavy sysctl.net.core.rmem_max=8192");
    let baselines: Vec<usize> = experiment.factors.iter().map(|factor| factor.baseline).collect();
    assert_eq!(baselines, [1, 1, 0]);
    assert!(experiment.hooks.are_fatal && experiment.retries == 1);
    let server = experiment.server.unwrap();
    assert_eq!((server.timeout.as_secs(), server.ready.unwrap().target.typed.as_str()), (5, "http://h:1/"));
}

#[test]
fn resolved_files_decide_the_same() {
    let experiment = decided(WHOLE).unwrap();
    let again = decided(&experiment.text).unwrap();
    assert_eq!(again.text, experiment.text);
    assert_eq!(again.points, experiment.points);
    assert_eq!(again.factors, experiment.factors);
    assert!(!experiment.shown.contains("secret") && !experiment.shown.contains("u:p"), "{}", experiment.shown);
    assert!(
        !experiment.shown.contains("\"server\"") && !experiment.shown.contains("systemctl"),
        "{}",
        experiment.shown
    );
    assert!(experiment.shown.contains("before_point = \"sha256:"), "{}", experiment.shown);
    assert_eq!(
        decided(&experiment.shown).unwrap_err().split(';').next(),
        Some("this file has only digests of the commands")
    );
    let kept = decided(&WHOLE.replace("latency = true", "keep-secrets = true")).unwrap();
    assert_eq!(kept.shown, kept.text);
}

#[test]
fn file_mistakes_name_line_and_nearest() {
    let run = "name = \"x\"\n[run]\nurl = \"h\"\n";
    let factor = |levels: &str| format!("{run}[[factor]]\nname = \"connections\"\nlevels = {levels}\n");
    let table: [(String, &str); 27] = [
        ("nome = \"x\"".to_owned(), "1: unknown key \"nome\"; did you mean name?"),
        ("duration = \"3s\"".to_owned(), "1: unknown key \"duration\"; it belongs in [run]"),
        (format!("{run}durtion = \"3s\"\n"), "4: unknown option \"durtion\"; did you mean duration?"),
        (format!("{run}output = \"x.json\"\n"), "4: --output makes no sense here: each run has its own file"),
        (format!("{run}find-max = \"p99<1s\"\n"), "4: --find-max makes no sense here"),
        (format!("{run}[hooks]\non_error = 1\n"), "5: on_error must be text in quotes"),
        (format!("{run}[hooks]\ntimeout = true\n"), "5: timeout must be text in quotes or a decimal number"),
        (format!("{run}[hooks]\ntimeout = 0\n"), "5: timeout must be a time, such as \"30s\""),
        (format!("{run}[hooks]\ntimeout = \"5x\"\n"), "5: timeout must be a time, such as \"30s\""),
        (format!("{run}[hooks]\non_error = \"panic\"\n"), "5: on_error must be \"continue\" or \"stop\""),
        (format!("rounds = 0\n{run}"), "1: rounds must be a whole number from 1 to 1000"),
        (format!("order = \"odd\"\n{run}"), "1: order must be \"interleaved\" or \"random\" or \"sequential\""),
        ("name = \"x\"\n[[factor]]\nname = \"a\"\n".to_owned(), "3: a factor needs levels"),
        ("name = \"x\"\nfactor = 1\n".to_owned(), "2: factor must be a list of tables"),
        ("name = \"x\"\n\nx = = 1\n".to_owned(), "3: "),
        (factor("[]"), "factor \"connections\" has no levels"),
        (factor("[1, 1]"), "factor \"connections\" has two levels \"1\""),
        (factor("[{ conections = 1 }]"), "6: unknown option \"conections\"; did you mean connections?"),
        (factor("[\"x\"]"), "connections=x: --connections \"x\""),
        (factor("[1]").replace("name = \"connections\"", "name = \"clients\""), "6: unknown option \"clients\""),
        (
            factor("[1]") + "[[factor]]\nname = \"other\"\nlevels = [{ connections = 2 }]\n",
            "connections is set by two factors",
        ),
        (
            factor(&format!("[{}]", (1..=101).map(|n| n.to_string()).collect::<Vec<_>>().join(",")))
                + &format!(
                    "[[factor]]\nname = \"rate\"\nlevels = [{}]\n",
                    (1..=101).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
                ),
            "101 × 101 levels make more than 10000 points",
        ),
        (
            format!("baseline = {{ connections = \"3\" }}\n{}", factor("[1, 2]")),
            "baseline: factor \"connections\" has no level \"3\"",
        ),
        ("name = \"x\"".to_owned(), "there is no url"),
        (
            format!("baseline = {{ conections = 1 }}\n{}", factor("[1, 2]")),
            "baseline: there is no factor \"conections\"; did you mean connections?",
        ),
        (run.replace("name = \"x\"", ""), "the experiment has no name"),
        (factor("[{ \"target.command\" = \"a\" }]"), "target.command is varied, but there is no [target]"),
    ];
    for (text, expected) in table {
        let wrong = decided(&text).unwrap_err();
        assert!(wrong.contains(expected), "{text}\n{wrong}\nnot {expected}");
        assert!(!wrong.contains('\n'), "{wrong}");
    }
}

#[test]
fn unitless_times_are_seconds() {
    let tables = "[target]\ncommand = \"a\"\ntimeout = 2.5\n[hooks]\ntimeout = 60\n";
    let experiment = decided(&format!("name = \"x\"\n[run]\nurl = \"h\"\nduration = 3\n{tables}")).unwrap();
    assert_eq!(experiment.points[0].plan.stop.duration.unwrap().as_secs(), 3);
    assert_eq!(experiment.server.unwrap().timeout.as_millis(), 2_500);
    assert_eq!(experiment.hooks.timeout.as_secs(), 60);
}

#[test]
fn points_with_equal_files_are_refused() {
    let levels = "[{ label = \"a b\", threads = 1 }, { label = \"a_b\", threads = 2 }]";
    let text = format!("name = \"x\"\n[run]\nurl = \"h\"\n[[factor]]\nname = \"load\"\nlevels = {levels}\n");
    let wrong = decided(&text).unwrap_err();
    assert!(wrong.contains("\"a b\" and \"a_b\" would both be written to load-a_b-1.json"), "{wrong}");
}

fn sweep_of(line: &str) -> Result<Experiment, String> {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse_sweep(&args).map(|lab| *lab.unwrap().experiment)
}

fn versus_of(line: &str) -> Result<Experiment, String> {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse_versus(&args).map(|lab| *lab.unwrap().experiment)
}

#[test]
fn too_short_runs_are_announced() {
    let words = |line: &str| -> Vec<OsString> { line.split_whitespace().map(OsString::from).collect() };
    let warned = |lab: Result<Option<LabCommand>, String>| lab.unwrap().unwrap().warnings;
    let said = |requests: &str, remedy: &str| {
        vec![format!(
            "there will be no verdict: comparing the p99 takes 2,000 responses per run, but one run has only \
             {requests} requests; {remedy}"
        )]
    };
    let line = |requests: &str, length: &str| said(requests, &format!("measure for longer, such as {length} (-d)"));
    let vs = |options: &str| warned(parse_versus(&words(&format!("http://a/ http://b/ {options}"))));
    assert_eq!(vs("-R 100"), line("200", "22s"));
    assert_eq!(vs("-R 500 -d 1s"), line("500", "5s"));
    assert_eq!(vs("-R 30/m"), line("1", "4400s"));
    assert_eq!(vs("-R 500 -n 3000 -d 1s"), line("500", "5s"));
    // The limit that ends the run too early must be changed.
    let more = "send 2,000 requests or more (-n)";
    assert_eq!(["-R 500 -n 1999", "-R 500 -n 1999 -d 5s"].map(vs), [said("1,999", more), said("1,999", more)]);
    let both = format!("measure for longer, such as 5s (-d), and {more}");
    assert_eq!(vs("-R 500 -n 1999 -d 1s"), said("500", &both));
    let stages = |times: &str| format!("make its stages {times} times as long (--stages)");
    assert_eq!(vs("--stages 1s:100..300"), said("200", &stages("11")));
    assert_eq!(vs("-R 900 --stages c=1s:1,1s:2"), said("1,800", &stages("1.3")));
    let fine = [
        "",
        "-R 500",
        "-R 500/s",
        "-R 30k/m",
        "-R 500 -n 2000",
        "-R 1 -d 1h",
        // Follows the advice of the warning.
        "-R 500 -n 2000 -d 5s",
        "--stages 11s:100..300",
        "-R 900 --stages c=1.3s:1,1.3s:2",
    ]
    .map(vs);
    assert_eq!(fine, [const { Vec::<String>::new() }; 9]);
    let sweep = |options: &str| warned(parse_sweep(&words(&format!("http://a/ {options}"))));
    assert_eq!(sweep("-c 8,16 -R 100"), line("1,000", "22s"));
    assert_eq!((sweep("-R 100,200"), sweep("-c 8,16")), (vec![], vec![]));
}

#[test]
fn lists_of_a_sweep_are_crossed_or_zipped() {
    let experiment = sweep_of("-c 2,8 -t1,2 -d 3s --rounds=5 http://h/ -H A:b").unwrap();
    assert_eq!((experiment.points.len(), experiment.rounds), (4, 5));
    assert_eq!(
        experiment.points[3].plan.output.command,
        "onrush --connections=8 --duration=3s --header=A:b --threads=2 http://h/"
    );
    assert_eq!(experiment.levels_in_words(&experiment.points[1]), "connections=2 threads=2");
    let zipped = sweep_of("--zip --sysctl net.core.rmem_max=1,2 --sysctl net.core.wmem_max=3,4 h").unwrap();
    let files: Vec<&str> = zipped.points.iter().map(|point| point.file.as_str()).collect();
    assert_eq!(files, ["rmem_max-1-wmem_max-3", "rmem_max-2-wmem_max-4"]);
    for (line, expected) in [
        ("-c 8 http://h/", "nothing is varied"),
        ("-c 1,,2 http://h/", "its list has an empty entry"),
        ("-c 1,8 -t 1,2,3 --zip h", "connections has 2 levels and threads has 3"),
        ("-c 1,8 -c 1,2 h", "connections has two lists"),
        ("-c 1,8 --rounds 0 h", "--rounds \"0\""),
        ("-c 1,8 --rounds", "--rounds needs a value"),
        ("-c 1,8 --order odd h", "--order \"odd\""),
        ("-c 1,8 --bogus h", "unknown option --bogus"),
        ("-c 1,8 --round 2 h", "unknown option --round; did you mean --rounds?"),
        ("-c 1 8 64 h", "nothing is varied"),
        ("-c 1-256 http://h/", "write 1..256, which doubles"),
        ("-c 1,8 -o x.json h", "each run has its own file"),
        ("--sysctl x h", "write NAME=VALUE,VALUE"),
        ("-c 1,8", "no URL"),
        ("-c 1,8 --urls - h", "urls -: standard input can be read only once; save it to a file"),
        ("-c 1,8 --body @- h", "body @-: standard input can be read only once"),
    ] {
        let wrong = sweep_of(line).unwrap_err();
        assert!(wrong.contains(expected), "{line}: {wrong}");
    }
    let list = tempfile::NamedTempFile::new().unwrap();
    fs::write(&list, "http://h/a\n").unwrap();
    let of_list = sweep_of(&format!("-c 1,8 --urls {}", list.path().display())).unwrap();
    assert_eq!(of_list.points[1].plan.target.typed, "http://h/a");
    assert!(parse_sweep(&["--help".into()]).unwrap().is_none());
}

#[test]
fn target_comparisons_default_to_short_runs() {
    let experiment = versus_of("http://a/ http://b/ -c 8").unwrap();
    let plan = &experiment.points[0].plan;
    assert_eq!((plan.stop.duration.unwrap().as_secs(), plan.warmup.as_millis(), experiment.rounds), (2, 500, 10));
    let requests = versus_of("http://a/ http://b/ -n 100 --warmup 1s").unwrap();
    let plan = &requests.points[0].plan;
    assert_eq!((plan.stop.duration, plan.stop.requests, plan.warmup.as_secs()), (None, Some(100), 1));
    // Comparing a p99 takes 2,000 responses.
    for (words, length_ms) in [
        ("-R 500", 4_400),
        ("-R 500/s", 4_400),
        ("-R 30k/m", 4_400),
        ("-R 10k", 2_000),
        ("-R 110", 20_000),
        ("-R 500 -d 1s", 1_000),
    ] {
        let experiment = versus_of(&format!("http://a/ http://b/ {words}")).unwrap();
        let length = experiment.points[0].plan.stop.duration.unwrap();
        assert_eq!(length.as_millis(), length_ms, "{words}");
    }
    let noise = versus_of("http://a/ http://a/").unwrap();
    let files: Vec<&str> = noise.points.iter().map(|point| point.file.as_str()).collect();
    assert_eq!(files, ["url1", "url-http___a___2_"]);
    assert!(versus_of("http://a/").unwrap_err().contains("needs at least two URLs"));
    assert!(versus_of("http://a/ http://b/ -c 1,8").unwrap_err().contains("--connections \"1,8\""));
}

#[test]
fn result_folders_are_new_or_resumed() {
    let folder = |line: &str| {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse(&args).map(|lab| lab.map(|lab| lab.experiment.folder)).unwrap_err()
    };
    assert!(folder("x.toml --out a --resume b").contains("both name a folder"));
    assert!(folder("x.toml --force").contains("--force needs --resume"));
    assert!(folder("/nonexistent.toml").contains("/nonexistent.toml cannot be read: No such file"));
    assert!(folder("a b").contains("is a second file"));
    assert!(folder("").contains("no file"));
    assert!(folder("--bogus").contains("all options: onrush lab --help"));
    assert!(folder("--retry 101 x").contains("from 0 to 100"));
}

#[test]
fn experiment_options_differ_from_run_options() {
    for option in LAB_ARGUMENTS.options.iter().chain(&SHORTHAND) {
        let name = option.described.spelling.long;
        assert!(flags::by_name(name).is_none(), "{name}");
        // -v prints more in either case.
        let is_known = |letter| flags::by_letter(letter).is_some_and(|flag| flag.name() == "version");
        assert!(option.described.spelling.short.is_none_or(is_known), "{name}");
        assert!(flags::by_prefix(name, Dialect::Native).is_empty(), "{name}");
    }
}

#[test]
fn repeatable_options_add_up() {
    let experiment = versus_of("http://a/ http://b/ --form a=1 --form b=2").unwrap();
    let body = String::from_utf8_lossy(experiment.points[0].plan.body().unwrap()).into_owned();
    assert!(body.contains("name=\"a\"") && body.contains("name=\"b\""), "{body}");
    assert!(versus_of("http://a/ http://b/ --seed 1 --seed 2").unwrap_err().contains("seed takes one value"));
}
