//! Runs that are in two results: copies, or a sum and one of its runs.

use std::collections::HashMap;

use super::Moment;
use super::result::{RunFacts, RunResult};

/// Facts that tell two runs apart: start, length, connections, complete responses, bytes received. Parallel runs may start in
/// the same microsecond.
type RunKey = (Moment, u64, u64, u64, u64);

/// The names of two results that contain the same run, if any.
pub fn counted_twice<'a>(results: impl IntoIterator<Item = (&'a str, &'a RunResult)>) -> Option<(&'a str, &'a str)> {
    let mut known: HashMap<RunKey, &str> = HashMap::new();
    for (name, result) in results {
        for run in &result.runs {
            if let Some(other) = known.insert(key_of(run), name).filter(|other| *other != name) {
                return Some((other, name));
            }
        }
    }
    None
}

fn key_of(run: &RunFacts) -> RunKey {
    let completed = run.rows.iter().map(|row| row.completed).fold(0, u64::saturating_add);
    let bytes = run.rows.iter().map(|row| row.bytes_received).fold(0, u64::saturating_add);
    (run.started_at, run.elapsed_ns, run.asked, completed, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn runs_alike_in_time_differ_by_their_counts() {
        let with = |completed: u64| {
            let mut result = *document(1..=100).result;
            result.runs[0].rows[0].completed = completed;
            result
        };
        let (one, other) = (with(100), with(101));
        assert_eq!(counted_twice([("a", &one), ("b", &other)]), None);
        assert_eq!(counted_twice([("a", &one), ("b", &one)]), Some(("a", "b")));
    }
}
