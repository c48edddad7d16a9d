//! Documents with the names of their files: what is to be added up, and in which order.

use super::{Document, Moment};

/// A document and the file that it comes from, as it was named.
pub struct Named {
    /// The name of the file.
    pub name: String,
    /// What is in it.
    pub document: Document,
}

/// The order in which documents are added: that in which their runs began.
pub fn in_order(mut named: Vec<Named>) -> Vec<Named> {
    named.sort_by_cached_key(|Named { name, document }| (document.started_at, document.to_json(), name.clone()));
    named
}

/// The names of two results in which there is the same run, if there are two: a copy, or a sum and one of its runs.
pub fn counted_twice(named: &[Named]) -> Option<(String, String)> {
    let mut known: Vec<(&str, Moment, f64, u64)> = Vec::new();
    for Named { name, document } in named {
        let own = (document.started_at, document.duration_s, document.connections.asked);
        let runs: Vec<_> = match &document.sources {
            Some(sources) => sources.files.iter().map(|run| (run.started_at, run.duration_s, run.asked)).collect(),
            None => vec![own],
        };
        for (started_at, duration_s, asked) in runs {
            let is_same =
                |known: &&(&str, Moment, f64, u64)| (known.1, known.2, known.3) == (started_at, duration_s, asked);
            if let Some((other, ..)) = known.iter().find(is_same).filter(|known| known.0 != name) {
                return Some(((*other).to_owned(), name.clone()));
            }
            known.push((name, started_at, duration_s, asked));
        }
    }
    None
}
