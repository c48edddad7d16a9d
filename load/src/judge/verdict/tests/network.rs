//! Verdicts on the network.

use super::*;

#[test]
fn few_lost_segments_decide_nothing() {
    let lost = |lost| {
        let of = |evidence: &mut Evidence| {
            evidence.network = Some(Network { readings: 9, retransmitted: 0.02, lost, ..Network::default() });
        };
        verdict_after(of).limited_by
    };
    assert_eq!([Some(10), None].map(lost), [LimitedBy::Network; 2], "older results do not say how many");
    assert_eq!(lost(Some(9)), LimitedBy::Unclear);
}

#[test]
fn reordered_segments_cost_nothing() {
    let ruled = |[retransmitted, needless]: [f64; 2], target: Option<Target>| {
        let network =
            Network { readings: 9, retransmitted, needless: Some(needless), lost: Some(40), ..Network::default() };
        let on_this_machine = target.is_some();
        let verdict = verdict_after(|evidence| {
            evidence.target = target.map(|target| Target { network: Some(network), ..target });
            let disordered =
                Network { out_of_order: Some(0.012), out_of_order_segments: Some(60), ..Network::default() };
            evidence.network = Some(if on_this_machine { disordered } else { network });
        });
        (verdict.limited_by, verdict.to_string())
    };
    // Processors that handle both ends of a connection on one machine reorder large responses.
    assert_eq!(ruled([0.0124, 0.0121], Some(visible_target())).0, LimitedBy::Unclear);
    assert_eq!(ruled([0.0124, 0.0121], None).0, LimitedBy::Unclear, "the peer had received them");
    let (_, lost) = ruled([0.0324, 0.0124], Some(visible_target()));
    let expected = "the network is the limit: 2.0 % of the segments were lost; find out what drops them on this machine (tc -s \
                    qdisc, nstat)";
    assert_eq!(lost, expected);
    let from_afar = verdict_after(|evidence| {
        let (out_of_order, out_of_order_segments) = (Some(0.012), Some(60));
        evidence.network = Some(Network { readings: 9, out_of_order, out_of_order_segments, ..Network::default() });
    });
    assert_eq!(
        from_afar.to_string(),
        "the network is the limit: 1.2 % of the segments arrived out of order: some were lost, or overtaken by others; check the \
         links between the two machines (ip -s link, tc -s qdisc)"
    );
}
