//! Runs that end when their figures are known well enough.

use std::thread;

use crate::harness::{Context, Scratch, cases, target, url};
use crate::results::{document, number};

cases! {
    a_run_ends_when_its_figures_are_known_and_says_how_well;
}

/// Both at once, because each takes twenty seconds.
fn a_run_ends_when_its_figures_are_known_and_says_how_well(context: &Context) {
    thread::scope(|scope| {
        scope.spawn(|| a_steady_rate_is_known_after_twenty_seconds(context));
        a_rare_percentile_is_not_known(context);
    });
}

fn a_steady_rate_is_known_after_twenty_seconds(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("until"));
    let words = "-t2 -c4 -R 100 --warmup 1s --until rate±10% --notes";
    let (output, document) = document(context.onrush().words(words).word(url(&server, "/delay/5")), &scratch);
    assert_eq!(output.code, 0, "{output:?}");
    let until = &document["until"];
    let at_s = number(until, "/at_s");
    assert!(until["reached"] == true && (20.0..120.0).contains(&at_s), "{until}");
    assert_eq!(until["terms"][0]["term"], "rate±10%");
    assert!(number(until, "/terms/0/half_width") <= 0.1 && number(until, "/terms/0/batches") >= 20.0, "{until}");
    let duration_s = number(&document, "/duration_s");
    assert!((at_s..at_s + 10.0).contains(&duration_s), "{duration_s} s, and known after {at_s} s");
    assert_eq!((number(&document, "/plan/duration_s"), &document["plan"]["until"]), (300.0, &"rate±10%".into()));
    let note = format!(
        "note: the run ended after {at_s:.2}s, when its figures were precise enough (95 % confidence): rate is \
         known to ±"
    );
    assert!(output.stderr.contains(&note), "{output:?}");
}

fn a_rare_percentile_is_not_known(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("until-never"));
    // With a rate that is too low, it would be refused beforehand.
    let words = "-t1 -c1 -d 20s --until rate+-50%,p99.9+-2%";
    let (output, document) = document(context.onrush().words(words).word(url(&server, "/delay/10")), &scratch);
    assert_eq!(output.code, 0, "{output:?}");
    let until = &document["until"];
    assert!(until["reached"] == false && number(until, "/at_s") == 20.0, "{until}");
    assert!(until["terms"][1].get("half_width").is_none(), "{until}");
    let duration_s = number(&document, "/duration_s");
    assert!(duration_s >= 20.0);
    let note = format!("note: --until was not reached in {duration_s:.2}s: ");
    // The rate may be uncertain, too: equal waits make neighbouring batches correlate.
    let why = "the precision of p99.9 is unknown, because there were fewer than 20 batches with 10,000 responses each; measure \
               longer (-d)";
    assert!(output.stderr.contains(&note) && output.stderr.contains(why), "{output:?}");
}
