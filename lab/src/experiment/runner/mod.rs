//! Executes an experiment, from its plan to its exit code. A run takes the steps of
//! [`single::run_and_report`](onrush_load::single::run_and_report), except for the output. This file has the steps before and
//! after all runs.

mod around;
mod preflight;
mod runs;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{anyhow, bail};
use onrush_load::files;
use onrush_load::input::InputFiles;
use onrush_load::program::{
    EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_NOT_STARTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT,
    EXIT_WRONG, ORDER, Screen, Signals, guard, highest_precedence, say, screen, with_stack,
};
use onrush_load::run;
use onrush_plan::experiment::{self, Experiment, RESULTS, ResultDestination};
use onrush_plan::secrets::KnownSecrets;
use onrush_text::escape_controls;
use signal_hook::consts::SIGQUIT;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::draft::LabCommand;
use super::{AttachedFile, ExperimentOrigin, Folder, FolderExists, LabHost, PlannedTurn, order_turns, words};
use crate::compare;
use crate::saved;
use crate::sysctl::{self, SettingName};
use crate::tables::{self, Columns, TableForm, TableOptions};
use around::PointEnvironment;
use runs::LabRuns;

/// Executes an experiment, or only shows its plan; returns the exit code.
pub(super) fn run_lab(lab: LabCommand) -> u8 {
    lab.warnings.iter().for_each(|line| say(&format!("onrush: {line}")));
    let mut experiment = *lab.experiment;
    let is_verbose = lab.is_verbose;
    let has_script = experiment.points.iter().any(|point| point.plan.script.is_some());
    let turns = order_turns(experiment.order, experiment.points.len(), experiment.rounds, experiment.seed);
    if lab.is_plan {
        let mut screen = Screen::open(false);
        screen::hide(known_secrets(&experiment));
        screen.print(&screen::hidden(&words::plan_text(&experiment, &turns)));
        let flaw = check(&mut experiment).err().map(|error| format!("{error:#}"));
        let failures: Vec<String> = flaw.into_iter().chain(screen.failure("the plan")).collect();
        failures.iter().for_each(|line| say(&format!("onrush: {line}")));
        return if failures.is_empty() { 0 } else { EXIT_WRONG };
    }
    let space = experiment.points.iter().try_for_each(|point| run::host::check_address_space(&point.plan, has_script));
    with_stack(has_script, space, move || {
        let done = guard(|| run_steps(&mut experiment, &turns, is_verbose)).and_then(|done| done);
        done.unwrap_or_else(|error| {
            say(&format!("onrush: {error:#}"));
            EXIT_WRONG
        })
    })
}

/// Reads the files that runs need and those to attach, and checks the names of settings. May wait forever for a file.
///
/// # Errors
///
/// Fails with a file that cannot be read, or a name that cannot be that of a setting here.
fn check(experiment: &mut Experiment) -> anyhow::Result<Vec<AttachedFile>> {
    let files = InputFiles::default();
    for point in &mut experiment.points {
        files.read_files(&mut point.plan)?;
    }
    let ready = experiment.server.as_mut().and_then(|server| server.ready.as_deref_mut());
    ready.map_or(Ok(()), |plan| files.read_files(plan))?;
    let settings = experiment.points.iter().flat_map(|point| &point.settings);
    for name in settings.map(|(name, _)| name).collect::<BTreeSet<_>>() {
        sysctl::check(&SettingName::parse(name)?)?;
    }
    experiment.attach.iter().map(|path| AttachedFile::read(path)).collect()
}

/// The secrets in the runs and commands of an experiment.
fn known_secrets(experiment: &Experiment) -> KnownSecrets {
    let server = experiment.server.as_ref();
    let of_target = server.and_then(|server| server.command.as_ref());
    let of_points = experiment.points.iter().filter_map(|point| point.command.as_ref());
    let ready = server.and_then(|server| server.ready.as_deref());
    let plans = experiment.points.iter().map(|point| &point.plan).chain(ready);
    KnownSecrets::of_all(plans, experiment::commands(&experiment.hooks, of_target, of_points))
}

/// A stored plan in which the values no longer contain these secrets.
fn redact_plan(plan: &str, known: &KnownSecrets) -> anyhow::Result<String> {
    fn hide(value: &mut toml::Value, known: &KnownSecrets) {
        match value {
            toml::Value::String(text) => *text = known.hide_in(text),
            toml::Value::Array(values) => values.iter_mut().for_each(|value| hide(value, known)),
            toml::Value::Table(table) => table.iter_mut().for_each(|(_, value)| hide(value, known)),
            _ => {}
        }
    }
    let mut table: toml::Table = plan.parse()?;
    table.iter_mut().for_each(|(_, value)| hide(value, known));
    Ok(table.to_string())
}

/// Counts of runs by outcome.
#[derive(Clone, Copy, Debug, Default)]
struct RunCounts {
    /// Number of measured runs, including those measured before a `--resume`.
    measured: u64,
    /// Number of runs that failed in every attempt.
    failed: u64,
    /// Number of runs with a broken gate.
    broken: u64,
    /// Number of runs with an undecided gate but no broken one.
    undecided: u64,
    /// True if onrush itself was the limit of a run with `--strict`.
    is_our_fault: bool,
    /// True if a signal ended the experiment.
    is_interrupted: bool,
    /// True if something else failed, and was reported.
    is_given_up: bool,
    /// Why the first request to a target got no response, if it got none.
    unasked: Option<Unasked>,
}

/// Why the first request to a target got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unasked {
    /// The request was not prepared: a name could not be resolved, or a script failed.
    Wrong,
    /// The request was not sent: every connection was refused.
    NotStarted,
    /// The request was sent without a response, or the target's environment could not be set up.
    NoResponse,
}

fn run_steps(experiment: &mut Experiment, turns: &[PlannedTurn], is_verbose: bool) -> anyhow::Result<u8> {
    let signals = Signals::listen(&[SIGQUIT])?;
    let attached = signals.interrupt.run_blocking(|| check(experiment))?;
    let known = known_secrets(experiment);
    screen::hide(known.clone());
    experiment.shown = redact_plan(&experiment.shown, &known)?;
    let experiment = &*experiment;
    // This comes before the folder is created, so that a refusal leaves no folder behind.
    let mut around = PointEnvironment::new(experiment, &signals)?;
    around.try_settings()?;
    let (folder, made) = open_folder(experiment, &attached, &signals)?;
    let path = folder.path().to_owned();
    say(&format!("{}, into {}", words::summary(experiment), path.display()));
    let interrupt = signals.interrupt.clone();
    let mut runs = LabRuns::new(experiment, &known, folder, made.id, interrupt, around, is_verbose);
    let done = guard(|| runs.run_all(turns));
    let unrestored = runs.clean_up();
    let sum = runs.run_counts();
    let folder = runs.into_folder();
    unrestored.iter().for_each(|line| say(&format!("onrush: {line}")));
    let failure = done.and_then(|done| done).err();
    failure.iter().for_each(|error| say(&format!("onrush: {error:#}")));
    // All results are read. Somebody else may have put a file there that never ends.
    let is_shown =
        sum.measured == 0 || signals.interrupt.run_blocking(|| print_answer(experiment, &folder, is_verbose));
    let is_kept = !discard_empty_folder(experiment, &folder);
    say(&closing_line(experiment, sum, is_kept.then_some(path.as_path())));
    let has_nothing = sum.measured == 0 && !sum.is_interrupted;
    let has_failed = sum.failed > 0 || sum.is_given_up || !unrestored.is_empty() || !is_shown;
    let unasked = sum.unasked.filter(|_| has_nothing);
    let codes = [
        // If every run failed, it is more useful to say that nothing was measured.
        (EXIT_WRONG, failure.is_some() || has_failed && !has_nothing || unasked == Some(Unasked::Wrong)),
        (EXIT_NOT_STARTED, unasked == Some(Unasked::NotStarted)),
        (EXIT_NOTHING_COMPLETED, has_nothing),
        (EXIT_BROKEN, sum.broken > 0),
        (EXIT_OUR_FAULT, sum.is_our_fault),
        (EXIT_INCONCLUSIVE, sum.undecided > 0),
        (EXIT_INTERRUPTED, sum.is_interrupted),
    ];
    Ok(highest_precedence(ORDER, &codes))
}

/// The last line: the number of measured runs, the folder, and how to continue. Without a folder, nothing can be
/// continued.
fn closing_line(experiment: &Experiment, sum: RunCounts, path: Option<&Path>) -> String {
    let runs = experiment.planned_runs();
    let mut line = format!("{} of {runs} runs measured", sum.measured);
    if sum.failed > 0 {
        line.push_str(&format!(", {} failed", sum.failed));
    }
    if sum.broken > 0 {
        line.push_str(&format!(", a gate broke in {}", sum.broken));
    }
    if sum.undecided > 0 {
        line.push_str(&format!(", a gate was undecided in {}", sum.undecided));
    }
    let Some(path) = path else { return line + "; there is nothing to keep, so there is no folder" };
    if sum.measured < runs {
        let allowed = if experiment.may_change_host { " --allow-host-changes" } else { "" };
        line.push_str(if experiment.text == experiment.shown {
            "; continue with: onrush lab --resume"
        } else {
            "; continue with the same command line and --resume"
        });
        line.push_str(&format!(" {}{allowed}", path.display()));
    } else {
        line.push_str(&format!("; everything is in {}", path.display()));
    }
    line
}

/// Prints the answer: a table and the conclusions. Writes them and all figures to the folder; with `is_verbose`, the
/// figures are printed, too. True if everything succeeded.
fn print_answer(experiment: &Experiment, folder: &Folder, is_verbose: bool) -> bool {
    let path = match folder.current_path() {
        Ok(path) => path,
        // The failure has ended the runs and has already been reported.
        Err(_) => return false,
    };
    let table = |columns, form| {
        tables::run(&TableOptions { inputs: vec![path.to_owned()], by: None, columns, sort: None, form })
    };
    let write = |name: &str, text: &str| {
        folder.write(name, text.as_bytes()).map_err(|error| say(&format!("onrush: {error:#}"))).is_ok()
    };
    let short = table(Columns::Short, TableForm::Text);
    short.said.iter().for_each(|line| say(&format!("note: {line}")));
    let markdown = [Columns::Short, Columns::WrkCmm].map(|columns| table(columns, TableForm::Markdown).text).join("\n");
    let mut is_written = write("table.md", &markdown) & write("table.csv", &table(Columns::Short, TableForm::Csv).text);
    let mut screen = Screen::open(false);
    screen.print(&short.text);
    print_socket_summary(experiment, path, &mut screen);
    let compared = (experiment.points.len() > 1).then(|| compare::compare_folder(path));
    if let Some(compared) = &compared {
        let answer = compare::answer_experiment(path);
        screen.print(&format!("\n{}", answer.text));
        answer.said.iter().for_each(|line| say(&format!("note: {line}")));
        // If only one point was measured, there is nothing to compare.
        is_written &= compared.text.is_empty() || write("comparison.txt", &compared.text);
    }
    if is_verbose {
        let all = table(Columns::WrkCmm, TableForm::Text).text;
        screen.print(&format!("\nEvery run, latencies in microseconds:\n\n{all}"));
        compared.iter().for_each(|compared| screen.print(&format!("\n{}", compared.text)));
        let remarks = compared.iter().flat_map(|compared| &compared.said);
        remarks.for_each(|line| say(&format!("note: {line}")));
    }
    let failure = screen.failure("the tables");
    failure.iter().for_each(|line| say(&format!("onrush: {line}")));
    is_written && failure.is_none()
}

/// Prints a summary of the socket samples of each point that has some.
fn print_socket_summary(experiment: &Experiment, path: &Path, screen: &mut Screen) {
    for point in experiment.points.iter().filter(|point| point.plan.output.sockets.is_some()) {
        let files = (1..=experiment.rounds).map(|round| path.join(format!("{}-{round}.json", point.file)));
        let files = files.filter(|file| file.is_file());
        let sampled = files.filter_map(|file| saved::document(&file).ok()?.sockets?.sampled);
        if let Some(words) = words::format_socket_summary(&sampled.collect::<Vec<_>>()) {
            screen.print(&format!("\nsockets of {}: {words}\n", experiment.levels_in_words(point)));
        }
    }
}

/// Creates the folder, or opens that of an experiment to be continued. If a signal ends this process, no half-written
/// file remains in it.
fn open_folder(
    experiment: &Experiment,
    attached: &[AttachedFile],
    signals: &Signals,
) -> anyhow::Result<(Folder, ExperimentOrigin)> {
    let host = LabHost::read();
    let made = new_origin(experiment, &host)?;
    let is_private = experiment.points.iter().any(|point| point.plan.output.keeps_secrets);
    match &experiment.folder {
        ResultDestination::New(path) => {
            let folder = create_folder(path.as_deref(), &experiment.name, &made.at, is_private)?;
            let unfinished = folder.unfinished();
            signals.before_quitting(move || unfinished.abandon());
            let begun = folder.write_initial_files(&made, &experiment.shown, &host, attached);
            begun.inspect_err(|_| _ = discard_empty_folder(experiment, &folder))?;
            Ok((folder, made))
        }
        ResultDestination::Resumed { path, is_forced } => {
            let (folder, before) = signals.interrupt.run_blocking(|| Folder::resume(path, is_private))?;
            let unfinished = folder.unfinished();
            signals.before_quitting(move || unfinished.abandon());
            if before.redacted && !made.redacted {
                bail!(
                    "{0}: its plan lacks commands or secrets; name the file again (onrush lab FILE.toml --resume {0}), \
                     or repeat the command line with --resume",
                    path.display()
                );
            }
            if !is_forced && let Some(change) = first_change(&before, &made) {
                bail!(
                    "{}: {change}, so runs would not be comparable; start a new experiment, or continue with --force",
                    path.display()
                );
            }
            Ok((folder, before))
        }
    }
}

/// Removes a new folder that contains no results. True if it was removed.
fn discard_empty_folder(experiment: &Experiment, folder: &Folder) -> bool {
    let is_discarded = matches!(experiment.folder, ResultDestination::New(_)) && folder.remove_if_unused();
    if is_discarded && experiment.folder == ResultDestination::New(None) {
        // Fails if another experiment has left something there.
        let _ = std::fs::remove_dir(RESULTS);
    }
    is_discarded
}

/// Creates a folder with the given path, or else one named after the time and the experiment.
fn create_folder(path: Option<&Path>, name: &str, at: &str, is_private: bool) -> anyhow::Result<Folder> {
    if let Some(path) = path {
        return Folder::create(path, is_private);
    }
    let results = Path::new(RESULTS);
    std::fs::create_dir_all(results).map_err(|error| {
        anyhow!("the folder {RESULTS} cannot be created: {}", files::describe_write_error(&error, results))
    })?;
    create_in(results, &default_folder_name(name, at), is_private)
}

/// Creates a folder with this name, or with the first unused number after it, because several experiments may start in
/// the same second.
fn create_in(results: &Path, name: &str, is_private: bool) -> anyhow::Result<Folder> {
    let mut names = (1_u32..).map(|number| if number == 1 { name.to_owned() } else { format!("{name}-{number}") });
    let created = names.find_map(|name| match Folder::create(&results.join(name), is_private) {
        Err(error) if error.is::<FolderExists>() => None,
        created => Some(created),
    });
    created.expect("few experiments begin in the same second")
}

/// The default name of a new folder: `20261124-085200-vs`.
fn default_folder_name(name: &str, at: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let at = at.split('.').next().unwrap_or(at).replace('T', "-");
    let (date, time) = at.split_at(at.rfind('-').unwrap_or(0));
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    format!("{}-{}-{name}", digits(date), digits(time))
}

/// The facts to record about an experiment that starts now.
fn new_origin(experiment: &Experiment, host: &LabHost) -> anyhow::Result<ExperimentOrigin> {
    let plans = experiment.points.iter().map(|point| &point.plan);
    let materials = plans.flat_map(|plan| plan.files()).filter(|file| !file.name.is_empty());
    let materials: std::collections::BTreeMap<String, String> =
        materials.map(|file| (file.name.clone(), file.sha256())).collect();
    let at = OffsetDateTime::now_utc().format(&Rfc3339)?;
    // An experiment with more rounds is still the same one.
    let text: Vec<&str> = experiment.text.lines().filter(|line| !line.starts_with("rounds = ")).collect();
    let content = format!("{}{materials:?}", text.join("\n"));
    let digest = onrush_plan::file_contents::sha256_hex(content.as_bytes());
    let id = onrush_plan::file_contents::sha256_hex(format!("{digest}{at}{}", std::process::id()).as_bytes());
    Ok(ExperimentOrigin {
        id: id[..16].to_owned(),
        at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: host.kernel.clone().unwrap_or_default(),
        boot: host.boot.clone().unwrap_or_default(),
        digest,
        redacted: experiment.text != experiment.shown,
        materials,
    })
}

/// Describes the first fact that has changed since the start; `None` if all are the same.
fn first_change(before: &ExperimentOrigin, now: &ExperimentOrigin) -> Option<String> {
    if before.digest != now.digest {
        let changed = before.materials.iter().find(|(name, digest)| now.materials.get(*name) != Some(digest));
        return Some(match changed {
            Some((name, _)) => format!("{name} has changed"),
            None => "the experiment has changed".to_owned(),
        });
    }
    let pairs = [("onrush", &before.version, &now.version), ("the kernel", &before.kernel, &now.kernel)];
    if before.boot != now.boot {
        return Some("the machine has been restarted".to_owned());
    }
    let (what, before, now) = pairs.into_iter().find(|(_, before, now)| before != now)?;
    Some(format!("{what} was {} and is {now}", escape_controls(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_names_get_a_number() {
        let results = tempfile::tempdir().unwrap();
        // A dangling link looks nonexistent but prevents creation, as if a folder had been created in between.
        std::os::unix::fs::symlink("nowhere", results.path().join("vs")).unwrap();
        for expected in ["vs-2", "vs-3"] {
            assert_eq!(create_in(results.path(), "vs", false).unwrap().path(), results.path().join(expected));
        }
        let error = create_in(&results.path().join("vs-2/journal"), "vs", false).unwrap_err().to_string();
        assert!(error.contains("cannot be created: Not a directory"), "{error}");
    }

    #[test]
    fn folders_are_named_by_time_and_experiment() {
        assert_eq!(default_folder_name("vs", "2026-11-24T08:52:07.123456789Z"), "20261124-085207-vs");
        assert_eq!(default_folder_name("a b/..", "2026-11-24T08:52:07Z"), "20261124-085207-a_b_..");
    }
}
