//! Due times: their values, the sum of their parts, and their distribution.

use std::num::NonZeroU64;

use super::*;
use crate::Random;

const SECOND: u64 = 1_000_000_000;

fn rate_per_second(requests: u64) -> Rate {
    Rate::from_per_second(requests).unwrap()
}

fn stage(seconds: u64, from: u64, to: u64) -> Stage {
    Stage { length: Some(Duration::from_secs(seconds)), from: rate_per_second(from), to: rate_per_second(to) }
}

fn schedule(arrivals: Arrivals, stages: &[Stage]) -> Schedule {
    Schedule {
        arrivals,
        stages: stages.to_vec(),
        part: Partition::WHOLE,
        catch_up: None,
        max_late: None,
        send_slice: None,
    }
}

fn burst(size: u64) -> Arrivals {
    Arrivals::Burst(NonZeroU64::new(size).unwrap())
}

fn seconds(seconds: u64) -> ScheduleSpan {
    ScheduleSpan { duration_ns: Some(seconds * SECOND), ..ScheduleSpan::default() }
}

/// All due times, taken one by one.
fn all(mut dues: Dues) -> Vec<u64> {
    let mut due = Vec::new();
    while dues.next_ns() < u64::MAX {
        due.push(dues.next_ns());
        dues.skip_batch(1);
    }
    due
}

#[test]
fn skipping_takes_everything_due_before_a_time() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let stages = any_stages(&mut random);
        let arrivals = [Arrivals::Uniform, Arrivals::Poisson, burst(3)][random.below(3) as usize];
        let span = ScheduleSpan {
            warmup_ns: [0, SECOND][random.below(2) as usize],
            duration_ns: Some(30 * SECOND),
            run_on_ns: 0,
        };
        let dues = schedule(arrivals, &stages).dues(Partition::new(1, 2), span, 5);
        let due = all(dues.clone());
        let (until_ns, most) = (random.below(40 * SECOND), [3, 100, u64::MAX][random.below(3) as usize]);
        let expected = due.iter().filter(|due_ns| **due_ns < until_ns).count().min(most as usize);
        assert_eq!(dues.count_before(until_ns, most), expected as u64, "{stages:?} {arrivals:?} {span:?} {until_ns}");
        let mut rest = dues;
        assert_eq!(rest.pass_before(until_ns, most), expected as u64);
        assert_eq!(all(rest), due[expected..]);
    }
}

#[test]
fn huge_due_counts_are_averaged_not_drawn() {
    let plan =
        schedule(Arrivals::Poisson, &[stage(1, 10_000_000, 10_000_000), Stage::open_ended(rate_per_second(5_000_000))]);
    let dues = plan.dues(Partition::new(1, 2), ScheduleSpan::default(), 7);
    let few_ns = SECOND / 100;
    assert_eq!(dues.count_about_before(few_ns), dues.count_before(few_ns, u64::MAX));
    // 5,000,000 for this half in the first second, 2,500,000 in each later one: drawing them would take hours.
    let many = dues.count_about_before(100_001 * SECOND) as f64;
    assert!((many / (5e6 + 2.5e6 * 100_000.0) - 1.0).abs() < 1e-6, "{many}");
    let even = schedule(Arrivals::Uniform, &[Stage::open_ended(rate_per_second(1_000))]);
    let dues = even.dues(Partition::WHOLE, ScheduleSpan::default(), 7);
    assert_eq!(dues.count_about_before(100_000 * SECOND), 100_000_000);
}

#[test]
fn empty_stages_and_the_end_are_idle() {
    let stages = [stage(2, 0, 5), stage(3, 0, 0), stage(1, 5, 0)];
    let idle = schedule(Arrivals::Uniform, &stages).idle_times();
    assert_eq!(idle, [(2 * SECOND, 5 * SECOND), (6 * SECOND, u64::MAX)]);
    assert_eq!(
        schedule(Arrivals::Uniform, &[Stage::open_ended(rate_per_second(1))]).idle_times(),
        [(u64::MAX, u64::MAX)]
    );
}

/// All due times of a schedule executed in one part.
fn whole(schedule: &Schedule, span: ScheduleSpan) -> Vec<u64> {
    all(schedule.dues(Partition::WHOLE, span, 1))
}

/// Random stages of any kind, not all idle.
fn any_stages(random: &mut Random) -> Vec<Stage> {
    let rate = |random: &mut Random| {
        let most = [0, 60, 1_000, 60_000][random.below(4) as usize];
        Rate::from_per_minute(random.below(most + 1)).unwrap()
    };
    let stages: Vec<Stage> = (0..=random.below(4))
        .map(|_| {
            let length = Some(Duration::from_nanos(1 + random.below(20 * SECOND)));
            let (from, to) = (rate(random), rate(random));
            Stage { length, from, to: if random.below(2) == 0 { from } else { to } }
        })
        .collect();
    if stages.iter().all(Stage::is_idle) { any_stages(random) } else { stages }
}

#[test]
fn even_requests_are_due_to_the_nanosecond() {
    for (per_minute, length) in [(180_u64, 60), (60 * 1_000, 3), (60 * 7_919, 1), (1, 600), (77, 1_000)] {
        let rate = Rate::from_per_minute(per_minute).unwrap();
        let due = whole(&schedule(Arrivals::Uniform, &[Stage::open_ended(rate)]), seconds(length));
        let expected: Vec<u64> = (0..)
            .map(|k| (u128::from(k as u64) * 60_000_000_000 / u128::from(per_minute)) as u64)
            .take_while(|due| *due < length * SECOND)
            .collect();
        assert_eq!(due, expected);
    }
    let fastest = schedule(Arrivals::Uniform, &[Stage::open_ended(rate_per_second(1_000_000_000))]);
    let span = ScheduleSpan { duration_ns: Some(1_000), ..ScheduleSpan::default() };
    assert_eq!(whole(&fastest, span), (0..1_000).collect::<Vec<_>>());
}

#[test]
fn due_times_do_not_drift_in_a_year() {
    let rate = schedule(Arrivals::Uniform, &[Stage::open_ended(rate_per_second(999_999_937))]);
    let mut dues = rate.dues(Partition::WHOLE, ScheduleSpan::default(), 1);
    let year = 365 * 24 * 3600;
    dues.skip_batch(999_999_937 * year);
    assert_eq!(dues.next_ns(), year * SECOND);
}

#[test]
fn ramps_up_and_down_are_solved_exactly() {
    // A ramp from 0 to 2/s in 100 s contains 100 requests, the k-th after 10 s times the square root of k.
    let up = whole(&schedule(Arrivals::Uniform, &[stage(100, 0, 2)]), ScheduleSpan::default());
    let root = |k: u64| (u128::from(k) * 100 * u128::from(SECOND) * u128::from(SECOND)).isqrt() as u64;
    assert_eq!(up, (0..100).map(root).collect::<Vec<_>>());
    // On the way down, the remaining time is proportional to the square root of the remaining requests.
    let down = whole(&schedule(Arrivals::Uniform, &[stage(100, 2, 0)]), ScheduleSpan::default());
    let left = |k: u64| 100 * SECOND - if k == 0 { 100 * SECOND } else { root(100 - k) };
    let off = down.iter().zip((0..100).map(left)).map(|(due, exact)| exact.abs_diff(*due)).max();
    assert!(down.len() == 100 && off <= Some(1), "{off:?}");
}

/// Some positions in a stage, in grains, including the first and the last.
fn positions(stage: &Stage, random: &mut Random) -> Vec<u128> {
    let step = stage.grains() / 200 + 1;
    let anywhere = (0..200).map(|number| number * step + u128::from(random.next()) % step);
    anywhere.chain([0, 1, stage.grains() - 1]).filter(|grains| *grains < stage.grains()).collect()
}

#[test]
fn ramps_are_rounded_down_to_nanoseconds() {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let length = Some(Duration::from_nanos(1 + random.below(1_000 * SECOND)));
        let rate = |random: &mut Random| Rate::from_per_minute(random.below(600_000)).unwrap();
        let ramp = Stage { length, from: rate(&mut random), to: rate(&mut random) };
        let [from, to] = [ramp.from, ramp.to].map(|rate| i128::from(rate.per_minute()));
        let length = i128::from(ramp.length_ns());
        let passed = |at: u64| 2 * from * i128::from(at) * length + (to - from) * i128::from(at) * i128::from(at);
        for grains in positions(&ramp, &mut random) {
            let (at, scaled) = (ramp.time_of_grain_ns(grains), grains as i128 * length);
            assert!(passed(at) <= scaled && passed(at + 1) > scaled, "{ramp:?} {grains} {at}");
        }
    }
}

#[test]
fn year_long_ramps_are_exact() {
    let mut random = Random::new(7);
    for (from, to) in [(0, 1_000_000_000), (1_000_000_000, 0), (1, 1_000_000_000), (999_999_999, 1_000_000_000)] {
        let ramp = stage(TIME_MAX.as_secs(), from, to);
        for grains in positions(&ramp, &mut random) {
            let at = ramp.time_of_grain_ns(grains);
            assert!(
                ramp.has_passed_at_most(at, grains) && !ramp.has_passed_at_most(at + 1, grains),
                "{from} {to} {grains} {at}"
            );
        }
    }
}

#[test]
fn due_requests_match_the_stages_in_order() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let stages = any_stages(&mut random);
        let due = whole(&schedule(Arrivals::Uniform, &stages), ScheduleSpan::default());
        let grains: u128 = stages.iter().map(Stage::grains).sum();
        assert_eq!(due.len() as u128, grains.div_ceil(Stage::GRAINS.into()), "{stages:?}");
        assert!(due.is_sorted());
        let mut begin = 0;
        let mut before = 0;
        for stage in &stages {
            let end = begin + stage.length_ns();
            let here = due.iter().filter(|due| (begin..end).contains(*due)).count() as u128;
            let upto = |grains: u128| grains.div_ceil(Stage::GRAINS.into());
            assert_eq!(here, upto(before + stage.grains()) - upto(before), "{stages:?} at {begin}");
            (begin, before) = (end, before + stage.grains());
        }
    }
}

#[test]
fn parts_of_parts_are_the_whole() {
    let mut random = Random::new(2);
    for _ in 0..200 {
        let arrivals = if random.below(2) == 0 { Arrivals::Uniform } else { burst(1 + random.below(20)) };
        let plan = schedule(arrivals, &any_stages(&mut random));
        let (machines, threads) = (1 + random.below(4) as u32, 1 + random.below(5) as u32);
        let warmup_ns = random.below(2) * random.below(3 * SECOND);
        let span = ScheduleSpan { warmup_ns, duration_ns: Some(random.below(40 * SECOND)), run_on_ns: 0 };
        let mut parts = Vec::new();
        for machine in 0..machines {
            let here = plan.share(machine, machines);
            // Machines may have different numbers of threads.
            let threads = threads + machine % 2;
            for thread in 0..threads {
                let dues = all(here.dues(Partition::new(thread, threads), span, 1));
                assert!(dues.is_sorted());
                parts.extend(dues);
            }
        }
        parts.sort_unstable();
        assert_eq!(parts, whole(&plan, span), "{plan:?} {span:?}");
    }
}

#[test]
fn nothing_is_due_at_the_end() {
    let thousand = schedule(Arrivals::Uniform, &[Stage::open_ended(rate_per_second(1_000))]);
    assert_eq!(whole(&thousand, seconds(2)).last(), Some(&1_999_000_000));
    assert_eq!(whole(&schedule(Arrivals::Uniform, &[stage(2, 1_000, 1_000)]), ScheduleSpan::default()).len(), 2_000);
}

#[test]
fn idle_stages_shift_later_requests() {
    let stages = [stage(1, 0, 0), stage(1, 2, 2), stage(3, 0, 0), stage(1, 2, 2)];
    let due = whole(&schedule(Arrivals::Uniform, &stages), ScheduleSpan::default());
    assert_eq!(due, [1_000, 1_500, 5_000, 5_500].map(|ms| ms * 1_000_000));
}

#[test]
fn warm_up_uses_the_first_rate_of_stages() {
    let stages = [stage(1, 2, 4), stage(1, 1, 1)];
    let span = ScheduleSpan { warmup_ns: 1_200_000_000, ..ScheduleSpan::default() };
    let due = whole(&schedule(Arrivals::Uniform, &stages), span);
    let measured = whole(&schedule(Arrivals::Uniform, &stages), ScheduleSpan::default());
    assert_eq!(due[..3], [0, 500_000_000, 1_000_000_000]);
    assert_eq!(due[3..], measured.iter().map(|due| due + span.warmup_ns).collect::<Vec<_>>());
    let idle = [stage(1, 0, 4)];
    assert_eq!(whole(&schedule(Arrivals::Uniform, &idle), span)[0], span.warmup_ns);
}

#[test]
fn batches_consume_one_due_time_per_request() {
    for arrivals in [Arrivals::Uniform, Arrivals::Poisson] {
        let plan = schedule(arrivals, &[stage(10, 100, 300)]);
        let one_by_one = all(plan.dues(Partition::new(1, 3), ScheduleSpan::default(), 5));
        let mut dues = plan.dues(Partition::new(1, 3), ScheduleSpan::default(), 5);
        for due in one_by_one.iter().step_by(7) {
            assert_eq!(dues.next_ns(), *due);
            dues.skip_batch(7);
        }
        assert_eq!(dues.next_ns(), u64::MAX);
    }
}

#[test]
fn bursts_are_due_together_and_keep_the_rate() {
    let due = whole(&schedule(burst(10), &[Stage::open_ended(rate_per_second(20))]), seconds(2));
    let expected: Vec<u64> = (0..40).map(|k| k / 10 * (SECOND / 2)).collect();
    assert_eq!(due, expected);
}

/// The largest distance between the cumulative distribution of `values` and the exponential one with mean 1.
fn kolmogorov_smirnov(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len() as f64;
    let distance = |(index, value): (usize, &f64)| {
        let expected = 1.0 - (-value).exp();
        (expected - index as f64 / count).abs().max((expected - (index + 1) as f64 / count).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max)
}

/// The times between arrivals, in units of their mean. The last one of a run is cut off by its end.
fn gaps(due: &[u64], per_second: f64) -> Vec<f64> {
    let starts = [0].into_iter().chain(due.iter().copied());
    due.iter().zip(starts).map(|(due, before)| (due - before) as f64 / 1e9 * per_second).collect()
}

#[test]
fn poisson_gaps_are_exponential_in_whole_and_partitions() {
    let plan = schedule(Arrivals::Poisson, &[Stage::open_ended(rate_per_second(1_000))]);
    // At a significance level of 5 %.
    let is_rejected = |due: &[u64], rate| kolmogorov_smirnov(gaps(due, rate)) > 1.358 / (due.len() as f64).sqrt();
    let (mut parts_refused, mut runs_refused, mut arrivals) = (0, 0, 0);
    for seed in 0..100 {
        let worker = |thread: u32| all(plan.dues(Partition::new(thread, 4), seconds(4), 4 * seed + u64::from(thread)));
        let parts: Vec<Vec<u64>> = (0..4).map(worker).collect();
        parts_refused += parts.iter().filter(|part| is_rejected(part, 250.0)).count();
        let mut whole = parts.concat();
        whole.sort_unstable();
        runs_refused += usize::from(is_rejected(&whole, 1_000.0));
        arrivals += whole.len();
    }
    // About 20 of the 400 and 5 of the 100 are expected, give or take three standard deviations.
    assert!((7..=33).contains(&parts_refused) && runs_refused <= 12, "{parts_refused} {runs_refused}");
    assert!(arrivals.abs_diff(400_000) < 1_900, "{arrivals}");
}

#[test]
fn poisson_arrivals_follow_a_ramp() {
    let plan = schedule(Arrivals::Poisson, &[stage(20, 0, 2_000), stage(20, 500, 500)]);
    let due = whole(&plan, ScheduleSpan::default());
    // In units of the mean number of arrivals, the gaps are exponential at any rate.
    let expected = |at: u64| {
        let seconds = at as f64 / 1e9;
        if seconds < 20.0 { 50.0 * seconds * seconds } else { 20_000.0 + 500.0 * (seconds - 20.0) }
    };
    let starts = [0].into_iter().chain(due.iter().copied());
    let gaps: Vec<f64> = due.iter().zip(starts).map(|(due, before)| expected(*due) - expected(before)).collect();
    assert!(kolmogorov_smirnov(gaps) < 1.63 / (due.len() as f64).sqrt());
}

#[test]
fn equal_seeds_draw_equal_arrivals() {
    let plan = schedule(Arrivals::Poisson, &[Stage::open_ended(rate_per_second(1_000))]);
    let due = |seed| all(plan.dues(Partition::WHOLE, seconds(1), seed));
    assert_eq!(due(5), due(5));
    assert_ne!(due(5), due(6));
}

#[test]
fn impossible_schedules_are_named() {
    let refused = |stages: &[Stage]| schedule(Arrivals::Uniform, stages).contradiction();
    assert_eq!(refused(&[]), Some("the schedule has no stage"));
    assert_eq!(refused(&[stage(1, 0, 0)]), Some("no request is ever due"));
    assert_eq!(refused(&[stage(0, 1, 1), stage(1, 1, 1)]), Some("a stage of the schedule has no length"));
    assert_eq!(refused(&[stage(u64::MAX, 1, 1), stage(1, 1, 1)]), Some("the schedule is too long"));
    let open = Stage::open_ended(rate_per_second(1));
    let wrong = Some("only the last stage of a schedule may be open-ended, at one rate");
    assert_eq!(refused(&[open, open]), wrong);
    assert_eq!(refused(&[Stage { to: rate_per_second(2), ..open }]), wrong);
    assert_eq!(refused(&[stage(1, 0, 1), open]), None);
    let sliced = |slice| Schedule { send_slice: Some(slice), ..schedule(Arrivals::Uniform, &[open]) };
    assert_eq!(sliced(Duration::from_secs(1)).contradiction(), None);
    for slice in [Duration::ZERO, Duration::from_nanos(1_000_000_001)] {
        assert_eq!(sliced(slice).contradiction(), Some("the slices of the schedule are empty or too long"));
    }
    for (per_s, expected) in [(10_000_000, None), (10_000_001, Some("the rate is too high for Poisson arrivals"))] {
        let stages = [stage(1, 0, per_s), Stage::open_ended(rate_per_second(1))];
        assert_eq!(schedule(Arrivals::Poisson, &stages).contradiction(), expected);
        assert_eq!(schedule(Arrivals::Uniform, &stages).contradiction(), None);
    }
    let part = Partition { index: 2, of: 2 };
    assert!(Schedule { part, ..schedule(Arrivals::Uniform, &[open]) }.contradiction().is_some());
}

#[test]
fn rates_between_times_follow_the_stages() {
    let rate = |per_s| Rate::from_per_second(per_s).unwrap();
    let stage =
        |seconds, from, to| Stage { length: Some(Duration::from_secs(seconds)), from: rate(from), to: rate(to) };
    let mut schedule = Schedule {
        arrivals: Arrivals::Uniform,
        stages: vec![stage(10, 100, 100), stage(10, 100, 300), stage(5, 50, 50)],
        part: Partition::WHOLE,
        catch_up: None,
        max_late: None,
        send_slice: None,
    };
    let between = |schedule: &Schedule, from, until| {
        schedule.per_second_between(Duration::from_secs(from), Duration::from_secs(until))
    };
    let table = [
        (0, 1, 100.0),
        (0, 10, 100.0),
        (12, 13, 150.0),
        (10, 15, 150.0),
        (9, 11, 105.0),
        (0, 20, 150.0),
        (20, 30, 25.0),
    ];
    for (from, until, per_s) in table {
        assert_eq!(between(&schedule, from, until), per_s, "{from} s to {until} s");
    }
    schedule.part = Partition::new(1, 4);
    assert_eq!(between(&schedule, 12, 13), 37.5);
    schedule.stages = vec![Stage::open_ended(rate(8))];
    assert_eq!(between(&schedule, 5, 7), 2.0);
}

#[test]
fn run_ons_keep_the_last_rate() {
    let stage = |from, to| Stage {
        length: Some(Duration::from_secs(1)),
        from: Rate::from_per_second(from).unwrap(),
        to: Rate::from_per_second(to).unwrap(),
    };
    let due = |to: u64, run_on_ns: u64| {
        let span = ScheduleSpan { duration_ns: Some(SECOND), run_on_ns, ..ScheduleSpan::default() };
        let mut dues = Dues::new(Arrivals::Uniform, &[stage(100, to)], Partition::WHOLE, span, 1);
        let mut after = Vec::new();
        while dues.next_ns() < u64::MAX {
            after.extend(Some(dues.next_ns()).filter(|due_ns| *due_ns >= SECOND));
            dues.skip_batch(1);
        }
        after
    };
    assert_eq!(due(200, 0), [0; 0]);
    assert_eq!(due(200, 20_000_000), [0, 5, 10, 15].map(|ms| SECOND + ms * 1_000_000));
    assert_eq!(due(0, SECOND), [0; 0]);
}
