//! Carries out a search: its runs one after the other, what it shows of each, and how it ends.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use thiserror::Error;

use super::ask;
use super::exit::{EXIT_INCONCLUSIVE, SEARCH_ORDER};
use super::screen;
use super::{
    EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_NOT_STARTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT, EXIT_WRONG, Screen, begin,
    code_of, foremost, guard, print_notes, say, verbose, with_stack,
};
use crate::backend::sim::Scenario;
use crate::engine::Spare;
use crate::live::ProgressLine;
use crate::plan::search::Over;
use crate::plan::secrets::Known;
use crate::plan::{Addresses, Format, Io, Plan, Search};
use crate::reason::reason;
use crate::report::Note;
use crate::report::files::{self, Fates, Files};
use crate::report::result;
use crate::run::{
    Breakdown, Choice, Clock, Ended as RunEnded, Interrupt, Listener, Observer, Outcome, Progress, Waiting,
};
use crate::script::Exit;
use crate::search::{self, Bracket, Document, Ended, Fault, Limit, Point, words};
use crate::verdict::{LimitedBy, Verdict};
use crate::{report, session};

/// The duration of the closed loop that finds the first load.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// The first rate, as a share of that loop's throughput: the target should sustain it.
const FIRST_SHARE: f64 = 0.9;
/// How long a run waits for responses after its end: this many times its length, and the constant below.
const DRAIN_LENGTHS: u32 = 1;
const DRAIN: Duration = Duration::from_secs(1);
/// The longest pause for requests that are still in flight after that.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A closed-loop run with fewer than this share of the responses needed is repeated with a longer duration.
const ENOUGH: f64 = 0.9;

/// The line if nothing was found, because a signal came at once.
const INTERRUPTED: &str = "onrush: interrupted before the first run of the search was over: there is no result";

/// Carries out a search, from the first run to the exit code.
pub fn search(search: &mut Search) -> u8 {
    with_stack(search.plan.script.is_some(), search.plan.load, || steps(search))
}

fn steps(search: &mut Search) -> u8 {
    let (files, signals) = match begin(&search.plan) {
        Ok(begun) => begun,
        Err(error) => {
            say(&format!("onrush: {error:#}"));
            return EXIT_WRONG;
        }
    };
    let fates = files.fates().clone();
    let is_ours = search.plan.script.is_some() && search.plan.show.format == Format::Json;
    let screen = Screen::open(is_ours);
    let interrupt = signals.interrupt.clone();
    let read = interrupt.unheard(|| search.plan.read_materials());
    if !search.plan.show.keeps_secrets {
        screen::hide(Known::of(&search.plan));
    }
    let found = guard(|| {
        read?;
        check(search)?;
        Runs::new(search, &interrupt).all()
    });
    match found.and_then(|found| found) {
        Ok(found) => interrupt.unheard(|| found.show(search, screen, files)),
        Err(error) => {
            drop(files);
            say(&format!("onrush: {error:#}"));
            account(&fates);
            exit_code(&error)
        }
    }
}

/// Checks that every run of a search can begin: one that cannot would lose all those before it.
fn check(search: &Search) -> anyhow::Result<()> {
    if let (Io::Sim(path), Over::Threads) = (&search.plan.io, search.over)
        && Scenario::read(path)?.capacity.is_some()
    {
        bail!(
            "--over threads: the scenario's capacity is divided among the threads, and not every number of them divides it; \
             search --over connections"
        );
    }
    Ok(())
}

/// The exit code of a search that found nothing because of this error.
fn exit_code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<Fruitless>(), error.downcast_ref::<Exit>()) {
        (Some(fruitless), _) => fruitless.code,
        (_, Some(Exit(code))) => *code as u8,
        _ => code_of(error),
    }
}

/// Why a search ended without a result.
#[derive(Debug, Error)]
#[error("{line}")]
struct Fruitless {
    line: String,
    code: u8,
}

/// What a search found.
struct Found {
    points: Vec<Point>,
    ended: Ended,
    /// The documents of the first and the last run; `None`: there was none.
    runs: Option<[Box<result::Document>; 2]>,
    elapsed: Duration,
}

impl Found {
    /// Writes the files, prints the result, and returns the exit code.
    fn show(self, search: &Search, mut screen: Screen, files: Files) -> u8 {
        let fates = files.fates().clone();
        let Some([first, last]) = &self.runs else {
            drop(files);
            say(INTERRUPTED);
            account(&fates);
            return EXIT_INTERRUPTED;
        };
        let document = Document::of(search, &self.points, self.ended, [first, last], self.elapsed.as_secs_f64());
        let line = words::result(search, &self.points, self.ended);
        if let Some(note) = words::contradicted(search.over, &self.points).filter(|_| search.plan.show.notes) {
            say(&format!("note: {note}"));
        }
        files.write_texts(|_| Ok(document.to_json()));
        screen.print(&match search.plan.show.format {
            Format::Text => format!("{line}\n"),
            Format::Json => document.to_json(),
        });
        fates.wait(files::PATIENCE);
        fates.give_up();
        let unwritable = files::unwritable(&fates);
        unwritable.iter().for_each(|error| say(&format!("onrush: {error}")));
        let unread = screen.failure();
        unread.iter().for_each(|error| {
            say(&format!("onrush: cannot write the result to standard output: {}", reason(error)));
        });
        let is_written = unwritable.is_empty() && unread.is_none();
        let code = if is_written { self.code(search) } else { EXIT_WRONG };
        if code != 0 && code != EXIT_BROKEN {
            account(&fates);
        }
        if code != 0 && search.plan.show.annotates {
            say(&report::annotation(&line));
        }
        code
    }

    /// The exit code of what was found.
    fn code(&self, search: &Search) -> u8 {
        let is_interrupted = self.ended == Ended::Signal;
        let is_our_fault = matches!(self.ended, Ended::Limited(limit) if limit.is_our_fault());
        let bracket = Bracket::of(&self.points);
        let codes = [
            (EXIT_NOTHING_COMPLETED, self.ended == Ended::Died),
            (EXIT_OUR_FAULT, is_our_fault && search.plan.show.is_strict),
            (EXIT_BROKEN, bracket.holds.is_none() && bracket.fails.is_some()),
            (EXIT_INCONCLUSIVE, search::is_inconclusive(&self.points, self.ended)),
            (EXIT_INTERRUPTED, is_interrupted),
        ];
        foremost(SEARCH_ORDER, &codes)
    }
}

/// Prints what became of the files.
fn account(fates: &Fates) {
    fates.account().into_iter().for_each(|account| say(&format!("onrush: {account}")));
}

/// The runs of a search.
struct Runs<'a> {
    search: &'a Search,
    interrupt: &'a Interrupt,
    clock: Clock,
    /// When the search began.
    started: Instant,
    /// How many responses are needed to decide whether the objective holds.
    needed: f64,
    /// The last load of a closed loop, and its responses per second.
    known: (u64, f64),
    points: Vec<Point>,
    runs: Option<[Box<result::Document>; 2]>,
    /// Idle connections that the last run left for the next one.
    spares: Vec<Spare>,
    /// The lowest median of the service latency of any run, in nanoseconds; the maximum: there was no response yet.
    calm_ns: u64,
    has_begun: bool,
    has_said_gathered: bool,
    /// Whether the note about statuses other than 2xx has been printed.
    has_said_statuses: bool,
}

impl<'a> Runs<'a> {
    fn new(search: &'a Search, interrupt: &'a Interrupt) -> Self {
        let clock = Clock::of(&search.plan.io);
        Self {
            search,
            interrupt,
            started: clock.now(),
            clock,
            needed: search::needed(&search.objective),
            known: (1, 0.0),
            points: Vec::new(),
            runs: None,
            spares: Vec::new(),
            calm_ns: u64::MAX,
            has_begun: false,
            has_said_gathered: false,
            has_said_statuses: false,
        }
    }

    /// Tries one load after the other until the limit is known, or there is a reason to stop.
    fn all(mut self) -> anyhow::Result<Found> {
        let ended = match self.first()? {
            Some(first) => self.from(first)?,
            None => Ended::Signal,
        };
        let elapsed = self.elapsed();
        Ok(Found { points: self.points, ended, runs: self.runs, elapsed })
    }

    /// Prints a line about the progress of the search.
    fn tell(&self, line: &str) {
        if !self.search.plan.show.is_quiet {
            say(line);
        }
    }

    /// The time since the search began.
    fn elapsed(&self) -> Duration {
        self.clock.now() - self.started
    }

    /// The first load: what was typed, or nearly the throughput of a short closed loop. `None`: a signal came.
    fn first(&mut self) -> anyhow::Result<Option<u64>> {
        let over = self.search.over;
        if let (Some(first), Over::Rate) = (self.search.first, over) {
            return Ok(Some(first));
        }
        let plan = self.search.closed_loop(FIRST_LOOK);
        let (outcome, _) = self.run(&plan, FIRST_LOOK)?;
        let completed = outcome.totals.counters.completed;
        if self.interrupt.is_asked() {
            return Ok(None);
        }
        if completed == 0 {
            print_notes(&plan, &outcome);
            let line = words::silent(over);
            return Err(Fruitless { line, code: EXIT_NOTHING_COMPLETED }.into());
        }
        self.say_statuses(&plan, &outcome);
        let per_s = completed as f64 / outcome.elapsed.as_secs_f64();
        self.tell(&words::first(plan.load.connections, per_s));
        self.pause(&outcome, per_s);
        let first = self.search.first.unwrap_or_else(|| over.load(per_s * FIRST_SHARE).max(over.least()));
        self.known = (first, per_s);
        Ok(Some(first))
    }

    /// Searches from this load; returns why it ended.
    fn from(&mut self, first: u64) -> anyhow::Result<Ended> {
        while let Some(load) = search::next(self.search, first, &self.points) {
            let Some(length) = self.length(load)? else { return Ok(self.out_of_time()) };
            if !self.has_begun {
                // A run of a number of requests waits for a target that refuses; a single request finds a wrong port at
                // once.
                self.run(&ask::once(&self.search.plan), FIRST_LOOK)?;
            }
            let Some(point) = self.point(load, length)? else { return Ok(Ended::Signal) };
            if self.points.is_empty() {
                self.tell(&words::headings(self.search));
            }
            self.tell(&words::run(self.search, &point));
            self.points.push(point);
            if self.has_died() {
                return Ok(Ended::Died);
            }
            if let Some(limit) = search::limited(&self.points) {
                let verdict = self.runs.iter().find_map(|[_, last]| last.verdict.as_ref());
                verdict.iter().for_each(|verdict| self.tell(&format!("note: {verdict}")));
                return Ok(Ended::Limited(limit));
            }
        }
        Ok(Ended::Done)
    }

    /// The length of a run under this load; `None`: there is no time left for it.
    fn length(&self, load: u64) -> anyhow::Result<Option<Duration>> {
        let Search { budget, over, .. } = *self.search;
        let (known, per_s) = self.known;
        let per_s = match over {
            Over::Rate => over.number(load),
            Over::Connections | Over::Threads => per_s * (load as f64 / known as f64).min(1.0),
        };
        let length = search::length(budget, self.needed, per_s);
        let is_in_time = self.elapsed() + self.warm_up(length) + length <= budget;
        if !is_in_time && self.points.is_empty() {
            let warm_up = self.warm_up(length);
            let line = words::too_long(self.search, self.needed, per_s, length, warm_up);
            return Err(Fruitless { line, code: EXIT_WRONG }.into());
        }
        Ok(is_in_time.then_some(length))
    }

    fn warm_up(&self, length: Duration) -> Duration {
        let typed = self.search.plan.warmup;
        if typed.is_zero() { search::warm_up(length) } else { typed }
    }

    /// Prints a note, once, if responses had statuses other than 2xx: a wrong path gives fast but useless responses.
    fn say_statuses(&mut self, plan: &Plan, outcome: &Outcome) {
        let notes = report::notes(plan, outcome);
        let statuses = notes.iter().find(|note| matches!(note, Note::Statuses { .. }));
        if let Some(note) = statuses.filter(|_| plan.show.notes && !self.has_said_statuses) {
            self.has_said_statuses = true;
            say(&format!("note: {note}"));
        }
    }

    /// Makes a run under this load; `None`: a signal came.
    fn point(&mut self, load: u64, length: Duration) -> anyhow::Result<Option<Point>> {
        let Search { budget, over, .. } = *self.search;
        if self.search.is_gathered(load) && !std::mem::replace(&mut self.has_said_gathered, true) {
            self.tell(words::GATHERED);
        }
        let left = budget.saturating_sub(self.elapsed() + length);
        let drain = (length * DRAIN_LENGTHS + DRAIN).min(left.max(DRAIN));
        let plan = Plan { warmup: self.warm_up(length), ..self.search.run(load, length, drain) };
        let (outcome, document) = self.run(&plan, length / search::WINDOWS)?;
        if self.interrupt.is_asked() {
            return Ok(None);
        }
        let mut point = Point::of(self.search, &plan, load, length, &outcome);
        self.say_statuses(&plan, &outcome);
        if point.fault == Some(Fault::Unanswered) {
            print_notes(&plan, &outcome);
        } else {
            point.blame(self.limit(&outcome, document.verdict.as_ref()));
        }
        let [first, _] = self.runs.take().unwrap_or_else(|| [document.clone(), document.clone()]);
        self.runs = Some([first, document]);
        self.pause(&outcome, point.per_s);
        if over != Over::Rate {
            self.known = (load, point.per_s);
            if let Some(length) = self.longer(&point)? {
                return self.point(load, length);
            }
        }
        Ok(Some(point))
    }

    /// What limited a run, if it was not the target.
    fn limit(&self, outcome: &Outcome, verdict: Option<&Verdict>) -> Option<Limit> {
        // Until a load has held, it is unknown whether the target has a queue.
        let is_known = |limit: &Limit| {
            *limit != Limit::Verdict(LimitedBy::Connections) || Bracket::of(&self.points).holds.is_some()
        };
        Limit::of(self.search.over, outcome, verdict, self.calm_ns).filter(is_known)
    }

    /// The length of a repeat after a run with too few responses; `None`: it had enough, or there is no time left.
    fn longer(&self, point: &Point) -> anyhow::Result<Option<Duration>> {
        let is_short = point.completed > 0 && (point.completed as f64) < self.needed * ENOUGH;
        Ok(if is_short { self.length(point.load)?.filter(|length| *length > point.length) } else { None })
    }

    /// Waits until the target should have handled the requests in flight at the end of a run, so that they do not
    /// burden the next one.
    fn pause(&mut self, outcome: &Outcome, per_s: f64) {
        let open = outcome.totals.counters.open_at_end as f64;
        let pause = Duration::try_from_secs_f64(open / per_s).unwrap_or(PAUSE_MAX);
        self.clock.sleep(pause.min(PAUSE_MAX));
    }

    /// Why a search ended that ran out of time.
    fn out_of_time(&self) -> Ended {
        let is_silent = self.points.last().is_some_and(|point| point.fault == Some(Fault::Unanswered));
        if is_silent { Ended::Died } else { Ended::Time }
    }

    /// Whether the last two runs got no response.
    fn has_died(&self) -> bool {
        let mut last = self.points.iter().rev().take(2);
        self.points.len() > 1 && last.all(|point| point.fault == Some(Fault::Unanswered))
    }

    /// Runs one session.
    fn run(&mut self, plan: &Plan, row: Duration) -> anyhow::Result<(Outcome, Box<result::Document>)> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let mut watcher = Watcher { search: self.search, plan, row, is_first, line: None, waiting: None };
        let spares = std::mem::take(&mut self.spares);
        let mut outcome = session::run_on(spares, &mut self.clock, plan, self.interrupt, &mut watcher)?.outcome;
        self.spares = std::mem::take(&mut outcome.spares);
        let waiting = watcher.waiting;
        if let Some(sentence) = report::stuck(&outcome).into_iter().next() {
            return Err(anyhow!(sentence));
        }
        match &outcome.breakdown {
            Some(Breakdown::Exit(code)) => Err(Exit(*code).into()),
            Some(Breakdown::Script(words)) => Err(anyhow!(words.clone())),
            Some(Breakdown::Bug(thread)) => Err(anyhow!(report::fallen(*thread))),
            Some(Breakdown::Memory) => Err(anyhow!(report::OUT_OF_MEMORY)),
            None => {
                if outcome.totals.latency.count() > 0 {
                    self.calm_ns = self.calm_ns.min(outcome.totals.latency.percentile(50.0));
                }
                self.refuse(plan, &outcome, waiting)?;
                let document = Box::new(result::Document::of(plan, &outcome));
                Ok((outcome, document))
            }
        }
    }

    /// Ends the search, as it would a run, if the target refuses connections and has given no response before.
    /// `waiting`: the address that the run waited for, as runs of a number of requests do.
    fn refuse(&self, plan: &Plan, outcome: &Outcome, waiting: Option<Waiting>) -> Result<(), Fruitless> {
        let refusal = match (outcome.ended, waiting) {
            (RunEnded::Refused { address, cause }, _) => Some((address, cause)),
            (_, Some(Waiting { address, cause, .. })) if outcome.totals.counters.slots_opened == 0 => {
                Some((address, cause))
            }
            _ => None,
        };
        match refusal.filter(|_| self.calm_ns == u64::MAX && !self.interrupt.is_asked()) {
            Some((address, cause)) => {
                let line = report::refusal(plan, outcome, address, cause);
                Err(Fruitless { line, code: EXIT_NOT_STARTED })
            }
            None => Ok(()),
        }
    }
}

/// Shows the progress of a run of a search.
struct Watcher<'a> {
    search: &'a Search,
    plan: &'a Plan,
    row: Duration,
    is_first: bool,
    line: Option<ProgressLine>,
    /// The address that the run has waited for.
    waiting: Option<Waiting>,
}

impl Observer for Watcher<'_> {
    fn resolved(&mut self, choice: &Choice, addresses: &Addresses) {
        if !self.is_first {
            return;
        }
        if self.plan.show.verbose {
            say(&verbose(self.plan, choice, addresses));
        }
        if !self.plan.show.is_quiet {
            say(&words::opening(self.search));
        }
    }

    fn ready(&mut self) -> Instant {
        // A script's own output would break the line up.
        if self.plan.script.is_none() && !self.plan.show.is_quiet {
            self.line = ProgressLine::on_stderr("", self.plan.stop, self.plan.schedule.clone());
        }
        Instant::now()
    }

    fn row(&self) -> Duration {
        self.row
    }

    fn progress(&mut self, progress: &Progress) {
        if let Some(line) = &mut self.line {
            line.draw(progress);
        }
    }

    fn waiting(&mut self, waiting: &Waiting) {
        self.waiting = Some(*waiting);
        if self.plan.show.notes {
            self.line.iter_mut().for_each(ProgressLine::clear);
            say(&report::waiting(self.plan, waiting));
        }
    }

    fn listener(&mut self) -> Listener {
        // If standard error is closed, the line is lost.
        Arc::new(|line| drop(std::io::stderr().write_all(line)))
    }
}
