//! Makes the runs of an experiment, one after the other.

use std::collections::BTreeSet;

use anyhow::anyhow;
use onrush_load::files::{self, Files};
use onrush_load::judge::{self, JudgedRun};
use onrush_load::live::{Messages, ProgressLine, WaitingLine};
use onrush_load::program::say;
use onrush_load::record::json;
use onrush_load::record::{Document, Weight};
use onrush_load::run::{Interrupt, Observer};
use onrush_load::session::{self, ask::fault};
use onrush_plan::experiment::{Experiment, Point};
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{FactorLevel, Plan, Position};

use super::super::{Folder, PlannedTurn, TARGETS, words};
use super::around::{HookMoment, PointEnvironment};
use super::{RunCounts, preflight};
use crate::saved;

pub(super) struct LabRuns<'a> {
    experiment: &'a Experiment,
    /// The secrets of the experiment.
    known: &'a KnownSecrets,
    folder: Folder,
    /// Id that all results of the experiment have in common.
    id: String,
    interrupt: Interrupt,
    around: PointEnvironment<'a>,
    sum: RunCounts,
    /// Points whose notes have already been printed.
    noted: BTreeSet<usize>,
    /// True to print a line about each run, not only about failed ones.
    is_verbose: bool,
}

/// How an attempt at a run ended.
enum AttemptEnd {
    Measured,
    /// The attempt does not count, for this reason.
    Failed(String),
    Interrupted,
}

/// An attempt at a run. Even one that failed may have measured something.
struct Attempt {
    ended: AttemptEnd,
    document: Option<Box<Document>>,
    /// Number of notes that cast doubt on the result. They come first in the document.
    doubts: usize,
}

impl Attempt {
    /// An attempt that measured nothing, for this reason.
    fn without_measurement(reason: String, interrupt: &Interrupt) -> Self {
        let ended = if interrupt.is_requested() { AttemptEnd::Interrupted } else { AttemptEnd::Failed(reason) };
        Self { ended, document: None, doubts: 0 }
    }
}

impl<'a> LabRuns<'a> {
    /// Prepares runs whose results are written to a folder. `id`: the id of the experiment. `is_verbose`: print a line
    /// about each run.
    pub fn new(
        experiment: &'a Experiment,
        known: &'a KnownSecrets,
        folder: Folder,
        id: String,
        interrupt: Interrupt,
        around: PointEnvironment<'a>,
        is_verbose: bool,
    ) -> Self {
        Self {
            experiment,
            known,
            folder,
            id,
            interrupt,
            around,
            sum: RunCounts::default(),
            noted: BTreeSet::new(),
            is_verbose,
        }
    }

    /// Gives back the folder after the last run.
    pub fn into_folder(self) -> Folder {
        self.folder
    }

    /// Counts of the runs so far, by outcome.
    pub fn run_counts(&self) -> RunCounts {
        self.sum
    }

    /// Makes all runs in this order, except those already measured before.
    pub fn run_all(&mut self, turns: &[PlannedTurn]) -> anyhow::Result<()> {
        self.append_to_journal("begun")?;
        let mut left = Vec::new();
        for (before, turn) in turns.iter().enumerate() {
            if !self.count_if_measured(turn)? {
                left.push((before, turn));
            }
        }
        if left.is_empty() {
            return self.append_to_journal("ended");
        }
        if left.len() < turns.len() {
            say(&format!("{} of {} runs remain", left.len(), turns.len()));
        }
        let points: BTreeSet<usize> = left.iter().map(|(_, turn)| turn.point).collect();
        if !self.preflight(&points)? {
            return Ok(());
        }
        for (before, turn) in left {
            self.sum.is_interrupted |= self.interrupt.is_requested();
            if self.sum.is_interrupted || !self.run_turn(before, *turn)? {
                break;
            }
        }
        self.append_to_journal(if self.sum.is_interrupted { "interrupted" } else { "ended" })
    }

    /// True if a run was measured before a `--resume`; its gates are then counted. Any other file with the name of its
    /// result is renamed, and the run is repeated.
    fn count_if_measured(&mut self, turn: &PlannedTurn) -> anyhow::Result<bool> {
        let name = self.result_file_name(turn);
        if !self.folder.has_file(&name) {
            return Ok(false);
        }
        let is_it = |document: &Document| {
            document.experiment.as_ref().is_some_and(|position| {
                (position.id.as_str(), position.point, position.round)
                    == (&self.id, turn.point as u32 + 1, turn.round + 1)
            })
        };
        let path = self.folder.current_path()?.join(&name);
        // Opening a pipe would block. Even a regular file may never end: some files in `/proc` wait for more data.
        let read = if path.is_file() {
            self.interrupt.run_blocking(|| saved::document(&path))
        } else {
            Err(anyhow!("{name} is not a regular file"))
        };
        let reason = match read {
            Ok(document) if is_it(&document) => {
                self.sum.measured += 1;
                self.count_verdict(&document);
                return Ok(true);
            }
            Ok(_) => format!("{name} is the result of another run"),
            Err(error) => format!("{error:#}"),
        };
        let other = self.folder.set_aside(&name)?;
        let line = format!("{reason}; the file was renamed to {other}, and the run is repeated");
        say(&format!("note: {line}"));
        self.append_to_journal(&line)?;
        let samples = samples_file_name(name.trim_end_matches(".json"));
        if self.folder.has_file(&samples) {
            self.folder.set_aside(&samples)?;
        }
        Ok(false)
    }

    /// Counts a run if one of its gates is broken or undecided, or if onrush itself was its limit with `--strict`. True
    /// if one of these is so.
    fn count_verdict(&mut self, document: &Document) -> bool {
        let breaks = |is_strict| document.gates.iter().any(|gate| gate.broken && gate.is_strict() == is_strict);
        let (is_broken, is_our_fault) = (breaks(false), breaks(true));
        let is_undecided = !is_broken && document.gates.iter().any(|gate| gate.undecided);
        self.sum.broken += u64::from(is_broken);
        self.sum.undecided += u64::from(is_undecided);
        self.sum.is_our_fault |= is_our_fault;
        is_broken || is_undecided || is_our_fault
    }

    /// Ends started commands and restores borrowed settings. Returns a line about each setting that could not be
    /// restored.
    pub fn clean_up(&mut self) -> Vec<String> {
        self.around.leave_point(&self.folder);
        self.sum.is_given_up |= self.around.has_failed;
        self.around.restore_settings()
    }

    /// Sends one request to the target of each of these points, and prints doubts about the responses. True if the runs
    /// may start.
    fn preflight(&mut self, points: &BTreeSet<usize>) -> anyhow::Result<bool> {
        let asked =
            preflight::send_first_requests(self.experiment, points, &mut self.around, &self.folder, &self.interrupt);
        if self.interrupt.is_requested() {
            self.sum.is_interrupted = true;
            return Ok(false);
        }
        let responses = match asked {
            Ok(responses) => responses,
            Err((reason, unasked)) => {
                say(&format!("onrush: {reason}"));
                self.append_to_journal(&format!("stopped: {reason}"))?;
                (self.sum.is_given_up, self.sum.unasked) = (true, Some(unasked));
                return Ok(false);
            }
        };
        let responses: Vec<_> = responses.into_iter().map(|response| response.redact(self.known)).collect();
        responses
            .iter()
            .filter_map(preflight::FirstResponse::describe_doubt)
            .for_each(|line| say(&format!("note: {line}")));
        self.folder.write(TARGETS, (json::pretty(&responses) + "\n").as_bytes())?;
        Ok(true)
    }

    /// The name of a run's result file.
    fn result_file_name(&self, turn: &PlannedTurn) -> String {
        format!("{}-{}.json", self.experiment.points[turn.point].file, turn.round + 1)
    }

    /// Makes one run, and repeats it if it fails. True if the experiment goes on.
    fn run_turn(&mut self, before: usize, turn: PlannedTurn) -> anyhow::Result<bool> {
        let point = &self.experiment.points[turn.point];
        for attempt in 0..=self.experiment.retries {
            self.around.is_fatal = false;
            let Attempt { ended, document, doubts } = self.attempt(before, turn);
            let (kind, line) = match &ended {
                AttemptEnd::Measured => (None, document.as_deref().map_or(String::new(), words::format_run_figures)),
                AttemptEnd::Interrupted => (Some("interrupted"), "interrupted".to_owned()),
                AttemptEnd::Failed(reason) if attempt < self.experiment.retries => {
                    (Some("failed"), format!("failed: {reason}; retrying"))
                }
                AttemptEnd::Failed(reason) => (Some("failed"), format!("failed: {reason}")),
            };
            let line = format!("{}: {line}", words::run_line_start(self.experiment, point, turn, before as u64 + 1));
            let is_wrong = match (&ended, &document) {
                (AttemptEnd::Measured, Some(document)) => self.count_verdict(document),
                _ => true,
            };
            let kept = self.keep(&turn, kind, document.as_deref());
            // If a measurement cannot be stored, at least its figures are printed.
            if is_wrong || self.is_verbose || kept.is_err() {
                say(&line);
            }
            kept?;
            self.annotate(point, &line, is_wrong);
            self.append_to_journal(&line)?;
            match ended {
                AttemptEnd::Measured => {
                    self.sum.measured += 1;
                    self.print_notes(turn.point, document.as_deref(), doubts);
                    return Ok(!self.must_stop());
                }
                AttemptEnd::Interrupted => {
                    self.sum.is_interrupted = true;
                    return Ok(false);
                }
                AttemptEnd::Failed(_) => {}
            }
        }
        self.sum.failed += 1;
        Ok(!self.must_stop())
    }

    /// True if the last failure ends the experiment, which is then printed.
    fn must_stop(&mut self) -> bool {
        let must_stop = self.around.is_fatal;
        if must_stop {
            say("onrush: stopping after this failure");
            self.sum.is_given_up = true;
        }
        must_stop
    }

    /// Writes the document of a run. If the run does not count, `kind` is part of the file's name. Its socket samples
    /// are renamed accordingly.
    fn keep(&self, turn: &PlannedTurn, kind: Option<&str>, document: Option<&Document>) -> anyhow::Result<()> {
        let begin = format!("{}-{}", self.experiment.points[turn.point].file, turn.round + 1);
        let name = kind.map_or(begin.clone(), |kind| self.folder.unused_name(&begin, kind));
        if let Some(document) = document {
            self.folder.write(&format!("{name}.json"), document.to_json().as_bytes())?;
        }
        if name != begin {
            self.folder.rename(&samples_file_name(&begin), &samples_file_name(&name))?;
        }
        Ok(())
    }

    /// Prints the notes on the first run of a point, or only its doubts. Later runs of the point have similar notes and
    /// print none.
    fn print_notes(&mut self, point: usize, document: Option<&Document>, doubts: usize) {
        const NOTES: usize = 3;
        let most = if self.is_verbose { NOTES } else { doubts.min(NOTES) };
        if let Some(document) = document.filter(|_| self.noted.insert(point)) {
            let words = self.experiment.levels_in_words(&self.experiment.points[point]);
            let words = if words.is_empty() { words } else { format!("{words}: ") };
            document.notes.iter().take(most).for_each(|note| say(&format!("note: {words}{}", note.text)));
        }
    }

    /// Prints what is wrong with a run as a GitHub annotation, if this was requested.
    fn annotate(&self, point: &Point, line: &str, is_wrong: bool) {
        if is_wrong && point.plan.output.annotates {
            say(&judge::annotation(line));
        }
    }

    fn attempt(&mut self, before: usize, turn: PlannedTurn) -> Attempt {
        let Self { experiment, folder, interrupt, around, .. } = self;
        let point = &experiment.points[turn.point];
        let set_up = around.set_up_point(turn.point, turn.round, folder, interrupt);
        if let Err(reason) = set_up.and_then(|()| around.run_hook(HookMoment::BeforeRun, folder, interrupt)) {
            return Attempt::without_measurement(reason, interrupt);
        }
        let mut plan = point.plan.clone();
        plan.output.position = Some(self.position(before, turn));
        if let Some(sockets) = &mut plan.output.sockets {
            sockets.output = self.folder.path().join(samples_file_name(&format!("{}-{}", point.file, turn.round + 1)));
        }
        plan.connect.socket.reads_sizes = !point.settings.is_empty();
        let progress = format!("run {} of {}: ", before + 1, self.experiment.planned_runs());
        let AttemptResult { mut document, doubts, reason } = run_session(&plan, &progress, &self.interrupt);
        let ended = self.around.describe_target_end();
        // Runs even after a signal, because it undoes what `before_run` did.
        let after = self.around.run_hook(HookMoment::AfterRun, &self.folder, &Interrupt::default());
        let is_interrupted = document.as_ref().map_or(self.interrupt.is_requested(), |document| document.interrupted);
        let reason = reason.or(ended).or(after.err()).map(|reason| self.known.hide_in(&reason));
        if let Some(document) = &mut document {
            document.mark_as_failed(reason.as_deref());
        }
        let ended = match reason {
            _ if is_interrupted => AttemptEnd::Interrupted,
            Some(reason) => AttemptEnd::Failed(reason),
            None => AttemptEnd::Measured,
        };
        Attempt { ended, document, doubts }
    }

    /// The position of a run in the experiment.
    fn position(&self, before: usize, turn: PlannedTurn) -> Position {
        let Experiment { name, order, rounds, factors, points, .. } = self.experiment;
        let level = |(factor, &level): (&onrush_plan::experiment::Factor, &usize)| FactorLevel {
            factor: factor.name.clone(),
            level: factor.levels[level].shown.clone(),
            index: level as u32 + 1,
            baseline: level == factor.baseline,
        };
        Position {
            name: name.clone(),
            id: self.id.clone(),
            order: *order,
            rounds: *rounds,
            round: turn.round + 1,
            before: before as u32,
            point: turn.point as u32 + 1,
            levels: factors.iter().zip(&points[turn.point].levels).map(level).collect(),
            failed: None,
        }
    }

    fn append_to_journal(&mut self, what: &str) -> anyhow::Result<()> {
        self.folder.append_to_journal(&self.known.hide_in(what))
    }
}

/// Name of the file with a run's socket samples, derived from the name of its result.
fn samples_file_name(name: &str) -> String {
    format!("sockets-{name}.ndjson")
}

/// Result of a session of one run.
struct AttemptResult {
    document: Option<Box<Document>>,
    /// Number of notes that cast doubt on the result. They come first.
    doubts: usize,
    /// The reason why the attempt failed; `None` if it did not.
    reason: Option<String>,
}

/// Runs one session. `progress` is the start of its progress line.
fn run_session(plan: &Plan, progress: &str, interrupt: &Interrupt) -> AttemptResult {
    measure(plan, progress, interrupt).unwrap_or_else(|error| AttemptResult {
        document: None,
        doubts: 0,
        reason: Some(format!("{error:#}")),
    })
}

fn measure(plan: &Plan, words: &str, interrupt: &Interrupt) -> anyhow::Result<AttemptResult> {
    let mut files = Files::open(&plan.output.files(), Some(plan), plan.output.keeps_secrets)?;
    let states = files.states().clone();
    let mut line = ProgressLine::on_stderr(words, plan);
    let mut waiting = WaitingLine { plan, is_said: true };
    let observers: &mut [&mut dyn Observer] = &mut [&mut line, &mut waiting, &mut Messages, &mut files];
    let outcome = session::run(plan, interrupt, observers)?.outcome;
    let document = Box::new(JudgedRun::from_outcome(plan, &outcome).document);
    files.write(&document);
    states.wait_until_final(files::PATIENCE);
    states.abandon_incomplete();
    let unwritable = files::unwritable_files(&states).first().map(ToString::to_string);
    let fault = fault(plan, &outcome).map(|error| format!("{error:#}"));
    let reason = fault.or_else(|| document.flaw()).or(unwritable);
    let has_begun = document.requests.started > 0;
    let doubts = document.notes.iter().filter(|note| note.weight == Weight::Doubt).count();
    Ok(AttemptResult { document: Some(document).filter(|_| has_begun), doubts, reason })
}
