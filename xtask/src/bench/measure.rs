//! Measures the rounds of a row: every contender once per round, in turns, and the figures that follow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use super::contender::Contender;
use super::experiment::{Comparison, Experiment, Limit, Measure, Sample, Summary};
use super::load::Target;
use super::median::{Estimate, ratios};
use super::options::Options;
use super::process::{Server, Stage};

/// One line of the table: a comparison, and its figures or why there are none.
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
    /// The outcome.
    pub outcome: Outcome,
}

/// Figures, or why there are none.
pub type Outcome = Result<Figures, String>;

/// A contender that fails this often in one round is excluded from the rest.
const ATTEMPTS: u32 = 3;

/// The figures of one comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Ours.
    pub ours: Series,
    /// The other's; empty if there is no other.
    pub others: Series,
    /// The ratios of the rounds, or our values if there is no other.
    pub estimate: Estimate,
    /// How many runs of the two failed and were repeated.
    pub repeated: usize,
    /// Which of the rounds the estimate is of.
    pub summary: Summary,
}

/// What one side did, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What counts.
    pub values: Vec<f64>,
    /// Requests per second; empty if nothing was timed. Processor time that is saved by sending fewer requests is no
    /// gain.
    pub rates: Vec<f64>,
}

impl Series {
    fn of(samples: &[Sample], measure: Measure, experiment: &Experiment) -> Self {
        let values = samples.iter().map(|sample| measure.value(sample, &experiment.load)).collect();
        Self { values, rates: samples.iter().map(|sample| sample.per_second).collect() }
    }
}

/// How the rounds compare with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The median is within it.
    Reached,
    /// The median is not, but the interval includes it: these rounds cannot tell.
    WithinNoise,
    /// All of the interval is beyond it.
    Missed,
}

impl Verdict {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::WithinNoise => "within noise",
            Self::Missed => "missed",
        }
    }
}

impl Line {
    /// How the rounds compare with the limit. `None` without a limit or without figures.
    pub fn verdict(&self) -> Option<Verdict> {
        let Estimate { median, low, high, .. } = self.outcome.as_ref().ok()?.estimate;
        let (is_median_within, is_touched) = match self.comparison.limit? {
            Limit::AtMost(limit) => (median <= limit, low <= limit),
            Limit::AtLeast(limit) => (median >= limit, high >= limit),
        };
        Some(match (is_median_within, is_touched) {
            (true, _) => Verdict::Reached,
            (false, true) => Verdict::WithinNoise,
            (false, false) => Verdict::Missed,
        })
    }
}

/// The contenders that have not been excluded, and the rounds of all so far.
struct Field {
    contenders: Vec<Contender>,
    samples: HashMap<Contender, Vec<Sample>>,
    failures: HashMap<Contender, String>,
    /// The contenders of failed runs that were repeated with success, one entry for each run.
    repeated: Vec<Contender>,
}

/// Measures the chosen comparisons of an experiment; returns the unit and the figures of each.
///
/// # Errors
/// A target or a meter that cannot be started.
pub fn run(
    stage: &Stage<'_>,
    experiment: &Experiment,
    options: &Options,
) -> io::Result<Vec<(&'static str, Comparison, Outcome)>> {
    let comparisons = options.comparisons(experiment);
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
    for round in 0..options.rounds.min(experiment.rounds_max) {
        print!(".");
        io::stdout().flush()?;
        for contender in field.order(round) {
            let server = &servers[&experiment.target(contender)];
            let mut sample = stage.round(contender, &experiment.load, server)?;
            for _ in 1..ATTEMPTS {
                let Err(why) = &sample else { break };
                println!("  {}: {why}; running it again", contender.name());
                field.repeated.push(contender);
                sample = stage.round(contender, &experiment.load, server)?;
            }
            field.take(contender, sample);
        }
    }
    println!();
    let outcome =
        |comparison| (experiment.measure(&comparison).unit(), comparison, field.figures(&comparison, experiment));
    Ok(comparisons.into_iter().map(outcome).collect())
}

/// Every contender of the comparisons, once.
pub fn contenders(comparisons: &[Comparison]) -> Vec<Contender> {
    let mut contenders = Vec::new();
    for contender in comparisons.iter().flat_map(|comparison| [Some(comparison.ours), comparison.other]).flatten() {
        if !contenders.contains(&contender) {
            contenders.push(contender);
        }
    }
    contenders
}

impl Field {
    /// Every contender of the comparisons, once; `missing` says why one cannot take part.
    fn new(comparisons: &[Comparison], missing: impl Fn(Contender) -> Option<String>) -> Self {
        let mut field =
            Self { contenders: Vec::new(), samples: HashMap::new(), failures: HashMap::new(), repeated: Vec::new() };
        for contender in contenders(comparisons) {
            match missing(contender) {
                Some(why) => drop(field.failures.insert(contender, why)),
                None => field.contenders.push(contender),
            }
        }
        field
    }

    /// The order of a round: each round begins with the next contender; once every contender was first, the order is
    /// reversed.
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

    /// Records a round. A contender that failed in it is excluded from the rest.
    fn take(&mut self, contender: Contender, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => self.samples.entry(contender).or_default().push(sample),
            Err(why) => drop(self.failures.insert(contender, format!("{}: {why}", contender.name()))),
        }
    }

    fn figures(&self, comparison: &Comparison, experiment: &Experiment) -> Outcome {
        let measure = experiment.measure(comparison);
        let series = |contender: Contender| match self.failures.get(&contender) {
            Some(why) => Err(why.clone()),
            None => Ok(self.samples.get(&contender).map(|samples| Series::of(samples, measure, experiment))),
        };
        let ours = series(comparison.ours)?.unwrap_or_default();
        let others = comparison.other.map_or(Ok(None), series)?.unwrap_or_default();
        let is_compared = comparison.other.is_some();
        let compared = if is_compared { ratios(&ours.values, &others.values) } else { ours.values.clone() };
        let estimate = match experiment.summary {
            Summary::Median => Estimate::of(&compared),
            Summary::Lowest => compared.iter().copied().min_by(f64::total_cmp).map(Estimate::exact),
        };
        let estimate = estimate.ok_or("no round was measured")?;
        let is_of_these = |one: &&Contender| **one == comparison.ours || Some(**one) == comparison.other;
        let repeated = self.repeated.iter().filter(is_of_these).count();
        Ok(Figures { ours, others, estimate, repeated, summary: experiment.summary })
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::Kind;
    use super::super::rows::ROWS;
    use super::*;

    fn small() -> &'static Experiment {
        let Kind::Rounds(small) = &ROWS[0].kind else { panic!("small is measured in rounds") };
        small
    }

    /// A round that took this much processor time, at this rate.
    fn sample(cpu_us: f64, per_second: f64) -> Sample {
        Sample { requests: 1, per_second, cpu_us, memory_bytes: 0.0, target_cpu_us: 0.0, lateness_us: [0.0; 2] }
    }

    fn field(missing: Option<Contender>) -> Field {
        let comparisons = Options::parse(&["PEERS=wrk,shb"]).unwrap().comparisons(small());
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
            field.take(Contender::Uring, Ok(sample(ours, 100.0)));
            field.take(Contender::Wrk, Ok(sample(other, 50.0)));
        }
        field.repeated = vec![Contender::Wrk, Contender::Shb, Contender::Wrk];
        let figures = field.figures(&small().comparisons[0], small()).unwrap();
        assert_eq!(figures.repeated, 2);
        assert_eq!(
            (&figures.ours.values[..], &figures.others.values[..]),
            (&[1.0, 3.0, 2.0][..], &[2.0, 4.0, 8.0][..])
        );
        assert_eq!((figures.ours.rates, figures.others.rates), (vec![100.0; 3], vec![50.0; 3]));
        assert_eq!((figures.estimate.low, figures.estimate.median, figures.estimate.high), (0.25, 0.5, 0.75));
    }

    #[test]
    fn where_neighbours_can_only_add_the_lowest_round_counts() {
        let experiment = Experiment { summary: Summary::Lowest, ..*small() };
        let mut field = field(None);
        for cpu_us in [3.0, 1.5, 2.0] {
            field.take(Contender::Uring, Ok(sample(cpu_us, 1.0)));
        }
        let comparison = Comparison { other: None, ..experiment.comparisons[0] };
        assert_eq!(field.figures(&comparison, &experiment).unwrap().estimate, Estimate::exact(1.5));
    }

    #[test]
    fn a_comparison_may_be_of_something_else_than_counts_in_the_row() {
        let mut field = field(None);
        field.take(Contender::Uring, Ok(sample(1.0, 30.0)));
        field.take(Contender::Wrk, Ok(sample(2.0, 40.0)));
        let comparison = Comparison { measure: Some(Measure::Rate), ..small().comparisons[0] };
        let figures = field.figures(&comparison, small()).unwrap();
        assert_eq!((figures.ours.values, figures.others.values), (vec![30.0], vec![40.0]));
    }

    #[test]
    fn who_fails_takes_no_further_part_and_the_others_go_on() {
        let mut field = field(Some(Contender::Shb));
        field.take(Contender::Epoll, Err("no report: x".to_owned()));
        field.take(Contender::Uring, Ok(sample(1.0, 1.0)));
        field.take(Contender::Wrk, Ok(sample(2.0, 1.0)));
        assert_eq!(field.order(0), [Contender::Uring, Contender::Wrk]);
        let outcome = |comparison| field.figures(comparison, small());
        let outcomes: Vec<_> = small().comparisons[..3].iter().map(outcome).collect();
        assert!(outcomes[0].is_ok());
        assert_eq!(outcomes[1], Err("not had".to_owned()));
        assert_eq!(outcomes[2], Err("onrush (epoll): no report: x".to_owned()));
    }

    #[test]
    fn a_limit_is_reached_where_the_median_is_within_it_and_otherwise_at_most_touched() {
        use Verdict::{Missed, Reached, WithinNoise};
        let line = |limit, low, median, high| Line {
            row: "small",
            work: "",
            unit: "",
            comparison: Comparison { limit, ..small().comparisons[0] },
            outcome: Ok(Figures {
                ours: Series::default(),
                others: Series::default(),
                estimate: Estimate { median, low, high, confidence: 0.97 },
                repeated: 0,
                summary: Summary::Median,
            }),
        };
        let (at_most, at_least) = (Some(Limit::AtMost(0.76)), Some(Limit::AtLeast(3.3)));
        for (limit, low, median, high, expected) in [
            (at_most, 0.70, 0.76, 0.80, Some(Reached)),
            (at_most, 0.76, 0.77, 0.80, Some(WithinNoise)),
            (at_most, 0.77, 0.78, 0.80, Some(Missed)),
            (at_least, 3.1, 3.3, 3.5, Some(Reached)),
            (at_least, 3.1, 3.2, 3.3, Some(WithinNoise)),
            (at_least, 3.0, 3.1, 3.2, Some(Missed)),
            (None, 1.0, 1.5, 2.0, None),
        ] {
            assert_eq!(line(limit, low, median, high).verdict(), expected, "{limit:?} {low} {median} {high}");
        }
    }
}
