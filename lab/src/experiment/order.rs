//! The order of an experiment's runs.

use onrush_plan::Order;
use onrush_plan::Random;

/// One run of an experiment: a point in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedTurn {
    /// Number of the point, from 0.
    pub point: usize,
    /// Number of the round, from 0.
    pub round: u32,
}

/// All runs of an experiment in order. The order depends only on the arguments: equal seeds give equal orders.
pub fn order_turns(order: Order, points: usize, rounds: u32, seed: u64) -> Vec<PlannedTurn> {
    let mut random = Random::new(seed);
    match order {
        Order::Interleaved => interleaved(points, rounds, &mut random),
        Order::Random => {
            let mut turns = sequential(points, rounds);
            shuffle(&mut turns, &mut random);
            // The first run of a point belongs to the first round, the next one to the second.
            let mut next = vec![0; points];
            for turn in &mut turns {
                turn.round = next[turn.point];
                next[turn.point] += 1;
            }
            turns
        }
        Order::Sequential => sequential(points, rounds),
    }
}

fn sequential(points: usize, rounds: u32) -> Vec<PlannedTurn> {
    (0..points).flat_map(|point| (0..rounds).map(move |round| PlannedTurn { point, round })).collect()
}

/// Rounds in which every point comes equally early on average, so that a linear drift of the machine affects all points
/// alike. Rounds come in pairs, one the reverse of the other. If their number is odd, the last three are balanced
/// together, so that the positions of each point have equal sums. With an odd number of rounds and an even number of
/// points that is impossible; then the sums differ by at most one.
fn interleaved(points: usize, rounds: u32, random: &mut Random) -> Vec<PlannedTurn> {
    let mut places = Vec::new();
    let triples = u32::from(!rounds.is_multiple_of(2) && rounds > 1);
    for _ in 0..(rounds - 3 * triples) / 2 {
        places.extend(draw_rounds([|place, _| place, |place, points| points - 1 - place], points, random));
    }
    if triples == 1 {
        places.extend(draw_rounds([|place, _| place, second_position, third_position], points, random));
    } else if rounds == 1 {
        places.extend(draw_rounds([|place, _| place], points, random));
    }
    places
        .into_iter()
        .zip(0..)
        .flat_map(|(round, number)| round.into_iter().map(move |point| PlannedTurn { point, round: number }))
        .collect()
}

/// Rounds defined by the position of each index. Points are assigned to indices at random.
fn draw_rounds<const N: usize>(
    places: [fn(usize, usize) -> usize; N],
    points: usize,
    random: &mut Random,
) -> Vec<Vec<usize>> {
    let mut names: Vec<usize> = (0..points).collect();
    shuffle(&mut names, random);
    let mut rounds: Vec<Vec<usize>> = places
        .iter()
        .map(|place| {
            let mut round = vec![0; points];
            (0..points).for_each(|index| round[place(index, points)] = names[index]);
            round
        })
        .collect();
    shuffle(&mut rounds, random);
    rounds
}

/// The position in the second of three rounds. The sum of the first position, this one and the [`third_position`] is
/// equal for all points: the three are a column of a Kotzig array (A. Kotzig, "On magic valuations of trichromatic
/// graphs", 1971).
fn second_position(place: usize, points: usize) -> usize {
    if place.is_multiple_of(2) { (points - 1) / 2 - place / 2 } else { points - 1 - place / 2 }
}

/// The position in the third of three rounds.
fn third_position(place: usize, points: usize) -> usize {
    if place.is_multiple_of(2) {
        points - 1 - place / 2
    } else {
        (points - 1) / 2 + usize::from(points.is_multiple_of(2)) - place.div_ceil(2)
    }
}

fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of each point's positions over all rounds.
    fn sums(points: usize, rounds: u32, seed: u64) -> Vec<usize> {
        let mut sums = vec![0; points];
        for (place, turn) in order_turns(Order::Interleaved, points, rounds, seed).iter().enumerate() {
            sums[turn.point] += place;
        }
        sums
    }

    #[test]
    fn every_round_has_every_point_once() {
        for (points, rounds) in [(1, 1), (2, 3), (3, 3), (7, 5), (8, 4), (10, 7)] {
            let turns = order_turns(Order::Interleaved, points, rounds, 1);
            for (round, turns) in turns.chunks(points).enumerate() {
                let mut seen: Vec<usize> = turns.iter().map(|turn| turn.point).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..points) && turns.iter().all(|turn| turn.round == round as u32));
            }
            assert_eq!(turns.len(), points * rounds as usize);
        }
    }

    #[test]
    fn points_are_equally_early_on_average() {
        for seed in 0..20 {
            for (points, rounds) in [(2, 2), (2, 10), (3, 3), (7, 3), (9, 5), (8, 4), (5, 7), (1, 3)] {
                let sums = sums(points, rounds, seed);
                assert!(sums.iter().all(|sum| *sum == sums[0]), "{points} × {rounds}: {sums:?}");
            }
            // An even number of points in an odd number of rounds cannot be balanced exactly.
            for (points, rounds) in [(2, 3), (4, 5), (8, 3)] {
                let sums = sums(points, rounds, seed);
                assert_eq!(sums.iter().max().unwrap() - sums.iter().min().unwrap(), 1, "{points} × {rounds}: {sums:?}");
            }
        }
    }

    #[test]
    fn target_drift_cancels_out() {
        // Each run is slower than the previous one by half a per cent of the first rate.
        for (points, rounds) in [(4, 10), (7, 3), (2, 4)] {
            let mut rates = vec![0.0; points];
            for (place, turn) in order_turns(Order::Interleaved, points, rounds, 7).iter().enumerate() {
                rates[turn.point] += 1000.0 - 5.0 * place as f64;
            }
            let mean = rates.iter().sum::<f64>() / points as f64;
            assert!(rates.iter().all(|rate| (rate / mean - 1.0).abs() < 0.001), "{rates:?}");
        }
    }

    #[test]
    fn orders_are_random_and_repeatable() {
        for kind in [Order::Interleaved, Order::Random] {
            assert_eq!(order_turns(kind, 8, 4, 3), order_turns(kind, 8, 4, 3));
            assert_ne!(order_turns(kind, 8, 4, 3), order_turns(kind, 8, 4, 4));
        }
        let points: Vec<usize> = order_turns(Order::Sequential, 2, 2, 1).iter().map(|turn| turn.point).collect();
        assert_eq!(points, [0, 0, 1, 1]);
        let mut rounds: Vec<u32> = order_turns(Order::Random, 1, 4, 1).iter().map(|turn| turn.round).collect();
        rounds.sort_unstable();
        assert_eq!(rounds, [0, 1, 2, 3]);
    }
}
