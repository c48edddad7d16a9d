//! JSON document of a search.
//!
//! These structs define the format. `docs/search.schema.json` is generated from them. Keys that do not apply are left
//! out.

use onrush_load::record::gate::Judged;
use onrush_load::record::json;
use onrush_load::record::{self, Host, Moment, Tool};
use onrush_plan::Search;
use serde::{Deserialize, Serialize};

use super::fit::CONFIDENCE;
use super::found::is_confident;
use super::{LoadFailure, Point, ResultKind, SearchEnd, SearchResult};

/// Version of the format.
const SCHEMA: u32 = 1;

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Document {
    /// The version of the format. Additions do not increase it.
    pub schema: u32,
    /// Always `search`: the document of a run has no kind.
    pub kind: String,
    /// The program that took the measurements.
    pub tool: Tool,
    /// The machine that the tool ran on.
    pub host: Host,
    /// The command line, quoted for a shell; secrets are redacted.
    pub command: String,
    /// The plan of the last run, with the seed of the search. Each run derives its own seed. Otherwise, plans differ
    /// only in the varied quantity. Secrets are redacted.
    pub plan: record::Plan,
    /// Start of the first run: RFC 3339, UTC.
    #[cfg_attr(test, schemars(with = "String"))]
    pub started_at: Moment,
    /// Duration of the search, in seconds.
    pub duration_s: f64,
    /// The condition that must hold.
    pub objective: String,
    /// The quantity that varied: `rate`, `connections` or `threads`.
    pub over: String,
    /// Why the search ended: `done`, `time` (the limit of `-d`), `unconfirmed` (every long run that was to confirm a
    /// load failed), `signal`, `machine_lost` (a machine was lost, and runs would no longer be alike), `died` (the
    /// target stopped responding), `hopeless` (even single requests took longer than the condition allows) or
    /// `limited`.
    pub ended: String,
    /// The machine whose loss ended the search, and the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// The limit other than the target that ended the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The highest confirmed load; left out if no load was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<Highest>,
    /// Without a confirmed load, the highest load that held in a run and does not exceed `interval`. The target
    /// sustains at least this load; its limit is unknown. Present if every load held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The interval of the limit, confirmed or not. Left out if no load held, or if none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Number of runs that contradict the others because of a disturbance; left out if 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicting: Option<usize>,
    /// The runs, in order.
    pub points: Vec<Run>,
}

/// The highest load that holds. Rates are in requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Highest {
    /// The highest confirmed load.
    pub load: f64,
    /// The lowest higher load that failed; left out if none failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails: Option<f64>,
}

/// Interval of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability (0 to 1) that the limit is in the interval. Left out, because lower, for a search that was
    /// interrupted, had few responses, or took less than a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// One run of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// The load: requests per second, connections or threads.
    pub load: f64,
    /// True if the load holds.
    pub holds: bool,
    /// Why the load does not hold:
    ///
    /// - `unanswered`: no response
    /// - `objective`: a term does not hold
    /// - `unreached`: fewer responses or connections than requested
    /// - `rising`: the latency rises
    /// - `recovering`: the target had not recovered from an earlier run
    /// - `cold`: no load had held before, and later runs contradict this one, so the target was slower at first
    /// - a limit other than the target: `stalled` (onrush was stalled), `open_files`, or the limit of the verdict; then
    ///   the run says nothing about the target
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Measured time, in seconds.
    pub duration_s: f64,
    /// Complete responses per second of the measured time.
    pub rate_per_s: f64,
    /// Complete responses, including those that arrived after the last request was sent.
    pub completed: u64,
    /// Increase of the mean latency, in microseconds per second; left out with too few responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope_us_per_s: Option<f64>,
    /// True if the run was to confirm its load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
    /// True if the run was stopped early, because it could no longer pass. It has fewer requests than planned, and
    /// `rate_per_s` excludes requests still in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended_early: bool,
    /// Share of the time for which the onrush thread that waited longest had no processor; left out if none waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<f64>,
    /// Like `queued`, for the target's threads; left out if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_queued: Option<f64>,
    /// Time for which onrush itself was stalled, in seconds; left out if 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_s: Option<f64>,
    /// The terms of the objective.
    pub terms: Vec<Judged>,
}

impl Document {
    /// Document of a search that took `duration_s` seconds. `runs` are the documents of the first and the last run.
    pub fn new(
        search: &Search,
        points: &[Point],
        found: &SearchResult,
        runs: [&record::Document; 2],
        duration_s: f64,
    ) -> Self {
        let [first, last] = runs;
        let ended = found.ended;
        let number = |load: u64| search.over.load_for_users(load);
        let interval = found.interval.map(|(low, high)| {
            let unit = number(1);
            let confidence = is_confident(search, points, ended).then_some(CONFIDENCE);
            Interval { low: low * unit, high: high * unit, confidence }
        });
        let fails = found.beyond.map(|point| number(point.load));
        let (highest, at_least) = match found.kind {
            ResultKind::Highest(load) => (Some(Highest { load: number(load), fails }), None),
            ResultKind::AtLeast(load) | ResultKind::All(load) => (None, Some(number(load))),
            ResultKind::None(_) | ResultKind::Never(_) | ResultKind::Unknown => (None, None),
        };
        Self {
            schema: SCHEMA,
            kind: KIND.to_owned(),
            tool: first.tool.clone(),
            host: first.host.clone(),
            command: first.command.clone(),
            plan: record::Plan { seed: search.plan.seed, ..last.plan.clone() },
            started_at: first.started_at,
            duration_s,
            objective: search.objective.to_string(),
            over: search.over.name().to_owned(),
            ended: ended.name().to_owned(),
            lost: None,
            limited_by: if let SearchEnd::Limited(limit) = ended { Some(limit.name().to_owned()) } else { None },
            at_least,
            highest,
            interval,
            contradicting: Some(found.contradicting.len()).filter(|runs| *runs > 0),
            points: points.iter().map(|point| Run::from_point(point, number(point.load))).collect(),
        }
    }

    /// The document as JSON, with a final newline.
    pub fn to_json(&self) -> String {
        json::pretty(self) + "\n"
    }
}

/// The `kind` that distinguishes the document of a search from the document of a run.
pub const KIND: &str = "search";

impl Run {
    fn from_point(point: &Point, load: f64) -> Self {
        let fault = point.fault.map(|fault| match fault {
            LoadFailure::Limited(limit) => limit.name(),
            LoadFailure::NoResponse => "unanswered",
            LoadFailure::Objective => "objective",
            LoadFailure::Unreached => "unreached",
            LoadFailure::Rising => "rising",
        });
        Self {
            load,
            holds: point.holds(),
            fault: fault.map(str::to_owned),
            duration_s: point.length.as_secs_f64(),
            rate_per_s: point.per_s,
            completed: point.completed,
            slope_us_per_s: point.slope_ns_per_s.map(|slope| slope / 1e3),
            confirms: point.confirms,
            ended_early: point.is_early,
            queued: Some(point.starved.generator).filter(|share| *share > 0.0),
            target_queued: Some(point.starved.target).filter(|share| *share > 0.0),
            stalled_s: (!point.stalled.is_zero()).then_some(point.stalled.as_secs_f64()),
            terms: point.terms.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_load::fixtures;
    use onrush_load::record::schema;
    use onrush_plan::search::SearchVariable;

    use super::super::ClientLimit;
    use super::*;
    use crate::search::simulation::{points, search};

    #[test]
    fn the_schema_of_a_search_matches_its_structs() {
        schema::check::<Document>("docs/search.schema.json", "A search of onrush");
    }

    #[test]
    fn search_documents_round_trip() {
        let search = search(SearchVariable::Rate);
        let run = record::Document::judged(&search.plan, &fixtures::flawless(10, 1));
        let mut points = points(&[(60_000, true), (120_000, false), (120_000, false)]);
        points[0].confirms = true;
        let document = Document::new(
            &search,
            &points,
            &SearchResult::new(SearchVariable::Rate, &points, None, SearchEnd::Time),
            [&run, &run],
            9.5,
        );
        let highest = Highest { load: 1_000.0, fails: Some(2_000.0) };
        assert_eq!((document.highest, document.at_least, document.points[1].load), (Some(highest), None, 2_000.0));
        let interval = document.interval.unwrap();
        assert!(
            interval.low <= 1_000.0 && interval.high >= 1_900.0 && interval.confidence == Some(0.95),
            "{interval:?}"
        );
        let short = Search { budget: Duration::from_secs(59), ..search.clone() };
        let mut few = points.clone();
        few.iter_mut().for_each(|point| point.completed = 1_600);
        for (search, points, ended) in [
            (&short, &points, SearchEnd::Done),
            (&search, &points, SearchEnd::Signal),
            (&search, &few, SearchEnd::Done),
        ] {
            let document = Document::new(
                search,
                points,
                &SearchResult::new(SearchVariable::Rate, points, None, ended),
                [&run, &run],
                9.5,
            );
            assert_eq!(document.interval.unwrap().confidence, None, "{ended:?}");
        }
        let limited = Document::new(
            &search,
            &points,
            &SearchResult::new(SearchVariable::Rate, &points, None, SearchEnd::Limited(ClientLimit::OpenFiles)),
            [&run, &run],
            9.5,
        );
        assert_eq!((&limited.ended[..], limited.limited_by.as_deref()), ("limited", Some("open_files")));
        assert_eq!((limited.highest, limited.at_least), (None, Some(1_000.0)));
        assert_eq!(document.points[2].fault.as_deref(), Some("objective"));
        assert_eq!(serde_json::from_str::<Document>(&document.to_json()).unwrap(), document);
    }
}
