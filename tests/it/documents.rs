//! The documents are true: their examples run, and the things that they name exist.
//!
//! A fenced `console` block is a session:
//!
//! - `$ onrush …` and `$ wrk …` are run, and `$ jq …` and `$ cat …` on their files; other commands are not.
//! - The lines below a command are its output on either stream, and must agree but for their numbers. With nothing
//!   below it, the output is not checked.
//! - The exit code is the one below `$ echo $?`, else 1 after a refusal (a line `onrush: …`, or of a subcommand, and
//!   nothing else), else 0.
//! - The address 127.0.0.1:8080 is replaced by an embedded target's, the port 8443 by a TLS server's. Runs are cut
//!   short; searches meet a simulated target.
//! - Notes that depend on the machine, verdicts, and percentiles above 90 % are omitted on both sides.
//!
//! `logs` contains reports that people published.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use onrush_serve::EmbeddedServer;
use rustix::process::Signal;

use crate::harness::{self, Context, Onrush, Scratch, cases, signal, target};
use crate::{peers, tls_peers};

cases! {
    readme_examples_match (Once);
    manual_examples_match (Once);
    tour_examples_match (Once);
    gate_examples_match (Once);
    condition_examples_match (Once);
    experiment_examples_match (Once);
    manual_experiments_can_be_planned (Once);
    measuring_examples_match (Once) needs "jq";
    list_examples_match (Once);
    script_examples_match (Once);
    manual_scripts_run (Once);
    result_file_examples_match (Once) needs "jq";
    socket_examples_match (Once) needs "jq";
    other_tool_examples_match (Once);
    table_examples_match (Once);
    tls_examples_match (Once) needs "jq";
    http2_examples_match (Once) needs "jq";
    troubleshooting_examples_match (Once);
    troubleshooting_quotes_existing_messages (Once);
    shapes_are_lines_without_numbers (Once);
    every_link_has_a_target (Once);
    books_contain_every_page (Once);
    how_tos_are_short (Once);
    mentioned_options_exist (Once);
    mentioned_make_targets_exist (Once);
    architecture_seams_are_guarded (Once);
}

fn readme_examples_match(context: &Context) {
    check_examples(context, "README.md", 7);
}

fn manual_examples_match(context: &Context) {
    check_examples(context, "docs/command-line.md", 25);
}

fn tour_examples_match(context: &Context) {
    check_examples(context, "docs/tour.md", 10);
}

fn gate_examples_match(context: &Context) {
    check_examples(context, "docs/ci.md", 1);
}

fn condition_examples_match(context: &Context) {
    check_examples(context, "docs/conditions.md", 4);
}

fn experiment_examples_match(context: &Context) {
    check_examples(context, "docs/lab.md", 2);
}

fn manual_experiments_can_be_planned(context: &Context) {
    let document = MarkdownFile::read("docs/experiments.md");
    let experiments: Vec<String> = document.fences("toml").map(|lines| lines.join("\n")).collect();
    assert!(experiments.len() >= 2);
    for experiment in experiments {
        let scratch = Scratch::new("experiment");
        let output = context.onrush().words("lab --plan").word(scratch.file("x.toml", &experiment)).run_plain();
        assert_eq!(output.code, 0, "{experiment}\n{output:?}");
    }
}

fn measuring_examples_match(context: &Context) {
    check_examples(context, "docs/measuring.md", 4);
}

fn list_examples_match(context: &Context) {
    check_examples(context, "docs/requests.md", 6);
}

fn script_examples_match(context: &Context) {
    check_examples(context, "docs/scripting.md", 1);
}

fn manual_scripts_run(context: &Context) {
    let pages = [MarkdownFile::read("docs/scripting.md"), MarkdownFile::read("docs/login.md")];
    let scripts: Vec<String> = pages.iter().flat_map(|page| page.fences("lua")).map(|lines| lines.join("\n")).collect();
    assert!(scripts.len() > 10, "{} scripts", scripts.len());
    let server = target();
    for script in scripts {
        let onrush = context.onrush().words("-t2 -c4 -n100").lua(&script);
        let output = onrush.word(format!("http://{}/", server.address())).run();
        assert_eq!(output.code, 0, "{script}\n{output:?}");
        assert!(output.requests() > 0 && output.line("Non-2xx").is_none(), "{script}\n{output:?}");
        assert_eq!(output.line("Socket errors"), None, "{script}\n{output:?}");
    }
}

fn result_file_examples_match(context: &Context) {
    check_examples(context, "docs/output.md", 19);
}

fn socket_examples_match(context: &Context) {
    check_examples(context, "docs/sockets.md", 2);
}

fn other_tool_examples_match(context: &Context) {
    check_examples(context, "docs/other-tools.md", 5);
}

fn table_examples_match(context: &Context) {
    check_examples(context, "docs/tables.md", 7);
}

fn tls_examples_match(context: &Context) {
    check_examples(context, "docs/tls.md", 4);
}

fn http2_examples_match(context: &Context) {
    check_examples(context, "docs/http2.md", 3);
}

fn troubleshooting_examples_match(context: &Context) {
    check_examples(context, "docs/troubleshooting.md", 6);
}

fn troubleshooting_quotes_existing_messages(context: &Context) {
    let mut source = read("Makefile");
    for package in [".", "engine", "lab", "load", "plan", "proto", "serve", "stats", "text"] {
        append_sources(&root().join(package).join("src"), &mut source);
    }
    // Neither comments nor line breaks inside strings are printed.
    let printed: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let source: String = printed.join("\n").split("\\\n").map(str::trim_start).collect();
    let page = MarkdownFile::read("docs/troubleshooting.md");
    let messages: Vec<&str> = page.fences("text").flatten().collect();
    assert!(messages.len() > 50, "{} messages", messages.len());
    for message in messages {
        for part in message.split('…').map(|part| part.trim_matches([' ', ':', ';'])) {
            assert!(source.contains(part), "nothing prints {part:?} of {message:?}");
        }
    }
    let mut places = BTreeSet::new();
    for rest in source.split(" docs/").skip(1) {
        let is_end = |next: char| !next.is_alphanumeric() && !"-_.#".contains(next);
        let place = rest.split(is_end).next().unwrap_or_default().trim_end_matches('.');
        let (file, anchor) = place.split_once('#').unwrap_or((place, ""));
        if file.ends_with(".md") {
            let page = MarkdownFile::read(&format!("docs/{file}"));
            assert!(anchor.is_empty() || page.anchors().contains(&anchor.to_owned()), "no heading is called {place}");
            places.insert(format!("docs/{place}"));
        }
    }
    // The manual contains the answers without the pages.
    let manual = context.onrush().words("--generate man").run_plain().stdout;
    let answers = manual.split(".SH MESSAGES\n").nth(1).unwrap_or_default().split(".SH ").next().unwrap_or_default();
    let answered = answers.lines().filter_map(|line| Some(line.strip_prefix(".I ")?.replace("\\-", "-")));
    assert_eq!(answered.collect::<BTreeSet<_>>(), places);
}

/// Adds the text of every file below `directory` to `text`.
fn append_sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("the directory can be read").path();
        match path.is_dir() {
            true => append_sources(&path, text),
            false => *text += &fs::read_to_string(&path).expect("valid UTF-8"),
        }
    }
}

fn shapes_are_lines_without_numbers(_: &Context) {
    for (line, expected) in [
        ("    Latency     1.42ms    1.20ms  33.43ms   92.40%", " Latency # # # #"),
        ("    Latency     0.00us    0.00us   0.00us    -nan%", " Latency # # # -nan%"),
        ("  706300 requests in 10.00s, 52.54MB read", " # requests in # # read"),
        (
            "onrush serve: listening on http://127.0.0.1:8080/ (1 thread)",
            "onrush serve: listening on http://#:#/ (# thread)",
        ),
        ("note: all 10,000 responses were 301 to /", "note: all # responses were # to /"),
        ("     50%   ≥8.38ms", " # #"),
        ("  \"user_s\": 0.000549,", " \"user_s\": #"),
        ("  \"user_s\": 5.49e-07,", " \"user_s\": #"),
    ] {
        assert_eq!(shape(line), expected);
    }
    for line in ["note: the hypervisor took 7.1 % of this machine's processor time", "* the hypervisor took 7.1 %"] {
        assert!(is_of_the_machine(line), "{line}");
    }
    assert!(!is_of_the_machine("note: all 10,000 responses were 301 to /"));
}

fn every_link_has_a_target(_: &Context) {
    let mut checked = 0;
    for document in documents() {
        for link in document.links() {
            if !link.target.contains("://") {
                check_link(&document, &link);
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} links found");
}

/// `SUMMARY.md` is the table of contents of the book: it contains every page once.
fn books_contain_every_page(_: &Context) {
    let summary = MarkdownFile::read("docs/SUMMARY.md");
    let mut listed: Vec<&str> = summary.links().iter().map(|link| link.target).collect();
    listed.sort_unstable();
    let documents = documents();
    let pages = documents.iter().filter_map(|document| document.path.strip_prefix("docs/"));
    let mut pages: Vec<&str> = pages.filter(|page| *page != "SUMMARY.md").collect();
    pages.sort_unstable();
    assert_eq!(listed, pages);
}

/// A how-to describes one task in at most 400 words, and links to pages with the details.
fn how_tos_are_short(_: &Context) {
    let summary = MarkdownFile::read("docs/SUMMARY.md");
    let part = summary.text.split("\n# How to\n").nth(1).and_then(|rest| rest.split("\n# ").next());
    let part = MarkdownFile { path: summary.path.clone(), text: part.expect("there is such a part").to_owned() };
    for link in part.links() {
        let words = read(&format!("docs/{}", link.target)).split_whitespace().count();
        assert!(words <= 400, "{} has {words} words", link.target);
    }
}

fn mentioned_options_exist(_: &Context) {
    let help =
        |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_onrush")).args(words).output().expect("it runs").stdout;
    let all = [
        &["--help", "all"][..],
        &["serve", "--help"],
        &["merge", "--help"],
        &["show", "--help"],
        &["table", "--help"],
        &["compare", "--help"],
        &["lab", "--help"],
        &["sweep", "--help"],
        &["vs", "--help"],
        &["restore", "--help"],
        &["worker", "--help"],
        &["kubernetes", "--help"],
    ];
    let help = String::from_utf8(all.map(help).concat()).expect("the help is text");
    let spelled = |line| str::split_whitespace(line).take_while(|word: &&str| word.starts_with('-'));
    let known = help.lines().flat_map(spelled).map(|word| word.trim_end_matches(','));
    // `--generate` is among the commands.
    let known: Vec<&str> = known.chain(["--generate"]).collect();
    let mut checked = 0;
    for document in documents() {
        for code in document.code() {
            if !["-", "onrush ", "wrk ", "$ onrush ", "$ wrk "].iter().any(|start| code.starts_with(start)) {
                continue;
            }
            // Words after a pipe belong to another program.
            let code = code.split(" | ").next().unwrap_or_default();
            for word in
                code.split_whitespace().filter(|word| word.starts_with('-') && !word.bytes().all(|byte| byte == b'-'))
            {
                let exists = match word.strip_prefix("--") {
                    // Abbreviations are accepted, too.
                    Some(name) => {
                        let name = name.split('=').next().unwrap_or_default();
                        known.iter().any(|known| known.strip_prefix("--").is_some_and(|long| long.starts_with(name)))
                    }
                    None => word.get(..2).is_some_and(|letter| known.contains(&letter)),
                };
                // Some examples show the response to an unknown option.
                let option = word.split('=').next().unwrap_or_default();
                let is_refused = [format!("onrush: {option}: "), format!("unknown option {option};")];
                let exists = exists || is_refused.iter().any(|refusal| document.text.contains(refusal));
                assert!(exists, "{}: there is no option {word}: {code}", document.path);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} options found");
}

fn mentioned_make_targets_exist(_: &Context) {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("there is a Makefile");
    let mut checked = 0;
    for document in documents() {
        for code in document.code() {
            let words: Vec<&str> = code.split('#').next().unwrap_or_default().split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| pair[0] == "make") {
                let name = pair[1];
                if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
                    let rule = format!("\n{name}: ");
                    assert!(makefile.contains(&rule), "{}: there is no target {name}: {code}", document.path);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 5, "only {checked} targets found");
}

fn architecture_seams_are_guarded(_: &Context) {
    let text = read("ARCHITECTURE.md");
    let seams = text.split("\n| seam | rule | guarded by |\n").nth(1).expect("there is a table of the seams");
    let rows: Vec<&str> = seams.lines().skip(1).take_while(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 10, "{} seams found", rows.len());
    for row in rows {
        let guards = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        assert!(guards.starts_with('[') && guards.contains(".rs)"), "nothing is named that guards this: {row}");
    }
    let words = text.split_whitespace().count();
    assert!(words <= 2000, "{words} words are more than ten minutes");
}

/// One command of a session, with the expected output and exit code.
#[derive(Debug, Default)]
struct SessionStep {
    command: String,
    output: Vec<String>,
    code: Option<i32>,
}

/// Runs every example in a document, of which there must be at least `at_least`.
fn check_examples(context: &Context, path: &str, at_least: usize) {
    let steps: Vec<SessionStep> = MarkdownFile::read(path).fences("console").flat_map(session).collect();
    assert!(steps.len() >= at_least, "{path} has {} examples", steps.len());
    let (server, scratch) = (target(), Scratch::new("documents"));
    let tls_port = tls_peers::documented(&scratch).address.port();
    peers::unix(&scratch.path().join("app.sock"));
    // Responds to 500 requests/s, as in the examples of searches.
    scratch.file("capacity.toml", "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 2\nservice_us = 4000.0\n");
    for name in ["onrush", "wrk"] {
        let link = scratch.path().join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_onrush"), link).expect("a link can be made");
    }
    for (name, directory) in [("examples", "examples"), ("logs", "tests/fixtures")] {
        std::os::unix::fs::symlink(root().join(directory), scratch.path().join(name)).expect("a link can be made");
    }
    // Runs that wait for other machines are tested in machines.rs.
    for step in steps.iter().filter(|step| !step.command.contains("--machines")) {
        step.check(context, path, (&server, tls_port), scratch.path());
    }
}

/// The executed commands of a block, each with output and exit code.
fn session(lines: Vec<&str>) -> Vec<SessionStep> {
    let mut steps: Vec<SessionStep> = Vec::new();
    let mut is_code = false;
    for line in lines {
        match line.strip_prefix("$ ") {
            Some("echo $?") => is_code = true,
            Some(command) => steps.push(SessionStep { command: command.to_owned(), ..SessionStep::default() }),
            None => {
                let step = steps.last_mut().expect("a session begins with a command");
                if is_code {
                    step.code = Some(line.parse().expect("an exit code"));
                } else {
                    step.output.push(line.to_owned());
                }
            }
        }
    }
    steps.retain(|step| ["onrush", "wrk", "jq", "cat"].contains(&step.words().next().unwrap_or_default()));
    steps
}

impl SessionStep {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.command.split_whitespace()
    }

    /// True if the command is refused before anything happens.
    fn is_refused(&self) -> bool {
        matches!(&self.output[..], [line] if ["", " merge", " show", " table", " compare", " lab", " sweep", " vs"].iter().any(|command| line.starts_with(&format!("onrush{command}: "))))
    }

    /// True if the command sends load.
    fn is_run(&self) -> bool {
        self.command.contains("://") && !self.is_refused() && !self.command.contains("--plan")
    }

    /// Runs the step, and compares its output with the example.
    fn check(&self, context: &Context, path: &str, servers: (&EmbeddedServer, u16), programs: &Path) {
        let (mut lines, code) = self.perform(context, servers, programs);
        // On a busy machine, a strict run may rightly fail.
        let code = if code == 4 && self.command.contains("--strict") { 0 } else { code };
        let shown = format!("{path}: $ {}\n{}\n[{code}]", self.command, lines.join("\n"));
        assert_eq!(code, self.code.unwrap_or(i32::from(self.is_refused())), "{shown}");
        if self.is_run() && !self.is_quiet() {
            let version = lines.remove(0);
            let backend = if self.is_search() { "sim" } else { context.backend };
            assert!(version.contains(&format!("[{backend}]")), "{shown}");
        }
        let shapes = |lines: &[String]| {
            let lines = lines.iter().filter(|line| !is_of_the_machine(line)).map(|line| shape(line));
            // A run that is timed in the example may end after a number of requests here.
            let mut shapes: Vec<_> =
                lines.map(|line| line.replace("Running # requests test", "Running # test")).collect();
            // An empty line precedes notes, all of which may depend on the machine.
            shapes.truncate(shapes.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
            shapes
        };
        assert!(self.output.is_empty() || shapes(&lines) == shapes(&self.output), "{shown}");
    }

    /// Runs the command like a shell, but shorter and on the test target. Returns both streams as one, and the exit
    /// code.
    fn perform(
        &self,
        context: &Context,
        (server, tls_port): (&EmbeddedServer, u16),
        programs: &Path,
    ) -> (Vec<String>, i32) {
        // A target continues to freeze for a while after a run, so each of these runs gets a target of its own.
        let frozen = self.command.contains("/freeze?").then(target);
        let address = frozen.as_ref().unwrap_or(server).address();
        let mut command = self.command.replace("127.0.0.1:8080", &address.to_string());
        command = command.replace("example.com:8080", &format!("example.com:{}", address.port()));
        // A freeze must fit into a shortened run, with time for the backlog.
        command = command.replace("every=5s&ms=1000", "every=100ms&ms=50");
        command = command.replace(":8443", &format!(":{tls_port}"));
        let is_server = self.words().nth(1) == Some("serve") && !self.words().any(|word| word == "--help");
        if is_server {
            command += " --addr 127.0.0.1:0";
        } else if self.command.contains("://") && !self.command.contains("--plan") {
            let io = if self.is_search() { "sim:capacity.toml" } else { context.backend };
            let verbose = if self.is_quiet() { "" } else { "-v " };
            command += &format!(" {verbose}--io {io}{}", self.shorter());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [programs.to_owned()].into_iter().chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; exec {command}")]).current_dir(programs);
        shell.env("PATH", std::env::join_paths(path).expect("the parts come from a path"));
        shell.env_remove("POSIXLY_CORRECT").stdin(Stdio::null()).stdout(Stdio::piped());
        let shell = context.onrush().with(|command| *command = shell);
        let (text, code) = if is_server {
            first_line_of(shell)
        } else {
            let output = shell.run_plain();
            (output.stdout, output.code)
        };
        (text.lines().map(str::to_owned).collect(), code)
    }

    /// True if the command prints only the report.
    fn is_quiet(&self) -> bool {
        self.words().any(|word| word == "--quiet")
    }

    /// True if the command makes many runs, which virtual time shortens.
    fn is_search(&self) -> bool {
        self.words().any(|word| word == "--find-max")
    }

    /// The option that shortens a run; if a duration is given twice, the last one wins. Most runs end after a number of
    /// requests, because a busy machine may complete none in a short time.
    fn shorter(&self) -> &'static str {
        let is_limit = |word: &str| word.starts_with("-n") || ["--requests", "--once", "--stages"].contains(&word);
        if self.is_search() || self.words().any(is_limit) {
            ""
        } else if ["/freeze?", "result.ndjson", ":9/"].iter().any(|part| self.command.contains(part)) {
            // A freeze and an interval take time. A run with a number of requests would wait until the target is there.
            " -d 500ms"
        } else if self.command.contains("-c 400") {
            " -n 400"
        } else {
            " -n 100"
        }
    }
}

/// Interrupts a program once its first line is complete. Returns the whole output and the exit code.
fn first_line_of(program: Onrush) -> (String, i32) {
    let mut child = program.spawn();
    let (mut output, mut text) = (BufReader::new(child.stdout.take().expect("it is piped")), String::new());
    output.read_line(&mut text).expect("it can be read");
    signal(&child, Signal::INT);
    output.read_to_string(&mut text).expect("it can be read");
    (text, child.wait().expect("it ends").code().unwrap_or(-1))
}

/// Notes, in addition to the harness's list, that depend on the speed and load of the machine.
const OF_THE_MACHINE: [&str; 6] = [
    " still in flight when measuring began",
    "latency as measured; wrk would print ",
    " while requests were due",
    " due requests were sent",
    " are uncertain; ",
    " times the mean number of requests: ",
];

/// Starts of lines that appear in every run, or only in a sufficiently long one.
const ABOUT_THE_RUN: [&str; 6] =
    ["verdict: ", "| verdict |", "`onrush ", "usage: ", "probe: ", "onrush: a probe of up to "];

/// True if a line may be missing, depending on the machine.
fn is_of_the_machine(line: &str) -> bool {
    let mut words = harness::OF_THE_MACHINE.iter().chain(&OF_THE_MACHINE);
    // In Markdown, the sentence is a bullet.
    let mut is_one = |line: &str| words.any(|words| line.contains(words.trim_start_matches("note: ")));
    let is_about_the_run = ABOUT_THE_RUN.iter().any(|start| line.starts_with(start));
    let is_note = line.starts_with("note: ") || line.starts_with("* ");
    // The sides acknowledge each other's SETTINGS at any time.
    let is_acknowledgement = ["> SETTINGS, ACK", "< SETTINGS, ACK"].contains(&line);
    // A request that becomes due at the last moment may remain unsent.
    let is_unsent =
        line.ends_with(" unsent at the end)") || line.trim_start().starts_with("Oldest request without a response: ");
    is_about_the_run || is_acknowledgement || is_note && is_one(line) || is_far_out(line) || is_unsent
}

/// True for a percentile that needs more requests than a shortened run makes.
fn is_far_out(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let percent = words.next().and_then(|word| word.strip_suffix('%')?.parse::<f64>().ok());
    percent.is_some_and(|percent| (90.01..100.0).contains(&percent)) && words.count() == 1
}

/// Units of numbers in reports, longer ones before their prefixes.
const UNITS: [&str; 15] = ["us", "ms", "KB", "MB", "GB", "TB", "s", "m", "h", "B", "k", "K", "M", "G", "%"];

/// The text after its leading digits, points and commas.
fn after_digits(text: &str) -> &str {
    text.trim_start_matches(|next: char| next.is_ascii_digit() || ",.".contains(next))
}

/// A line with every number and its unit replaced by `#`, with single spaces, and with the same backend on every
/// machine.
fn shape(line: &str) -> String {
    let line = line.replace("[epoll]", "[uring]");
    let (mut shape, mut rest) = (String::new(), line.trim_end());
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            rest = after_digits(rest);
            rest = rest.strip_prefix("e-").map_or(rest, after_digits);
            let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric());
            let unit = UNITS.iter().find_map(|unit| rest.strip_prefix(unit).filter(|rest| is_whole(rest)));
            rest = unit.map_or(rest, |rest| rest.trim_start_matches(','));
            shape.push('#');
        } else if first == ' ' {
            rest = rest.trim_start_matches(' ');
            shape.push(' ');
        } else if first == '≥' {
            // If a request was unsent at the end, a percentile may only be a bound.
            rest = &rest[first.len_utf8()..];
        } else {
            rest = &rest[first.len_utf8()..];
            shape.push(first);
        }
    }
    // In a shortened run, too few values exceed this percentile.
    shape.replace(": p# #, max #)", ": max #)")
}

struct MarkdownFile {
    /// Path from the root of the repository.
    path: String,
    text: String,
}

/// A link in a document: `[text](target)`.
struct Link<'a> {
    text: &'a str,
    target: &'a str,
}

impl MarkdownFile {
    fn read(path: &str) -> Self {
        Self { path: path.to_owned(), text: read(path) }
    }

    /// Lines of each fenced block in this language; an empty name selects all languages.
    fn fences<'a>(&'a self, language: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
        let parts = self.text.split("\n```").skip(1).step_by(2);
        parts
            .filter(move |part| part.lines().next().is_some_and(|first| first.starts_with(language)))
            .map(|part| part.lines().skip(1).collect())
    }

    /// Lines outside the fenced blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        self.text.split("\n```").step_by(2)
    }

    /// Lines of all fenced blocks, and the code in the prose.
    fn code(&self) -> Vec<&str> {
        let spans = self.prose().flat_map(|prose| prose.split('`').skip(1).step_by(2));
        self.fences("").flatten().chain(spans).collect()
    }

    fn links(&self) -> Vec<Link<'_>> {
        let mut links = Vec::new();
        for prose in self.prose() {
            for (middle, _) in prose.match_indices("](") {
                let (before, after) = (&prose[..middle], &prose[middle + 2..]);
                if let (Some(start), Some(end)) = (before.rfind('['), after.find(')')) {
                    links.push(Link { text: &before[start + 1..], target: &after[..end] });
                }
            }
        }
        links
    }

    /// Anchors of headings: lower case, spaces as dashes, no other punctuation.
    fn anchors(&self) -> Vec<String> {
        let headings = self.prose().flat_map(str::lines).filter(|line| line.starts_with('#'));
        let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
        let anchor = |heading: &str| heading.trim_start_matches('#').trim().to_lowercase();
        headings.map(|heading| anchor(heading).chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
    }
}

/// Checks that the target of a link and its heading exist, and that a linked source file contains the name in the
/// link's text.
fn check_link(document: &MarkdownFile, Link { text, target }: &Link) {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let here = root().join(&document.path);
    let path = if file.is_empty() { here.clone() } else { here.with_file_name("").join(file) };
    let place = format!("{}: [{text}]({target})", document.path);
    assert!(path.exists(), "{place}: there is no such file");
    if !anchor.is_empty() {
        let linked = MarkdownFile { path: file.to_owned(), text: fs::read_to_string(&path).expect("valid UTF-8") };
        assert!(linked.anchors().contains(&anchor.to_owned()), "{place}: no such heading: {:?}", linked.anchors());
    }
    let code = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).filter(|code| !target.ends_with(code));
    if let Some(code) = code.filter(|_| file.ends_with(".rs")) {
        let source = fs::read_to_string(&path).expect("valid UTF-8");
        let is_module = |name: &str| file.contains(&format!("/{name}/"));
        assert!(code.split("::").all(|name| is_module(name) || is_in(&source, name)), "{place}: not to be found there");
    }
}

/// True if a source defines a name, or contains a string that is not a name.
fn is_in(source: &str, name: &str) -> bool {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return source.contains(name);
    }
    let is_defined = |kind: &str| {
        let definition = format!("{kind} {name}");
        let ends =
            |(at, _)| !source[at + definition.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_');
        source.match_indices(&definition).any(ends)
    };
    let is_extended = || source.contains(&format!("impl<B: Backend> {name}<B>"));
    ["fn", "struct", "enum", "trait", "type", "mod", "const"].into_iter().any(is_defined) || is_extended()
}

/// Every Markdown file of the repository.
fn documents() -> Vec<MarkdownFile> {
    let mut documents = Vec::new();
    for directory in [root(), root().join("docs")] {
        for entry in fs::read_dir(&directory).expect("the directory can be read") {
            let path = entry.expect("the directory can be read").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let path = path.strip_prefix(root()).expect("it lies in the repository");
                documents.push(MarkdownFile::read(&path.to_string_lossy()));
            }
        }
    }
    documents
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
