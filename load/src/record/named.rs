//! Documents with the names of their files, to be added up, and their order.

use std::collections::HashMap;

use super::{Document, Moment};

/// A document and the name of its file as given.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// Its content.
    pub document: &'a Document,
}

/// Sorts documents into the order in which they are added: that of their runs, the earliest of each first.
pub fn in_order(mut named: Vec<Named<'_>>) -> Vec<Named<'_>> {
    named.sort_by_key(|&Named { name, document }| {
        let first = document.sources.as_ref().and_then(|sources| sources.files.first());
        (document.started_at, first.map_or(name, |run| &run.name))
    });
    named
}

/// The names of two results that contain the same run, if any: copies, or a sum and one of its runs.
pub fn counted_twice<'a>(named: &[Named<'a>]) -> Option<(&'a str, &'a str)> {
    // Parallel runs may begin in the same microsecond. What the runs of a sum received is unknown.
    type Run = (Moment, u64, u64);
    type Received = Option<(u64, u64)>;
    let mut known: HashMap<Run, Vec<(&str, Received)>> = HashMap::new();
    for &Named { name, document } in named {
        let received = (document.requests.completed, document.bytes_received);
        let own = (document.started_at, document.duration_s.to_bits(), document.connections.asked);
        let runs: Vec<(Run, Received)> = match &document.sources {
            Some(sources) => {
                let runs = sources.files.iter();
                runs.map(|run| ((run.started_at, run.duration_s.to_bits(), run.asked), None)).collect()
            }
            None => vec![(own, Some(received))],
        };
        for (run, received) in runs {
            let others = known.entry(run).or_default();
            let is_other = |known: Received| known.zip(received).is_some_and(|(one, other)| one != other);
            let same = others.iter().find(|(other, known)| *other != name && !is_other(*known));
            if let Some((other, _)) = same {
                return Some((other, name));
            }
            others.push((name, received));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn runs_alike_in_time_are_two_if_they_received_different_counts() {
        let with = |completed: u64| {
            let mut document = Document { duration_s: 0.6, ..document(1..=100) };
            document.requests.completed = completed;
            document
        };
        let (one, other) = (with(100), with(101));
        let named = |name, document| Named { name, document };
        assert_eq!(counted_twice(&[named("a", &one), named("b", &other)]), None);
        assert_eq!(counted_twice(&[named("a", &one), named("b", &one)]), Some(("a", "b")));
    }
}
