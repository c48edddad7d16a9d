//! A run from the name of its target to what it measured.
//!
//! [`run()`] may be called any number of times in one process. It prints nothing, writes no file and ends no process: an
//! [`Observer`] is told what happens, and the caller shows it.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;

use crate::engine::Spare;
use crate::plan::{self, Addresses, Dialect, Plan, proxy};
use crate::run::{self, Interrupt, Listener, Observer, Outcome};
use crate::script::{Script, Setting, Through};

/// How often somebody who waits for the name service looks whether a signal came.
const WATCH: Duration = Duration::from_millis(20);

/// What a run left.
pub struct Ran {
    /// What it measured.
    pub outcome: Outcome,
    /// Its script, which may want to hear the results.
    pub script: Option<Script>,
}

/// Carries a plan out. A signal ends it early, with what was measured until then, be it nothing.
///
/// # Errors
///
/// Why nothing could be measured: a name that is not known, a script or a file that is wrong, a backend or thread that
/// cannot be had. [`crate::script::Exit`], if the script ended it.
pub fn run(plan: &Plan, interrupt: &Interrupt, observer: &mut dyn Observer) -> anyhow::Result<Ran> {
    carry_out(plan, None, interrupt, observer)
}

/// Carries a plan out on connections that an earlier run with the same way, target and TLS has left, as far as they are still
/// there. Its own that are idle at the end are in [`Outcome::spares`].
///
/// # Errors
///
/// The same.
pub fn run_on(
    spares: Vec<Spare>,
    plan: &Plan,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> anyhow::Result<Ran> {
    carry_out(plan, Some(spares), interrupt, observer)
}

fn carry_out(
    plan: &Plan,
    spares: Option<Vec<Spare>>,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> anyhow::Result<Ran> {
    let choice = run::choice::choose(&plan.io)?;
    let nothing = || Ran { outcome: Outcome::interrupted(&choice), script: None };
    let Some(addresses) = resolve(plan, interrupt)? else { return Ok(nothing()) };
    let addresses = if plan.dialect.is_compat() { run::probe::probe(plan, &addresses, interrupt)? } else { addresses };
    observer.resolved(&choice, &addresses);
    // A script may do anything at all, and for ever, before the run begins.
    let mut script = interrupt.unheard(|| load(plan, &addresses, observer.listener()))?;
    if interrupt.is_asked() {
        return Ok(nothing());
    }
    let prepared = run::prepare(plan, &addresses, choice.name, script.as_mut(), spares)?;
    let start = observer.ready();
    let mut outcome = prepared.run(plan, start, interrupt, observer);
    outcome.batch = script.as_ref().map_or(1, Script::depth);
    Ok(Ran { outcome, script })
}

/// Asks for the target's addresses; `None`: somebody sent a signal before there was an answer.
fn resolve(plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Option<Addresses>> {
    let (sender, answer) = mpsc::channel();
    let (target, way) = (plan.target.clone(), plan.way.clone());
    let ask = move || {
        // Whoever asked may have gone.
        let _ = sender.send(plan::resolve::resolve(&target, &way));
    };
    run::beside("resolver", ask).context("unable to create a thread for the name service")?;
    loop {
        match answer.recv_timeout(WATCH) {
            Ok(addresses) => return Ok(Some(addresses?)),
            Err(RecvTimeoutError::Timeout) if interrupt.is_asked() => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the name service gave no answer"),
        }
    }
}

/// Loads the script, if there is one, and runs everything in it that comes before the run.
pub(crate) fn load(plan: &Plan, addresses: &Addresses, listener: Listener) -> anyhow::Result<Option<Script>> {
    let Some(plan::Script { file, args }) = &plan.script else { return Ok(None) };
    let (headers, origin) = (plan.own_headers(), proxy::origin(&plan.target));
    let setting = Setting {
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
        proxy: plan.way.proxy.as_ref().map(|_| Through { origin: origin.as_deref(), login: plan.request_login() }),
        addresses: &addresses.0,
        listener,
        threads: plan.load.threads,
        seed: plan.seed,
        is_compat: plan.dialect.is_compat(),
        is_wrk2: plan.dialect == Dialect::Wrk2,
    };
    Script::load(&setting).map(Some)
}
