//! Rules on onrush itself. Faults of the generator invalidate every other figure, unless the target's failure outweighs
//! them.

use super::ruling::{Ruling, make_ruling};
use super::target::target_failed;
use super::threads::{BUSY, UNDOUBTED, busiest_thread, describe_busy_threads, describe_utilization, waits_notably};
use super::words::{format_count, format_number, format_percent, format_processors, format_seconds};
use crate::record::NoteId;
use crate::record::evidence::{Evidence, Generator, Target, Thread};
use onrush_plan::LimitedBy;

/// A thread that waited for a processor for this share of the time measured little else.
const STARVED: f64 = 0.2;
/// A target that used this many processors may have taken them from the generator.
const WORKS: f64 = 0.5;
/// A generator that was stalled for this share of the run measured only itself ...
const STOPPED: f64 = 0.05;
/// ... and so did a thread blocked by the script.
pub const HELD_UP: f64 = 0.05;

pub(super) fn rule_on_stalls(evidence: &Evidence) -> Option<Ruling> {
    let Evidence { generator, load, .. } = evidence;
    let is_long = generator.stalled_s >= STOPPED * load.elapsed_s && load.elapsed_s > 0.0;
    (is_long && !target_failed(evidence)).then_some(())?;
    let reason = format!(
        "it was suspended or got no processor for {} of {}, which the latencies include",
        format_seconds(generator.stalled_s),
        format_seconds(load.elapsed_s)
    );
    Some(
        make_ruling(
            LimitedBy::GeneratorCpu,
            "onrush itself was stalled",
            reason,
            "keep other programs off its processors",
        )?
        .saying(&[NoteId::Stalled]),
    )
}

pub(super) fn rule_on_script_time(evidence: &Evidence) -> Option<Ruling> {
    let is_busy = is_busy(evidence);
    let in_script = |thread: &Thread| is_busy(thread) && thread.script >= thread.busy / 2.0;
    let reason = describe_busy_threads(evidence, in_script, |thread| {
        format!("{}, and in the script for {} of the run", describe_utilization(thread), format_percent(thread.script))
    })?;
    make_ruling(
        LimitedBy::GeneratorScript,
        "the script is the limit (it takes too long)",
        reason,
        "do less per request in the script, or use more threads (-t)",
    )
}

pub(super) fn rule_on_ended_threads(evidence: &Evidence) -> Option<Ruling> {
    let Generator { threads, stopped, .. } = &evidence.generator;
    (*stopped > 0).then_some(())?;
    // In virtual time, the evidence describes no thread.
    let ended = match threads.len() as u64 {
        all if all > *stopped => format!("{} of {} threads", format_number(*stopped as f64), format_number(all as f64)),
        _ => format_count(*stopped, "thread"),
    };
    make_ruling(
        LimitedBy::GeneratorScript,
        "the script is the limit",
        format!("it ended {ended} while the run went on"),
        "call thread:stop() in all threads at the end, or in none",
    )
}

pub(super) fn rule_on_blocked_threads(evidence: &Evidence) -> Option<Ruling> {
    let (is_busy, has_failed) = (is_busy(evidence), target_failed(evidence));
    // A thread that waits for a processor also waits inside callbacks.
    let is_held_up = |thread: &Thread| {
        thread.held_up >= HELD_UP.max(thread.queued.unwrap_or(0.0)) && !is_busy(thread) && !has_failed
    };
    let reason = describe_busy_threads(evidence, is_held_up, |thread| {
        format!("blocked for {} of the run, which the latencies include", format_percent(thread.held_up))
    })?;
    let advice = "do not wait or compute for long in callbacks: pause with delay(), prepare in init()";
    make_ruling(LimitedBy::GeneratorScript, "the script's callbacks held up onrush", reason, advice)
}

pub(super) fn rule_on_generator_cpu(evidence: &Evidence) -> Option<Ruling> {
    let load = &evidence.load;
    let (waits_matter, is_busy) = (!target_failed(evidence), is_busy(evidence));
    let taken = |evidence| rule_on_taken_cpu(evidence).filter(|_| waits_matter);
    // Threads stopped by their control group also wait for a processor. Another processor would not help.
    if evidence.generator.throttled(load.elapsed_s) >= STARVED {
        return taken(evidence);
    }
    let is_starved = |thread: &Thread| waits_matter && thread.queued.is_some_and(|queued| queued >= STARVED);
    let is_limit = |thread: &Thread| is_busy(thread) || is_starved(thread);
    let Generator { threads, cpus, .. } = &evidence.generator;
    let works = |thread: &Thread| thread.worked() >= BUSY;
    if threads.iter().any(|thread| is_limit(thread) && waits_notably(thread)) && !threads.iter().any(works) {
        let is_waiting = |thread: &Thread| is_limit(thread) && waits_notably(thread);
        let reason = describe_busy_threads(evidence, is_waiting, |thread| {
            let [waited, worked] = [thread.queued.unwrap_or(0.0), thread.worked()].map(format_percent);
            format!("waiting for a processor for {waited} of the time and working for {worked}")
        })?;
        let (others, advice) = describe_processor_users(evidence);
        return make_ruling(
            LimitedBy::GeneratorCpu,
            "onrush itself is the limit (it lacked processors)",
            reason + ": " + &others,
            &advice,
        );
    }
    let Some(reason) = describe_busy_threads(evidence, is_limit, describe_utilization) else { return taken(evidence) };
    let advice = match cpus {
        None => "use more machines, or more threads (-t) on machines with idle processors",
        Some(cpus) if threads.len() < *cpus => "use more threads (-t), or another machine",
        Some(_) => "use more machines: all processors of this one are in use",
    };
    make_ruling(LimitedBy::GeneratorCpu, "onrush itself is the limit", reason, advice)
}

/// Names the programs that occupied the processors onrush waited for, if known, and the remedy.
fn describe_processor_users(Evidence { generator, target, .. }: &Evidence) -> (String, String) {
    let Generator { threads, cpus, .. } = generator;
    if let Some(cpus) = cpus.filter(|cpus| threads.len() > *cpus) {
        let share = format!("{} threads share {}", format_number(threads.len() as f64), format_processors(cpus as f64));
        return (share, format!("use fewer threads (-t {cpus})"));
    }
    let waited: f64 = threads.iter().filter_map(|thread| thread.queued).sum();
    match target.as_ref().filter(|target| target.cpus_used >= WORKS.max(waited / 2.0)) {
        Some(Target { name, cpus_used, cpus_allowed, .. }) => (
            format!(
                "the target on this machine ({name}) used {} of {}",
                format_number(*cpus_used),
                format_processors(*cpus_allowed)
            ),
            "give onrush its own processors (taskset), or use another machine".to_owned(),
        ),
        None => {
            ("other programs used it".to_owned(), "stop them, or give onrush its own processors (taskset)".to_owned())
        }
    }
}

/// True if a thread worked nearly all of the time. Waits for a processor count as work where they matter.
fn is_busy(evidence: &Evidence) -> impl Fn(&Thread) -> bool {
    let has_failed = target_failed(evidence);
    move |thread: &Thread| (if has_failed { thread.worked() } else { thread.busy }) >= BUSY
}

/// Processor time taken from the generator by the limit of its control group or by the hypervisor.
fn rule_on_taken_cpu(Evidence { generator, load, machine, .. }: &Evidence) -> Option<Ruling> {
    let throttled = generator.throttled(load.elapsed_s);
    let (share, who, advice, says): (_, _, _, &[NoteId]) = match machine.stolen {
        _ if throttled >= STARVED => (throttled, "its control group's limit", "raise cpu.max", &[NoteId::Throttled]),
        Some(stolen) if stolen >= STARVED => {
            (stolen, "the hypervisor", "use a machine with dedicated processors", &[NoteId::Stolen])
        }
        _ => return None,
    };
    let reason = format!("{who} took {} of its processor time", format_percent(share));
    Some(make_ruling(LimitedBy::GeneratorCpu, "onrush itself is the limit", reason, advice)?.saying(says))
}

/// The summary of the verdict on a doubtful closed loop.
const DOUBTFUL: &str = "the limit is unclear (requests may have queued in onrush)";

/// A closed loop whose requests may have queued in the generator.
pub(super) fn rule_on_doubtful_generator(evidence: &Evidence) -> Option<Ruling> {
    let busiest =
        busiest_thread(evidence).filter(|thread| evidence.load.asked_per_s.is_none() && thread.busy >= UNDOUBTED)?;
    let reason = format!("its busiest thread was {}", describe_utilization(busiest));
    if waits_notably(busiest) {
        let (others, advice) = describe_processor_users(evidence);
        return make_ruling(LimitedBy::Unclear, DOUBTFUL, format!("{reason}; {others}"), &advice);
    }
    make_ruling(LimitedBy::Unclear, DOUBTFUL, reason, "use more threads (-t), or another machine")
}
