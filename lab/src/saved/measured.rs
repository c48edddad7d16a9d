//! A run, as returned by all readers: its source, dimensions and figures.

use std::collections::BTreeMap;

use onrush_load::record::{Document, NO_RESPONSE};
use onrush_plan::{Metric, Percent, Position};

/// A run read from a file. Fields are `None` if the file does not contain the value.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Where the run was read from (folder, file, line), and the program that measured it.
    pub origin: RunOrigin,
    /// The heading above the run in saved output.
    pub section: Option<String>,
    /// The nearest line above the run in saved output that may be a label.
    pub label: Option<String>,
    /// The URL of the target as typed.
    pub url: Option<String>,
    /// Number of threads of the generator.
    pub threads: Option<u64>,
    /// Number of connections.
    pub connections: Option<u64>,
    /// The requested rate, in requests per second; the rates of several stages are joined into one string. `None` in a
    /// closed loop.
    pub rate: Option<String>,
    /// Varied factors with their levels, in the order of the file name.
    pub factors: Vec<(String, String)>,
    /// Number of the run among the runs with equal factors, from the experiment or the file name.
    pub run: Option<u64>,
    /// The run's position in its experiment; `None` for a run outside an experiment.
    pub position: Option<Position>,
    /// Measured figures that the document does not contain; all figures if there is no document.
    pub figures: MetricValues,
    /// The whole document, if onrush wrote the result as JSON.
    pub document: Option<Box<Document>>,
    /// SHA-256 of each output or file that the run was read from, to detect copies.
    pub digests: Vec<String>,
}

/// Where a run was read from, and the program that measured it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrigin {
    /// The folder in which the run was found, as named by the user.
    pub folder: String,
    /// Path of the file as named, or as found in the folder.
    pub file: String,
    /// Name that the files of an experiment have in common: the file name without factors, number and extension.
    pub name: String,
    /// Line number where the run starts, if the file may contain several runs.
    pub line: Option<usize>,
    /// The program that measured the run: `onrush`, `wrk`, `wrk-cmm` or `wrk2`.
    pub tool: &'static str,
}

/// Figures of one run, each in the unit of its metric.
pub type MetricValues = BTreeMap<Metric, f64>;

impl SavedRun {
    /// A run of which only the source is known.
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

    /// Host and port of the URL, without a user name; `None` without a URL. Brackets enclose a single name, which may
    /// be an address or a placeholder.
    pub fn host(&self) -> Option<&str> {
        let url = self.url.as_deref()?;
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let bracket = rest.find('[').filter(|&at| !rest[..at].contains('/')).and_then(|_| rest.find(']')).unwrap_or(0);
        let end = rest[bracket..].find(['/', '?', '#']).map_or(rest.len(), |at| bracket + at);
        let host = &rest[..end];
        Some(host.rsplit_once('@').map_or(host, |(_, host)| host))
    }

    /// Value of a metric in its own unit, from the document if possible, else from the figures; `None` if both lack it.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let measured = self.document.as_deref().and_then(|document| document.value(metric));
        measured.or_else(|| self.figures.get(&metric).copied())
    }

    /// The percentiles that the result contains.
    pub fn percents(&self) -> impl Iterator<Item = Percent> {
        let recorded =
            self.document.iter().flat_map(|document| document.shown_latency().percentiles_us.keys().copied());
        recorded.chain(self.figures.keys().filter_map(|metric| metric.percentile_percent()))
    }

    /// True if latencies start when requests were due, not when they were sent: in onrush with a rate, and always in
    /// wrk2.
    pub fn is_scheduled(&self) -> bool {
        self.rate.is_some() || self.origin.tool == "wrk2"
    }

    /// The name of the run in messages: its file, and its line if the file may contain several runs.
    pub fn called(&self) -> String {
        let line = self.origin.line.map_or(String::new(), |line| format!(" line {line}"));
        format!("{}{line}", self.origin.file)
    }

    /// True if the experiment marked the run as failed. Other flaws do not count.
    pub fn is_failed(&self) -> bool {
        self.position.as_ref().is_some_and(|position| position.failed.is_some())
    }

    /// The reason for excluding the run from comparisons: its experiment marked it as failed, it ended early, or it
    /// received no responses. `None` if the run is sound.
    pub fn failure(&self) -> Option<String> {
        let failed = self.position.as_ref().and_then(|position| position.failed.clone());
        let flaw = self.document.as_deref().and_then(Document::flaw);
        let is_empty = [Metric::Requests, Metric::Rate].into_iter().any(|metric| self.value(metric) == Some(0.0));
        failed.or(flaw).or_else(|| is_empty.then(|| NO_RESPONSE.to_owned()))
    }

    /// Adds what this record lacks from another record of the same run.
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

/// Adds the figures that `mine` lacks.
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
