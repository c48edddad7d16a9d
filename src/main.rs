//! The program: parse → plan → run → report → exit code. The only place that prints "onrush:" and picks an exit code.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};

use onrush::cli::{self, Invocation};
use onrush::live::ProgressLine;
use onrush::plan::{self, Addresses, Dialect, Format, Plan, proxy};
use onrush::report::files::Files;
use onrush::report::result::Document;
use onrush::run::{
    self, Choice, Ended, Interrupt, NotStarted, Observer, Outcome, Prepared, Progress, Second, Unavailable, Waiting,
};
use onrush::script::{self, Script, Setting, Through};
use onrush::{report, serve};

/// A bad option, URL or file, an unresolvable host, a report that could not be written; in compatible runs, anything.
const EXIT_WRONG: u8 = 1;
/// The run could not start.
const EXIT_NOT_STARTED: u8 = 2;
/// The run ended and not one request was answered, or its target stayed away.
const EXIT_NOTHING_COMPLETED: u8 = 5;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| eprint_all(&format!("onrush: this is a bug in onrush: {panic}\n"))));
    let mut speaker = "onrush: ";
    let outcome = match cli::parse(std::env::args_os()) {
        Invocation::Print { stdout, stderr, exit } => {
            eprint_all(&stderr);
            print_all(&stdout).map(|()| exit)
        }
        Invocation::Merge(merge) => {
            speaker = "onrush merge: ";
            report::merge::run(&merge).and_then(|text| print_all(&text)).map(|()| 0)
        }
        Invocation::Serve(config) => serve::run(&config).map(|()| 0),
        Invocation::Run { plan, warnings } => {
            warnings.iter().for_each(|line| eprint_all(&format!("{line}\n")));
            if plan.dialect.is_compat() {
                // wrk's own words stand alone.
                speaker = "";
            }
            if plan.script.is_some() { test_with_script(&plan) } else { test(&plan) }
        }
    };
    match outcome {
        Ok(exit) => ExitCode::from(exit),
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprint_all(&format!("{speaker}{error:#}\n"));
            let not_started = error.is::<NotStarted>() || error.is::<Unavailable>();
            ExitCode::from(if not_started { EXIT_NOT_STARTED } else { EXIT_WRONG })
        }
    }
}

/// The same as [`test`], for a script may call itself more deeply than a main thread bears.
fn test_with_script(plan: &Plan) -> anyhow::Result<u8> {
    run::on_large_stack(|| test(plan)).context("unable to create a thread for the script")?
}

/// Runs a test and reports it; returns the exit code.
fn test(plan: &Plan) -> anyhow::Result<u8> {
    let files = Files::open(&plan.outputs)?;
    let interrupt = Interrupt::listen()?;
    let choice = run::choice::choose(&plan.io)?;
    if plan.verbose && plan.dialect.is_compat() {
        print_all(&format!("{}\n", cli::version(plan.dialect, choice.name)))?;
    }
    let addresses = plan::resolve::resolve(&plan.target, &plan.way)?;
    let addresses = if plan.dialect.is_compat() { run::probe::probe(plan, &addresses, &interrupt)? } else { addresses };
    if plan.verbose && !plan.dialect.is_compat() {
        eprint_all(&verbose(plan, &choice, &addresses));
    }
    // A script may do anything at all, and for ever, before the run begins.
    let mut script = interrupt.quitting(|| load(plan, &addresses))?;
    if let Some(ports) = run::host::too_few_ports(plan, &addresses, run::Ports::read()).filter(|_| plan.notes) {
        eprint_all(&format!("{}\n", report::too_few_ports(plan, ports)));
    }
    let prepared = run::prepare(plan, &addresses, choice.name, script.as_mut())?;
    if !plan.once && plan.format == Format::Text {
        print_all(&report::opening(plan))?;
    }
    let (outcome, files) = observe(plan, prepared, &interrupt, files)?;
    if let Ended::Refused { address, cause } = outcome.ended {
        eprint_all(&format!("onrush: {}\n", report::refusal(plan, &outcome, address, cause)));
        return Ok(EXIT_NOT_STARTED);
    }
    if let Some(failure) = outcome.failure {
        bail!(failure);
    }
    // Whether anybody reads the report or not, the files are written.
    let printed = print_all(&closing(plan, &outcome));
    // The state of a thread that never came back must not be touched, and `done` might.
    let tells = printed.is_ok() && outcome.stuck.is_empty();
    let told = script.filter(|_| tells).map(|mut script| tell(plan, &outcome, &mut script));
    if plan.notes && printed.is_ok() {
        let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        // Without a standard error there is nobody to tell.
        let _ = report::print_notes(&report::notes(plan, &outcome), plan.verbose, colour, &mut io::stderr().lock());
    }
    if !plan.outputs.is_empty() {
        files.write(&Document::of(plan, &outcome))?;
    }
    printed?;
    for &(thread, callback) in &outcome.stuck {
        eprint_all(&format!("onrush: {}\n", report::stuck(thread, callback)));
    }
    told.transpose()?;
    Ok(if outcome.stuck.is_empty() { exit_code(plan, &outcome) } else { EXIT_WRONG })
}

/// Loads the script, if there is one, and runs everything in it that comes before the run.
fn load(plan: &Plan, addresses: &Addresses) -> anyhow::Result<Option<Script>> {
    let Some(plan::Script { path, args }) = &plan.script else { return Ok(None) };
    let authority = plan.target.authority();
    let login = plan.way.proxy.as_ref().and_then(|proxy| proxy.login.as_deref());
    let is_login = |(name, value): &&(String, String)| name == proxy::LOGIN && Some(value.as_str()) == login;
    // The header that every request has unless the user says otherwise is the script's to decide.
    let is_own = |header: &&(String, String)| !is_login(header) && (header.0 != "Host" || header.1 != authority);
    let headers: Vec<_> = plan.request.headers.iter().filter(is_own).cloned().collect();
    let origin = proxy::origin(&plan.target);
    let login = login.filter(|_| plan.request.headers.iter().any(|header| is_login(&header)));
    let setting = Setting {
        path,
        args,
        url: &plan.target.typed,
        scheme: plan.target.scheme.name(),
        host: &plan.target.host,
        port: plan.target.port_text.as_deref(),
        method: &plan.request.method,
        target: &plan.target.path,
        headers: &headers,
        body: Some(&*plan.request.body).filter(|body| !body.is_empty()),
        proxy: plan.way.proxy.as_ref().map(|_| Through { origin: origin.as_deref(), login }),
        addresses: &addresses.0,
        threads: plan.load.threads,
        seed: plan.seed,
        is_compat: plan.dialect.is_compat(),
        is_wrk2: plan.dialect == Dialect::Wrk2,
    };
    Script::load(&setting).map(Some)
}

/// Carries the run out and shows on a terminal how far it is; what a script prints would tear the line.
fn observe(plan: &Plan, prepared: Prepared, interrupt: &Interrupt, files: Files) -> anyhow::Result<(Outcome, Files)> {
    let line = if plan.script.is_none() { ProgressLine::on_stderr(plan.stop) } else { None };
    let mut watcher = Watcher { plan, line, files };
    let outcome = prepared.run(plan, interrupt, &mut watcher)?;
    Ok((outcome, watcher.files))
}

/// Tells a script how the run went.
fn tell(plan: &Plan, outcome: &Outcome, script: &mut Script) -> anyhow::Result<()> {
    if !script.has_done() {
        return Ok(());
    }
    script.done(&report::told(plan, outcome))?;
    script::flush();
    Ok(())
}

/// Shows how a run goes, and writes the files that are written meanwhile.
struct Watcher<'a> {
    plan: &'a Plan,
    line: Option<ProgressLine>,
    files: Files,
}

impl Observer for Watcher<'_> {
    fn progress(&mut self, progress: &Progress) {
        if let Some(line) = &mut self.line {
            line.draw(progress);
        }
    }

    fn second(&mut self, second: &Second) {
        self.files.second(second);
    }

    fn waiting(&mut self, waiting: &Waiting) {
        if self.plan.notes {
            self.line.iter_mut().for_each(ProgressLine::clear);
            eprint_all(&format!("{}\n", report::waiting(self.plan, waiting)));
        }
    }
}

/// What is printed after the run.
fn closing(plan: &Plan, outcome: &Outcome) -> String {
    match plan.format {
        _ if plan.once => report::once(outcome),
        Format::Text => report::closing(plan, outcome),
        Format::Json => Document::of(plan, outcome).to_json(),
    }
}

/// The line of `-v`: the version, the backend, and why.
fn verbose(plan: &Plan, choice: &Choice, addresses: &Addresses) -> String {
    let spin = run::spin::decide(plan, &addresses.0);
    let waits = if spin.spins { "few requests in flight are waited for without sleep" } else { "waits sleep" };
    let ports = run::host::unchosen_ports(plan).map_or(String::new(), |reason| format!("; {reason}"));
    format!("{}: {}; {waits}: {}{ports}\n", cli::version(plan.dialect, choice.name), choice.reason, spin.reason)
}

fn exit_code(plan: &Plan, outcome: &Outcome) -> u8 {
    let nothing = outcome.totals.counters.completed == 0 || outcome.ended == Ended::StayedAway;
    if nothing && !plan.dialect.is_compat() { EXIT_NOTHING_COMPLETED } else { 0 }
}

/// Writes to standard output, at once.
fn print_all(text: &str) -> anyhow::Result<()> {
    // What a script has printed comes first.
    script::flush();
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| anyhow::Error::new(error).context("cannot write the report to standard output"))
}

/// Writes to standard error; if that is closed there is nobody to tell.
fn eprint_all(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
