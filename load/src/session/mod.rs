//! A complete run, from the resolution of the target's name to the outcome.
//!
//! [`run()`] may be called any number of times per process. It prints nothing, writes no file and never exits:
//! [`Observer`]s display its events.

pub mod ask;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use onrush_engine::Spare;
use onrush_engine::backend::{Backend, Epoll};
use onrush_plan::{Dialect, Plan, proxy};

use crate::resolve::Addresses;
use crate::run::{
    self, Choice, Clock, Gathered, Interrupt, Listener, NotStarted, Observer, Outcome, RunScript, Tail, WorkerScript,
};
use crate::script::{LoadedScript, ScriptPhase, ScriptProxy, ScriptSetting};

/// How long a script may spend in one function before or after the run until a message says so.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// Time between two checks for a signal while waiting for the resolver.
const WATCH: Duration = Duration::from_millis(20);

/// Remains of a run.
pub struct SessionResult {
    /// Measurements of the run.
    pub outcome: Outcome,
    /// Connections left idle at the end, if the run was given any.
    pub spares: Vec<Spare>,
    /// The loaded script, if there is one: its `done` may still need the results.
    pub script: Option<LoadedScript>,
    /// The workers, still connected, if a probe may follow.
    pub tail: Option<Tail>,
}

/// Runs a plan from start to end. A signal ends the run early; the result then holds the measurements so far.
///
/// # Errors
///
/// Fails if nothing could be measured: an unknown name, a bad script or file, or an unavailable backend or thread.
/// Fails with [`crate::script::Exit`] if the script called `os.exit` before the run.
pub fn run(plan: &Plan, interrupt: &Interrupt, observers: &mut [&mut dyn Observer]) -> anyhow::Result<SessionResult> {
    run_plan(plan, None, &mut None, &mut Clock::for_io(&plan.io), interrupt, observers)
}

/// Runs a plan on `spares`, the connections left open by an earlier run with the same target, connect and TLS settings,
/// as far as they are still usable. [`SessionResult::spares`] holds the idle connections at the end. Consecutive runs
/// share `clock` and `gathered`, the machines, which the first run gathers.
///
/// # Errors
///
/// Fails like [`run()`].
pub fn run_on(
    spares: Vec<Spare>,
    gathered: &mut Option<Gathered>,
    clock: &mut Clock,
    plan: &Plan,
    interrupt: &Interrupt,
    observers: &mut [&mut dyn Observer],
) -> anyhow::Result<SessionResult> {
    run_plan(plan, Some(spares), gathered, clock, interrupt, observers)
}

fn run_plan(
    plan: &Plan,
    spares: Option<Vec<Spare>>,
    gathered: &mut Option<Gathered>,
    clock: &mut Clock,
    interrupt: &Interrupt,
    observers: &mut [&mut dyn Observer],
) -> anyhow::Result<SessionResult> {
    if let Some(machines) = &plan.output.machines {
        let gathered = match gathered {
            Some(gathered) => gathered,
            None => gathered.insert(Gathered::start_listening(machines)?),
        };
        return run_on_machines(plan, gathered, clock, interrupt, observers);
    }
    let choice = run::choice::choose_backend(&plan.io)?;
    let nothing =
        || SessionResult { outcome: Outcome::interrupted(&choice), spares: Vec::new(), script: None, tail: None };
    let Some(addresses) = resolve(plan, interrupt)? else { return Ok(nothing()) };
    let addresses = if plan.dialect.is_compat() {
        run::reach::find_reachable_addresses(plan, &addresses, interrupt)?
    } else {
        addresses
    };
    observers.iter_mut().for_each(|observer| observer.on_resolved(&choice, &addresses));
    let listener =
        observers.iter_mut().find_map(|observer| observer.script_listener()).unwrap_or_else(|| Arc::new(|_| ()));
    // A script may run for any length of time, even forever, before the run starts.
    let mut script = interrupt.run_blocking(|| load(plan, &addresses, listener))?;
    if interrupt.is_requested() {
        return Ok(nothing());
    }
    let scripted = script.as_mut().map(scripted);
    let pass_on = observers.iter_mut().find_map(|observer| observer.request_log_taker());
    let keep = observers.iter_mut().find_map(|observer| observer.sample_taker(plan));
    let prepared = run::prepare_run(plan, &addresses, choice.name, scripted, spares, (pass_on, keep))?;
    let ready = observers.iter_mut().map(|observer| observer.on_ready()).collect::<Option<Vec<_>>>();
    let Some(ready) = ready else { return Ok(nothing()) };
    let start = clock.convert_moment(ready.into_iter().max().unwrap_or_else(Instant::now));
    let (mut outcome, spares, tail) = prepared.run(plan, start, clock, interrupt, observers);
    outcome.batch = script.as_ref().map_or(1, LoadedScript::first_batch_size);
    Ok(SessionResult { outcome, spares, script, tail })
}

/// Runs a plan on several machines.
fn run_on_machines(
    plan: &Plan,
    gathered: &mut Gathered,
    clock: &mut Clock,
    interrupt: &Interrupt,
    observers: &mut [&mut dyn Observer],
) -> anyhow::Result<SessionResult> {
    let Some((prepared, start)) = gathered.prepare_run(plan, interrupt, observers)? else {
        let choice = Choice { name: Epoll::NAME, reason: String::new() };
        return Ok(SessionResult {
            outcome: Outcome::interrupted(&choice),
            spares: Vec::new(),
            script: None,
            tail: None,
        });
    };
    let (outcome, spares, _) = prepared.run(plan, start, clock, interrupt, observers);
    Ok(SessionResult { outcome, spares, script: None, tail: None })
}

/// The script's part in a run. Takes the states of the threads out of `script`.
pub(crate) fn scripted(script: &mut LoadedScript) -> RunScript {
    let callbacks = script.take_callbacks().into_iter().enumerate();
    let workers = callbacks.map(|(index, callbacks)| WorkerScript {
        prebuilt: script.prebuilt_requests(index).map(<[u8]>::to_vec),
        callbacks,
    });
    RunScript { depth: script.first_batch_size(), writes_batches: script.wants().request, workers: workers.collect() }
}

/// Resolves the target's addresses; `None` if a signal arrived first.
fn resolve(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Option<Addresses>> {
    let (sender, answer) = mpsc::channel();
    let (target, connect) = (plan.target.clone(), plan.connect.clone());
    let ask = move || {
        // The receiver is gone if a signal arrived first.
        let _ = sender.send(crate::resolve::resolve(&target, &connect));
    };
    run::spawn_detached("resolver", ask).map_err(|reason| NotStarted::Helper { job: "the resolver", reason })?;
    loop {
        match answer.recv_timeout(WATCH) {
            Ok(Ok(addresses)) => return Ok(Some(addresses)),
            Ok(Err(error)) if plan.dialect.is_compat() => return Err(error.into()),
            Ok(Err(error)) => anyhow::bail!(error.native_message()),
            Err(RecvTimeoutError::Timeout) if interrupt.is_requested() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the resolver ended without a result"),
        }
    }
}

/// Loads the plan's script, if it has one, and runs its functions that precede the run.
pub(crate) fn load(plan: &Plan, addresses: &Addresses, listener: Listener) -> anyhow::Result<Option<LoadedScript>> {
    let Some(onrush_plan::LuaScript { file, args }) = &plan.script else { return Ok(None) };
    let (headers, origin) = (plan.own_headers(), proxy::origin(&plan.target));
    let setting = ScriptSetting {
        path: Path::new(&file.name),
        file: file.contents()?,
        args,
        url: &plan.target.typed,
        scheme: plan.target.scheme.name(),
        host: &plan.target.host,
        port: plan.target.port_text.as_deref(),
        method: &plan.request.method,
        target: &plan.target.path,
        headers: &headers,
        body: Some(plan.body()?).filter(|body| !body.is_empty()),
        proxy: plan
            .connect
            .proxy
            .as_ref()
            .map(|_| ScriptProxy { origin: origin.as_deref(), login: plan.request_login() }),
        addresses: &addresses.0,
        listener: Arc::clone(&listener),
        threads: plan.load.threads,
        seed: plan.seed,
        is_compat: plan.dialect.is_compat(),
        is_wrk2: plan.dialect == Dialect::Wrk2,
    };
    let phase = ScriptPhase::default();
    let watch = phase.watch();
    let name_long = move || {
        watch.report_long_calls(SILENT_MAX, |function| {
            let seconds = SILENT_MAX.as_secs();
            listener(format!("onrush: the script has been in {function} for {seconds} s\n").as_bytes());
        });
    };
    run::spawn_detached("phases", name_long).map_err(|reason| NotStarted::Helper { job: "the script", reason })?;
    LoadedScript::load(&setting, phase).map(Some)
}
