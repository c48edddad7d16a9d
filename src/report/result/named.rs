//! Documents with the names of their files, to be added up, and their order.

use super::{Document, Moment};

/// A document and the name of its file as given.
pub struct Named {
    /// The name of the file.
    pub name: String,
    /// Its content.
    pub document: Document,
}

/// Sorts documents into the order in which they are added: by the start of their runs.
pub fn in_order(mut named: Vec<Named>) -> Vec<Named> {
    named.sort_by_cached_key(|Named { name, document }| (document.started_at, document.to_json(), name.clone()));
    named
}

/// The names of two results that contain the same run, if any: copies, or a sum and one of its runs.
pub fn counted_twice(named: &[Named]) -> Option<(String, String)> {
    // Parallel runs may begin in the same microsecond. What the runs of a sum received is unknown.
    type Run = (Moment, f64, u64, Option<(u64, u64)>);
    let is_same = |one: &Run, other: &Run| {
        let is_other = one.3.zip(other.3).is_some_and(|(one, other)| one != other);
        (one.0, one.1, one.2) == (other.0, other.1, other.2) && !is_other
    };
    let mut known: Vec<(&str, Run)> = Vec::new();
    for Named { name, document } in named {
        let received = (document.requests.completed, document.bytes_received);
        let own = (document.started_at, document.duration_s, document.connections.asked, Some(received));
        let runs: Vec<Run> = match &document.sources {
            Some(sources) => {
                sources.files.iter().map(|run| (run.started_at, run.duration_s, run.asked, None)).collect()
            }
            None => vec![own],
        };
        for run in runs {
            let same = known.iter().find(|(_, known)| is_same(known, &run));
            if let Some((other, _)) = same.filter(|(known, _)| known != name) {
                return Some(((*other).to_owned(), name.clone()));
            }
            known.push((name, run));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::document;
    use super::*;

    #[test]
    fn runs_that_began_and_lasted_alike_are_two_if_they_received_something_else() {
        let named = |name: &str, completed: u64| {
            let mut document = Document { duration_s: 0.6, ..document(1..=100) };
            document.requests.completed = completed;
            Named { name: name.to_owned(), document }
        };
        assert_eq!(counted_twice(&[named("a", 100), named("b", 101)]), None);
        assert_eq!(counted_twice(&[named("a", 100), named("b", 100)]), Some(("a".to_owned(), "b".to_owned())));
    }
}
