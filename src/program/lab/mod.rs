//! Carries out an experiment, from its plan to its exit code. A run has the steps of [`super::test`], except for what
//! is shown; here are the steps around all runs.

mod around;
mod preflight;
mod runner;

use std::path::{Path, PathBuf};

use anyhow::bail;
use signal_hook::consts::SIGQUIT;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::signals::Signals;
use super::{
    EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT, EXIT_WRONG, ORDER, Screen, foremost, guard,
    say, with_stack,
};
use crate::cli::Lab;
use crate::compare;
use crate::lab::{self, Folder, Host, Made, words};
use crate::plan::Plan;
use crate::plan::experiment::{Destination, Experiment};
use crate::reason::reason;
use crate::report::printable;
use crate::report::result::Document;
use crate::tables::{self, Form, Table};
use around::Around;
use runner::Runner;

/// Carries out an experiment, or shows its plan.
pub fn lab(lab: Lab) -> u8 {
    lab.warnings.iter().for_each(|line| say(&format!("onrush: {line}")));
    let mut experiment = *lab.experiment;
    let has_script = experiment.points.iter().any(|point| point.plan.script.is_some());
    let turns = lab::order(experiment.order, experiment.points.len(), experiment.rounds, experiment.seed);
    if lab.is_plan {
        let mut screen = Screen::open(false);
        screen.print(&words::plan(&experiment, &turns));
        let flaw = check(&mut experiment).err();
        flaw.iter().for_each(|error| say(&format!("onrush: {error:#}")));
        return if flaw.is_some() || screen.failure().is_some() { EXIT_WRONG } else { 0 };
    }
    with_stack(has_script, move || {
        let done = guard(|| steps(&mut experiment, &turns)).and_then(|done| done);
        done.unwrap_or_else(|error| {
            say(&format!("onrush: {error:#}"));
            EXIT_WRONG
        })
    })
}

/// Reads the files that runs need, and checks that the files to be attached exist.
fn check(experiment: &mut Experiment) -> anyhow::Result<()> {
    for point in &mut experiment.points {
        point.plan.read_materials()?;
    }
    let ready = experiment.server.as_mut().and_then(|server| server.ready.as_deref_mut());
    ready.map_or(Ok(()), Plan::read_materials)?;
    for path in &experiment.attach {
        let there = std::fs::metadata(path);
        let there = there.map_err(|error| lab::unattachable(path, &error))?;
        if !there.is_file() {
            bail!("attach: {} is not a regular file", path.display());
        }
    }
    Ok(())
}

/// What became of the runs.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Runs that were measured, including those before a `--resume`.
    measured: u64,
    /// Runs that failed, after all retries.
    failed: u64,
    /// Runs in which a gate broke.
    broken: u64,
    /// Whether onrush itself was the limit of a run with `--strict`.
    is_our_fault: bool,
    /// Whether a signal ended the experiment.
    is_interrupted: bool,
    /// Whether something else ended it, or failed, and has been reported.
    is_given_up: bool,
}

fn steps(experiment: &mut Experiment, turns: &[lab::Turn]) -> anyhow::Result<u8> {
    let signals = Signals::listen(&[SIGQUIT])?;
    check(experiment)?;
    // Before the folder is created, so that a refusal leaves none.
    let mut around = Around::new(experiment, &signals)?;
    around.try_settings()?;
    let (folder, made) = open(experiment)?;
    let path = folder.path().to_owned();
    say(&format!("{}, into {}", words::summary(experiment), path.display()));
    let mut runner = Runner::new(experiment, folder, made.id, signals.interrupt.clone(), around);
    let done = guard(|| runner.all(turns));
    let unrestored = runner.leave();
    let sum = runner.sum();
    let folder = runner.into_folder();
    unrestored.iter().for_each(|line| say(&format!("onrush: {line}")));
    let failure = done.and_then(|done| done).err();
    failure.iter().for_each(|error| say(&format!("onrush: {error:#}")));
    let is_shown = sum.measured == 0 || show(experiment, &folder);
    say(&closing(experiment, sum, &path));
    let has_nothing = sum.measured == 0 && !sum.is_interrupted;
    let has_failed = sum.failed > 0 || sum.is_given_up || !unrestored.is_empty() || !is_shown;
    let codes = [
        // Where every run failed, that nothing was measured says more.
        (EXIT_WRONG, failure.is_some() || has_failed && !has_nothing),
        (EXIT_NOTHING_COMPLETED, has_nothing),
        (EXIT_BROKEN, sum.broken > 0),
        (EXIT_OUR_FAULT, sum.is_our_fault),
        (EXIT_INTERRUPTED, sum.is_interrupted),
    ];
    Ok(foremost(ORDER, &codes))
}

/// The last line: how many runs were measured, and how to continue.
fn closing(experiment: &Experiment, sum: Sum, path: &Path) -> String {
    let runs = experiment.runs();
    let mut line = format!("{} of {runs} runs measured", sum.measured);
    if sum.failed > 0 {
        line.push_str(&format!(", {} failed", sum.failed));
    }
    if sum.broken > 0 {
        line.push_str(&format!(", a gate broke in {}", sum.broken));
    }
    if sum.measured < runs {
        let allowed = if experiment.may_change_host { " --allow-host-changes" } else { "" };
        line.push_str(if experiment.text == experiment.shown {
            "; continue with: onrush lab --resume"
        } else {
            "; continue with the same command line and --resume"
        });
        line.push_str(&format!(" {}{allowed}", path.display()));
    }
    line
}

/// Prints and writes the tables, and prints the comparison; returns whether that succeeded.
fn show(experiment: &Experiment, folder: &Folder) -> bool {
    let path = folder.path();
    let table = |form| tables::run(&Table { inputs: vec![path.to_owned()], by: None, columns: None, sort: None, form });
    let markdown = table(Form::Markdown);
    markdown.said.iter().for_each(|line| say(&format!("note: {line}")));
    let write = |name: &str, text: &str| {
        folder.write(name, text.as_bytes()).map_err(|error| say(&format!("onrush: {error:#}")))
    };
    let are_written = [("table.md", &markdown.text), ("table.csv", &table(Form::Csv).text)]
        .map(|(name, text)| write(name, text).is_ok());
    let mut screen = Screen::open(false);
    screen.print(&format!("{}: results in {}, latencies in microseconds\n\n", experiment.name, path.display()));
    screen.print(&table(Form::Text).text);
    sockets(experiment, path, &mut screen);
    if experiment.points.len() > 1 {
        let compared = compare::folder(path);
        screen.print(&format!("\n{}", compared.text));
        compared.said.iter().for_each(|line| say(&format!("note: {line}")));
    }
    let failure = screen.failure();
    failure
        .iter()
        .for_each(|error| say(&format!("onrush: cannot write the tables to standard output: {}", reason(error))));
    are_written == [true; 2] && failure.is_none()
}

/// Prints a summary of the samples of sockets for each point that has any.
fn sockets(experiment: &Experiment, path: &Path, screen: &mut Screen) {
    for point in experiment.points.iter().filter(|point| point.plan.show.sockets.is_some()) {
        let files = (1..=experiment.rounds).map(|round| path.join(format!("{}-{round}.json", point.file)));
        let watched = files.filter_map(|file| Document::read(&file).ok()?.sockets?.watched);
        if let Some(words) = words::sockets(&watched.collect::<Vec<_>>()) {
            screen.print(&format!("\nsockets of {}: {words}\n", experiment.words(point)));
        }
    }
}

/// The folder: a new one, or that of an experiment to be continued.
fn open(experiment: &Experiment) -> anyhow::Result<(Folder, Made)> {
    let host = Host::read();
    let made = made(experiment, &host)?;
    let is_private = experiment.points.iter().any(|point| point.plan.show.keeps_secrets);
    match &experiment.folder {
        Destination::New(path) => {
            let path = path.clone().unwrap_or_else(|| named(&experiment.name, &made.at));
            let folder = Folder::create(&path, is_private)?;
            folder.begin(&made, &experiment.shown, &host, &experiment.attach)?;
            Ok((folder, made))
        }
        Destination::Resumed { path, is_forced } => {
            let (folder, before) = Folder::resume(path, is_private)?;
            if before.redacted && !made.redacted {
                bail!(
                    "{0}: secrets were left out of its plan; name the file again (onrush lab FILE.toml --resume {0}), \
                     or repeat the command line with --resume",
                    path.display()
                );
            }
            if !is_forced && let Some(change) = change(&before, &made) {
                bail!(
                    "{}: {change}, so runs would not be comparable; start a new experiment, or continue with --force",
                    path.display()
                );
            }
            Ok((folder, before))
        }
    }
}

/// The default name of a new folder.
fn named(name: &str, at: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let at: String = at.split('.').next().unwrap_or(at).chars().filter(|c| !"-:Z".contains(*c)).collect();
    PathBuf::from(format!("onrush-{name}-{at}Z"))
}

/// How the experiment would be begun now.
fn made(experiment: &Experiment, host: &Host) -> anyhow::Result<Made> {
    let plans = experiment.points.iter().map(|point| &point.plan);
    let materials = plans.flat_map(|plan| plan.materials()).filter(|material| !material.name.is_empty());
    let materials: std::collections::BTreeMap<String, String> =
        materials.map(|material| (material.name.clone(), material.sha256())).collect();
    let at = OffsetDateTime::now_utc().format(&Rfc3339)?;
    // More rounds do not make it another experiment.
    let text: Vec<&str> = experiment.text.lines().filter(|line| !line.starts_with("rounds = ")).collect();
    let content = format!("{}{materials:?}", text.join("\n"));
    let digest = crate::plan::material::digest_of(content.as_bytes());
    let id = crate::plan::material::digest_of(format!("{digest}{at}{}", std::process::id()).as_bytes());
    Ok(Made {
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

/// The first difference from how the experiment was begun, if any.
fn change(before: &Made, now: &Made) -> Option<String> {
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
    Some(format!("{what} was {} and is {now}", printable(before)))
}
