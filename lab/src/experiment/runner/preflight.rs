//! Sends one request to each target before the first round: a wrong path would give fast but useless responses.

use std::collections::BTreeSet;

use anyhow::anyhow;
use onrush_load::failure;
use onrush_load::judge::JudgedRun;
use onrush_load::run::{Interrupt, NoBackend, NotStarted};
use onrush_load::session::ask::{TargetRefused, ask as request};
use onrush_plan::Plan;
use onrush_plan::experiment::{Experiment, Point};
use onrush_plan::secrets::KnownSecrets;
use onrush_stats::Phase;
use serde::Serialize;

use super::super::Folder;
use super::Unasked;
use super::around::PointEnvironment;

#[derive(Clone, Debug, Serialize)]
pub(super) struct FirstResponse {
    /// The point: its varied factors with their levels, as shown to the user.
    point: String,
    /// URL of the target, without secrets.
    url: String,
    status: Option<u16>,
    body_bytes: u64,
    /// Head of the response, without secrets.
    head: String,
    /// True if the response indicates that the port expects TLS.
    #[serde(skip)]
    expects_tls: bool,
    /// True if the status is unsuccessful.
    #[serde(skip)]
    is_failure: bool,
    /// True if the user specified which statuses are successful.
    #[serde(skip)]
    has_list: bool,
    /// Fault of the response, if it failed a check.
    #[serde(skip)]
    failed_check: Option<String>,
}

impl FirstResponse {
    /// Redacts these secrets in the parts of the response.
    pub fn redact(mut self, known: &KnownSecrets) -> Self {
        for text in [&mut self.point, &mut self.url, &mut self.head] {
            *text = known.hide_in(text);
        }
        self
    }

    /// A sentence about a status that is probably not wanted, or about a failed check; `None` if the response is as
    /// expected.
    pub fn describe_doubt(&self) -> Option<String> {
        const AN_ERROR: &str = "every response like it counts as an error";
        let Self { point, url, .. } = self;
        let status = self.status?;
        let point = if point.is_empty() { String::new() } else { format!("{point}: ") };
        let why = match &self.failed_check {
            _ if self.expects_tls => failure::EXPECTS_TLS,
            _ if self.is_failure => AN_ERROR,
            Some(check) => return Some(format!("{point}{url} fails a check, {check}: {AN_ERROR}")),
            None if status >= 300 && !self.has_list => "is the redirect what you want to measure?",
            None => return None,
        };
        Some(format!("{point}{url} responds with status {status}: {why}"))
    }
}

/// Sends one request to the target of each of these points, after setting the point up. Points with equal requests and
/// targets share one. A signal ends the series early.
///
/// # Errors
///
/// Returns a sentence with the target that did not respond and the reason, and the kind of reason.
pub(super) fn send_first_requests(
    experiment: &Experiment,
    points: &BTreeSet<usize>,
    around: &mut PointEnvironment<'_>,
    folder: &Folder,
    interrupt: &Interrupt,
) -> Result<Vec<FirstResponse>, (String, Unasked)> {
    let mut asked: Vec<&Point> = Vec::new();
    let mut responses = Vec::new();
    for (number, point) in points.iter().map(|&number| (number, &experiment.points[number])) {
        if asked.iter().any(|other| is_alike(other, point)) {
            continue;
        }
        asked.push(point);
        let words = experiment.levels_in_words(point);
        let at = if words.is_empty() { String::new() } else { format!("{words}: ") };
        let entered = around.set_up_point(number, 0, folder, interrupt);
        entered.map_err(|reason| (format!("{at}{reason}"), Unasked::NoResponse))?;
        let response = send_first_request(&point.plan, interrupt)
            .map_err(|(error, unasked)| (format!("{at}{error:#}"), unasked))?;
        responses.push(FirstResponse { point: words, ..response });
        if interrupt.is_requested() {
            break;
        }
    }
    Ok(responses)
}

/// True if two points have the same target and the same request.
fn is_alike(one: &Point, other: &Point) -> bool {
    let key = |point: &Point| {
        let Plan { target, connect, request, .. } = point.plan.clone();
        (target, connect, request, point.command.clone())
    };
    key(one) == key(other) && one.plan.body == other.plan.body && one.plan.list == other.plan.list
}

fn send_first_request(plan: &Plan, interrupt: &Interrupt) -> Result<FirstResponse, (anyhow::Error, Unasked)> {
    let outcome = request(plan, interrupt).map_err(|error| {
        let is_unstarted = error.is::<TargetRefused>() || error.is::<NotStarted>() || error.is::<NoBackend>();
        (error, if is_unstarted { Unasked::NotStarted } else { Unasked::Wrong })
    })?;
    let document = JudgedRun::from_outcome(plan, &outcome).document;
    let transcript = outcome.transcript.clone().unwrap_or_default();
    if document.requests.completed == 0 && !interrupt.is_requested() {
        let url = &document.plan.url;
        let why = document.ledger.first().map_or_else(String::new, |row| format!(": {} ({})", row.cause, row.phase));
        return Err((anyhow!("no response to the first request to {url}{why}"), Unasked::NoResponse));
    }
    let failed_check = document.ledger.iter().find(|row| row.phase == Phase::Check.name());
    Ok(FirstResponse {
        point: String::new(),
        is_failure: document.errors.status > 0,
        has_list: document.plan.expected_status().is_some(),
        failed_check: failed_check.map(|row| row.cause.clone()),
        url: document.plan.url,
        status: document.status.keys().next().copied(),
        body_bytes: transcript.body_bytes,
        head: String::from_utf8_lossy(&transcript.head).into_owned(),
        expects_tls: outcome.totals.expects_tls,
    })
}
