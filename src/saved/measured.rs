//! A run, as returned by all readers: source, dimensions, and figures.

use std::collections::BTreeMap;

use onrush_plan::{Metric, Percent, Position};

use crate::record::{Document, NO_RESPONSE};

/// A run from a file. Fields are `None` if the file lacks the value.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Source of the run.
    pub origin: RunOrigin,
    /// The heading above the run.
    pub section: Option<String>,
    /// The nearest line above the run.
    pub label: Option<String>,
    /// The URL as typed.
    pub url: Option<String>,
    /// Threads.
    pub threads: Option<u64>,
    /// Connections.
    pub connections: Option<u64>,
    /// The requested rate per stage, in requests per second; `None` in a closed loop.
    pub rate: Option<String>,
    /// Varied factors with their levels, in the order of the file name.
    pub factors: Vec<(String, String)>,
    /// Number of the run among runs with equal factors.
    pub run: Option<u64>,
    /// Position in an experiment.
    pub position: Option<Position>,
    /// Measured figures that the document lacks.
    pub figures: MetricValues,
    /// The whole document, for a result of onrush.
    pub document: Option<Box<Document>>,
    /// SHA-256 of each source text, to detect copies.
    pub digests: Vec<String>,
}

/// Source of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// The folder as named.
    pub folder: String,
    /// The file as named.
    pub file: String,
    /// The common name of an experiment's files: without folder, factors, number and extension.
    pub name: String,
    /// Line number of the run, if the file may contain several.
    pub line: Option<usize>,
    /// The program that measured: `onrush`, `wrk`, `wrk-cmm` or `wrk2`.
    pub tool: &'static str,
}

/// Figures of one run in a text, in the units of the metrics.
pub type MetricValues = BTreeMap<Metric, f64>;

impl SavedRun {
    /// A run with nothing known but its source.
    pub fn new(origin: RunOrigin) -> Self {
        Self {
            origin,
            section: None,
            label: None,
            url: None,
            threads: None,
            connections: None,
            rate: None,
            factors: Vec::new(),
            run: None,
            position: None,
            figures: MetricValues::default(),
            document: None,
            digests: Vec::new(),
        }
    }

    /// Host and port of the URL. Brackets enclose a single name, which may be an address or a placeholder.
    pub fn host(&self) -> Option<&str> {
        let url = self.url.as_deref()?;
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let bracket = rest.find('[').filter(|&at| !rest[..at].contains('/')).and_then(|_| rest.find(']')).unwrap_or(0);
        let end = rest[bracket..].find(['/', '?', '#']).map_or(rest.len(), |at| bracket + at);
        let host = &rest[..end];
        Some(host.rsplit_once('@').map_or(host, |(_, host)| host))
    }

    /// Value of a metric, in its unit.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let measured = self.document.as_deref().and_then(|document| document.value(metric));
        measured.or_else(|| self.figures.get(&metric).copied())
    }

    /// Recorded percentiles.
    pub fn percents(&self) -> impl Iterator<Item = Percent> {
        let recorded =
            self.document.iter().flat_map(|document| document.shown_latency().percentiles_us.keys().copied());
        recorded.chain(self.figures.keys().filter_map(|metric| metric.percentile_percent()))
    }

    /// True if latencies start when requests were due, not when they were sent.
    pub fn is_scheduled(&self) -> bool {
        self.rate.is_some() || self.origin.tool == "wrk2"
    }

    /// Name in messages: the file, and the line if the file may contain several runs.
    pub fn called(&self) -> String {
        let line = self.origin.line.map_or(String::new(), |line| format!(" line {line}"));
        format!("{}{line}", self.origin.file)
    }

    /// True if the experiment marked the run as failed.
    pub fn is_failed(&self) -> bool {
        self.position.as_ref().is_some_and(|position| position.failed.is_some())
    }

    /// Why the run is excluded from comparisons: its experiment marked it as failed, it ended early, or it has no
    /// response.
    pub fn failure(&self) -> Option<String> {
        let failed = self.position.as_ref().and_then(|position| position.failed.clone());
        let flaw = self.document.as_deref().and_then(Document::flaw);
        let is_empty = [Metric::Requests, Metric::Rate].into_iter().any(|metric| self.value(metric) == Some(0.0));
        failed.or(flaw).or_else(|| is_empty.then(|| NO_RESPONSE.to_owned()))
    }

    /// Adds the values of another record of the run that this one lacks.
    pub fn complete(&mut self, other: Self) {
        fill_if_none(&mut self.section, other.section);
        fill_if_none(&mut self.label, other.label);
        fill_if_none(&mut self.url, other.url);
        fill_if_none(&mut self.threads, other.threads);
        fill_if_none(&mut self.connections, other.connections);
        fill_if_none(&mut self.rate, other.rate);
        fill_in(&mut self.figures, other.figures);
        self.digests.extend(other.digests);
    }
}

/// Adds missing figures.
pub fn fill_in(mine: &mut MetricValues, theirs: MetricValues) {
    theirs.into_iter().for_each(|(metric, value)| _ = mine.entry(metric).or_insert(value));
}

fn fill_if_none<T>(mine: &mut Option<T>, theirs: Option<T>) {
    *mine = mine.take().or(theirs);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_end_before_the_path() {
        let table = [
            ("http://localhost/index.php", "localhost"),
            ("http://127.0.0.1:1323", "127.0.0.1:1323"),
            ("http://[x86_64 VM IP]:8080/cgi-bin/second.pl", "[x86_64 VM IP]:8080"),
            ("http://[a/b]:8080/", "[a/b]:8080"),
            ("https://me:x@h:1/[x]/?a", "h:1"),
            ("h?x", "h"),
        ];
        for (url, host) in table {
            let measured = SavedRun { url: Some(url.to_owned()), ..SavedRun::new(RunOrigin::default()) };
            assert_eq!(measured.host(), Some(host));
        }
    }
}
