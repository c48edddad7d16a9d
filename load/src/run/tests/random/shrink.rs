//! Reduces a failing case as long as it still fails.

use std::time::{Duration, Instant};

use onrush_engine::backend::sim::Scenario;
use onrush_engine::backend::sim::scenario::Mischief;
use onrush_plan::schedule::Arrivals;

use super::case::{Case, CaseOptions, Lua};
use super::pace::{Pace, PaceStage};

/// Approximate time limit for trying smaller cases.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the smallest case found that still `fails`.
pub fn shrink(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    let began = Instant::now();
    let mut found = true;
    while std::mem::take(&mut found) {
        for smaller in smaller_cases(&case) {
            if began.elapsed() >= PATIENCE {
                return case;
            }
            if fails(&smaller) {
                (case, found) = (smaller, true);
                break;
            }
        }
    }
    case
}

/// Cases that are one step smaller, largest steps first.
fn smaller_cases(case: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        if format!("{smaller:?}") != format!("{case:?}") {
            cases.push(smaller);
        }
    };
    add(&|case| case.script = None);
    add(&|case| case.scenario.fault.clear());
    add(&|case| case.scenario.connection_fault.clear());
    remove_spans(&case.scenario, &mut add);
    reset_to_defaults(&mut add);
    for index in 0..case.scenario.fault.len() {
        add(&|case| drop(case.scenario.fault.remove(index)));
        add(&|case| case.scenario.fault[index].after_bytes = 0);
        add(&|case| case.scenario.fault[index].every /= 2);
        add(&|case| shorten_mischief(&mut case.scenario.fault[index].what));
    }
    for index in 0..case.scenario.connection_fault.len() {
        add(&|case| drop(case.scenario.connection_fault.remove(index)));
        add(&|case| case.scenario.connection_fault[index].after_bytes = 0);
        add(&|case| case.scenario.connection_fault[index].after_us = 0.0);
        add(&|case| case.scenario.connection_fault[index].every = 1);
        add(&|case| shorten_mischief(&mut case.scenario.connection_fault[index].what));
    }
    simplify_script(case.script.as_ref(), &mut add);
    reduce_numbers(&mut add);
    cases
}

fn shorten_mischief(mischief: &mut Mischief) {
    if let Mischief::Answer(text) | Mischief::Early(text) = mischief {
        // Random strings have only single-byte characters.
        text.truncate(text.len() / 2);
    }
}

type Add<'a> = dyn FnMut(&dyn Fn(&mut Case)) + 'a;

fn remove_spans(scenario: &Scenario, add: &mut Add<'_>) {
    let spans = |scenario: &mut Scenario, which: usize| {
        let Scenario { stall, refuse, backlog, generator_stall, .. } = scenario;
        std::mem::take([stall, refuse, backlog, generator_stall][which])
    };
    for which in 0..4 {
        add(&|case| drop(spans(&mut case.scenario, which)));
        let all = spans(&mut scenario.clone(), which);
        for index in 0..all.len() {
            let mut left = all.clone();
            left.remove(index);
            add(&|case| {
                let Scenario { stall, refuse, backlog, generator_stall, .. } = &mut case.scenario;
                [stall, refuse, backlog, generator_stall][which].clone_from(&left);
            });
        }
    }
}

/// Resets one setting after the other to its default.
fn reset_to_defaults(add: &mut Add<'_>) {
    add(&|Case { scenario, .. }| {
        let (answer, latency_us) = (scenario.answer.clone(), scenario.latency_us);
        *scenario = Scenario { answer, latency_us, ..Scenario::default() };
    });
    add(&|case| case.scenario.answer = Scenario::default().answer);
    add(&|case| case.scenario.close = false);
    add(&|case| case.scenario.split = 0);
    add(&|case| case.scenario.window = 0);
    add(&|case| case.scenario.uneven = false);
    add(&|case| case.scenario.idle_us = 0.0);
    add(&|case| case.scenario.ports = 0);
    add(&|case| case.scenario.listens.clear());
    add(&|case| case.scenario.jitter_us = 0.0);
    add(&|case| case.scenario.connect_us = 0.0);
    add(&|case| case.options.as_wrk = false);
    add(&|case| case.options.levels.clear());
    add(&|case| case.options.limits.clear());
    add(&|case| case.options.max_inflight = None);
    simplify_pace(add);
    add(&|case| case.options.phases = false);
    add(&|case| case.options.is_head = false);
    add(&|case| case.options.body_bytes = 0);
    add(&|case| case.options.has_choice = false);
    add(&|case| case.options.listed = 0);
    add(&|case| case.options.checks = false);
    add(&|case| case.options.templates = false);
    add(&|case| case.options.warmup_ms = None);
    add(&|case| case.options.timeout_ms = None);
    add(&|case| case.options.give_up_ms = None);
    add(&|case| case.options.limit_ms = None);
    add(&|case| case.options.per_connection = None);
    add(&|case| case.options.threads = 1);
}

fn simplify_pace(add: &mut Add<'_>) {
    add(&|case| case.options.pace = None);
    let mut change = |change: &dyn Fn(&mut Pace)| add(&|case| case.options.pace.iter_mut().for_each(change));
    change(&|pace| pace.stages.clear());
    change(&|pace| pace.arrivals = Arrivals::Uniform);
    change(&|pace| pace.catch_up_tenths = None);
    change(&|pace| pace.max_late_ms = None);
    change(&|pace| pace.send_slice_us = None);
    change(&|pace| pace.stages.truncate(pace.stages.len().max(2) - 1));
    change(&|pace| drop(pace.stages.drain(..usize::from(pace.stages.len() > 1))));
    change(&|pace| pace.stages.iter_mut().for_each(|stage| stage.to = stage.from));
    change(&|pace| pace.stages.iter_mut().for_each(|stage| stage.length_ms = (stage.length_ms / 2).max(1)));
    change(&|pace| pace.per_minute = (pace.per_minute / 2).max(1));
}

fn simplify_script(script: Option<&Lua>, add: &mut Add<'_>) {
    if script.is_none() {
        return;
    }
    let mut change = |change: &dyn Fn(&mut Lua)| add(&|case| case.script.iter_mut().for_each(change));
    change(&|lua| lua.batches.clear());
    change(&|lua| lua.delays_ms.clear());
    change(&|lua| lua.response = None);
    change(&|lua| lua.stops_at = None);
    change(&|lua| lua.fails_at = None);
    change(&|lua| lua.batches.truncate(lua.batches.len().max(2) - 1));
    change(&|lua| lua.delays_ms.truncate(lua.delays_ms.len().max(2) - 1));
    change(&|lua| lua.batches.iter_mut().for_each(|batch| *batch = (*batch / 2).max(1)));
}

/// Reduces every number.
fn reduce_numbers(add: &mut Add<'_>) {
    let mut change = |change: &dyn Fn(&mut Vec<PaceStage>)| add(&|case| change(&mut case.options.levels));
    change(&|levels| levels.truncate(levels.len().max(2) - 1));
    change(&|levels| levels.iter_mut().for_each(|level| level.to = level.from.max(1)));
    change(&|levels| levels.iter_mut().for_each(|level| level.length_ms = (level.length_ms / 2).max(1)));
    add(&|case| case.options.max_inflight = case.options.max_inflight.map(|most| most / 2));
    add(&|case| case.options.connections = case.options.threads);
    add(&|case| case.options.connections = (case.options.connections / 2).max(case.options.threads));
    add(&|case| case.options.connections = (case.options.connections - 1).max(case.options.threads));
    add(&|Case { options: CaseOptions { requests, .. }, .. }| {
        requests.iter_mut().for_each(|requests| *requests = (*requests / 2).max(1));
    });
    add(&|Case { options: CaseOptions { duration_ms, .. }, .. }| {
        duration_ms.iter_mut().for_each(|duration_ms| *duration_ms = (*duration_ms / 2).max(1));
    });
    add(&|case| case.scenario.window /= 2);
    add(&|case| case.scenario.split /= 2);
    add(&|case| case.scenario.ports /= 2);
}
