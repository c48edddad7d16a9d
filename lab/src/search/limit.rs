//! Limits other than the target, for a run that does not hold.

use onrush_load::judge::uses_all_connections;
use onrush_load::record::Document;
use onrush_load::run::Outcome;
use onrush_plan::LimitedBy;
use onrush_plan::search::SearchVariable;

/// A limit other than the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientLimit {
    /// The limit named by the verdict on the run.
    Verdict(LimitedBy),
    /// The load needs more open files than allowed.
    OpenFiles,
    /// onrush itself was stalled in several successive runs.
    Stalled,
    /// The target had not recovered from an earlier overload.
    Recovering,
    /// The target was slower before the first success than later.
    Cold,
    /// The objective depends on requests that were still open at the end of the run.
    Open,
}

/// In a closed loop, requests queue at the target if the median latency is at least this multiple of the lowest median
/// of any run.
const QUEUEING: f64 = 2.0;

impl ClientLimit {
    /// The limit of a run, from its document; `None` if the limit was the target or is unknown. `calm_ns`: the lowest
    /// median latency of any run of the search.
    pub fn from_document(over: SearchVariable, outcome: &Outcome, document: &Document, calm_ns: u64) -> Option<Self> {
        if over != SearchVariable::Rate && outcome.descriptors.is_some() {
            return Some(Self::OpenFiles);
        }
        let limited_by = document.verdict.as_ref()?.limited_by;
        // In a closed loop, the search varies the number of connections. In a run that is overloaded throughout, all
        // responses are equally slow; only other runs reveal the queue at the target.
        let is_queue = outcome.totals.latency.percentile(50.0) as f64 >= QUEUEING * calm_ns as f64;
        if over == SearchVariable::Rate
            && !is_queue
            && limited_by == LimitedBy::Unclear
            && document.evidence.as_ref().is_some_and(uses_all_connections)
        {
            return Some(Self::Verdict(LimitedBy::Connections));
        }
        limited_by.is_generator().then_some(Self::Verdict(limited_by))
    }

    /// True if the limit is onrush itself or its machine, which `--strict` treats as a failure.
    pub fn is_our_fault(self) -> bool {
        match self {
            Self::Verdict(limited_by) => limited_by.is_generator(),
            Self::OpenFiles | Self::Stalled => true,
            Self::Recovering | Self::Cold | Self::Open => false,
        }
    }

    /// Name of the limit in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verdict(limited_by) => limited_by.name(),
            Self::OpenFiles => "open_files",
            Self::Stalled => "stalled",
            Self::Recovering => "recovering",
            Self::Cold => "cold",
            Self::Open => "open",
        }
    }

    /// The limit as a clause, for the end of a sentence.
    pub fn clause(self) -> String {
        match self {
            Self::Verdict(LimitedBy::Ports) => "onrush ran out of local ports".to_owned(),
            Self::Verdict(limited_by) => format!("{} was the limit", limited_by.phrase()),
            Self::OpenFiles => "the open-file limit was too low (ulimit -n)".to_owned(),
            Self::Stalled => "onrush itself was stalled".to_owned(),
            Self::Recovering => "the target was still recovering from an overload".to_owned(),
            Self::Cold => "the target was slower at first".to_owned(),
            Self::Open => "requests were still open at the end of the run".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use onrush_load::fixtures;
    use onrush_load::judge;
    use onrush_load::record::Verdict;
    use onrush_load::record::evidence::{Evidence, Load};
    use onrush_load::run::Shortage;

    use super::*;

    #[test]
    fn client_limits_follow_the_verdict() {
        let mut outcome = fixtures::flawless(0, 1);
        outcome.totals.latency.record_many(20_000_000, 100);
        let plan = onrush_plan::fixtures::plan(onrush_plan::Dialect::Native, "http://h/", 10, 1, 1);
        let evidence = |crowded| {
            let load = Load { crowded, ..Load::default() };
            Some(Evidence { load, ..Evidence::default() })
        };
        let judged = |limited_by, crowded| Document {
            verdict: Some(Verdict { limited_by, ..judge::judge_evidence(&Evidence::default()) }),
            evidence: evidence(crowded),
            ..Document::of(&plan, &outcome)
        };
        let of = |limited_by, calm_ns| {
            ClientLimit::from_document(SearchVariable::Rate, &outcome, &judged(limited_by, None), calm_ns)
        };
        for limited_by in LimitedBy::ALL {
            let is_limit = limited_by.is_generator();
            assert_eq!(
                of(limited_by, 20_000_000),
                is_limit.then_some(ClientLimit::Verdict(limited_by)),
                "{limited_by:?}"
            );
        }
        // With all connections in use, responses ten times as slow as in other runs wait in a queue.
        let full = |calm_ns| {
            ClientLimit::from_document(SearchVariable::Rate, &outcome, &judged(LimitedBy::Unclear, Some(1.0)), calm_ns)
        };
        assert_eq!(full(2_000_000), None);
        assert_eq!(full(20_000_000), Some(ClientLimit::Verdict(LimitedBy::Connections)));
        assert_eq!(of(LimitedBy::GeneratorCpu, 2_000_000), Some(ClientLimit::Verdict(LimitedBy::GeneratorCpu)));
        assert_eq!(ClientLimit::from_document(SearchVariable::Rate, &outcome, &Document::of(&plan, &outcome), 1), None);
        let are_ours = [LimitedBy::Connections, LimitedBy::Ports].map(|by| ClientLimit::Verdict(by).is_our_fault());
        assert_eq!(are_ours, [false, true]);
        let document = Document::of(&plan, &outcome);
        outcome.descriptors = Some(Shortage { needed: 2_000, hard: 1_000 });
        assert_eq!(
            ClientLimit::from_document(SearchVariable::Connections, &outcome, &document, 1),
            Some(ClientLimit::OpenFiles)
        );
    }
}
