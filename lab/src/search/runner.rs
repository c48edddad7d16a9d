//! Runs a search: its successive runs, their output, and the end.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use onrush_engine::Spare;
use onrush_engine::backend::sim::Scenario;
use onrush_load::failure;
use onrush_load::files::{self, FileStates, Files};
use onrush_load::input::InputFiles;
use onrush_load::judge::{self, JudgedRun};
use onrush_load::live::{Messages, ProgressLine, WaitingLine, verbose_line};
use onrush_load::program::{
    EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, EXIT_NOT_STARTED, EXIT_NOTHING_COMPLETED, EXIT_OUR_FAULT,
    EXIT_WRONG, SEARCH_ORDER, Screen, Signals, code_of, guard, highest_precedence, say, screen, with_stack,
};
use onrush_load::record::{self, NoteId};
use onrush_load::resolve::Addresses;
use onrush_load::run::{
    self, Breakdown, Choice, Clock, Gathered, Interrupt, NotStarted, Observer, Outcome, RunEnd as RunEnded,
    TimelineRow, Waiting, nanos,
};
use onrush_load::script::Exit;
use onrush_load::session::{self, SessionResult, ask};
use onrush_plan::Random;
use onrush_plan::search::SearchVariable;
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Format, Io, LimitedBy, Load, Plan, Search};
use thiserror::Error;

use super::point::chance_deviation;
use super::words;
use super::{
    Alone, ClientLimit, ClosedLoop, Document, Hopeless, LoadFailure, Next, PlannedRun, Point, SearchEnd,
    SearchProgress, SearchResult, WINDOWS, errors, mark_cold_failures, responses_needed,
};
use screen::{has_colours, say_lines};

/// Duration of the closed loop that finds the first load, and of its uncounted start.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const FIRST_SETTLE: Duration = Duration::from_millis(500);
/// Longest time to open the connections of the closed loop.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// The first rate, as a share of the throughput of the closed loop: the target should sustain it.
const FIRST_SHARE: f64 = 0.9;
/// Time for which a run waits for responses after its end: this multiple of its length, plus the constant below.
const DRAIN_LENGTHS: u32 = 1;
const DRAIN: Duration = Duration::from_secs(1);
/// Longest pause if requests are still in flight after that wait.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Number of successive requests after an overload that check for recovery. The target has recovered if their median is
/// at most this multiple of the lowest median, plus the margin below.
const PROBES: u64 = 3;
const RECOVERED: u32 = 2;
const RECOVERED_ABOVE: Duration = Duration::from_millis(1);
/// Longest wait of a recovery check, pause between checks, and time limit for the recovery: this minimum or a fraction
/// of the search.
const PROBE: Duration = Duration::from_secs(1);
const PROBE_PAUSE: Duration = Duration::from_millis(100);
const RECOVERY: Duration = Duration::from_secs(5);
const RECOVERY_PARTS: u32 = 6;
/// Number of successive requests that check whether the target is too slow without load.
const ALONE: u64 = 10;
/// Makes a search, prints its result, and returns the exit code.
pub(super) fn run_search(search: &mut Search) -> u8 {
    let has_script = search.plan.script.is_some();
    with_stack(has_script, run::host::check_address_space(&search.plan, has_script), || run_steps(search))
}

fn run_steps(search: &mut Search) -> u8 {
    let begun = Signals::listen(&[]).and_then(|signals| Ok((Files::for_plan(&search.plan, &signals)?, signals)));
    let (files, signals) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            say(&format!("onrush: {error:#}"));
            return EXIT_WRONG;
        }
    };
    let states = files.states().clone();
    let is_ours = search.plan.script.is_some() && search.plan.output.format == Format::Json;
    let screen = Screen::open(is_ours);
    let interrupt = signals.interrupt.clone();
    let read = interrupt.run_blocking(|| InputFiles::default().read_files(&mut search.plan));
    screen::hide(KnownSecrets::from_plan(&search.plan));
    let found = guard(|| {
        read?;
        check_runs_can_start(search)?;
        SearchRuns::new(search, &interrupt).search_to_end()
    });
    match found.and_then(|found| found) {
        Ok(found) => interrupt.run_blocking(|| found.print_result(search, screen, files)),
        Err(error) => {
            drop(files);
            say(&format!("onrush: {error:#}"));
            print_file_states(&states);
            exit_code(&error)
        }
    }
}

/// Checks before the search that each of its runs can start: a later failure would lose all earlier runs.
fn check_runs_can_start(search: &Search) -> anyhow::Result<()> {
    if let (Io::Sim(path), SearchVariable::Threads) = (&search.plan.io, search.over)
        && Scenario::read(path)?.is_limited()
    {
        bail!("--over threads: not every number of threads divides the scenario's capacity; search --over connections");
    }
    Ok(())
}

/// Exit code of a search that this error ended without a result.
fn exit_code(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref::<NoResult>(), error.downcast_ref::<Exit>()) {
        (Some(fruitless), _) => fruitless.code,
        (_, Some(Exit(code))) => *code as u8,
        _ => code_of(error),
    }
}

/// A search ended without a result.
#[derive(Debug, Error)]
#[error("{line}")]
struct NoResult {
    line: String,
    code: u8,
}

/// A search lost one of its machines.
#[derive(Debug, Error)]
#[error("the search ends here: without all machines, its runs would not be comparable")]
struct MachineLost(String);

struct FinishedSearch {
    points: Vec<Point>,
    look: Option<ClosedLoop>,
    ended: SearchEnd,
    /// The machine whose loss ended the search, and the cause.
    lost: Option<String>,
    /// Documents of the first and the last run; `None` without a run.
    runs: Option<[Box<record::Document>; 2]>,
    elapsed: Duration,
}

impl FinishedSearch {
    /// Writes the files, prints the result, and returns the exit code.
    fn print_result(self, search: &Search, mut screen: Screen, files: Files) -> u8 {
        let states = files.states().clone();
        let Some([first, last]) = &self.runs else {
            drop(files);
            say(&format!("onrush: {}", words::interruption_message(search)));
            print_file_states(&states);
            return EXIT_INTERRUPTED;
        };
        let found = SearchResult::new(search.over, &self.points, self.look, self.ended);
        let mut document = Document::new(search, &self.points, &found, [first, last], self.elapsed.as_secs_f64());
        document.lost = self.lost.clone();
        let line = words::result_line(search, &self.points, &found);
        if let Some(note) = words::contradiction_note(search, &self.points, &found).filter(|_| search.plan.output.notes)
        {
            say(&format!("note: {note}"));
        }
        files.write_texts(|_| Ok(document.to_json()));
        screen.print(&match search.plan.output.format {
            Format::Text => format!("{line}\n"),
            Format::Json => document.to_json(),
        });
        states.wait_until_final(files::PATIENCE);
        states.abandon_incomplete();
        let unwritable = files::unwritable_files(&states);
        unwritable.iter().for_each(|error| say(&format!("onrush: {error}")));
        let unread = screen.failure("the result");
        unread.iter().for_each(|line| say(&format!("onrush: {line}")));
        let is_written = unwritable.is_empty() && unread.is_none();
        let code = if is_written { self.result_exit_code(search, &found) } else { EXIT_WRONG };
        if code != 0 && code != EXIT_BROKEN {
            print_file_states(&states);
        }
        if code != 0 && search.plan.output.annotates {
            say(&judge::annotation(&line));
        }
        code
    }

    /// Exit code of a result.
    fn result_exit_code(&self, search: &Search, found: &SearchResult) -> u8 {
        let is_interrupted = self.ended == SearchEnd::Signal;
        let is_our_fault = matches!(self.ended, SearchEnd::Limited(limit) if limit.is_our_fault());
        let is_inconclusive = found.is_inconclusive(&self.points);
        let codes = [
            (EXIT_NOTHING_COMPLETED, self.ended == SearchEnd::Died),
            (EXIT_OUR_FAULT, is_our_fault && search.plan.output.is_strict),
            (EXIT_BROKEN, found.is_none(&self.points)),
            (EXIT_INCONCLUSIVE, is_inconclusive),
            (EXIT_INTERRUPTED, is_interrupted),
        ];
        highest_precedence(SEARCH_ORDER, &codes)
    }
}

/// Prints one line with the states of all output files; nothing without files.
fn print_file_states(states: &FileStates) {
    states.describe_states().into_iter().for_each(|account| say(&format!("onrush: {account}")));
}

struct SearchRuns<'a> {
    search: &'a Search,
    interrupt: &'a Interrupt,
    clock: Clock,
    /// The machines that run the search, if there are several, and the lost one with the cause.
    gathered: Option<Gathered>,
    lost: Option<String>,
    started: Instant,
    /// Responses needed to judge the objective.
    needed: f64,
    /// Load of the last closed loop, and its responses per second.
    known: (u64, f64),
    points: Vec<Point>,
    look: Option<ClosedLoop>,
    /// Responses to requests sent one at a time.
    alone: Alone,
    /// True if the search continued before the target had recovered from the last run.
    is_recovering: bool,
    runs: Option<[Box<record::Document>; 2]>,
    /// Idle connections that the last run left for the next one.
    spares: Vec<Spare>,
    /// Lowest median service latency of any run, in nanoseconds; `u64::MAX` before the first response.
    calm_ns: u64,
    has_begun: bool,
    has_said_gathered: bool,
    /// True once the note on statuses other than 2xx has been printed.
    has_said_statuses: bool,
}

impl<'a> SearchRuns<'a> {
    fn new(search: &'a Search, interrupt: &'a Interrupt) -> Self {
        let clock = Clock::for_io(&search.plan.io);
        Self {
            search,
            interrupt,
            started: clock.now(),
            clock,
            gathered: None,
            lost: None,
            needed: responses_needed(&search.objective),
            known: (1, 0.0),
            points: Vec::new(),
            look: None,
            alone: Alone::NONE,
            is_recovering: false,
            runs: None,
            spares: Vec::new(),
            calm_ns: u64::MAX,
            has_begun: false,
            has_said_gathered: false,
            has_said_statuses: false,
        }
    }

    /// Tries loads until the limit is known, or until there is a reason to stop.
    fn search_to_end(mut self) -> anyhow::Result<FinishedSearch> {
        let ended = match self
            .first_load()
            .and_then(|first| first.map_or(Ok(SearchEnd::Signal), |first| self.search_from(first)))
        {
            Ok(ended) => ended,
            Err(error) => match error.downcast::<MachineLost>()? {
                lost if self.runs.is_none() => {
                    let line = format!("{}; {lost}, and there is no result yet", lost.0);
                    return Err(NoResult { line, code: EXIT_INCONCLUSIVE }.into());
                }
                lost => {
                    say(&format!("onrush: {lost}"));
                    self.lost = Some(lost.0);
                    SearchEnd::Lost
                }
            },
        };
        let elapsed = self.elapsed();
        Ok(FinishedSearch { points: self.points, look: self.look, ended, lost: self.lost, runs: self.runs, elapsed })
    }

    /// Prints a progress line.
    fn say_progress(&self, line: &str) {
        if !self.search.plan.output.is_quiet {
            say(line);
        }
    }

    /// Time since the start of the search.
    fn elapsed(&self) -> Duration {
        self.clock.now() - self.started
    }

    /// The first load: the one requested, or slightly less than the throughput of a short closed loop. `None` after a
    /// signal.
    fn first_load(&mut self) -> anyhow::Result<Option<u64>> {
        let over = self.search.over;
        if let (Some(first), SearchVariable::Rate) = (self.search.first, over) {
            return Ok(Some(first));
        }
        // A single request detects a wrong port at once, and opens the connections before anything counts.
        let (once, judged) = self.run_session(&ask::once(&self.search.plan), FIRST_LOOK)?;
        self.record_alone(&once);
        if self.interrupt.is_requested() {
            return Ok(None);
        }
        if once.totals.counters.completed == 0 {
            say_lines(&judged.lines(&self.search.plan.output, has_colours()));
            let line = words::silent_target_message(over);
            return Err(NoResult { line, code: EXIT_NOTHING_COMPLETED }.into());
        }
        let mut connect = self.search.initial_closed_loop(CONNECT_MAX);
        connect.stop.requests = Some(connect.load.connections.into());
        self.run_session(&connect, FIRST_LOOK)?;
        let plan = Plan { warmup: FIRST_SETTLE, ..self.search.initial_closed_loop(FIRST_LOOK) };
        let (outcome, judged) = self.run_session(&plan, FIRST_LOOK)?;
        let completed = outcome.totals.counters.completed;
        if self.interrupt.is_requested() {
            return Ok(None);
        }
        self.note_statuses(&plan, &judged.document);
        let per_s = completed.max(1) as f64 / outcome.elapsed.as_secs_f64();
        // A percentile of a closed loop covers the responses only.
        let holds = judge::judge_objective(&self.search.objective, &judged.document).iter().all(|term| term.holds)
            && !errors::errors_break_objective(&self.search.objective, &outcome);
        self.look = Some(ClosedLoop { connections: plan.load.connections, per_s, holds });
        self.say_progress(&words::closed_loop_line(plan.load.connections, per_s));
        self.drain_target(&outcome, per_s);
        let first =
            self.search.first.unwrap_or_else(|| over.load_from_number(per_s * FIRST_SHARE).max(over.lowest_load()));
        self.known = (first, per_s);
        Ok(Some(first))
    }

    /// Searches from this load until there is a reason to end, and returns the reason.
    fn search_from(&mut self, first: u64) -> anyhow::Result<SearchEnd> {
        if let Some(ended) = self.refuse_if_too_short(first)? {
            return Ok(ended);
        }
        if !self.has_begun {
            // A run with a number of requests waits for a target that refuses connections. A single request detects a
            // wrong port at once.
            let (once, _) = self.run_session(&ask::once(&self.search.plan), FIRST_LOOK)?;
            self.record_alone(&once);
        }
        loop {
            if self.is_hopeless() {
                return Ok(SearchEnd::Hopeless(self.alone));
            }
            let step = match self.next_step(first) {
                Next::Run(step) => step,
                Next::End(ended) => {
                    if let SearchEnd::Limited(_) = ended {
                        let verdict = self.runs.iter().find_map(|[_, last]| last.verdict.as_ref());
                        verdict.iter().for_each(|verdict| self.say_progress(&format!("note: {verdict}")));
                    }
                    return Ok(ended);
                }
            };
            let Some(point) = self.measure_point(step)? else { return Ok(SearchEnd::Signal) };
            if self.points.is_empty() {
                self.say_progress(&words::column_headings(self.search));
            }
            self.say_progress(&words::run_line(self.search, &point));
            let holds = point.holds();
            self.points.push(point);
            mark_cold_failures(&mut self.points);
            if !holds {
                self.await_recovery()?;
            }
            if self.interrupt.is_requested() {
                return Ok(SearchEnd::Signal);
            }
        }
    }

    /// True if no load can hold: even single requests take longer than the objective allows.
    fn is_hopeless(&self) -> bool {
        self.alone.is_hopeless(self.search, self.look, &self.points)
    }

    /// Adds the requests of a run that sent one at a time.
    fn record_alone(&mut self, outcome: &Outcome) {
        let now = self.elapsed();
        self.alone.record(outcome, now);
    }

    fn next_step(&self, first: u64) -> Next {
        let (elapsed, per_s) = (self.elapsed(), |load| self.expected_rate(load));
        SearchProgress { search: self.search, first, points: &self.points, elapsed, per_s: &per_s }.next()
    }

    /// Expected number of responses per second at this load.
    fn expected_rate(&self, load: u64) -> f64 {
        let (known, per_s) = self.known;
        match self.search.over {
            SearchVariable::Rate => self.search.over.load_for_users(load),
            SearchVariable::Connections | SearchVariable::Threads => per_s * (load as f64 / known as f64).min(1.0),
        }
    }

    /// Refuses a search that has no time for its first run, or for the responses that its percentile needs. If the
    /// target is too slow even without load, more time would not help: then the end of the search is returned instead.
    fn refuse_if_too_short(&mut self, first: u64) -> anyhow::Result<Option<SearchEnd>> {
        let per_s = self.expected_rate(first);
        let is_too_short = self.needed / per_s > self.search.budget.as_secs_f64();
        if is_too_short || matches!(self.next_step(first), Next::End(_)) {
            // A rate given on the command line is refused before anything is sent.
            if is_too_short
                && self.has_begun
                && let Some(ended) = self.test_without_load()?
            {
                return Ok(Some(ended));
            }
            let line = words::too_short_search_message(self.search, self.needed, per_s);
            return Err(NoResult { line, code: EXIT_WRONG }.into());
        }
        Ok(None)
    }

    /// Sends one request at a time until it is certain that no load can hold, and returns the end of the search; `None`
    /// as soon as that is unlikely. A signal ends the search as well.
    fn test_without_load(&mut self) -> anyhow::Result<Option<SearchEnd>> {
        loop {
            let known = self.alone.responses;
            let plan = self.sequential_plan(ALONE, RECOVERY.max(Alone::enough_time(self.search)));
            let (outcome, judged) = self.run_session(&plan, RECOVERY)?;
            self.record_alone(&outcome);
            if self.interrupt.is_requested() {
                return Ok(Some(SearchEnd::Signal));
            }
            if self.is_hopeless() {
                self.keep_document(judged.document);
                return Ok(Some(SearchEnd::Hopeless(self.alone)));
            }
            if self.alone.responses == known || !self.alone.exceeds_objective(&self.search.objective) {
                return Ok(None);
            }
        }
    }

    /// A plan for `requests` requests, one after the other, in at most `longest`.
    fn sequential_plan(&self, requests: u64, longest: Duration) -> Plan {
        let mut plan = self.search.initial_closed_loop(longest);
        plan.load = Load::new(1, 1);
        plan.stop.requests = Some(requests);
        plan
    }

    /// Keeps the document if it is that of the first or the last run.
    fn keep_document(&mut self, document: record::Document) {
        let document = Box::new(document);
        let [first, _] = self.runs.take().unwrap_or_else(|| [document.clone(), document.clone()]);
        self.runs = Some([first, document]);
    }

    /// Waits for the target to recover from an overload: sends one request at a time until the latency is as low as
    /// before.
    fn await_recovery(&mut self) -> anyhow::Result<()> {
        let until = self.elapsed() + RECOVERY.max(self.search.budget / RECOVERY_PARTS);
        // A run with one connection would close all others.
        let kept = self.spares.split_off(self.spares.len().min(1));
        loop {
            let calm_ns = self.calm_ns;
            // The requests take this long if the target is merely slow.
            let calm = Duration::from_nanos(if calm_ns == u64::MAX { 0 } else { calm_ns });
            let left = self.search.budget.saturating_sub(self.elapsed());
            let longest = (calm * RECOVERED * PROBES as u32).min(left).max(PROBE);
            let (outcome, _) = self.run_session(&self.sequential_plan(PROBES, longest), PROBE)?;
            let latency = &outcome.totals.latency;
            let limit_ns = calm_ns.saturating_mul(RECOVERED.into()).saturating_add(nanos(RECOVERED_ABOVE));
            let is_calm = latency.count() >= PROBES && latency.percentile(50.0) <= limit_ns;
            self.is_recovering = !is_calm;
            if is_calm {
                self.record_alone(&outcome);
            }
            let is_late = self.elapsed() >= until.min(self.search.budget);
            if is_calm || is_late || self.interrupt.is_requested() {
                self.spares.extend(kept);
                return Ok(());
            }
            self.clock.sleep(PROBE_PAUSE);
        }
    }

    /// Prints a note, once per search, if responses had statuses other than 2xx: a wrong path gives fast but useless
    /// responses.
    fn note_statuses(&mut self, plan: &Plan, document: &record::Document) {
        let statuses = document.notes.iter().find(|note| note.id == NoteId::Statuses);
        if let Some(note) = statuses.filter(|_| plan.output.notes && !self.has_said_statuses) {
            self.has_said_statuses = true;
            say(&format!("note: {}", note.text));
        }
    }

    /// Makes a run and judges it; `None` after a signal.
    fn measure_point(&mut self, step: PlannedRun) -> anyhow::Result<Option<Point>> {
        let Search { budget, over, .. } = *self.search;
        let PlannedRun { load, length, .. } = step;
        if self.search.is_gathered(load) && !std::mem::replace(&mut self.has_said_gathered, true) {
            self.say_progress(words::GATHERED);
        }
        let left = budget.saturating_sub(self.elapsed() + step.last_due_after());
        let drain = (length * DRAIN_LENGTHS + DRAIN).min(left.max(DRAIN));
        // Tenths of a second are precise enough.
        let drain = Duration::from_millis(drain.as_millis() as u64 / 100 * 100);
        // With the same arrivals in every run, all would be slightly too easy, or too hard.
        let seed = Random::new(self.search.plan.seed.wrapping_add(self.points.len() as u64)).next();
        let plan = Plan { warmup: step.settle, seed, ..self.search.run_under_load(load, length, drain) };
        let row = length / WINDOWS;
        let due = over.load_for_users(load) * length.as_secs_f64();
        let requests = if over == SearchVariable::Rate { due + chance_deviation(&plan, due) } else { f64::INFINITY };
        let hopeless = Hopeless::new(&self.search.objective, requests);
        let (outcome, judged) = self.run_watched_session(&plan, row, Some(hopeless))?;
        if self.interrupt.is_requested() {
            return Ok(None);
        }
        let rows = match outcome.ended {
            // The last response may arrive before the end of the last row, in which nothing more was due.
            RunEnded::Requests => WINDOWS,
            // A hopeless run has continued to the end of its first row. A run with a late warm-up is slightly shorter.
            _ => ((outcome.elapsed + row / 20).as_nanos() / row.as_nanos().max(1)).clamp(1, WINDOWS.into()) as u32,
        };
        let document = &judged.document;
        let mut point =
            Point::from_outcome(self.search, &plan, PlannedRun { length: row * rows, ..step }, &outcome, document);
        point.is_early = rows < WINDOWS && outcome.ended == RunEnded::Duration;
        self.note_statuses(&plan, &judged.document);
        if point.fault == Some(LoadFailure::NoResponse) {
            say_lines(&judged.lines(&plan.output, has_colours()));
        } else if self.is_recovering {
            point.set_client_limit(Some(ClientLimit::Recovering));
        } else {
            point.set_client_limit(self.client_limit(&outcome, document));
        }
        self.keep_document(judged.document);
        self.drain_target(&outcome, point.per_s);
        if over != SearchVariable::Rate {
            self.known = (load, point.per_s);
        }
        Ok(Some(point))
    }

    /// The limit of a run, if it was not the target.
    fn client_limit(&self, outcome: &Outcome, document: &record::Document) -> Option<ClientLimit> {
        // Before the first success, it is unknown whether the target has a queue.
        let is_known = |limit: &ClientLimit| {
            *limit != ClientLimit::Verdict(LimitedBy::Connections) || self.points.iter().any(Point::holds)
        };
        ClientLimit::from_document(self.search.over, outcome, document, self.calm_ns).filter(is_known)
    }

    /// Waits until the target should have handled the requests in flight at the end of a run, which would burden the
    /// next run.
    fn drain_target(&mut self, outcome: &Outcome, per_s: f64) {
        let open = outcome.totals.counters.open_at_end as f64;
        let pause = Duration::try_from_secs_f64(open / per_s).unwrap_or(PAUSE_MAX);
        self.clock.sleep(pause.min(PAUSE_MAX));
    }

    /// Runs one session.
    fn run_session(&mut self, plan: &Plan, row: Duration) -> anyhow::Result<(Outcome, JudgedRun)> {
        self.run_watched_session(plan, row, None)
    }

    /// Runs one session, which ends early if hopeless.
    fn run_watched_session(
        &mut self,
        plan: &Plan,
        row: Duration,
        hopeless: Option<Hopeless>,
    ) -> anyhow::Result<(Outcome, JudgedRun)> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let mut opening = SearchOpening { search: self.search, plan, is_first };
        let mut line = ProgressLine::on_stderr("", plan);
        let mut says_waiting = WaitingLine { plan, is_said: plan.output.notes };
        let mut interest = RunInterest { row, hopeless, known: Duration::ZERO, waiting: None };
        let observers: &mut [&mut dyn Observer] =
            &mut [&mut opening, &mut line, &mut says_waiting, &mut Messages, &mut interest];
        let spares = std::mem::take(&mut self.spares);
        let ran = session::run_on(spares, &mut self.gathered, &mut self.clock, plan, self.interrupt, observers);
        let is_lost = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(NotStarted::Machines(_)));
        let SessionResult { outcome, spares, .. } = match ran {
            Err(error) if !is_first && is_lost(&error) => {
                say(&format!("onrush: {error}"));
                return Err(MachineLost(error.to_string()).into());
            }
            ran => ran?,
        };
        // The result would not be about the target.
        if let Some(why) = outcome.machines.iter().find_map(|machine| machine.lost.clone()) {
            return Err(MachineLost(why).into());
        }
        self.spares = spares;
        if let Some(sentence) = failure::stuck_thread_lines(&outcome).into_iter().next() {
            return Err(anyhow!(sentence));
        }
        if !outcome.stopped.is_empty() && outcome.breakdown.is_none() {
            let ended = failure::ended_by_script_message(&outcome);
            return Err(anyhow!("{ended}: a search needs a script that never calls thread:stop()"));
        }
        match &outcome.breakdown {
            Some(Breakdown::Exit(code)) => Err(Exit(*code).into()),
            Some(Breakdown::Script(words)) => Err(anyhow!(words.clone())),
            Some(Breakdown::Bug(thread)) => Err(anyhow!(failure::thread_panic_message(*thread))),
            None => {
                if outcome.totals.latency.count() > 0 {
                    self.calm_ns = self.calm_ns.min(outcome.totals.latency.percentile(50.0));
                }
                self.check_target_accepts(plan, &outcome, interest.waiting)?;
                let judged = JudgedRun::from_outcome(plan, &outcome);
                Ok((outcome, judged))
            }
        }
    }

    /// Ends the search if the target refuses connections and has never responded. `waiting`: the address that the run
    /// waited for, in a run with a number of requests.
    fn check_target_accepts(&self, plan: &Plan, outcome: &Outcome, waiting: Option<Waiting>) -> Result<(), NoResult> {
        let refusal = match (outcome.ended, waiting) {
            (RunEnded::Refused { address, cause }, _) => Some((address, cause)),
            (_, Some(Waiting { address, cause, .. })) if outcome.totals.counters.slots_opened == 0 => {
                Some((address, cause))
            }
            _ => None,
        };
        match refusal.filter(|_| self.calm_ns == u64::MAX && !self.interrupt.is_requested()) {
            Some((address, cause)) => {
                let line = failure::start_refusal(plan, outcome, address, cause);
                Err(NoResult { line, code: EXIT_NOT_STARTED })
            }
            None => Ok(()),
        }
    }
}

/// Prints everything before the first run of a search.
struct SearchOpening<'a> {
    search: &'a Search,
    plan: &'a Plan,
    is_first: bool,
}

impl Observer for SearchOpening<'_> {
    fn on_resolved(&mut self, choice: &Choice, addresses: &Addresses) {
        if self.is_first && self.plan.output.verbose {
            say(&verbose_line(self.plan, choice, addresses));
        }
        if self.is_first && !self.plan.output.is_quiet {
            say(&words::opening_line(self.search));
        }
    }
}

/// Observer of a run for a search: sets the length of its rows, ends it when it has failed, and records the address it
/// waited for.
struct RunInterest {
    row: Duration,
    /// Detects that the run has already failed; `None` if it cannot fail early.
    hopeless: Option<Hopeless>,
    /// Measured time seen so far.
    known: Duration,
    /// The address that the run waited for.
    waiting: Option<Waiting>,
}

impl Observer for RunInterest {
    fn first_row_max(&self) -> Option<Duration> {
        Some(self.row)
    }

    fn on_row(&mut self, row: &TimelineRow) {
        self.hopeless.iter_mut().for_each(|hopeless| hopeless.record(&row.figures));
        self.known = Duration::from_nanos(row.until_ns);
    }

    fn is_enough(&self) -> bool {
        // The search judges whole rows, which may be longer than a second.
        self.known >= self.row && self.hopeless.as_ref().is_some_and(Hopeless::is_certain)
    }

    fn on_waiting(&mut self, waiting: &Waiting) {
        self.waiting = Some(*waiting);
    }
}
