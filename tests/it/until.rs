//! Runs that end once their figures are known precisely enough.

use crate::harness::{Context, Scratch, cases, target, url};
use crate::results::{document, number};
use crate::simulation::simulated_document;

cases! {
    steady_rates_are_known_after_twenty_seconds (Once);
    rare_percentiles_stay_unknown (Once);
    varying_figures_take_the_computed_time (Once);
    real_runs_end_with_known_figures (Once);
}

fn steady_rates_are_known_after_twenty_seconds(context: &Context) {
    let words = "-t2 -c4 -R 100 --warmup 1s --until rate±10% --notes";
    let (output, document) = simulated_document(context.onrush().words(words), "latency_us = 5000.0");
    assert_eq!(output.code, 0, "{output:?}");
    let until = &document["until"];
    assert!(until["reached"] == true && number(until, "/at_s") == 20.0, "{until}");
    assert_eq!(until["terms"][0]["term"], "rate±10%");
    assert!(number(until, "/terms/0/half_width") == 0.0 && number(until, "/terms/0/batches") == 20.0, "{until}");
    // A second is over when every thread has reported a part of the next one, a tenth of a second later. Each thread
    // notices the end with its next response, every 20 ms.
    let duration_s = number(&document, "/duration_s");
    assert!((20.1..20.13).contains(&duration_s), "{duration_s} s");
    assert_eq!((number(&document, "/plan/duration_s"), &document["plan"]["until"]), (300.0, &"rate±10%".into()));
    let note = "note: the run ended after 20.00s because its figures were precise enough (95 % confidence): rate to \
                ±0.00 %\n";
    assert_eq!(output.stderr, note);
}

fn rare_percentiles_stay_unknown(context: &Context) {
    // A rate that is too low would be refused beforehand.
    let words = "-t1 -c1 -d 20s --until rate+-50%,p99.9+-2%";
    let (output, document) = simulated_document(context.onrush().words(words), "latency_us = 10000.0");
    assert_eq!(output.code, 0, "{output:?}");
    let until = &document["until"];
    assert!(until["reached"] == false && number(until, "/at_s") == 20.0, "{until}");
    assert!(until["terms"][0].get("half_width").is_some() && until["terms"][1].get("half_width").is_none(), "{until}");
    assert_eq!(number(&document, "/duration_s"), 20.0);
    let note = "note: --until was not reached in 20.00s: the precision of p99.9 is unknown, because the run has fewer than 20 \
                sections of 10,000 responses; measure longer (-d)\n";
    assert_eq!(output.stderr, note);
}

/// The latency differs from second to second, uniformly distributed within ±30 %: its deviation is 30/√3, or 17.3 %.
/// After n seconds the mean is known to ±1.96 × 17.3/√n %, that is to ±5 % after 46 s and to ±2 % after 288 s.
fn varying_figures_take_the_computed_time(context: &Context) {
    let noisy = "connect_us = 0.0\nlatency_us = 0.0\n[capacity]\nworkers = 1\nservice_us = 2000.0\nnoise = 0.3";
    for (term, expected_s) in [("mean±5%", 46.0), ("mean±2%", 288.0)] {
        let onrush = context.onrush().words("-t1 -c4 -d1h --until").word(term);
        let (output, document) = simulated_document(onrush, noisy);
        assert_eq!((output.code, &document["until"]["reached"]), (0, &true.into()), "{term}: {output:?}");
        // Its deviation is estimated from twenty batches, with an error of up to a half in total.
        let at_s = number(&document, "/until/at_s");
        assert!((expected_s / 2.0..expected_s * 2.0).contains(&at_s), "{term} after {at_s} s");
    }
}

/// No precision is known before twenty seconds have passed.
fn real_runs_end_with_known_figures(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("until"));
    // A busy machine delays some of the requests, but would have to stop for half of the time to make the rate
    // doubtful.
    let words = "-t2 -c4 -R 100 --until rate±50%";
    let (output, document) = document(context.onrush().words(words).word(url(&server, "/delay/5")), &scratch);
    assert_eq!((output.code, &document["until"]["reached"]), (0, &true.into()), "{output:?}");
    assert!(number(&document, "/until/at_s") <= number(&document, "/duration_s"), "{document}");
}
