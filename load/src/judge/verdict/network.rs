//! Rules on the network path to the target.

use super::ruling::{Ruling, make_ruling};
use super::words::{format_percent, format_time};
use crate::record::evidence::{Evidence, Network};
use onrush_plan::LimitedBy;

/// Losses matter if at least this share of the segments is lost ...
const LOST_MIN: f64 = 0.001;
/// ... and waits for retransmissions may account for this share of the mean latency.
const WAITED: f64 = 0.25;
/// Segments out of order matter from this share on.
const OUT_OF_ORDER: f64 = 0.01;
/// Minimum number of lost segments for any conclusion.
const LOSSES_MIN: u64 = 10;
/// Linux's shortest wait before a retransmission, in microseconds (`TCP_RTO_MIN`).
const RETRANSMISSION_US: f64 = 200_000.0;
/// Segments queue on the path if a round trip takes this many times the shortest ...
const QUEUED: f64 = 3.0;
/// ... and this share of the median latency.
const ROUND_TRIP: f64 = 0.5;
/// Delayed acknowledgements are the limit if this share of the latencies is about 40 ms ...
const DELAYED: f64 = 0.25;
/// ... and only part of a response had arrived in this share of the readings.
const HALF_ANSWERED: f64 = 0.3;

pub(super) fn rule_on_losses(evidence: &Evidence) -> Option<Ruling> {
    let mean_us = evidence.latency.as_ref()?.mean_us;
    // Older results lack the number of lost segments.
    let ends = || connection_ends(evidence).filter(|end| end.lost.is_none_or(|lost| lost >= LOSSES_MIN));
    let lost = ends().map(|end| end.retransmitted - end.needless.unwrap_or(0.0)).fold(0.0, f64::max);
    // The number of segments in a response is unknown; there is at least one.
    let lost_per_request = ends().map(|end| end.lost_per_request).fold(lost, f64::max);
    let reason = if lost >= LOST_MIN && lost_per_request * RETRANSMISSION_US >= WAITED * mean_us {
        format!("{} of the segments were lost", format_percent(lost))
    } else {
        format!(
            "{} of the segments arrived out of order: some were lost, or delayed on the way",
            format_percent(out_of_order_share(evidence)?)
        )
    };
    let advice = if evidence.target.is_some() {
        "find out what drops them on this machine (tc -s qdisc, nstat)"
    } else {
        "check the links between the two machines (ip -s link, tc -s qdisc)"
    };
    make_ruling(LimitedBy::Network, "the network is the limit", reason, advice)
}

/// The share of segments out of order, if nothing else can show losses. A target on this machine reports its own
/// retransmissions, and there a segment that only overtakes another costs nothing.
fn out_of_order_share(Evidence { network, target, .. }: &Evidence) -> Option<f64> {
    let network = network.as_ref().filter(|_| target.is_none())?;
    let are_many = network.out_of_order_segments.or(network.lost).is_none_or(|segments| segments >= LOSSES_MIN);
    network.out_of_order.filter(|share| are_many && *share >= OUT_OF_ORDER)
}

/// Both ends of the connections, if visible.
fn connection_ends(evidence: &Evidence) -> impl Iterator<Item = &Network> {
    evidence.network.iter().chain(evidence.target.as_ref().and_then(|target| target.network.as_ref()))
}

pub(super) fn rule_on_delayed_acks(Evidence { latency, network, .. }: &Evidence) -> Option<Ruling> {
    let delayed = latency.as_ref().map(|latency| latency.delayed).filter(|delayed| *delayed >= DELAYED)?;
    let half_answered = network.as_ref()?.half_answered.filter(|half_answered| *half_answered >= HALF_ANSWERED)?;
    let reason = format!(
        "{} of the latencies are about 40 ms, and in {} of the samples only part of the response had arrived, so the \
         target probably sends responses in pieces",
        format_percent(delayed),
        format_percent(half_answered)
    );
    make_ruling(
        LimitedBy::Target,
        "the target waits for delayed acknowledgements",
        reason,
        "have the target send each response in one piece, or set TCP_NODELAY",
    )
}

/// Segments that queued on the path, according to round trips.
pub(super) fn rule_on_network_queue(evidence: &Evidence) -> Option<Ruling> {
    let median_us = evidence.latency.as_ref()?.p50_us;
    let is_queued = |end: &&Network| {
        let is_long = |shortest_us: f64| end.rtt_us >= QUEUED * shortest_us;
        end.rtt_min_us.is_some_and(is_long) && end.rtt_us >= ROUND_TRIP * median_us
    };
    // Round trips at the generator's end include the target's time if it acknowledges together with its response.
    let end = evidence.target.as_ref()?.network.as_ref().filter(is_queued)?;
    let reason = format!(
        "round trips took {} on average and {} at best, while the median latency was {}",
        format_time(end.rtt_us),
        format_time(end.rtt_min_us?),
        format_time(median_us)
    );
    // Only a target on this machine shows its end of the connections.
    make_ruling(
        LimitedBy::Network,
        "the network is the limit (segments queued on the way)",
        reason,
        "check what limits the bandwidth on this machine (tc -s qdisc)",
    )
}
