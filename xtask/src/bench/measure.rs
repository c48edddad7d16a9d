//! The rounds of a row: every contender once per round, in turns, and what follows from them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use super::contender::Contender;
use super::median::{Estimate, ratios};
use super::process::{Server, Stage};
use super::rows::{Comparison, Experiment, Limit, Target};

/// One line of the table: a comparison and its figures, or why there are none.
#[derive(Debug)]
pub struct Line {
    /// The row it belongs to.
    pub row: &'static str,
    /// The work, in words.
    pub work: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// Who is compared with whom.
    pub comparison: Comparison,
    /// What came out.
    pub outcome: Outcome,
}

/// Figures, or why there are none.
pub type Outcome = Result<Figures, String>;

/// A contender that fails so often in one round takes no further part.
const ATTEMPTS: u32 = 3;

/// The figures of one comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Our value of every round.
    pub ours: Vec<f64>,
    /// The other's value of every round; empty where there is no other.
    pub others: Vec<f64>,
    /// The ratios of the rounds, or our values where there is no other.
    pub estimate: Estimate,
    /// How many runs of the two failed and were repeated.
    pub repeated: usize,
}

impl Line {
    /// Whether the limit is reached: where the interval of the ratio touches what is asked for. `None` without a limit
    /// or without figures.
    pub fn is_reached(&self) -> Option<bool> {
        let Estimate { low, high, .. } = self.outcome.as_ref().ok()?.estimate;
        Some(match self.comparison.limit? {
            Limit::AtMost(limit) => low <= limit,
            Limit::AtLeast(limit) => high >= limit,
        })
    }
}

/// Who takes part and has not failed, and everybody's values so far.
struct Field {
    contenders: Vec<Contender>,
    values: HashMap<Contender, Vec<f64>>,
    failures: HashMap<Contender, String>,
    /// Who failed in a round and then did not, once for each time.
    repeated: Vec<Contender>,
}

/// Measures an experiment in at most `rounds` rounds, comparing with some peers only; gives the figures of each
/// comparison.
///
/// # Errors
/// A target or a meter that cannot be started.
pub fn run(
    stage: &Stage<'_>,
    experiment: &Experiment,
    peers: &[Contender],
    rounds: usize,
) -> io::Result<Vec<(Comparison, Outcome)>> {
    let comparisons = wanted(experiment.comparisons, peers);
    let mut field = Field::new(&comparisons, |contender| {
        let target = experiment.target(contender).missing();
        target.or_else(|| stage.programs.missing(contender).map(str::to_owned))
    });
    let mut servers: HashMap<Target, Server> = HashMap::new();
    for target in field.contenders.iter().map(|contender| experiment.target(*contender)) {
        if let Entry::Vacant(place) = servers.entry(target) {
            place.insert(stage.target(target, experiment.load.pinned)?);
        }
    }
    for round in 0..rounds.min(experiment.rounds_max) {
        print!(".");
        io::stdout().flush()?;
        for contender in field.order(round) {
            let server = &servers[&experiment.target(contender)];
            let mut sample = stage.round(contender, &experiment.load, server)?;
            for _ in 1..ATTEMPTS {
                let Err(why) = &sample else { break };
                println!(" {}: {why}; it is run again", contender.name());
                field.repeated.push(contender);
                sample = stage.round(contender, &experiment.load, server)?;
            }
            field.take(contender, sample.map(|sample| experiment.measure.value(&sample, &experiment.load)));
        }
    }
    println!();
    Ok(comparisons.into_iter().map(|comparison| (comparison, field.figures(&comparison))).collect())
}

/// The comparisons that are left with these peers.
fn wanted(comparisons: &[Comparison], peers: &[Contender]) -> Vec<Comparison> {
    let is_wanted = |contender: Contender| !Contender::PEERS.contains(&contender) || peers.contains(&contender);
    comparisons.iter().filter(|comparison| comparison.other.is_none_or(is_wanted)).copied().collect()
}

impl Field {
    /// Everybody who is compared, once; `missing` says who cannot take part, and why.
    fn new(comparisons: &[Comparison], missing: impl Fn(Contender) -> Option<String>) -> Self {
        let mut field =
            Self { contenders: Vec::new(), values: HashMap::new(), failures: HashMap::new(), repeated: Vec::new() };
        for contender in comparisons.iter().flat_map(|comparison| [Some(comparison.ours), comparison.other]).flatten() {
            if let Some(why) = missing(contender) {
                field.failures.insert(contender, why);
            } else if !field.contenders.contains(&contender) {
                field.contenders.push(contender);
            }
        }
        field
    }

    /// Whose turn it is in a round: everybody's, each time beginning with the next one; when all have begun, backwards.
    fn order(&self, round: usize) -> Vec<Contender> {
        let mut order: Vec<Contender> =
            self.contenders.iter().filter(|one| !self.failures.contains_key(one)).copied().collect();
        let count = order.len().max(1);
        order.rotate_left(round % count);
        if round / count % 2 == 1 {
            order.reverse();
        }
        order
    }

    /// Takes note of a round. Who has failed in it takes no further part.
    fn take(&mut self, contender: Contender, value: Result<f64, String>) {
        match value {
            Ok(value) => self.values.entry(contender).or_default().push(value),
            Err(why) => drop(self.failures.insert(contender, format!("{}: {why}", contender.name()))),
        }
    }

    fn figures(&self, comparison: &Comparison) -> Outcome {
        let values = |contender: Contender| match self.failures.get(&contender) {
            Some(why) => Err(why.clone()),
            None => Ok(self.values.get(&contender).cloned().unwrap_or_default()),
        };
        let ours = values(comparison.ours)?;
        let others = comparison.other.map_or(Ok(Vec::new()), values)?;
        let compared = if comparison.other.is_some() { ratios(&ours, &others) } else { ours.clone() };
        let estimate = Estimate::of(&compared).ok_or("no round was measured")?;
        let is_of_these = |one: &&Contender| **one == comparison.ours || Some(**one) == comparison.other;
        Ok(Figures { ours, others, estimate, repeated: self.repeated.iter().filter(is_of_these).count() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Kind, ROWS};
    use super::*;

    fn small() -> &'static [Comparison] {
        let Kind::Rounds(small) = &ROWS[0].kind else { panic!("small is measured in rounds") };
        small.comparisons
    }

    fn field(missing: Option<Contender>) -> Field {
        let comparisons = wanted(small(), &[Contender::Wrk, Contender::Shb]);
        Field::new(&comparisons, |contender| (Some(contender) == missing).then(|| "not had".to_owned()))
    }

    #[test]
    fn everybody_has_one_turn_in_every_round_and_every_place_in_turn() {
        let field = field(None);
        let orders: Vec<Vec<Contender>> = (0..8).map(|round| field.order(round)).collect();
        for place in 0..4 {
            for contender in [Contender::Uring, Contender::Wrk, Contender::Shb, Contender::Epoll] {
                let times = orders.iter().filter(|order| order[place] == contender).count();
                assert_eq!(times, 2, "{contender:?} at {place} in {orders:?}");
            }
        }
    }

    #[test]
    fn rounds_are_paired() {
        let mut field = field(None);
        for (ours, other) in [(1.0, 2.0), (3.0, 4.0), (2.0, 8.0)] {
            field.take(Contender::Uring, Ok(ours));
            field.take(Contender::Wrk, Ok(other));
        }
        field.repeated = vec![Contender::Wrk, Contender::Shb, Contender::Wrk];
        let figures = field.figures(&small()[0]).unwrap();
        assert_eq!(figures.repeated, 2);
        assert_eq!((figures.estimate.low, figures.estimate.median, figures.estimate.high), (0.25, 0.5, 0.75));
    }

    #[test]
    fn who_fails_takes_no_further_part_and_the_others_go_on() {
        let mut field = field(Some(Contender::Shb));
        field.take(Contender::Epoll, Err("no report: x".to_owned()));
        field.take(Contender::Uring, Ok(1.0));
        field.take(Contender::Wrk, Ok(2.0));
        assert_eq!(field.order(0), [Contender::Uring, Contender::Wrk]);
        let outcomes: Vec<_> = small()[..3].iter().map(|comparison| field.figures(comparison)).collect();
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1], Err("not had".to_owned()));
        assert_eq!(outcomes[2], Err("onrush (epoll): no report: x".to_owned()));
    }

    #[test]
    fn a_limit_is_reached_where_the_interval_touches_it() {
        let line = |limit, low, high| Line {
            row: "small",
            work: "",
            unit: "",
            comparison: Comparison { limit, ..small()[0] },
            outcome: Ok(Figures {
                ours: Vec::new(),
                others: Vec::new(),
                estimate: Estimate { median: f64::midpoint(low, high), low, high, confidence: 0.97 },
                repeated: 0,
            }),
        };
        for (limit, low, high, expected) in [
            (Some(Limit::AtMost(0.76)), 0.76, 0.80, Some(true)),
            (Some(Limit::AtMost(0.76)), 0.77, 0.80, Some(false)),
            (Some(Limit::AtLeast(3.3)), 3.1, 3.3, Some(true)),
            (Some(Limit::AtLeast(3.3)), 3.1, 3.2, Some(false)),
            (None, 1.0, 2.0, None),
        ] {
            assert_eq!(line(limit, low, high).is_reached(), expected, "{limit:?} {low} {high}");
        }
    }
}
