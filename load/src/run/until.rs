//! The stop rule of `--until`: ends a run once its metrics are known precisely enough.
//!
//! The rule keeps batches of the run for each term, filled from the intervals collected anyway, and evaluates the
//! batches each time the run has grown by a tenth.

use std::time::Duration;

use onrush_plan::Plan;
use onrush_plan::condition::StopTerm;
use onrush_plan::metric::{LatencyView, Metric, Statistic};
use onrush_stats::{BATCHES_MIN, Batch, Batches, ByClass, Count, Distribution, PrecisionEstimate, Stats, Unknown};

/// How precisely a run's metrics were known when it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StopRuleResult {
    /// True if each metric was as precise as requested.
    pub reached: bool,
    /// Length of the part of the run that was evaluated, which starts with measuring.
    pub at: Duration,
    /// The metrics of the rule.
    pub terms: Vec<MetricPrecision>,
}

/// How precisely a metric was known.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPrecision {
    /// The metric and the requested precision.
    pub term: StopTerm,
    /// The achieved precision, or why it is unknown.
    pub estimate: Result<PrecisionEstimate, Unknown>,
}

/// Decides whether a run may end.
#[derive(Debug)]
pub(super) struct StopRule {
    terms: Vec<(StopTerm, Batches)>,
    /// True if the reported latency counts from the due time.
    is_scheduled: bool,
    seconds: u64,
    /// Time of the next evaluation, in seconds.
    look_at: u64,
    until: Option<StopRuleResult>,
}

impl StopRule {
    /// The rule of a plan, if the plan has `--until`.
    pub fn from_plan(plan: &Plan) -> Option<Self> {
        let terms: Vec<_> = plan.until.iter().map(|term| (term.clone(), Batches::default())).collect();
        let is_scheduled = plan.schedule.is_some();
        (!terms.is_empty()).then_some(Self {
            terms,
            is_scheduled,
            seconds: 0,
            look_at: BATCHES_MIN as u64,
            until: None,
        })
    }

    /// Records an interval of the second that is `ahead` seconds after the last finished one.
    pub fn record_interval<C: Count>(&mut self, ahead: usize, interval: &Stats<C>) {
        for (term, batches) in &mut self.terms {
            let is_scheduled = match term.metric {
                Metric::Latency(LatencyView::Shown | LatencyView::Class(_), _) => self.is_scheduled,
                metric => metric.needs_rate(),
            };
            let scheduled = interval.open_loop.as_deref().map(|open_loop| &open_loop.scheduled);
            let latency = scheduled.filter(|_| is_scheduled).unwrap_or(&interval.latency);
            match term.metric {
                Metric::Latency(LatencyView::Class(class), _) => {
                    let latency = class_latencies(class, latency, interval.by_class.as_deref());
                    batches.record(ahead, latency.count(), &latency);
                }
                _ => batches.record(ahead, interval.counters.completed, latency),
            }
        }
    }

    /// Ends a second, and evaluates the batches if that is due.
    pub fn end_second(&mut self) {
        self.terms.iter_mut().for_each(|(_, batches)| batches.end_second());
        self.seconds += 1;
        if self.seconds >= self.look_at && !self.is_reached() {
            self.look_at = self.seconds + (self.seconds / 10).max(1);
            self.evaluate_batches();
        }
    }

    /// True if every metric is as precise as requested.
    pub fn is_reached(&self) -> bool {
        self.until.as_ref().is_some_and(|until| until.reached)
    }

    /// Evaluates the batches one last time, at the end of the run.
    pub fn into_result(mut self) -> Option<StopRuleResult> {
        if !self.is_reached() {
            self.evaluate_batches();
        }
        self.until
    }

    fn evaluate_batches(&mut self) {
        let known = |(term, batches): &(StopTerm, Batches)| {
            let figure = |batch: &Batch| metric_value(term.metric, batch);
            MetricPrecision { term: term.clone(), estimate: batches.estimate_precision(term.completed_min(), figure) }
        };
        let terms: Vec<MetricPrecision> = self.terms.iter().map(known).collect();
        let reached = terms.iter().all(MetricPrecision::is_enough);
        self.until = Some(StopRuleResult { reached, at: Duration::from_secs(self.seconds), terms });
    }
}

impl MetricPrecision {
    /// True if the metric is as precise as requested.
    pub fn is_enough(&self) -> bool {
        self.estimate.is_ok_and(|estimate| estimate.half_width <= self.term.half_width)
    }

    /// Minimum number of responses in each batch for an estimate of this metric.
    pub fn completed_min(&self) -> u64 {
        self.term.completed_min()
    }
}

/// The latencies of responses with a status of this class. Only the other classes are recorded separately: 2xx is what
/// remains.
fn class_latencies<C: Count>(class: u16, all: &Distribution<C>, by_class: Option<&ByClass<C>>) -> Distribution<C> {
    let mut latencies = Distribution::new();
    let others = ByClass::<C>::CLASSES.into_iter().filter(|known| class == 2 || *known == class);
    others.filter_map(|known| by_class?.latencies_of_class(known)).for_each(|part| latencies += part);
    if class == 2 { all.without_part(&latencies) } else { latencies }
}

fn metric_value(metric: Metric, batch: &Batch) -> f64 {
    match metric {
        Metric::Latency(_, Statistic::Percentile(percent)) => batch.latency.percentile(percent.value()) as f64,
        Metric::Latency(..) => batch.latency.mean().unwrap_or_default(),
        _ => batch.completed as f64 / batch.seconds as f64,
    }
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;
    use onrush_stats::Interval;

    use super::*;
    use crate::cli::{self, Commands, Invocation};

    fn parse_rule(words: &str) -> StopRule {
        let words = format!("onrush {words} http://127.0.0.1/");
        let Invocation::Run { plan, .. } = cli::parse(words.split(' ').map(Into::into), &Commands::NONE) else {
            panic!("{words}")
        };
        StopRule::from_plan(&plan).unwrap()
    }

    /// A second with 1,000 responses of 1 ms from sending, and about twice that from the due time.
    fn random_second(random: &mut Random, spread: u64) -> Interval {
        let mut interval = Interval::default();
        interval.counters.completed = 1_000;
        for _ in 0..1_000 {
            interval.latency.record(1_000_000 + random.below(10));
            interval.open_loop.get_or_insert_default().scheduled.record(2_000_000 + random.below(spread));
        }
        interval
    }

    /// Number of seconds after which the rule ends the run.
    fn seconds_until_end(rule: &mut StopRule, seconds: u64, spread: u64) -> Option<u64> {
        let mut random = Random::new(1);
        (1..=seconds).find(|_| {
            rule.record_interval(0, &random_second(&mut random, spread));
            rule.end_second();
            rule.is_reached()
        })
    }

    #[test]
    fn runs_end_once_all_terms_are_reached() {
        assert_eq!(seconds_until_end(&mut parse_rule("--until p99+-2%"), 60, 1), Some(20));
        assert_eq!(seconds_until_end(&mut parse_rule("--until p99+-2%,rate+-1%,mean+-1%"), 60, 1), Some(20));
        let mut unsure = parse_rule("-R 1000 --until service.p50+-1%,p50+-0.5%");
        let seconds = seconds_until_end(&mut unsure, 200, 2_000_000).unwrap();
        assert!(seconds > 20, "{seconds}");
        let until = unsure.into_result().unwrap();
        assert_eq!((until.reached, until.at), (true, Duration::from_secs(seconds)));
        let [service, scheduled] = &until.terms[..] else { panic!("{until:?}") };
        let half_width = |known: &MetricPrecision| known.estimate.unwrap().half_width;
        assert!(half_width(service) < 0.001 && (0.002..=0.005).contains(&half_width(scheduled)), "{until:?}");
    }

    #[test]
    fn status_classes_use_their_own_responses() {
        let mut random = Random::new(1);
        let words = ["p99.2xx+-2%", "mean.2xx+-2%", "mean.5xx+-2%", "mean+-2%", "p50.4xx+-2%"];
        let mut rules = words.map(|words| parse_rule(&format!("--until {words}")));
        for second_s in 1..=30 {
            let mut interval = random_second(&mut random, 1);
            // Error pages that get slower and slower do not affect successes.
            for _ in 0..100 {
                interval.latency.record(10_000_000 * second_s);
                interval.by_class.get_or_insert_default().record(503, 10_000_000 * second_s);
            }
            for rule in &mut rules {
                rule.record_interval(0, &interval);
                rule.end_second();
            }
        }
        let reached = rules.map(|rule| rule.into_result().unwrap().reached);
        assert_eq!(reached, [true, true, false, false, false]);
    }

    #[test]
    fn batches_hold_ten_responses_beyond_percentile() {
        let of = |text: &str| parse_rule(&format!("--until {text}+-2%")).terms[0].0.completed_min();
        assert_eq!(
            ["p50", "p90", "p99", "p99.9", "p1", "mean", "rate"].map(of),
            [20, 100, 1_000, 10_000, 1_000, 10, 10]
        );
        let mut rare = parse_rule("--until p99.9+-2%");
        assert_eq!(seconds_until_end(&mut rare, 100, 1), None, "a batch of ten seconds is needed");
        let until = rare.into_result().unwrap();
        assert_eq!((until.reached, until.terms[0].estimate), (false, Err(Unknown::Short)));
    }

    #[test]
    fn stop_rules_are_checked_at_each_tenth() {
        let mut rule = parse_rule("--until p99+-2%");
        let mut random = Random::new(1);
        let mut looks = Vec::new();
        for _ in 0..35 {
            let before = rule.look_at;
            // If the latency grows steadily, the interval never gets narrow.
            let mut interval = random_second(&mut random, 1);
            interval.latency.record_many(1_000_000 * (1 + rule.seconds), 1_000);
            rule.record_interval(0, &interval);
            rule.end_second();
            looks.extend((rule.look_at != before).then_some(rule.seconds));
        }
        assert_eq!(looks, [20, 22, 24, 26, 28, 30, 33]);
        assert_eq!(rule.into_result().unwrap().at, Duration::from_secs(35));
    }
}
