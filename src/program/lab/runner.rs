//! The runs of an experiment, one after the other.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use super::super::ask::fault;
use super::super::say;
use super::around::{Around, When};
use super::{Sum, preflight};
use crate::lab::{Folder, Turn, words};
use crate::live::ProgressLine;
use crate::plan::experiment::{Experiment, Point};
use crate::plan::{Place, PlacedLevel, Plan};
use crate::report;
use crate::report::files::{self, Files};
use crate::report::result::Document;
use crate::run::{Interrupt, Listener, Observer, Progress, Sample, Waiting};
use crate::session;

/// The runs of an experiment.
pub(super) struct Runner<'a> {
    experiment: &'a Experiment,
    folder: Folder,
    /// What all its results have in common.
    id: String,
    interrupt: Interrupt,
    around: Around<'a>,
    sum: Sum,
}

/// What became of one attempt at a run.
enum Attempt {
    Measured(Box<Document>),
    /// The reason, and what was measured nevertheless.
    Failed(String, Option<Box<Document>>),
    Interrupted(Option<Box<Document>>),
}

impl<'a> Runner<'a> {
    /// Runs that write into a folder. `id` is what all results have in common.
    pub fn new(
        experiment: &'a Experiment,
        folder: Folder,
        id: String,
        interrupt: Interrupt,
        around: Around<'a>,
    ) -> Self {
        Self { experiment, folder, id, interrupt, around, sum: Sum::default() }
    }

    /// What became of the runs so far.
    pub fn sum(&self) -> Sum {
        self.sum
    }

    /// Takes every turn that was not taken before.
    pub fn all(&mut self, turns: &[Turn]) -> anyhow::Result<()> {
        self.log("begun")?;
        let is_left = |turn: &&(usize, &Turn)| !self.folder.has(&self.file(turn.1));
        let left: Vec<(usize, &Turn)> = turns.iter().enumerate().filter(|turn| is_left(&turn)).collect();
        self.sum.measured = (turns.len() - left.len()) as u64;
        if left.is_empty() {
            return Ok(());
        }
        if !self.preflight()? {
            return Ok(());
        }
        for (position, turn) in left {
            if !self.turn(position, *turn)? {
                break;
            }
        }
        self.log(if self.sum.is_interrupted { "interrupted" } else { "ended" })
    }

    /// Gives back what was borrowed, and ends what was started. Returns what could not be restored.
    pub fn leave(&mut self) -> Vec<String> {
        self.around
            .leave_point(&self.folder, &Interrupt::default())
            .into_iter()
            .for_each(|line| say(&format!("note: {line}")));
        self.around.restore()
    }

    /// Requests each target once; returns whether the runs may begin.
    fn preflight(&mut self) -> anyhow::Result<bool> {
        let asked = preflight::ask(self.experiment, &mut self.around, &self.folder, &self.interrupt);
        if self.interrupt.is_asked() {
            self.sum.is_interrupted = true;
            return Ok(false);
        }
        let answers = match asked {
            Ok(answers) => answers,
            Err(reason) => {
                say(&format!("onrush: {reason}"));
                self.log(&format!("stopped: {reason}"))?;
                self.sum.is_given_up = true;
                return Ok(false);
            }
        };
        answers.iter().filter_map(preflight::Answer::doubt).for_each(|line| say(&format!("note: {line}")));
        let mut content = serde_json::to_vec_pretty(&answers)?;
        content.push(b'\n');
        self.folder.write("targets.json", &content)?;
        Ok(true)
    }

    /// The file of a run that was measured.
    fn file(&self, turn: &Turn) -> String {
        format!("{}-{}.json", self.experiment.points[turn.point].file, turn.round + 1)
    }

    /// One run, with its repeats; returns whether there are to be more.
    fn turn(&mut self, position: usize, turn: Turn) -> anyhow::Result<bool> {
        let point = &self.experiment.points[turn.point];
        let line = words::run(self.experiment, point, turn, position as u64 + 1);
        let begin = format!("{}-{}", point.file, turn.round + 1);
        for attempt in 0..=self.experiment.retries {
            match self.attempt(position, turn) {
                Attempt::Measured(document) => {
                    let line = format!("{line}: {}", words::measured(&document));
                    say(&line);
                    self.folder.write(&self.file(&turn), document.to_json().as_bytes())?;
                    self.sum.measured += 1;
                    let is_broken = document.gates.iter().any(|gate| gate.broken);
                    let is_our_fault = document.verdict.is_some_and(|verdict| verdict.limited_by.is_our_fault());
                    let is_our_fault = is_our_fault && point.plan.show.is_strict;
                    self.sum.is_broken |= is_broken;
                    self.sum.is_our_fault |= is_our_fault;
                    self.annotate(point, &line, is_broken || is_our_fault);
                    self.log(&line)?;
                    return Ok(true);
                }
                Attempt::Interrupted(document) => {
                    if let Some(document) = document {
                        let name = self.folder.vacant(&begin, "interrupted");
                        self.folder.write(&name, document.to_json().as_bytes())?;
                    }
                    say(&format!("{line}: interrupted"));
                    self.sum.is_interrupted = true;
                    return Ok(false);
                }
                Attempt::Failed(reason, document) => {
                    if let Some(document) = document {
                        let name = self.folder.vacant(&begin, "failed");
                        self.folder.write(&name, document.to_json().as_bytes())?;
                    }
                    let again = if attempt < self.experiment.retries { "; once more" } else { "" };
                    let line = format!("{line}: failed: {reason}{again}");
                    say(&line);
                    self.annotate(point, &line, true);
                    self.log(&line)?;
                }
            }
        }
        self.sum.failed += 1;
        if self.around.is_fatal {
            say("onrush: the experiment ends with this failure");
            self.sum.is_given_up = true;
            return Ok(false);
        }
        Ok(true)
    }

    /// Says what is wrong in the words that GitHub makes annotations of, where that is wanted.
    fn annotate(&self, point: &Point, line: &str, is_wrong: bool) {
        if is_wrong && point.plan.show.annotates {
            say(&report::annotation(line));
        }
    }

    fn attempt(&mut self, position: usize, turn: Turn) -> Attempt {
        let Self { experiment, folder, interrupt, around, .. } = self;
        let point = &experiment.points[turn.point];
        if let Err(reason) = around.enter(turn.point, turn.round, folder, interrupt) {
            return if interrupt.is_asked() { Attempt::Interrupted(None) } else { Attempt::Failed(reason, None) };
        }
        let before = around.hook(When::BeforeRun, folder, interrupt);
        if interrupt.is_asked() {
            return Attempt::Interrupted(None);
        }
        if let Err(reason) = before {
            return Attempt::Failed(reason, None);
        }
        let mut plan = point.plan.clone();
        plan.show.place = Some(self.place(position, turn));
        if let Some(sockets) = &mut plan.show.sockets {
            let number = turn.round + 1;
            sockets.output = self.folder.path().join(format!("sockets-{}-{number}.ndjson", point.file));
        }
        plan.way.socket.reads_sizes = !point.settings.is_empty();
        let measured = run(&plan, &self.interrupt);
        let is_interrupted = self.interrupt.is_asked();
        // What a hook began it ends, also after a signal.
        let interrupt = if is_interrupted { Interrupt::default() } else { self.interrupt.clone() };
        let after = self.around.hook(When::AfterRun, &self.folder, &interrupt);
        let (mut document, reason) = match measured {
            Ok(document) => {
                let flaw = document.flaw();
                (Some(document), flaw.or(after.err()))
            }
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        if let Some(place) = document.as_mut().and_then(|document| document.experiment.as_mut()) {
            place.failed = reason.clone();
        }
        match (document, reason) {
            (document, _) if is_interrupted => Attempt::Interrupted(document),
            (document, Some(reason)) => Attempt::Failed(reason, document),
            (Some(document), None) => Attempt::Measured(document),
            (None, None) => Attempt::Failed("there is no result".to_owned(), None),
        }
    }

    /// Which run of the experiment this is.
    fn place(&self, position: usize, turn: Turn) -> Place {
        let Experiment { name, order, rounds, factors, points, .. } = self.experiment;
        let level = |(factor, &level): (&crate::plan::experiment::Factor, &usize)| PlacedLevel {
            factor: factor.name.clone(),
            level: factor.levels[level].shown.clone(),
            index: level as u32 + 1,
            baseline: level == factor.baseline,
        };
        Place {
            name: name.clone(),
            id: self.id.clone(),
            order: *order,
            rounds: *rounds,
            round: turn.round + 1,
            position: position as u32,
            point: turn.point as u32 + 1,
            levels: factors.iter().zip(&points[turn.point].levels).map(level).collect(),
            failed: None,
        }
    }

    fn log(&mut self, what: &str) -> anyhow::Result<()> {
        self.folder.log(what)
    }
}

/// One session, and its document.
fn run(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Box<Document>> {
    let files = Files::open(&plan.show.files(), plan.show.keeps_secrets)?;
    let fates = files.fates().clone();
    let mut watcher = Watcher { plan, line: None, files };
    let outcome = session::run(plan, interrupt, &mut watcher)?.outcome;
    let document = Box::new(Document::of(plan, &outcome));
    watcher.files.write(&document);
    fates.wait(files::PATIENCE);
    fates.give_up();
    files::unwritable(&fates).into_iter().next().map_or(Ok(()), Err)?;
    fault(plan, &outcome).map_or(Ok(document), Err)
}

/// Shows how a run goes.
struct Watcher<'a> {
    plan: &'a Plan,
    line: Option<ProgressLine>,
    /// What samples of sockets are written into.
    files: Files,
}

impl Observer for Watcher<'_> {
    fn ready(&mut self) -> Instant {
        // What a script prints would tear the line.
        if self.plan.script.is_none() {
            self.line = ProgressLine::on_stderr(self.plan.stop, self.plan.schedule.clone());
        }
        Instant::now()
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(line) = &mut self.line {
            line.draw(progress);
        }
    }

    fn sampled(&mut self, sample: &Sample) {
        self.files.sampled(sample);
    }

    fn waiting(&mut self, waiting: &Waiting) {
        self.line.iter_mut().for_each(ProgressLine::clear);
        say(&report::waiting(self.plan, waiting));
    }

    fn listener(&mut self) -> Listener {
        // If standard error is closed there is nobody to tell.
        Arc::new(|line| drop(std::io::stderr().write_all(line)))
    }
}
