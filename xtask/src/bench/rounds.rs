//! The rounds of a row: every contender once per round, in turn, and the resulting figures.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use super::contender::Contender;
use super::measure::{MeasureComparison, RoundSample, ValueSource};
use super::median::{MedianEstimate, ratios};
use super::process::BenchSetup;
use super::rows::BenchRow;
use super::work::BenchWork;

/// Figures, or the reason why there are none.
pub type ComparisonResult = Result<ComparisonFigures, String>;

/// Number of failed runs in one round after which a contender is excluded from later rounds.
const ATTEMPTS: u32 = 3;

/// Figures of one comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonFigures {
    /// Results of our side.
    pub ours: Series,
    /// Results of the other side; empty without one.
    pub others: Series,
    /// Median ratio of the rounds; without another side, the median of our values, or their lowest if the measure says
    /// so.
    pub estimate: MedianEstimate,
    /// Median ratio of the requests per second, if both sides send at full speed or at the same rate.
    pub rates: Option<MedianEstimate>,
    /// Number of runs, of both sides, that failed and were repeated.
    pub repeated: usize,
}

/// Results of one side, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Values of the measure.
    pub values: Vec<f64>,
    /// Requests per second of each round; empty if the measure is a count.
    pub rates: Vec<f64>,
}

/// Contenders of a row, with their results so far.
#[derive(Debug)]
pub struct Rounds<'a> {
    row: &'a BenchRow,
    entrants: Vec<Entrant>,
}

/// A contender, its rounds, and the reason for an exclusion.
#[derive(Debug)]
struct Entrant {
    contender: Contender,
    samples: Vec<RoundSample>,
    failure: Option<String>,
    repeated: usize,
}

impl<'a> Rounds<'a> {
    /// Measures all timed contenders of these comparisons.
    ///
    /// # Errors
    ///
    /// If a target or a meter cannot be started.
    pub fn run(
        stage: &BenchSetup<'_>,
        row: &'a BenchRow,
        comparisons: &[MeasureComparison],
        rounds: usize,
    ) -> io::Result<Self> {
        let mut all = Self::new(row, comparisons, |contender| stage.missing(contender, &row.work));
        let mut servers = HashMap::new();
        for contender in all.round_order(0).into_iter().map(|place| all.entrants[place].contender) {
            let work = (contender.change)(row.work);
            if let Entry::Vacant(place) = servers.entry(BenchSetup::target_key(&contender, &work)) {
                place.insert(stage.target(&contender, &work)?);
            }
        }
        if servers.is_empty() {
            return Ok(all);
        }
        for round in 0..rounds.min(row.rounds_max) {
            print!(".");
            io::stdout().flush()?;
            for place in all.round_order(round) {
                let entrant = &mut all.entrants[place];
                let work = (entrant.contender.change)(row.work);
                let server = &servers[&BenchSetup::target_key(&entrant.contender, &work)];
                let mut sample = stage.round(&entrant.contender, &work, server)?;
                for _ in 1..ATTEMPTS {
                    let Err(why) = &sample else { break };
                    println!("  {}: {why}; running it again", entrant.contender.title());
                    entrant.repeated += 1;
                    sample = stage.round(&entrant.contender, &work, server)?;
                }
                entrant.record_sample(sample);
            }
        }
        println!();
        Ok(all)
    }

    /// Enters each contender once. `missing` returns why a contender cannot take part.
    fn new(
        row: &'a BenchRow,
        comparisons: &[MeasureComparison],
        missing: impl Fn(&Contender) -> Option<String>,
    ) -> Self {
        let mut entrants: Vec<Entrant> = Vec::new();
        for MeasureComparison { measure, ours, other, .. } in comparisons {
            for contender in [Some(*ours), *other].into_iter().flatten() {
                let is_timed = !matches!(measure.how, ValueSource::Counted(_));
                if is_timed && entrants.iter().all(|known| known.contender != contender) {
                    let failure = missing(&contender);
                    entrants.push(Entrant { contender, samples: Vec::new(), failure, repeated: 0 });
                }
            }
        }
        Self { row, entrants }
    }

    /// Order of a round, as indices of entrants. Each round starts with the next contender; after a full cycle, the
    /// order is reversed.
    fn round_order(&self, round: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entrants.len()).collect();
        order.retain(|&place| self.entrants[place].failure.is_none());
        let count = order.len().max(1);
        order.rotate_left(round % count);
        if round / count % 2 == 1 {
            order.reverse();
        }
        order
    }

    /// Figures of a timed comparison.
    ///
    /// # Errors
    ///
    /// The reason why there are none, for the table.
    pub fn figures(&self, comparison: &MeasureComparison) -> ComparisonResult {
        let (figure, is_lowest) = match comparison.measure.how {
            ValueSource::Median(figure) => (figure, false),
            ValueSource::Lowest(figure) => (figure, comparison.other.is_none()),
            ValueSource::Counted(_) => return Err("counted, not timed".to_owned()),
        };
        let mut repeated = 0;
        let mut series = |contender: &Contender| -> Result<Series, String> {
            let entrant = self.entrants.iter().find(|entrant| entrant.contender == *contender);
            let entrant = entrant.ok_or("no round was measured")?;
            repeated += entrant.repeated;
            if let Some(why) = &entrant.failure {
                return Err(why.clone());
            }
            let work = (contender.change)(self.row.work);
            let values = entrant.samples.iter().map(|sample| figure(sample, &work)).collect::<Option<_>>();
            let rates = entrant.samples.iter().map(|sample| sample.per_second).collect();
            Ok(Series { values: values.ok_or_else(|| format!("{} did not report it", contender.title()))?, rates })
        };
        let ours = series(&comparison.ours)?;
        let others = comparison.other.as_ref().map_or(Ok(Series::default()), series)?;
        let is_compared = comparison.other.is_some();
        let compared = if is_compared { ratios(&ours.values, &others.values) } else { ours.values.clone() };
        let lowest = || compared.iter().copied().min_by(f64::total_cmp).map(MedianEstimate::exact);
        let estimate = if is_lowest { lowest() } else { MedianEstimate::from_values(&compared) };
        let pace = |contender: &Contender| {
            let BenchWork { rate, requests, .. } = (contender.change)(self.row.work);
            (rate, requests)
        };
        let is_same_pace = comparison.other.is_some_and(|other| pace(&other) == pace(&comparison.ours));
        let rates = is_same_pace.then(|| MedianEstimate::from_values(&ratios(&ours.rates, &others.rates))).flatten();
        Ok(ComparisonFigures { ours, others, estimate: estimate.ok_or("no round was measured")?, rates, repeated })
    }
}

impl Entrant {
    /// Records a round. A contender that failed is excluded.
    fn record_sample(&mut self, sample: Result<RoundSample, String>) {
        match sample {
            Ok(sample) => self.samples.push(sample),
            Err(why) => self.failure = Some(format!("{}: {why}", self.contender.title())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contender::{EPOLL, ONRUSH, SHB, WRK};
    use super::super::measure::{CPU, INSTRUCTIONS, LATENESS_50, RATE};
    use super::super::rows::ROWS;
    use super::*;

    const fn beside(ours: Contender, other: Option<Contender>) -> MeasureComparison {
        MeasureComparison { measure: CPU, ours, other, limit: None }
    }

    /// onrush, shb, wrk and onrush on epoll, one of which may be missing.
    fn rounds(missing: Option<Contender>) -> Rounds<'static> {
        let comparisons = [
            beside(ONRUSH, Some(SHB)),
            beside(WRK, Some(ONRUSH)),
            beside(EPOLL, None),
            MeasureComparison { measure: INSTRUCTIONS, ..beside(ONRUSH, ONRUSH.before()) },
        ];
        Rounds::new(&ROWS[0], &comparisons, |one| (Some(*one) == missing).then(|| "not had".to_owned()))
    }

    impl Rounds<'_> {
        fn take(&mut self, contender: Contender, sample: Result<(f64, f64), &str>) {
            let sample = sample.map(|(cpu_us, per_second)| RoundSample {
                requests: 1.0,
                per_second,
                cpu_us,
                result: serde_json::json!({"open_loop": {"lateness": {"percentiles_us": {"50": cpu_us}}}}),
                ..RoundSample::default()
            });
            let entrant = self.entrants.iter_mut().find(|entrant| entrant.contender == contender).unwrap();
            entrant.record_sample(sample.map_err(str::to_owned));
        }
    }

    #[test]
    fn contenders_have_positions_equally_often() {
        let orders: Vec<Vec<usize>> = (0..8).map(|round| rounds(None).round_order(round)).collect();
        for place in 0..4 {
            for entrant in 0..4 {
                let times = orders.iter().filter(|order| order[place] == entrant).count();
                assert_eq!(times, 2, "{entrant} at {place} in {orders:?}");
            }
        }
    }

    #[test]
    fn rounds_are_paired_per_measure() {
        let mut rounds = rounds(None);
        for (ours, other) in [(1.0, 2.0), (3.0, 4.0), (2.0, 8.0)] {
            rounds.take(ONRUSH, Ok((ours, 100.0)));
            rounds.take(WRK, Ok((other, 50.0)));
        }
        let figures = rounds.figures(&beside(ONRUSH, Some(WRK))).unwrap();
        assert_eq!((figures.ours.values, figures.others.values), (vec![1.0, 3.0, 2.0], vec![2.0, 4.0, 8.0]));
        assert_eq!((figures.ours.rates, figures.others.rates), (vec![100.0; 3], vec![50.0; 3]));
        assert_eq!((figures.estimate.low, figures.estimate.median, figures.estimate.high), (0.25, 0.5, 0.75));
        assert_eq!(figures.rates.map(|rates| (rates.low, rates.median, rates.high)), Some((2.0, 2.0, 2.0)));
        let figures = rounds.figures(&MeasureComparison { measure: RATE, ..beside(ONRUSH, Some(WRK)) }).unwrap();
        assert_eq!((figures.ours.values, figures.estimate.median), (vec![100.0; 3], 2.0));
    }

    #[test]
    fn intentionally_different_rates_are_not_compared() {
        let slower = Contender::onrush("onrush -R", |work| BenchWork { rate: 1_000, ..work });
        let comparison = beside(slower, Some(ONRUSH));
        let mut rounds = Rounds::new(&ROWS[0], &[comparison], |_| None);
        rounds.take(slower, Ok((3.0, 1_000.0)));
        rounds.take(ONRUSH, Ok((1.0, 50_000.0)));
        assert_eq!(rounds.figures(&comparison).unwrap().rates, None);
    }

    #[test]
    fn counts_use_the_lowest_round() {
        let mut rounds = rounds(None);
        for value in [3.0, 1.5, 2.0] {
            rounds.take(ONRUSH, Ok((value, 1.0)));
        }
        let lateness = MeasureComparison { measure: LATENESS_50, ..beside(ONRUSH, None) };
        assert_eq!(rounds.figures(&lateness).unwrap().estimate, MedianEstimate::exact(1.5));
    }

    #[test]
    fn failed_contenders_drop_out() {
        let mut rounds = rounds(Some(SHB));
        rounds.take(EPOLL, Err("no report: x"));
        rounds.take(ONRUSH, Ok((1.0, 1.0)));
        rounds.take(WRK, Ok((2.0, 1.0)));
        let left: Vec<&str> =
            rounds.round_order(0).iter().map(|&place| rounds.entrants[place].contender.name).collect();
        assert_eq!(left, ["onrush", "wrk"]);
        assert!(rounds.figures(&beside(ONRUSH, Some(WRK))).is_ok());
        assert_eq!(rounds.figures(&beside(ONRUSH, Some(SHB))), Err("not had".to_owned()));
        assert_eq!(rounds.figures(&beside(EPOLL, Some(WRK))), Err("onrush (epoll): no report: x".to_owned()));
    }
}
