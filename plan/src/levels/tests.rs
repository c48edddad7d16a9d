//! Stages of connections, checked by hand and by trying every moment.

use super::*;
use crate::Random;

fn levels(stages: &[(u64, u32, u32)]) -> ConnectionLevels {
    let stage = |&(length_ns, from, to): &(u64, u32, u32)| ConnectionLevel {
        length: Duration::from_nanos(length_ns),
        from,
        to,
    };
    ConnectionLevels { stages: stages.iter().map(stage).collect(), part: Partition::WHOLE }
}

#[test]
fn connections_between_times_follow_the_ramp() {
    let s = Duration::from_secs;
    let stages =
        vec![ConnectionLevel { length: s(4), from: 2, to: 2 }, ConnectionLevel { length: s(10), from: 2, to: 12 }];
    let levels = ConnectionLevels { stages, part: Partition::WHOLE };
    for (from, until, expected) in [(0, 4, (2, 2)), (4, 14, (2, 12)), (4, 9, (2, 7)), (14, 15, (12, 12))] {
        assert_eq!(levels.connections_between(s(from), s(until)), expected, "{from} s to {until} s");
    }
}

#[test]
fn ramps_are_even_and_steps_immediate() {
    let levels = levels(&[(10, 3, 3), (100, 0, 4), (100, 4, 2), (10, 0, 0)]);
    for (at_ns, expected) in [
        (0, (3, 10)),
        (9, (3, 10)),
        (10, (0, 23)),
        (22, (0, 23)),
        (23, (1, 48)),
        (98, (4, 110)),
        (109, (4, 110)),
        (110, (4, 135)),
        (135, (3, 185)),
        (185, (2, 210)),
        (210, (0, 220)),
        (220, (0, u64::MAX)),
        (u64::MAX, (0, u64::MAX)),
    ] {
        assert_eq!(levels.connections_at(at_ns), expected, "at {at_ns}");
    }
    for (from_ns, until_ns, empty_ns) in
        [(0, 10, 0), (0, 20, 10), (12, 15, 3), (20, 110, 3), (0, 220, 23), (215, 300, 85)]
    {
        assert_eq!(levels.time_without_connections_ns(from_ns, until_ns), empty_ns, "from {from_ns} to {until_ns}");
    }
    // There are four connections from 98 to 135, and three from 73 to 185.
    for (least_ns, until_ns, most) in [
        (1, 0, 0),
        (5, 10, 3),
        (10, 10, 3),
        (11, 10, 0),
        (1, 98, 3),
        (1, 99, 4),
        (37, 200, 4),
        (38, 200, 3),
        (113, 200, 2),
    ] {
        assert_eq!(levels.most_held_for(least_ns, until_ns), most, "for {least_ns} before {until_ns}");
    }
}

#[test]
fn partitions_always_sum_to_the_whole() {
    let mut random = Random::new(5);
    for _ in 0..300 {
        let mut stage = || (1 + random.below(60), random.below(40) as u32, random.below(40) as u32);
        let whole = levels(&[stage(), stage(), stage()]);
        let (machines, threads) = (1 + random.below(3) as u32, 1 + random.below(4) as u32);
        let of_machine = |machine| (0..threads).map(move |thread| (machine, thread));
        let parts: Vec<ConnectionLevels> = (0..machines)
            .flat_map(of_machine)
            .map(|(machine, thread)| whole.share(machine, machines).share(thread, threads))
            .collect();
        let mut expected: Vec<(u32, u64)> = parts.iter().map(|part| part.connections_at(0)).collect();
        let mut totals = Vec::new();
        for at_ns in 0..200 {
            for (part, (count, change_ns)) in parts.iter().zip(&mut expected) {
                let now = part.connections_at(at_ns);
                if at_ns == *change_ns {
                    (*count, *change_ns) = now;
                }
                assert!(now == (*count, *change_ns) && *change_ns > at_ns, "{part:?} at {at_ns}: {now:?}");
            }
            let total = whole.connections_at(at_ns).0;
            assert_eq!(parts.iter().map(|part| part.connections_at(at_ns).0).sum::<u32>(), total);
            totals.push(total);
        }
        let end_ns = totals.len().min(whole.stages.iter().map(ConnectionLevel::length_ns).sum::<u64>() as usize);
        for least_ns in [1, 2, 7, 30] {
            let most = totals[..end_ns].windows(least_ns).filter_map(|there| there.iter().min()).max();
            let expected = most.copied().unwrap_or(0);
            assert_eq!(whole.most_held_for(least_ns as u64, end_ns as u64), expected, "{whole:?} for {least_ns}");
        }
    }
}

#[test]
fn extreme_stages_do_not_overflow() {
    let length_ns = TIME_MAX.as_nanos() as u64;
    let levels = levels(&[(length_ns, 0, CONNECTIONS_MAX as u32)]);
    assert_eq!(levels.connections_at(length_ns - 1).0, CONNECTIONS_MAX as u32);
    assert_eq!(levels.connections_at(length_ns / 2).0, CONNECTIONS_MAX as u32 / 2);
    assert_eq!(levels.contradiction(), None);
}
