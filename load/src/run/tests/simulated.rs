//! Runs in virtual time: the supervisor's reports, their times, and the clock afterwards.

use onrush_stats::Totals;

use super::*;
use crate::judge;
use crate::record::Document;
use crate::run::simulated::Simulated;

/// A response arrives a millisecond after each request.
const QUICK: &str = "connect_us = 0.0\nlatency_us = 1000.0\n";

/// Records the calls of an observer.
#[derive(Default)]
pub(super) struct RecordingObserver {
    /// For each progress: time, requests so far, requests per second, and measurements since the last one.
    progress: Vec<(Duration, u64, f64, Totals)>,
    rows: Vec<TimelineRow>,
    waited: Vec<Waiting>,
}

impl Observer for RecordingObserver {
    fn on_progress(&mut self, progress: &RunProgress<'_>) {
        let RunProgress { elapsed, requests, requests_per_s, recent, .. } = *progress;
        self.progress.push((elapsed, requests, requests_per_s, recent.clone()));
    }

    fn on_row(&mut self, row: &TimelineRow) {
        self.rows.push(row.clone());
    }

    fn on_waiting(&mut self, waiting: &Waiting) {
        self.waited.push(*waiting);
    }
}

/// A clock at the start of virtual time.
pub(super) fn virtual_clock() -> Clock {
    Clock::for_io(&Io::Sim("unused".into()))
}

/// Runs a command line in a scenario.
fn simulate(words: &str, scenario: &str, clock: &mut Clock, interrupt: &Interrupt) -> (Outcome, RecordingObserver) {
    let (_, outcome, recorder) = simulate_plan(words, scenario, clock, interrupt);
    (outcome, recorder)
}

/// Like [`simulate`], but also returns the plan.
pub(super) fn simulate_plan(
    words: &str,
    scenario: &str,
    clock: &mut Clock,
    interrupt: &Interrupt,
) -> (Box<Plan>, Outcome, RecordingObserver) {
    let (plan, prepared) = prepare_simulation(words, scenario);
    let mut recorder = RecordingObserver::default();
    let (outcome, ..) = prepared.run(&plan, clock.now(), clock, interrupt, &mut [&mut recorder]);
    (plan, outcome, recorder)
}

/// Sets up the run of a command line in a scenario.
fn prepare_simulation(words: &str, scenario: &str) -> (Box<Plan>, Prepared) {
    let words = format!("onrush {words} --io sim:unused http://127.0.0.1/");
    let scenario: Scenario = toml::from_str(scenario).unwrap();
    set_up_run(&words, Vec::new(), |plan, workers| {
        let scenario = scenario.share(plan.load.threads, plan.seed).unwrap();
        Workers::Simulated(Simulated::spawn(workers, scenario).unwrap())
    })
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn runs_continue_the_clock() {
    let mut clock = virtual_clock();
    let began = clock.now();
    let (first, _) = simulate("-t2 -c2 -d10s --warmup 500ms", QUICK, &mut clock, &Interrupt::default());
    assert_eq!((first.elapsed, first.totals.counters.completed), (ms(10_000), 2 * 10_000));
    assert_eq!((first.started_at, first.ended, first.suspended), (ms(500), RunEnd::Duration, Duration::ZERO));
    let passed = clock.now() - began;
    assert!((ms(10_500)..=ms(10_520)).contains(&passed), "{passed:?}");
    clock.sleep(ms(480));
    let (second, _) = simulate("-t1 -c1 -n100", QUICK, &mut clock, &Interrupt::default());
    assert_eq!((second.elapsed, second.started_at, second.ended), (ms(100), passed + ms(480), RunEnd::Requests));
    assert!((ms(11_080)..=ms(11_120)).contains(&(clock.now() - began)), "{clock:?}");
}

#[test]
fn scenario_times_count_from_clock_start() {
    let refuses = format!("{QUICK}[[refuse]]\nfrom_s = 5.0\nfor_s = 5.0");
    let mut clock = virtual_clock();
    let mut ended = |pause_ms| {
        clock.sleep(ms(pause_ms));
        simulate("-t2 -c2 -d1s", &refuses, &mut clock, &Interrupt::default()).0.ended
    };
    assert_eq!(ended(0), RunEnd::Duration);
    assert!(matches!(ended(4_000), RunEnd::Refused { .. }));
    assert_eq!(ended(5_000), RunEnd::Duration);
}

#[test]
fn observers_follow_the_clock() {
    let (_, observed) = simulate("-t2 -c2 -d10s", QUICK, &mut virtual_clock(), &Interrupt::default());
    let times: Vec<Duration> = observed.progress.iter().map(|(elapsed, ..)| *elapsed).collect();
    // At 10 s the run has ended.
    assert_eq!(times, (1..50).map(|n| ms(200 * n)).collect::<Vec<_>>());
    let (_, requests, requests_per_s, _) = observed.progress.last().unwrap();
    assert_eq!((*requests, *requests_per_s), (2 * 9_800, 2_000.0));
    let rows: Vec<(u64, u64)> = observed.rows.iter().map(|row| (row.until_ns, row.figures.completed)).collect();
    let expected: Vec<(u64, u64)> = (1..=10).map(|n| (n * 1_000_000_000, 2_000)).collect();
    assert_eq!(rows, expected);
}

#[test]
fn progress_covers_time_since_previous() {
    let words = "-t2 -c2 -d2s --warmup 500ms -o a.json";
    let (outcome, observed) = simulate(words, QUICK, &mut virtual_clock(), &Interrupt::default());
    let mut sum = Totals::default();
    for (elapsed, requests, _, recent) in &observed.progress {
        sum += recent;
        assert_eq!((sum.counters.completed, sum.latency.count()), (*requests, *requests), "{elapsed:?}");
        assert_eq!(recent.phases.as_ref().map_or(0, |phases| phases.ttfb.count()), recent.latency.count());
    }
    // The warm-up is not counted.
    let counts: Vec<u64> = observed.progress.iter().map(|(.., recent)| recent.latency.count()).collect();
    assert_eq!(counts[..4], [0, 0, 200, 400], "{counts:?}");
    assert_eq!((sum.latency.min(), outcome.totals.latency.count()), (Some(1_000_000), 4_000));
}

/// Wants rows of one length, and ends the run after this many of them.
struct LimitedObserver {
    row: Option<Duration>,
    rows_left: usize,
}

impl Observer for LimitedObserver {
    fn on_row(&mut self, _: &TimelineRow) {
        self.rows_left = self.rows_left.saturating_sub(1);
    }

    fn first_row_max(&self) -> Option<Duration> {
        self.row
    }

    fn is_enough(&self) -> bool {
        self.rows_left == 0
    }
}

#[test]
fn observers_choose_row_lengths_and_may_stop() {
    let observed = |observers: &mut [&mut dyn Observer]| {
        let ((plan, prepared), mut clock) = (prepare_simulation("-t1 -c1 -d10s", QUICK), virtual_clock());
        let (outcome, ..) = prepared.run(&plan, clock.now(), &mut clock, &Interrupt::default(), observers);
        (outcome.timeline.length_ns / 1_000_000, outcome.elapsed)
    };
    let limited = |row_ms: Option<u64>, rows_left| LimitedObserver { row: row_ms.map(ms), rows_left };
    let (mut plain, mut short, mut long) = (limited(None, 99), limited(Some(300), 99), limited(Some(3_000), 2));
    assert_eq!(observed(&mut []), (1_000, ms(10_000)));
    assert_eq!(observed(&mut [&mut plain, &mut limited(Some(3_000), 99)]), (3_000, ms(10_000)));
    assert_eq!(observed(&mut [&mut plain, &mut long, &mut short]), (300, ms(2_101)));
}

#[test]
fn waiting_for_a_target_is_announced_once() {
    let away = "[[refuse]]\nfrom_s = 0.0\nfor_s = 1000.0";
    let (outcome, observed) = simulate("-t2 -c4 -n100 --give-up 3s", away, &mut virtual_clock(), &Interrupt::default());
    assert_eq!(outcome.ended, RunEnd::StayedAway);
    assert_eq!(observed.waited.iter().map(|waiting| waiting.limit).collect::<Vec<_>>(), [ms(3_000)]);
    // The supervisor checks every tenth of a second.
    assert!((ms(3_000)..=ms(3_100)).contains(&outcome.elapsed), "{:?}", outcome.elapsed);
    let (outcome, observed) = simulate("-t2 -c4 -d1h", away, &mut virtual_clock(), &Interrupt::default());
    assert!(matches!(outcome.ended, RunEnd::Refused { .. }) && observed.waited.is_empty());
}

#[test]
fn other_protocols_end_the_run() {
    let ended = |words: &str, answer: &str| {
        let scenario = format!("{QUICK}[[fault]]\nevery = 1\nwhat = {{ answer = \"{answer}\" }}");
        let (outcome, observed) = simulate(words, &scenario, &mut virtual_clock(), &Interrupt::default());
        assert!(observed.waited.is_empty(), "waiting does not help");
        (outcome.ended, outcome.elapsed)
    };
    let body = "The plain HTTP request was sent to HTTPS port";
    let expects_tls = format!("HTTP/1.1 400 Bad Request\\r\\nContent-Length: {}\\r\\n\\r\\n{body}", body.len());
    for words in
        ["-t1 -c1 -d1h", "-t2 -c100 -d1h", "-t2 -c4 -d1h --warmup 1h", "-t2 -c4 -n1000000", "-t2 -c4 -R100 -d1h"]
    {
        for answer in ["SSH-2.0-OpenSSH_9.2\\r\\n", "RTSP/1.0 400 Bad Request\\r\\n\\r\\n", &expects_tls] {
            let (ended, elapsed) = ended(words, answer);
            assert!(matches!(ended, RunEnd::Refused { .. }), "{words} {answer}: {ended:?}");
            // At a rate of 50 per thread, the fifth request is due after 80 ms.
            assert!(elapsed <= ms(400), "{words} {answer}: {elapsed:?}");
        }
    }
    assert_eq!(
        ended("-t1 -c1 -d1s", "HTTP/1.1 400 Bad Request\\r\\nContent-Length: 0\\r\\n\\r\\n").0,
        RunEnd::Duration
    );
    assert_eq!(ended("-t1 -c2 -n4", "SSH-2.0-OpenSSH_9.2\\r\\n").0, RunEnd::Requests, "too few to be certain");
}

#[test]
fn simulated_signals_act_like_real_ones() {
    let interrupt = Interrupt::default();
    let (outcome, _) = simulate("-t2 -c2 -d1h", &format!("signal_s = 3.21\n{QUICK}"), &mut virtual_clock(), &interrupt);
    assert!(interrupt.is_requested() && outcome.ended == RunEnd::Signal);
    // Checked every 20 ms, and noticed with the next response.
    assert_eq!(outcome.elapsed, ms(3_221));
}

#[test]
fn stop_rules_act_at_full_seconds() {
    let (outcome, _) = simulate("-t2 -c2 -d1h --until mean±1%", QUICK, &mut virtual_clock(), &Interrupt::default());
    assert!(outcome.until.as_ref().is_some_and(|until| until.reached && until.at == ms(20_000)));
    // Every thread must have handed over part of the next second.
    assert_eq!(outcome.elapsed, ms(20_101));
}

/// True if a run of a command line fails the gate `rate<0.99*asked`.
fn falls_short(words: &str, scenario: &str) -> bool {
    let words = format!("{words} --fail-if rate<0.99*asked");
    let (plan, outcome, _) = simulate_plan(&words, scenario, &mut virtual_clock(), &Interrupt::default());
    Document::judged(&plan, &outcome).gates[0].broken
}

/// With 400 random requests at 200 per second, the rate is off by 5 % on average. With a number of requests, it is also
/// off because some threads take longer than others.
#[test]
fn perfect_targets_keep_up_with_any_rate() {
    for seed in 0..200 {
        let rate = format!("-R 200 --arrivals poisson --seed {seed}");
        let broken = ["-t1 -c20 -d2s", "-t1 -c20 -n400", "-t3 -c21 -n400", "-t2 -c20 -d2s --warmup 100ms"]
            .map(|words| falls_short(&format!("{words} {rate}"), QUICK));
        assert_eq!(broken, [false; 4], "seed {seed}");
    }
}

/// At 100 per second and 300 ms, 30 requests are in flight at any moment: 1.5 % of the requests in 20 s, and 15 % of
/// the requests in 2 s.
#[test]
fn requests_sent_at_the_end_count_as_sent() {
    let slow = "connect_us = 0.0\nlatency_us = 300000.0";
    let broken = ["-d2s", "-d20s", "-d2s --warmup 1s", "-n300", "-d2s --arrivals poisson"]
        .map(|words| falls_short(&format!("-t2 -c80 -R 100 {words}"), slow));
    assert_eq!(broken, [false; 5]);
    // Responses that take longer than a third of the run: all of them, then most.
    let later = "connect_us = 0.0\nlatency_us = 2000000.0";
    let broken = ["-d2s", "-d3s", "-n100", "-n100 --arrivals poisson"]
        .map(|words| falls_short(&format!("-t1 -c300 -R 100 {words}"), later));
    assert_eq!(broken, [false; 4]);
    let various = "connect_us = 0.0\nlatency_us = 1000.0\njitter_us = 1200000.0";
    for seed in 0..20 {
        for words in ["-d3s", "-d6s", "-n300"] {
            assert!(!falls_short(&format!("-t1 -c300 -R 100 {words} --seed {seed}"), various), "{words} {seed}");
        }
    }
    // The last request of the warm-up is due at its end, and its first ones are not answered by then.
    for (words, latency_us) in [
        ("-t1 -c1000 -R 100 -d3s --arrivals burst:5 --warmup 500ms", 600_000.0),
        ("-t1 -c80 -R 40 -d2s --warmup 100ms", 200_000.0),
        ("-t4 -c80 --stages 1s:2..10 --warmup 3s", 200_000.0),
    ] {
        assert!(!falls_short(words, &format!("connect_us = 0.0\nlatency_us = {latency_us:.1}")), "{words}");
    }
    // First nothing is answered after 1 s, then nothing at all.
    for stall in ["from_s = 1.0\nfor_s = 99.0", "from_s = 0.0\nfor_s = 99.0"] {
        assert!(falls_short("-t2 -c300 -R 100 -d2s", &format!("{slow}\n[[stall]]\n{stall}")), "{stall}");
    }
    // Twenty connections get 67 responses per second, with and without a warm-up.
    for words in ["-d2s", "-d5s --warmup 1s", "-n300"] {
        assert!(falls_short(&format!("-t2 -c20 -R 100 {words}"), slow), "{words}");
    }
}

/// The number of connections that hold the queue does not matter: requests in flight only because the target is slow
/// count.
#[test]
fn growing_queues_fall_short_of_rate() {
    for (responses_per_s, words) in [
        (16.0, "-R 20 -d10s"),
        (16.0, "-R 20 -n 200"),
        (16.0, "-R 20 -n 100"),
        (5.0, "-R 8 -d10s"),
        (5.0, "-R 20 -d2s"),
        (90.0, "-R 100 -d4s"),
        (190.0, "-R 200 -d4s"),
        (460.0, "-R 500 -d1s"),
        (460.0, "-R 500 -d4s --arrivals poisson"),
    ] {
        let service_us = 1e6 / responses_per_s;
        let queue = format!("latency_us = 1000.0\n[capacity]\nworkers = 1\nservice_us = {service_us}\nqueue = 5000\n");
        assert!(falls_short(&format!("-t1 -c50 --max-inflight 5000 {words}"), &queue), "{responses_per_s}/s, {words}");
    }
    // A burst at the start is not a rate at the end.
    let queue = "latency_us = 1000.0\n[capacity]\nworkers = 1\nservice_us = 12500.0\nqueue = 5000\n";
    assert!(falls_short("-t1 -c1000 --stages 100ms:5k,2s:100 --timeout 10s", queue));
    assert!(falls_short("-t1 -c200 -R 100 -n200", queue));
    // Service times of 150 ms on average, exponentially distributed; 64 workers are twice as many as needed.
    let varied = "latency_us = 1000.0\n[capacity]\nworkers = 64\nservice_us = 150000.0\nspread = \"exponential\"\nqueue = 5000\n";
    for seed in 0..20 {
        let words = format!("-t1 -c50 --max-inflight 5000 -R 200 -d5s --seed {seed}");
        assert!(!falls_short(&words, varied), "seed {seed}");
    }
}

#[test]
fn slow_targets_fall_short_of_the_rate() {
    // A connection is busy for 20 ms per request: 100 requests per second.
    let slow = "connect_us = 0.0\nlatency_us = 20000.0";
    for seed in 0..20 {
        for words in ["-t1 -c2 -d2s", "-t1 -c2 -n400", "-t2 -c2 -n400"] {
            assert!(falls_short(&format!("{words} -R 200 --arrivals poisson --seed {seed}"), slow), "{words} {seed}");
        }
    }
    assert!(falls_short("-t1 -c2 -n400 -R 200", slow));
}

#[test]
fn simulated_panics_end_the_run() {
    let falls = format!("{QUICK}[[fault]]\nevery = 5000\nwhat = 'bug'");
    let (outcome, _) = simulate("-t2 -c2 -d1h", &falls, &mut virtual_clock(), &Interrupt::default());
    assert_eq!(outcome.breakdown, Some(Breakdown::Bug(1)));
    // The last tenth of a second of the lost worker is missing.
    let completed = outcome.totals.counters.completed;
    assert!((4_900..=5_000).contains(&(completed - 4_900)), "{completed}");
}

#[test]
fn simulations_omit_kernel_counts() {
    let (outcome, _) = simulate("-t1 -c1 -d1s", QUICK, &mut virtual_clock(), &Interrupt::default());
    let activity = outcome.totals.activity;
    assert_eq!((activity.wall_ns, activity.cpu_ns(), activity.queued_ns, activity.script_ns), (0, 0, None, 0));
}

#[test]
fn simulated_servers_are_shared_equally() {
    let busy = |workers, threads| {
        let text = format!("{QUICK}[capacity]\nworkers = {workers}\nservice_us = 10000.0");
        let scenario: Scenario = toml::from_str(&text).unwrap();
        scenario.share(threads, 1).is_ok()
    };
    assert_eq!(
        [(4, 2), (3, 3), (3, 2), (1, 2), (0, 1)].map(|(workers, threads)| busy(workers, threads)),
        [true, true, false, false, false]
    );
    let four = format!("{QUICK}[capacity]\nworkers = 4\nservice_us = 10000.0");
    for words in ["-t1 -c8 --warmup 1s -d5s", "-t4 -c8 --warmup 1s -d5s"] {
        let (outcome, _) = simulate(words, &four, &mut virtual_clock(), &Interrupt::default());
        assert_eq!(outcome.totals.counters.completed, 4 * 500, "{words}");
    }
}

#[test]
fn other_runs_use_the_machine_clock() {
    let mut clock = Clock::for_io(&Io::Auto);
    let (before, later) = (Instant::now(), Instant::now() + ms(3_600_000));
    clock.sleep(ms(2));
    assert!(clock.now() >= before + ms(2) && clock.convert_moment(later) == later);
    let an_hour_ahead = clock.unix_time(later).abs_diff(clock.unix_time(Instant::now()) + ms(3_600_000));
    assert!(an_hour_ahead < ms(60_000), "{an_hour_ahead:?}");
    let simulated = virtual_clock();
    assert!(simulated.convert_moment(later) < later && simulated.unix_time(simulated.now()) == Duration::ZERO);
}

#[test]
fn saved_results_meet_the_same_conditions() {
    const GATES: [&str; 10] = [
        "p50>1us",
        "p97.3>1us",
        "mean>1us",
        "stdev>1us",
        "service.p12.5>1us",
        "rate>1",
        "errors>1%",
        "errors.timeout>1%",
        "status.2xx>1",
        "verdict=target",
    ];
    const GATES_WITH_RATE: [&str; 4] = ["scheduled.p99>1us", "rate<0.99*asked", "late>1%", "unavailable>1%"];
    const BAD: &str = "connect_us = 0.0\nlatency_us = 20000.0\njitter_us = 9000.0\n[[stall]]\nfrom_s = 0.5\nfor_s = 1.0\n\
                       [[fault]]\nevery = 37\nwhat = \"reset\"\n";
    for words in [
        "-t2 -c20 -d2s --timeout 25ms",
        "-t2 -c20 -d2s --timeout 25ms --warmup 1s -R 1000 --max-late 50ms",
        "-t2 -c20 -n 700 -R 500",
        "-t2 -c20 -d2s --compat wrk",
        "-t2 -c20 -d12s -R 500 --compat wrk2",
    ] {
        let has_rate = words.contains("-R");
        let gates = GATES.iter().chain(GATES_WITH_RATE.iter().filter(|_| has_rate));
        let line = gates.fold(words.to_owned(), |line, gate| format!("{line} --fail-if {gate}"));
        for scenario in [QUICK, BAD] {
            let (plan, outcome, _) = simulate_plan(&line, scenario, &mut virtual_clock(), &Interrupt::default());
            let document = Document::judged(&plan, &outcome);
            assert_eq!(document.gates.len(), plan.output.gates.len());
            let saved = crate::fixtures::read_back(&document);
            for (gate, condition) in document.gates.iter().zip(&plan.output.gates) {
                assert!(gate.terms[0].was.is_some(), "{condition}: {words}");
                assert_eq!(judge::judge_objective(condition, &saved), gate.terms, "{condition}: {words}");
            }
        }
    }
}
