//! A request list in a file, as named by `--urls`.

use serde::{Deserialize, Serialize};

use super::FileContents;

/// A list of requests, or one machine's part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestList {
    /// The file of `--urls`.
    pub file: FileContents,
    /// The files named as bodies, each once.
    pub bodies: Vec<FileContents>,
    /// The order in which the requests are sent.
    pub order: ListOrder,
    /// Seed of the order; unused by [`ListOrder::Seq`].
    pub seed: u64,
    /// Selects the requests of the run belonging to this part: index and number of parts.
    pub part: (u64, u64),
    /// Number of requests in the whole list, not only in this part.
    pub length: u64,
    /// True if all requests are `GET` or `HEAD`.
    pub is_safe: bool,
    /// The names under which requests are counted, in the order of the list.
    pub names: Vec<String>,
    /// The first request with each name.
    pub firsts: Vec<First>,
}

/// The first request from a list with a certain name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct First {
    /// The number of the request in the list, from 0.
    pub number: u64,
    /// Start and end of the request's text in the list, in bytes.
    pub text: (u64, u64),
}

impl RequestList {
    /// Part `index` of `parts`, one per machine: each sends different requests of the run.
    #[must_use]
    pub fn share(&self, index: u32, parts: u32) -> Self {
        let (first, step) = self.part;
        Self { part: (first + u64::from(index) * step, step * u64::from(parts)), ..self.clone() }
    }

    /// The list divided so that every request sent is its first named one; without names, its first one.
    #[must_use]
    pub fn from_first_name(&self) -> Self {
        let first = self.firsts.first().map_or(0, |first| first.number);
        Self { order: ListOrder::Seq, part: (first, self.length), ..self.clone() }
    }

    /// For each name after the first, a list with only the first request of that name, so that a long list is not read
    /// again for each name.
    pub fn first_requests_of_other_names(&self) -> impl Iterator<Item = Self> {
        self.firsts.iter().zip(&self.names).skip(1).map(|(First { number, text: (start, end) }, name)| {
            let text = self.file.contents().ok().and_then(|text| text.get(*start as usize..*end as usize));
            let file = FileContents::from_bytes(&self.file.name, text.unwrap_or_default().to_vec());
            let (bodies, names) = (self.bodies.clone(), vec![name.clone()]);
            let (part, firsts) = ((*number, self.length), Vec::new());
            Self { file, bodies, order: ListOrder::Seq, part, length: 1, names, firsts, ..*self }
        })
    }

    /// The files with the list and the bodies.
    pub fn files(&self) -> impl Iterator<Item = &FileContents> {
        [&self.file].into_iter().chain(&self.bodies)
    }

    /// The list and the bodies, for attaching contents.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut FileContents> {
        [&mut self.file].into_iter().chain(&mut self.bodies)
    }
}

/// Order in which the requests from a list are sent. The k-th request of a run follows from k and the seed alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListOrder {
    /// In the order of the list, and again from its start.
    #[default]
    Seq,
    /// In random order, drawn anew for each pass through the list.
    Shuffle,
    /// Each one drawn at random, with a probability in proportion to its weight.
    Weighted,
}

impl ListOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Seq, Self::Shuffle, Self::Weighted];

    /// The name of the order on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seq => "seq",
            Self::Shuffle => "shuffle",
            Self::Weighted => "weighted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_partitions_are_disjoint_and_complete() {
        let list = RequestList {
            file: FileContents::from_bytes("urls.txt", b"/".to_vec()),
            bodies: Vec::new(),
            order: ListOrder::Seq,
            seed: 1,
            part: (0, 1),
            length: 1,
            is_safe: true,
            names: Vec::new(),
            firsts: Vec::new(),
        };
        let numbers = |list: &RequestList| (0..12).map(|n| list.part.0 + n * list.part.1).collect::<Vec<_>>();
        let mut all: Vec<u64> = (0..3)
            .flat_map(|one| (0..2).map(move |two| (one, two)))
            .flat_map(|(one, two)| numbers(&list.share(one, 3).share(two, 2)))
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..72).collect::<Vec<_>>());
    }
}
