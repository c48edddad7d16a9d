//! The grammar of conditions and stop terms, wherever they are accepted: terms joined by commas, each about one metric.
//!
//! ```text
//! condition = term *("," term)                             ; all of them must hold
//! term      = metric ("<" / "<=" / ">" / ">=" / "=" / "!=") value
//! until     = stop *("," stop)                             ; all of them must be reached
//! stop      = metric ("+-" / "±") percent                  ; of a percentile, the mean or the rate
//! metric    = a name of plan::metric::METRICS ["[" name "]"] ; of a gate: of the requests of a list that have this name
//! value     = a time (50ms), a number (10k), a share (0.1%), a multiple of the rate asked for (0.99*asked)
//!           ; or who limited the run (target)
//! ```

use std::ops::RangeInclusive;

use onrush_plan::condition::{ComparisonOperator, Condition, StopTerm, Term, Threshold};
use onrush_plan::metric::{METRICS, Metric, MetricUnit, Statistic};
use onrush_plan::{Dialect, LimitedBy};

use super::flaw::{Flaw, nearest_word};
use super::units::{self, UnreadableNumber};
use crate::requests::is_name;

/// Purpose of a condition. The grammar does not depend on it, but suggestions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// `--fail-if`: the condition must not hold.
    Gate,
    /// `--find-max`: the condition must hold.
    Objective,
}

impl Purpose {
    /// An example of a condition on `figure`, a latency.
    fn example(self, figure: &str) -> String {
        let sign = if self == Self::Gate { '>' } else { '<' };
        format!("{figure}{sign}50ms")
    }
}

/// Names that other tools give to some metrics.
const ALIASES: [(&str, &str); 15] = [
    ("avg", "mean"),
    ("average", "mean"),
    ("med", "p50"),
    ("median", "p50"),
    ("rps", "rate"),
    ("qps", "rate"),
    ("throughput", "rate"),
    ("http_req_failed", "errors"),
    ("error_rate", "errors"),
    ("failed", "errors"),
    ("failures", "errors"),
    ("fail", "errors"),
    ("dropped_iterations", "dropped"),
    ("timeout", "errors.timeout"),
    ("timeouts", "errors.timeout"),
];
/// k6's names for the number of requests since the start.
const COUNTERS: [&str; 2] = ["http_reqs", "iterations"];
/// Names that other tools give to all failure statuses together.
const NON_2XX: [&str; 3] = ["non2xx", "non_2xx", "non-2xx"];
/// Names that other tools and people give to latency in general, of which a metric is one figure.
const LATENCIES: [&str; 6] =
    ["latency", "duration", "response_time", "http_req_duration", "iteration_duration", "http_req_waiting"];
/// Parts of names that indicate a threshold of k6, which must hold.
const K6: [&str; 3] = ["p(", "http_req", "iteration"];

/// Signs and words that join terms in the grammars of other tools.
const JOINS: [&str; 5] = [";", "&&", "||", " and ", " or "];

/// Signs between a metric and the precision requested for it.
const PLUS_MINUS: [&str; 2] = ["+-", "±"];
/// Precisions that may be requested, in per cent of the figure.
const HALF_WIDTHS: RangeInclusive<f64> = 0.1..=50.0;

pub(super) fn parse_condition(text: &str, purpose: Purpose) -> Result<Condition, Flaw> {
    Ok(Condition { terms: parse_comma_list(text, |text, at| parse_term(text, at, purpose))? })
}

/// Parses the condition of a gate from a saved result; `None` if this version does not understand it.
pub fn parse_saved_gate(text: &str) -> Option<Condition> {
    parse_condition(text, Purpose::Gate).ok()
}

pub(super) fn parse_stop_terms(text: &str) -> Result<Vec<StopTerm>, Flaw> {
    parse_comma_list(text, parse_stop_term)
}

/// Parses each comma-separated part with `read`, which also gets the part's position in characters.
fn parse_comma_list<T>(text: &str, read: impl Fn(&str, usize) -> Result<T, Flaw>) -> Result<Vec<T>, Flaw> {
    let mut terms = Vec::new();
    let mut at = 0;
    for part in text.split(',') {
        let blanks = part.len() - part.trim_start().len();
        terms.push(read(part.trim(), at + blanks)?);
        at += part.chars().count() + 1;
    }
    Ok(terms)
}

fn parse_stop_term(text: &str, at: usize) -> Result<StopTerm, Flaw> {
    let example = "try p99+-2%";
    if text.is_empty() {
        return Err(Flaw { at, reason: format!("a stop term is missing here; {example}") });
    }
    let Some((name, typed)) = PLUS_MINUS.into_iter().find_map(|sign| text.split_once(sign)) else {
        let place = text.find(['<', '>', '=', '!', '+', '-']).unwrap_or(text.len());
        let at = at + text[..place].chars().count();
        return Err(Flaw { at, reason: format!("expected +- and a precision here; {example}") });
    };
    let name = name.trim_end();
    let metric = name.parse::<Metric>().map_err(|()| Flaw { at, reason: explain_unknown_metric(name, None) })?;
    if !has_interval(metric) {
        let reason =
            format!("{name} has no confidence interval; percentiles from p1 to p99.9999, mean and rate have one");
        return Err(Flaw { at, reason });
    }
    let value = typed.trim_start();
    let at = at + text[..text.len() - value.len()].chars().count();
    let Some(percent) = value.strip_suffix('%').and_then(|percent| parse_decimal(percent.trim_end())) else {
        return Err(Flaw { at, reason: format!("{value:?} is not a percentage; {example}") });
    };
    if !HALF_WIDTHS.contains(&percent) {
        let (least, most) = HALF_WIDTHS.into_inner();
        let reason = format!("from {least}% to {most}%; latencies are recorded with {least}% precision");
        return Err(Flaw { at, reason });
    }
    Ok(StopTerm { text: text.to_owned(), metric, half_width: percent / 100.0 })
}

/// True if the batches of a run give a confidence interval for the metric. They give none for extremes, which grow with
/// the run, and for counts, which may be zero.
fn has_interval(metric: Metric) -> bool {
    match metric {
        Metric::Latency(_, Statistic::Percentile(percent)) => (1.0..=99.9999).contains(&percent.value()),
        Metric::Latency(_, statistic) => statistic == Statistic::Mean,
        metric => metric == Metric::Rate,
    }
}

fn parse_term(text: &str, at: usize, purpose: Purpose) -> Result<Term, Flaw> {
    let example = || purpose.example("p99");
    if text.is_empty() {
        return Err(Flaw { at, reason: format!("a condition is missing here; try {}", example()) });
    }
    if let Some(place) = PLUS_MINUS.into_iter().find_map(|sign| text.find(sign)) {
        let at = at + text[..place].chars().count();
        let reason = format!("+- is for --until; a condition compares, for instance {}", example());
        return Err(Flaw { at, reason });
    }
    if let Some(place) = JOINS.into_iter().find_map(|join| text.find(join)) {
        let at = at + text[..place].chars().count();
        let reason = match purpose {
            Purpose::Gate => "terms are joined by commas, and all must hold; for any of several, repeat the option",
            Purpose::Objective => "terms are joined by commas, and all must hold",
        };
        return Err(Flaw { at, reason: reason.to_owned() });
    }
    let sign = text.find(['<', '>', '=', '!']);
    let found = sign.and_then(|place| {
        let (name, rest) = text.split_at(place);
        let (comparison, sign) = ComparisonOperator::ALL.into_iter().find(|(_, sign)| rest.starts_with(sign))?;
        Some((name, comparison, sign, &rest[sign.len()..]))
    });
    // A name without a comparison that is not a metric.
    if text.chars().all(|c| c.is_ascii_alphanumeric() || "._()".contains(c)) {
        text.parse::<Metric>().map_err(|()| Flaw { at, reason: explain_unknown_metric(text, Some(purpose)) })?;
    }
    let Some((name, comparison, sign, typed)) = found else {
        let at = at + sign.map_or(text.chars().count(), |place| text[..place].chars().count());
        return Err(Flaw {
            at,
            reason: format!("expected <, <=, >, >=, = or != here; in a shell write '{}', with the quotes", example()),
        });
    };
    let (metric_name, of_name) = split_request_name(name.trim_end()).map_err(|reason| Flaw { at, reason })?;
    let metric = metric_name.parse::<Metric>().map_err(|()| {
        let meant = suggest_translation(metric_name, comparison, typed.trim_start_matches('=').trim(), purpose);
        Flaw { at, reason: meant.unwrap_or_else(|| explain_unknown_metric(metric_name, Some(purpose))) }
    })?;
    if let Some(of_name) = of_name {
        let reason = match purpose {
            Purpose::Objective => {
                Some(format!("a search is about all requests; write {metric_name} without [{of_name}]"))
            }
            Purpose::Gate if !metric.is_by_name() => Some(format!(
                "{metric_name} is not known by name; p0 to p100, mean, max, min, stdev, rate, requests, errors and \
                 status.503 or status.5xx are"
            )),
            Purpose::Gate => None,
        };
        reason.map_or(Ok(()), |reason| Err(Flaw { at, reason }))?;
    }
    if typed.starts_with('=') {
        let at = at + name.chars().count() + sign.len();
        return Err(Flaw { at, reason: "one = is enough".to_owned() });
    }
    let blanks = typed.len() - typed.trim_start().len();
    let is_order = !matches!(comparison, ComparisonOperator::Equal | ComparisonOperator::Unequal);
    if metric == Metric::Verdict && is_order {
        let at = at + name.chars().count();
        let reason = "a verdict is not a number; write verdict=target or verdict!=target";
        return Err(Flaw { at, reason: reason.to_owned() });
    }
    let value_at = at + name.chars().count() + sign.len() + blanks;
    let value = parse_threshold(metric, typed.trim_start(), purpose).map_err(|reason| Flaw { at: value_at, reason })?;
    if of_name.is_some() && matches!(value, Threshold::OfAsked(_)) {
        return Err(Flaw { at: value_at, reason: "the rate asked for is that of all requests; try 10k".to_owned() });
    }
    Ok(Term { text: text.to_owned(), metric, name: of_name.map(str::to_owned), comparison, value })
}

/// Splits a metric from the name of its requests, which may follow in brackets: `p99[login]`.
fn split_request_name(text: &str) -> Result<(&str, Option<&str>), String> {
    let Some((metric, rest)) = text.split_once('[') else { return Ok((text, None)) };
    let name = rest.strip_suffix(']').filter(|name| is_name(name));
    let name = name.ok_or_else(|| {
        format!(
            "expected the name of a request, and a bracket after it; write {metric}[login] for name=login in --urls"
        )
    })?;
    Ok((metric, Some(name)))
}

/// Suggests a term for one that uses another tool's name for a metric; `None` if the name or the value is unknown.
fn suggest_translation(name: &str, comparison: ComparisonOperator, value: &str, purpose: Purpose) -> Option<String> {
    let is_latency = LATENCIES.contains(&name);
    // Accepts only a number, so that the suggestion needs no conversion.
    let percent =
        name.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')')).filter(|it| parse_decimal(it).is_some());
    let alias = ALIASES.into_iter().find(|(alias, _)| *alias == name);
    let figures = match percent {
        _ if is_latency => vec!["p99".to_owned(), "mean".to_owned()],
        _ if NON_2XX.contains(&name) => vec!["status.4xx".to_owned(), "status.5xx".to_owned()],
        Some(percent) => vec![format!("p{percent}")],
        None => vec![alias?.1.to_owned()],
    };
    let is_k6 = K6.iter().any(|part| name.contains(part));
    // With the opposite signs, the term is a gate's condition already.
    let is_upper =
        matches!(comparison, ComparisonOperator::Less | ComparisonOperator::AtMost | ComparisonOperator::Equal);
    let is_turned = purpose == Purpose::Gate && is_k6 && is_upper;
    let sign = if is_turned { comparison.opposite() } else { comparison }.sign();
    // In tools other than k6, the value may be a share of 1, a percentage, or a number of requests.
    let number = parse_decimal(value).filter(|number| figures[0] == "errors" && !is_k6 && *number >= 1.0);
    let is_number = number.is_some();
    // A share above 100 % is impossible.
    let is_share = number.is_none_or(|number| number < 100.0 || is_upper);
    let mut terms = Vec::new();
    for figure in figures {
        let value = match (figure.parse(), parse_decimal(value)) {
            (Ok(Metric::Latency(..)), Some(_)) => format!("{value}ms"),
            (Ok(Metric::Errors), Some(_)) if is_number => format!("{value}%"),
            // A rounding error must not add digits.
            (Ok(Metric::Errors), Some(share)) if share <= 1.0 => format!("{}%", (share * 1e8).round() / 1e6),
            _ => value.to_owned(),
        };
        let write = format!("{figure}{sign}{value}");
        // Suggests only valid terms.
        parse_term(&write, 0, purpose).ok()?;
        terms.push(write);
    }
    let what = if is_latency {
        format!("{name} is no metric, but its figures are")
    } else {
        format!("unknown metric {name:?}")
    };
    let turned =
        if is_turned { "; --fail-if says what must not hold, where k6's threshold says what must" } else { "" };
    let joint = if is_latency && !is_turned { ": " } else { "; " };
    if is_number {
        let counts = ["read", "connect", "timeout"].map(|kind| format!("errors.{kind}{sign}{value}"));
        counts.iter().try_for_each(|count| parse_term(count, 0, purpose).map(drop)).ok()?;
        let share = if is_share { format!("if that is per cent write {}, ", terms[0]) } else { String::new() };
        let [read, connect, timeout] = counts;
        return Some(format!("{what}; {share}if it is a number, of one kind: {read}, {connect} or {timeout}"));
    }
    Some(format!("{what}{turned}{joint}write {}", terms.join(" or ")))
}

/// Rejects an unknown metric and suggests similar names. Without a `purpose`, the metric is not for a condition.
fn explain_unknown_metric(name: &str, purpose: Option<Purpose>) -> String {
    if name.starts_with("status.") {
        return format!("{name:?} is not a status; write status.503 or status.5xx");
    }
    if name.split('.').next_back().is_some_and(|last| last.len() == 3 && last.ends_with("xx")) {
        return format!("{name:?} is not the latency of a class of status; write p99.2xx, .3xx, .4xx or .5xx");
    }
    let digits = name.rsplit('.').next().and_then(|last| last.strip_prefix('p')).unwrap_or_default();
    if digits.starts_with(|first: char| first.is_ascii_digit()) {
        return format!("{name:?} is not a percentile; write p0 to p100, with at most six decimals");
    }
    if let Some((_, known)) = ALIASES.into_iter().find(|(alias, _)| *alias == name) {
        return format!("unknown metric {name:?}; onrush calls it {known}");
    }
    if COUNTERS.contains(&name) {
        let sign = if purpose == Some(Purpose::Objective) { '>' } else { '<' };
        let example = purpose.map_or("rate+-2%".to_owned(), |_| format!("rate{sign}1k"));
        return format!("{name} is a counter in k6, which is no metric here; per second, write for instance {example}");
    }
    if NON_2XX.contains(&name) {
        return format!("unknown metric {name:?}; onrush has status.4xx and status.5xx");
    }
    if LATENCIES.contains(&name) {
        let example = |figure| purpose.map_or(format!("{figure}+-2%"), |purpose| purpose.example(figure));
        let (one, other) = (example("p99"), example("mean"));
        return format!("{name} is no metric, but its figures are: write for instance {one} or {other}");
    }
    let is_status = format!("status.{name}").parse::<Metric>().is_ok();
    if matches!(name, "status" | "code" | "statuses" | "codes") || is_status {
        let codes = if is_status { name } else { "5xx" };
        return format!("a status is written with its code or class; write status.{codes}, or for instance status.404");
    }
    let ids = METRICS.iter().map(|about| about.id);
    match nearest_word(name, ids.clone().chain(["scheduled.p99"])) {
        Some(known) => format!("unknown metric {name:?}; did you mean {known}?"),
        None => {
            let ids = ids.filter(|id| !id.starts_with("errors."));
            let ids: Vec<&str> = ids.map(|id| if id == "p99" { "p0 to p100" } else { id }).collect();
            format!("unknown metric {name:?}; there are {} (onrush table --columns help)", ids.join(", "))
        }
    }
}

/// Parses the threshold of a metric, in the metric's own unit.
fn parse_threshold(metric: Metric, text: &str, purpose: Purpose) -> Result<Threshold, String> {
    let unit = metric.description().unit;
    if unit == MetricUnit::Name {
        let names = LimitedBy::ALL.map(LimitedBy::name).join(", ");
        let limited_by = LimitedBy::ALL.into_iter().find(|limited_by| limited_by.name() == text);
        return limited_by
            .map(Threshold::LimitedBy)
            .ok_or_else(|| format!("{text:?} is not a verdict; there are {names}"));
    }
    if let Some(factor) = text.strip_suffix("*asked") {
        let factor = parse_decimal(factor.trim_end()).filter(|_| metric == Metric::Rate);
        let sign = if purpose == Purpose::Gate { "<" } else { ">=" };
        return factor
            .map(Threshold::OfAsked)
            .ok_or_else(|| format!("only rate is compared with the rate asked for; write rate{sign}0.99*asked"));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let is_rated = matches!(unit, MetricUnit::Count | MetricUnit::Share);
        let percent = parse_decimal(percent).filter(|percent| is_rated && *percent <= 100.0);
        return percent
            .map(|percent| Threshold::Share(percent / 100.0))
            .ok_or_else(|| format!("{text:?} is not a value of this metric; {}", example(unit)));
    }
    let wrong = || format!("{text:?} is not a value of this metric; {}", example(unit));
    match unit {
        MetricUnit::Time if text != "0" && parse_decimal(text).is_some() => {
            Err(format!("which unit? write {text}ms, {text}us or {text}s"))
        }
        MetricUnit::Time => units::parse_time(text, Dialect::Native).map(Threshold::Time).map_err(|_| wrong()),
        MetricUnit::Share if text == "0" => Ok(Threshold::Share(0.0)),
        MetricUnit::Share if metric == Metric::Unavailable => {
            Err(format!("unavailable is a share of the time; {}", example(unit)))
        }
        MetricUnit::Share => Err(format!("errors are a share of all requests; {}", example(unit))),
        _ => parse_number(text).map(Threshold::Number).map_err(|_| wrong()),
    }
}

fn example(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::Time => "try 50ms",
        MetricUnit::PerSecond => "try 10k or 0.99*asked",
        MetricUnit::Share => "try 0.1%",
        MetricUnit::Bytes | MetricUnit::BytesPerSecond => "try 10M",
        MetricUnit::Count | MetricUnit::Name => "try 10 or 1%",
    }
}

/// Parses a number with a unit or with decimals.
fn parse_number(text: &str) -> Result<f64, UnreadableNumber> {
    units::parse_count(text, Dialect::Native)
        .map(|count| count as f64)
        .or_else(|error| parse_decimal(text).ok_or(error))
}

fn parse_decimal(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::metric::{ErrorKind, LatencyView};

    use super::*;

    #[test]
    fn terms_have_metric_operator_and_threshold() {
        use ComparisonOperator::{AtLeast, AtMost, Equal, Less, More, Unequal};
        let p = |percent: &str| Statistic::Percentile(percent.parse().unwrap());
        let ms = |ms| Threshold::Time(Duration::from_millis(ms));
        let cases = [
            ("p99<50ms", Metric::Latency(LatencyView::Shown, p("99")), Less, ms(50)),
            ("p99.99 >= 1.5s", Metric::Latency(LatencyView::Shown, p("99.99")), AtLeast, ms(1500)),
            ("p0>0", Metric::Latency(LatencyView::Shown, Statistic::Least), More, ms(0)),
            ("scheduled.p50<=1ms", Metric::Latency(LatencyView::Scheduled, p("50")), AtMost, ms(1)),
            ("service.max>2s", Metric::Latency(LatencyView::Service, Statistic::Max), More, ms(2000)),
            ("mean!=3ms", Metric::Latency(LatencyView::Shown, Statistic::Mean), Unequal, ms(3)),
            ("rate>10k", Metric::Rate, More, Threshold::Number(10_000.0)),
            ("rate<12.5", Metric::Rate, Less, Threshold::Number(12.5)),
            ("rate>=0.99*asked", Metric::Rate, AtLeast, Threshold::OfAsked(0.99)),
            ("errors<0.1%", Metric::Errors, Less, Threshold::Share(0.001)),
            ("errors=0", Metric::Errors, Equal, Threshold::Share(0.0)),
            ("unavailable>1%", Metric::Unavailable, More, Threshold::Share(0.01)),
            ("unavailable>0", Metric::Unavailable, More, Threshold::Share(0.0)),
            ("errors.read>5", Metric::ErrorsOf(ErrorKind::Read), More, Threshold::Number(5.0)),
            ("errors.timeout>1%", Metric::ErrorsOf(ErrorKind::Timeout), More, Threshold::Share(0.01)),
            ("status.503=0", Metric::Status(503), Equal, Threshold::Number(0.0)),
            ("status.5xx>1%", Metric::StatusClass(5), More, Threshold::Share(0.01)),
            ("late>100", Metric::Late, More, Threshold::Number(100.0)),
            ("dropped>0", Metric::Dropped, More, Threshold::Number(0.0)),
            ("min>0", Metric::Latency(LatencyView::Shown, Statistic::Least), More, ms(0)),
            ("requests<1k", Metric::Requests, Less, Threshold::Number(1_000.0)),
            ("duration>11s", Metric::Duration, More, ms(11_000)),
            ("bytes>10M", Metric::Received, More, Threshold::Number(10e6)),
            ("errors.status>1%", Metric::ErrorsOf(ErrorKind::Status), More, Threshold::Share(0.01)),
        ];
        for (text, metric, comparison, value) in cases {
            let term = Term { text: text.to_owned(), metric, name: None, comparison, value };
            assert_eq!(parse_condition(text, Purpose::Gate), Ok(Condition { terms: vec![term] }), "{text}");
        }
        let two = parse_condition(" p99<50ms , errors<0.1% ", Purpose::Objective).unwrap();
        assert_eq!(two.terms.iter().map(|term| &term.text[..]).collect::<Vec<_>>(), ["p99<50ms", "errors<0.1%"]);
    }

    #[test]
    fn stop_terms_have_metric_and_precision() {
        let p99 = Statistic::Percentile("99".parse().unwrap());
        for (text, metric, half_width) in [
            ("p99+-2%", Metric::Latency(LatencyView::Shown, p99), 0.02),
            ("scheduled.p99 ± 0.5 %", Metric::Latency(LatencyView::Scheduled, p99), 0.005),
            ("mean±50%", Metric::Latency(LatencyView::Shown, Statistic::Mean), 0.5),
            ("rate +-1%", Metric::Rate, 0.01),
        ] {
            assert_eq!(
                parse_stop_terms(text),
                Ok(vec![StopTerm { text: text.to_owned(), metric, half_width }]),
                "{text}"
            );
        }
        assert_eq!(parse_stop_terms("p50+-1%, p99±2%").unwrap().len(), 2);
        for (text, at, reason) in [
            ("", 0, "a stop term is missing here; try p99+-2%"),
            ("p99+-2%,", 8, "a stop term is missing here"),
            ("p99", 3, "expected +- and a precision here"),
            ("p99<50ms", 3, "expected +- and a precision here"),
            ("p99-2%", 3, "expected +- and a precision here"),
            ("p99+-2%, p9x±2%", 9, "\"p9x\" is not a percentile"),
            ("raet±2%", 0, "unknown metric \"raet\"; did you mean rate?"),
            ("max+-2%", 0, "max has no confidence interval; percentiles from p1 to p99.9999, mean and rate have one"),
            ("p100+-2%", 0, "p100 has no confidence interval"),
            ("p0+-2%", 0, "p0 has no confidence interval"),
            ("errors+-2%", 0, "errors has no confidence interval"),
            ("unavailable+-2%", 0, "unavailable has no confidence interval; percentiles from p1 to p99.9999, mean and"),
            ("p99±2", 4, "\"2\" is not a percentage; try p99+-2%"),
            ("p99 +- x%", 7, "\"x%\" is not a percentage"),
            ("p99+-", 5, "\"\" is not a percentage"),
            ("p99+-0%", 5, "from 0.1% to 50%; latencies are recorded with 0.1% precision"),
            ("p99+-51%", 5, "from 0.1% to 50%"),
        ] {
            let flaw = parse_stop_terms(text).unwrap_err();
            assert!(flaw.reason.starts_with(reason), "{text}: {flaw:?}");
            assert_eq!(flaw.at, at, "{text}: {flaw:?}");
        }
    }

    #[test]
    fn mistakes_are_marked_and_near_names_offered() {
        for (text, at, reason) in [
            ("", 0, "a condition is missing here; try p99>50ms"),
            ("p99<1ms,", 8, "a condition is missing here"),
            ("p99", 3, "expected <, <=, >, >=, = or != here"),
            ("p99~5ms", 7, "expected <, <=, >, >=, = or != here"),
            ("p99+-2%", 3, "+- is for --until; a condition compares, for instance p99>50ms"),
            ("p99!5ms", 3, "expected <, <=, >, >=, = or != here"),
            ("p99<1ms, eror>1%", 9, "unknown metric \"eror\"; did you mean errors?"),
            ("p101>1ms", 0, "\"p101\" is not a percentile; write p0 to p100"),
            ("latency>1ms", 0, "latency is no metric, but its figures are: write p99>1ms or mean>1ms"),
            ("p1\u{1b}>1ms", 0, r#""p1\u{1b}" is not a percentile"#),
            ("p99<\u{1b}5", 4, r#""\u{1b}5" is not a value of this metric"#),
            ("status.\u{1b}>1", 0, r#""status.\u{1b}" is not a status"#),
            ("status.6>1", 0, "\"status.6\" is not a status; write status.503 or status.5xx"),
            (
                "status>1%",
                0,
                "a status is written with its code or class; write status.5xx, or for instance status.404",
            ),
            ("404>1%", 0, "a status is written with its code or class; write status.404, or"),
            ("latency", 0, "latency is no metric, but its figures are: write for instance p99>50ms or mean>50ms"),
            (
                "http_req_duration",
                0,
                "http_req_duration is no metric, but its figures are: write for instance p99>50ms",
            ),
            ("http_req_connecting<1", 0, "unknown metric \"http_req_connecting\"; there are p0 to p100"),
            ("p(95)<x", 0, "unknown metric \"p(95)\"; there are p0 to p100"),
            ("failures>2%", 0, "unknown metric \"failures\"; write errors>2%"),
            ("throughput", 0, "unknown metric \"throughput\"; onrush calls it rate"),
            (
                "clicks>1s",
                0,
                "unknown metric \"clicks\"; there are p0 to p100, mean, max, p99.2xx, rate, errors, unavailable, status.503,",
            ),
            ("status.5xx>x", 11, "\"x\" is not a value of this metric; try 10 or 1%"),
            ("p99<50", 4, "which unit? write 50ms, 50us or 50s"),
            ("p99< 50 apples", 5, "\"50 apples\" is not a value of this metric; try 50ms"),
            ("p99<5%", 4, "\"5%\" is not a value of this metric; try 50ms"),
            ("p99<2*asked", 4, "only rate is compared with the rate asked for"),
            ("rate>-1", 5, "\"-1\" is not a value of this metric; try 10k or 0.99*asked"),
            ("rate>=*asked", 6, "only rate is compared with the rate asked for"),
            ("errors>5", 7, "errors are a share of all requests; try 0.1%"),
            ("unavailable>5", 12, "unavailable is a share of the time; try 0.1%"),
            ("unavailble>5%", 0, "unknown metric \"unavailble\"; did you mean unavailable?"),
            ("errors>101%", 7, "\"101%\" is not a value of this metric"),
            ("transfer>5%", 9, "\"5%\" is not a value of this metric; try 10M"),
            ("rate>1e9", 5, "\"1e9\" is not a value"),
            ("rate==5", 5, "one = is enough"),
            ("verdict==target", 8, "one = is enough"),
            ("p99>50ms;rate<1k", 8, "terms are joined by commas"),
            ("p99>50ms or rate<1k", 8, "terms are joined by commas"),
            ("avg>5ms", 0, "unknown metric \"avg\"; write mean>5ms"),
            ("rps<1k", 0, "unknown metric \"rps\"; write rate<1k"),
            ("rate>", 5, "\"\" is not a value"),
            ("é>1", 0, "unknown metric \"é\""),
            (
                "failed>1",
                0,
                "unknown metric \"failed\"; if that is per cent write errors>1%, if it is a number, of one kind: \
                 errors.read>1, errors.connect>1 or errors.timeout>1",
            ),
            (
                "failed>100",
                0,
                "unknown metric \"failed\"; if it is a number, of one kind: errors.read>100, errors.connect",
            ),
            ("failures>=100", 0, "unknown metric \"failures\"; if it is a number, of one kind: errors.read>=100, "),
            (
                "scheduled.p99.2xx>1ms",
                0,
                "\"scheduled.p99.2xx\" is not the latency of a class of status; write p99.2xx",
            ),
            ("error_rate>5", 0, "unknown metric \"error_rate\"; if that is per cent write errors>5%, if it"),
            ("iterations<1000", 0, "iterations is a counter in k6, which is no metric here; per second, write"),
            ("non2xx", 0, "unknown metric \"non2xx\"; onrush has status.4xx and status.5xx"),
            ("latency>\u{1b}[31mX", 0, "latency is no metric, but its figures are: write for instance p99>50ms"),
        ] {
            let flaw = parse_condition(text, Purpose::Gate).unwrap_err();
            assert!(flaw.reason.starts_with(reason), "{text}: {flaw:?}");
            assert_eq!(flaw.at, at, "{text}: {flaw:?}");
        }
        assert!(
            parse_stop_terms("latency+-2%").unwrap_err().reason.ends_with("write for instance p99+-2% or mean+-2%")
        );
        let shown = |at: usize| Flaw { at, reason: "which unit?".to_owned() }.shown("p99<50");
        assert_eq!([0, 4, 6].map(shown), ["which unit?", "at \"50\": which unit?", "at the end: which unit?"]);
    }

    #[test]
    fn nested_parentheses_are_refused_quickly() {
        const LAYERS: usize = 20_000;
        let name = format!("p{}95{}", "(".repeat(LAYERS), ")".repeat(LAYERS));
        let refused = parse_condition(&format!("{name}>5"), Purpose::Gate).unwrap_err();
        assert!(refused.reason.starts_with("unknown metric"), "{}", &refused.reason[..80]);
        assert!(
            parse_condition("p((95))>5", Purpose::Gate)
                .unwrap_err()
                .reason
                .starts_with("unknown metric \"p((95))\"; there")
        );
    }

    /// A gate copied from k6 without turning its sign would let exactly the failures pass.
    #[test]
    fn objectives_suggest_the_opposite_gate() {
        for (text, gate, objective) in [
            ("p(95)<500", "p95>=500ms", "p95<500ms"),
            ("p(99.9)<=1s", "p99.9>1s", "p99.9<=1s"),
            ("http_req_duration<500", "p99>=500ms or mean>=500ms", "p99<500ms or mean<500ms"),
            ("http_req_waiting<500", "p99>=500ms or mean>=500ms", "p99<500ms or mean<500ms"),
            ("iteration_duration <= 2s", "p99>2s or mean>2s", "p99<=2s or mean<=2s"),
            ("http_req_failed<0.07", "errors>=7%", "errors<7%"),
            ("http_req_failed==0", "errors!=0%", "errors=0%"),
            // Turned round, these would break every good run.
            ("http_req_duration>500ms", "p99>500ms or mean>500ms", "p99>500ms or mean>500ms"),
            ("p(99)>500", "p99>500ms", "p99>500ms"),
            ("http_req_failed>0.01", "errors>1%", "errors>1%"),
            ("http_req_failed<1", "errors>=100%", "errors<100%"),
            ("dropped_iterations>0", "dropped>0", "dropped>0"),
            ("http_reqs>100", "for instance rate<1k", "for instance rate>1k"),
            ("iterations<1000", "for instance rate<1k", "for instance rate>1k"),
            ("timeouts>0", "errors.timeout>0", "errors.timeout>0"),
            ("non2xx>0", "status.4xx>0 or status.5xx>0", "status.4xx>0 or status.5xx>0"),
            ("failed>0.01", "errors>1%", "errors>1%"),
            ("dropped_iterations<10", "dropped>=10", "dropped<10"),
            // Names unknown to k6 have no direction of their own.
            ("latency>1ms", "p99>1ms or mean>1ms", "p99>1ms or mean>1ms"),
            ("avg>5", "mean>5ms", "mean>5ms"),
            ("latency", "for instance p99>50ms or mean>50ms", "for instance p99<50ms or mean<50ms"),
            ("http_req_duration", "for instance p99>50ms or mean>50ms", "for instance p99<50ms or mean<50ms"),
            ("p99<2*asked", "rate<0.99*asked", "rate>=0.99*asked"),
        ] {
            for (purpose, expected) in [(Purpose::Gate, gate), (Purpose::Objective, objective)] {
                let reason = parse_condition(text, purpose).unwrap_err().reason;
                assert_eq!(reason.split_once("write ").unwrap().1, expected, "{text}: {reason}");
                for term in expected.trim_start_matches("for instance ").split(" or ") {
                    assert!(parse_condition(term, purpose).is_ok(), "{term}");
                }
            }
        }
        for (text, gate, objective) in [
            ("", "a condition is missing here; try p99>50ms", "a condition is missing here; try p99<50ms"),
            ("p99+-2%", "for instance p99>50ms", "for instance p99<50ms"),
            ("p99", "in a shell write 'p99>50ms', with the quotes", "in a shell write 'p99<50ms', with the quotes"),
            ("p99<1s;max<2s", "all must hold; for any of several, repeat the option", "all must hold"),
        ] {
            for (purpose, end) in [(Purpose::Gate, gate), (Purpose::Objective, objective)] {
                let reason = parse_condition(text, purpose).unwrap_err().reason;
                assert!(reason.ends_with(end), "{text}: {reason}");
            }
        }
        assert_eq!(
            parse_condition("p(95)<500", Purpose::Gate).unwrap_err().reason,
            "unknown metric \"p(95)\"; --fail-if says what must not hold, where k6's threshold says what must; write p95>=500ms"
        );
        assert_eq!(
            parse_condition("http_req_duration<500", Purpose::Gate).unwrap_err().reason,
            "http_req_duration is no metric, but its figures are; --fail-if says what must not hold, where k6's threshold \
             says what must; write p99>=500ms or mean>=500ms"
        );
    }
}
