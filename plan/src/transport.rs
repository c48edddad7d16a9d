//! Plans as JSON, for sending to another machine or storing in a file, and plans divided into parts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::load::share;
use super::{ConnectionLevels, FileContents, Load, Plan, RequestList, Schedule, Stop, TlsOptions};

/// The version of the format. Any other is rejected, because unknown fields would be ignored.
const VERSION: u32 = 1;

/// A plan as JSON, with the version of the format.
#[derive(Serialize, Deserialize)]
struct Envelope<P> {
    onrush_plan: u32,
    plan: P,
}

/// Reasons why a message is not a plan that can be executed here.
#[derive(Debug, Error)]
pub enum UnfitPlan {
    /// The text is not a plan.
    #[error("not a valid plan: {0}")]
    Text(#[from] serde_json::Error),
    /// The plan is in another version of the format.
    #[error("the plan has version {0}, but this onrush supports version {VERSION}")]
    Version(u32),
    /// The plan's values contradict each other.
    #[error("not a valid plan: {0}")]
    Contradiction(&'static str),
}

impl Plan {
    /// The plan as JSON. It contains the digests of files, not their contents, and nothing about the output.
    ///
    /// # Errors
    ///
    /// If the path of a Unix socket or of a scenario is not UTF-8.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&Envelope { onrush_plan: VERSION, plan: self })
    }

    /// Reads the output of [`Self::to_json`].
    ///
    /// # Errors
    ///
    /// If the text is not a valid plan of this version.
    pub fn from_json(text: &str) -> Result<Self, UnfitPlan> {
        let Envelope { onrush_plan, plan } = serde_json::from_str::<Envelope<serde_json::Value>>(text)?;
        if onrush_plan != VERSION {
            return Err(UnfitPlan::Version(onrush_plan));
        }
        let plan: Self = serde_json::from_value(plan)?;
        let Load { threads, connections, max_inflight } = plan.load;
        if threads == 0 || connections < threads {
            return Err(UnfitPlan::Contradiction("it needs at least one thread, and a connection for every thread"));
        }
        if max_inflight < connections {
            return Err(UnfitPlan::Contradiction("the limit on connections is below their initial number"));
        }
        if plan.stop == (Stop { duration: None, requests: None }) {
            return Err(UnfitPlan::Contradiction("nothing ends the run"));
        }
        let levels = plan.levels.as_ref().and_then(ConnectionLevels::contradiction);
        let of_stages = plan.schedule.as_ref().and_then(Schedule::contradiction).or(levels);
        match plan
            .connect
            .contradiction()
            .or_else(|| plan.http.contradiction())
            .or(of_stages)
            .or_else(|| plan.contradiction())
        {
            Some(contradiction) => Err(UnfitPlan::Contradiction(contradiction)),
            None => Ok(plan),
        }
    }

    /// The contradiction between individually valid stages and the rest of the plan, if there is one.
    fn contradiction(&self) -> Option<&'static str> {
        let lengths =
            [self.levels.as_ref().map(ConnectionLevels::length), self.schedule.as_ref().and_then(Schedule::length)];
        if lengths.into_iter().flatten().any(|length| self.stop.duration != Some(length)) {
            return Some("the run does not last as long as its stages");
        }
        let Load { connections, max_inflight, .. } = self.load;
        let is_other = |most| most != connections || most != max_inflight;
        let is_contradiction = self.levels.as_ref().map(ConnectionLevels::most_here).is_some_and(is_other);
        is_contradiction.then_some("the stages have a different number of connections")
    }

    /// The contents of all files needed by the run.
    pub fn files(&self) -> impl Iterator<Item = &FileContents> {
        let script = self.script.iter().map(|script| &script.file);
        let list = self.list.iter().flat_map(RequestList::files);
        let values = self.templates.iter().flat_map(|templates| &templates.files);
        self.body.iter().chain(script).chain(list).chain(values).chain(self.tls.iter().flat_map(TlsOptions::files))
    }

    /// Attaches the contents to every file with the same digest. Returns true if there was such a file.
    pub fn attach(&mut self, contents: &Arc<[u8]>) -> bool {
        let script = self.script.iter_mut().map(|script| &mut script.file);
        let list = self.list.iter_mut().flat_map(RequestList::files_mut);
        let tls = self.tls.iter_mut().flat_map(TlsOptions::files_mut);
        let values = self.templates.iter_mut().flat_map(|templates| &mut templates.files);
        let files = self.body.iter_mut().chain(script).chain(list).chain(values).chain(tls);
        files.filter_map(|file| file.attach_contents(Arc::clone(contents)).then_some(())).count() > 0
    }

    /// Part `index` (from 0) of `parts`, one per machine. Connections and requests are divided, with the first parts
    /// taking the remainder; the requests of a schedule are dealt out in turn. `None` if there are not enough for that
    /// many parts.
    pub fn share(&self, index: u32, parts: u32) -> Option<Self> {
        let requests = self.stop.requests.unwrap_or(u64::MAX);
        let parts = u64::from(parts.min(self.load.connections)).min(requests) as u32;
        if index >= parts {
            return None;
        }
        let share_of = |total: u32, index| share(u64::from(total), parts, index) as u32;
        let connections = share_of(self.load.connections, index);
        let most_of = |index| share_of(self.load.max_inflight, index);
        let before: u32 = (0..index).map(most_of).sum();
        Some(Self {
            load: Load { threads: self.load.threads.min(connections), connections, max_inflight: most_of(index) },
            in_flight_max: self.in_flight_max.map(|most| share_of(most, index)),
            first_connection: self.first_connection + before,
            schedule: self.schedule.as_ref().map(|schedule| schedule.share(index, parts)),
            levels: self.levels.as_ref().map(|levels| levels.share(index, parts)),
            stop: Stop { requests: self.stop.requests.map(|requests| share(requests, parts, index)), ..self.stop },
            list: self.list.as_ref().map(|list| list.share(index, parts)),
            templates: self.templates.as_ref().map(|templates| templates.share(index, parts)),
            // One part says little about the whole, so the caller that adds up the parts decides when to end.
            until: if parts == 1 { self.until.clone() } else { Vec::new() },
            // Parts must not repeat each other's random numbers.
            seed: self.seed.wrapping_add(u64::from(index) << 32),
            ..self.clone()
        })
    }
}
