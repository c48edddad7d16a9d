//! The answer that an experiment gives, in a few lines: the level beyond which more connections or threads gain
//! nothing, the highest rate that was reached, and the faster of levels without an order.

use std::collections::HashMap;

use onrush_plan::Metric;
use onrush_text::units::{format_count, format_per_second, format_percentage};

use super::checks::REACHED_MIN;
use super::comparison::Comparison;
use super::contest::{self, Contest, FactorLevels, VariedFactor, format_levels, level_of};
use super::differences;
use super::outlier::median;
use super::words::{self, SINGLE_RUNS};
use crate::saved::SavedRun;

/// A smaller gain counts as none: doubling the connections should bring more.
const GAIN_MIN: f64 = 0.1;

/// Maximum number of comparisons with a baseline that the answer lists.
const COMPARISONS_MAX: usize = 6;

/// The answer that an experiment gives, line by line.
///
/// # Errors
///
/// Fails if the runs are not from one experiment.
pub fn answer_lines(runs: &[SavedRun]) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for factor in &contest::varied_factors(runs)? {
        let ordered = LevelKind::for_factor(factor, runs);
        match ordered {
            LevelKind::Load(option) => {
                lines.extend(lines_by_other_levels(runs, factor, |levels| saturation_line(levels, option)))
            }
            LevelKind::Rate => lines.extend(lines_by_other_levels(runs, factor, highest_kept_rate_line)),
            LevelKind::Other => lines.extend(baseline_verdicts(&contest::contests_against_baseline(runs, factor))),
        }
    }
    Ok(lines)
}

/// Kind of a factor's levels.
enum LevelKind {
    /// Numbers of connections or threads in a closed loop, with the option that sets the number.
    Load(&'static str),
    /// Requested rates.
    Rate,
    /// Anything else.
    Other,
}

impl LevelKind {
    fn for_factor(factor: &VariedFactor, runs: &[SavedRun]) -> Self {
        let option = match factor.name.as_str() {
            "connections" => "-c",
            "threads" => "-t",
            "rate" if runs.iter().all(|run| requested_rate(run).is_some()) => return Self::Rate,
            _ => return Self::Other,
        };
        let are_numbers = factor.levels.iter().all(|level| level.parse::<u64>().is_ok());
        if are_numbers && !runs.iter().any(SavedRun::is_scheduled) { Self::Load(option) } else { Self::Other }
    }
}

/// The requested rate of a run; `None` unless it is a single number.
fn requested_rate(run: &SavedRun) -> Option<f64> {
    run.rate.as_ref()?.parse().ok()
}

/// The complete runs at a level.
struct LevelRuns<'a> {
    level: String,
    runs: Vec<&'a SavedRun>,
}

/// One line for each combination of the other factors' levels. `line` makes it from the levels of this factor, in
/// ascending order.
fn lines_by_other_levels(
    runs: &[SavedRun],
    factor: &VariedFactor,
    line: impl Fn(&[LevelRuns<'_>]) -> Option<String>,
) -> Vec<String> {
    let of = |(at, runs): (FactorLevels, Vec<&SavedRun>)| {
        let mut at_level: HashMap<Option<String>, Vec<&SavedRun>> = HashMap::new();
        let complete = runs.into_iter().filter(|run| run.failure().is_none());
        complete.for_each(|run| at_level.entry(level_of(run, &factor.name)).or_default().push(run));
        let with = |level: &String| {
            let runs = at_level.remove(&Some(level.clone())).unwrap_or_default();
            LevelRuns { level: level.clone(), runs }
        };
        let mut levels: Vec<LevelRuns<'_>> = factor.levels.iter().map(with).collect();
        levels.retain(|level| !level.runs.is_empty());
        levels.sort_by(|one, other| level_sort_key(one).total_cmp(&level_sort_key(other)));
        let line = line(&levels)?;
        Some(if at.is_empty() { line } else { format!("{}: {line}", format_levels(&at)) })
    };
    contest::group_by_other_levels(runs, factor).into_iter().filter_map(of).collect()
}

/// The number by which levels are sorted: the rate, or the level itself.
fn level_sort_key(level: &LevelRuns<'_>) -> f64 {
    requested_rate(level.runs[0]).or_else(|| level.level.parse().ok()).unwrap_or(f64::NAN)
}

/// A line on the level beyond which nothing is gained.
fn saturation_line(levels: &[LevelRuns<'_>], option: &str) -> Option<String> {
    let (last, below) = levels.split_last().filter(|(_, below)| !below.is_empty())?;
    let name = |level: &LevelRuns<'_>| format!("{option} {}", level.level);
    // Goes down from the highest level while no higher level gains. Each step adds a condition that must hold, so that
    // no correction for the number of steps is needed.
    let mut enough: Option<(&LevelRuns<'_>, f64)> = None;
    for (index, level) in below.iter().enumerate().rev() {
        let most = |higher: &LevelRuns<'_>| relative_gain(level, higher).ok().map(|(_, most)| most);
        let bounds: Option<Vec<f64>> = levels[index + 1..].iter().map(most).collect();
        match bounds.map(|bounds| bounds.into_iter().fold(0.0, f64::max)).filter(|most| *most < GAIN_MIN) {
            Some(most) => enough = Some((level, most)),
            None => break,
        }
    }
    if let Some((level, most)) = enough {
        let most =
            if most > 0.0 { format!(": at most {} more requests/s", format_percentage(most)) } else { String::new() };
        return Some(format!("no gain beyond {}{most}", name(level)));
    }
    let before = below.last()?;
    let (one, other) = (name(before), name(last));
    Some(match relative_gain(before, last) {
        Ok((least, most)) if least > 0.0 => {
            format!(
                "{other} has {} to {} more requests/s than {one}; try more",
                format_percentage(least),
                format_percentage(most)
            )
        }
        Ok((least, most)) if words::is_inconclusive((least + 1.0, most + 1.0)) => {
            format!("{other} and {one} cannot be told apart: rounds too few or too noisy; add rounds (--rounds)")
        }
        Ok((least, most)) => format!(
            "cannot tell whether {other} gains anything over {one}: from {} to {} more requests/s; add rounds (--rounds)",
            format_percentage(least),
            format_percentage(most)
        ),
        Err(why) => format!("cannot tell whether {other} (B) gains anything over {one} (A): {why}"),
    })
}

/// The relative gain in requests per second over a lower level: lower and upper bound of the 95 % interval.
fn relative_gain(few: &LevelRuns<'_>, many: &LevelRuns<'_>) -> Result<(f64, f64), String> {
    let names = [few, many].map(|level| level.level.clone());
    let contest = Contest { names, at: Vec::new(), sides: [few.runs.clone(), many.runs.clone()] };
    let range = Comparison::estimate_rate_ratio(&contest)?.ratio_range();
    range.map(|(low, high)| (low - 1.0, high - 1.0)).ok_or_else(|| format!("{SINGLE_RUNS}; add rounds (--rounds)"))
}

/// A line on the highest rate with which the target kept up.
fn highest_kept_rate_line(levels: &[LevelRuns<'_>]) -> Option<String> {
    let rate = |level: &LevelRuns<'_>| {
        let rates: Vec<f64> = level.runs.iter().filter_map(|run| run.value(Metric::Rate)).collect();
        (!rates.is_empty()).then(|| median(&rates))
    };
    let is_reached = |level: &&LevelRuns<'_>| {
        rate(level).zip(requested_rate(level.runs[0])).is_some_and(|(rate, asked)| rate >= REACHED_MIN * asked)
    };
    let name = |level: &LevelRuns<'_>| format!("-R {}", level.level);
    let count = levels.iter().take_while(is_reached).count();
    let most = levels[..count].last().map(&name);
    Some(match (most, levels.get(count)) {
        (Some(most), None) => format!("every rate was reached, up to {most}"),
        (most, Some(missed)) => {
            let most = most.map_or("no rate was reached".to_owned(), |most| format!("{most} was reached"));
            format!("{most}; {} got only {} requests/s", name(missed), format_per_second(rate(missed)?))
        }
        (None, None) => return None,
    })
}

/// The verdicts on all levels compared with the baseline.
fn baseline_verdicts(contests: &[Contest<'_>]) -> Vec<String> {
    let together = contests.iter().filter(|contest| Comparison::is_possible(contest)).count();
    let mut lines = Vec::new();
    for contest in contests.iter().take(COMPARISONS_MAX) {
        lines.push(match (differences::plan_difference_refusal(contest), Comparison::new(contest, together, &[])) {
            (Some(why), _) => why,
            (None, Some(comparison)) => {
                format!("{}\n  {}", words::sides_heading(&comparison), words::verdict_sentence(&comparison))
            }
            (None, None) => {
                let [a, b] = &contest.names;
                format!("{a} and {b}{} have no complete runs to compare", words::other_levels_suffix(&contest.at))
            }
        });
    }
    let left = contests.len() - contests.len().min(COMPARISONS_MAX);
    if left > 0 {
        lines.push(format!("and {} (-v shows all)", format_count(left as u64, "more comparison")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use onrush_plan::FactorLevel;

    use super::super::fixtures::run_in_round;
    use super::*;

    /// Runs of an experiment with one factor. Each level has the rates of its rounds.
    fn runs(factor: &str, levels: &[(&str, &[f64])]) -> Vec<SavedRun> {
        let of = |(index, (level, rates)): (u32, &(&str, &[f64]))| {
            let level =
                FactorLevel { factor: factor.to_owned(), level: (*level).to_owned(), index, baseline: index == 1 };
            (1..).zip(*rates).map(|(round, rate)| run_in_round(*rate, round, vec![level.clone()])).collect::<Vec<_>>()
        };
        (1..).zip(levels).flat_map(of).collect()
    }

    fn answer_of(factor: &str, levels: &[(&str, &[f64])]) -> String {
        answer_lines(&runs(factor, levels)).unwrap().join("\n")
    }

    #[test]
    fn gains_end_where_no_level_is_faster() {
        // Levels are compared as numbers, regardless of their order in the plan.
        let levels: [(&str, &[f64]); 4] = [
            ("16", &[400.0, 405.0, 396.0]),
            ("1", &[100.0, 101.0, 99.0]),
            ("4", &[398.0, 403.0, 397.0]),
            ("64", &[390.0, 391.0, 389.0]),
        ];
        let answer = answer_of("connections", &levels);
        assert!(
            answer.starts_with("no gain beyond -c 4: at most ") && answer.ends_with(" % more requests/s"),
            "{answer}"
        );
        let answer = answer_of("threads", &levels[1..3]);
        assert!(
            answer.starts_with("-t 4 has 29") && answer.ends_with("more requests/s than -t 1; try more"),
            "{answer}"
        );
        // Each step is small, but their sum is not.
        let steps: [(&str, &[f64]); 3] =
            [("1", &[100.0, 100.1, 99.9]), ("2", &[107.0, 107.1, 106.9]), ("4", &[114.0, 114.1, 113.9])];
        assert!(
            answer_of("connections", &steps).starts_with("no gain beyond -c 2: at most 6.6 %"),
            "{}",
            answer_of("connections", &steps)
        );
    }

    #[test]
    fn differences_within_noise_are_not_claimed() {
        let noisy: [(&str, &[f64]); 2] = [("1", &[100.0, 150.0, 70.0]), ("8", &[120.0, 90.0, 130.0])];
        let answer = answer_of("connections", &noisy);
        assert_eq!(answer, "-c 8 and -c 1 cannot be told apart: rounds too few or too noisy; add rounds (--rounds)");
        let less: [(&str, &[f64]); 2] = [("1", &[100.0, 105.0, 95.0]), ("8", &[106.0, 100.0, 107.0])];
        let answer = answer_of("connections", &less);
        assert!(answer.starts_with("cannot tell whether -c 8 gains anything over -c 1: from -"), "{answer}");
        assert!(answer.ends_with("add rounds (--rounds)"), "{answer}");
        let single = answer_of("connections", &[("1", &[100.0]), ("8", &[800.0])]);
        assert_eq!(
            single,
            "cannot tell whether -c 8 (B) gains anything over -c 1 (A): one run per side gives no measure of noise; \
             add rounds (--rounds)"
        );
        assert_eq!(answer_of("connections", &[("1", &[100.0])]), "");
    }

    #[test]
    fn highest_reached_rate_is_named() {
        let of = |levels: &[(&str, &[f64])]| {
            let mut runs = runs("rate", levels);
            for run in &mut runs {
                run.rate = run.position.as_ref().map(|position| position.levels[0].level.replace('k', "000"));
            }
            answer_lines(&runs).unwrap().join("\n")
        };
        let held: [(&str, &[f64]); 3] = [("4k", &[3_999.0; 3]), ("1k", &[998.0; 3]), ("8k", &[5_000.0, 6_824.6])];
        assert_eq!(of(&held), "-R 4k was reached; -R 8k got only 5,912 requests/s");
        assert_eq!(of(&held[..2]), "every rate was reached, up to -R 4k");
        assert_eq!(of(&held[2..]), "no rate was reached; -R 8k got only 5,912 requests/s");
    }

    #[test]
    fn unordered_levels_are_compared_with_the_baseline() {
        let levels: [(&str, &[f64]); 2] = [("a", &[100.0, 101.0, 99.0]), ("b", &[110.0, 111.0, 109.0])];
        let answer = answer_of("url", &levels);
        assert!(
            answer.starts_with("A = a, B = b: 3 rounds of \"test\", interleaved\n  B is 10 % faster (95 %: "),
            "{answer}"
        );
        let many: Vec<(String, Vec<f64>)> = (0..9).map(|index| (format!("l{index}"), vec![100.0, 101.0])).collect();
        let many: Vec<(&str, &[f64])> = many.iter().map(|(level, rates)| (&level[..], &rates[..])).collect();
        let answer = answer_of("sysctl", &many);
        assert_eq!(answer.matches("A = ").count(), 6);
        assert!(answer.ends_with("\nand 2 more comparisons (-v shows all)"), "{answer}");
    }
}
