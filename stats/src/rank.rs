//! The rank of a percentile among values in ascending order.

/// Number of parts in one per cent. A percentage is rounded to whole parts; everything after that is exact.
const PARTS: f64 = 1e12;

/// Rank of a percentile, as defined by wrk: floor(`p` / 100 · count) + 1, for a percentage of up to twelve decimals; at
/// most one more than `count`.
///
/// In floating point the product of 99.99 % and 10,000 is a little less than 9,999 and the rank one too low. wrk's rank
/// is right, because its 80 bits are rounded to 64 before the fraction is cut off.
pub fn rank(p: f64, count: u64) -> u64 {
    let parts = ((p * PARTS).round() as u128).min((100.0 * PARTS) as u128);
    (parts * u128::from(count) / (100.0 * PARTS) as u128) as u64 + 1
}

/// HdrHistogram's rank: floor(`p` / 100 · count + 0.5), at least 1, for a percentage of up to 100.
pub fn hdr_rank(p: f64, count: u64) -> u64 {
    ((p.min(100.0) / 100.0 * count as f64 + 0.5) as u64).max(1)
}

/// Number of values needed at or above a percentile that is shown without being requested. With fewer, the percentile
/// is decided by a few slow responses, and in the extreme case it is the maximum.
pub const BEYOND_MIN: u64 = 10;

/// True if enough of `count` values lie at or above the percentile: 1,000 values are enough for 99 %, whose largest 1 %
/// are ten, and 10,000 for 99.9 %. The percentile itself, at [`rank`], is the smallest of these.
pub fn has_enough_beyond(p: f64, count: u64) -> bool {
    let all = (100.0 * PARTS) as u128;
    let beyond = all.saturating_sub((p * PARTS).round() as u128);
    beyond * u128::from(count) >= u128::from(BEYOND_MIN) * all
}

#[cfg(test)]
mod tests {
    use onrush_plan::Random;

    use super::*;

    #[test]
    fn whole_products_are_not_rounded_down() {
        let table = [
            (99.99, 10_000, 10_000),
            (99.9, 1_000, 1_000),
            (99.9, 5_000, 4_996),
            (55.0, 100, 56),
            (29.0, 100, 30),
            (7.0, 100, 8),
            (0.000_001, 100_000_000, 2),
            (100.0, 7, 8),
            (100.0, u64::MAX / 2, u64::MAX / 2 + 1),
            (0.0, 7, 1),
            (50.0, 0, 1),
            // Percentages used only by scripts.
            (-3.0, 7, 1),
            (f64::NAN, 7, 1),
            (1e300, 7, 8),
        ];
        for (p, count, expected) in table {
            assert_eq!(rank(p, count), expected, "{p} % of {count}");
        }
    }

    #[test]
    fn ranks_match_exact_arithmetic() {
        let mut random = Random::new(1);
        for _ in 0..200_000 {
            let (millionths, bits) = (random.below(100_000_001), random.below(41));
            let count = random.below(1 << bits);
            let expected = (u128::from(millionths) * u128::from(count) / 100_000_000) as u64 + 1;
            assert_eq!(rank(millionths as f64 / 1e6, count), expected, "{millionths} of {count}");
        }
        // The rare cases in which the product is whole.
        for tenths in 0..=1_000 {
            for count in (1_000..=20_000).step_by(1_000) {
                assert_eq!(rank(tenths as f64 / 10.0, count), tenths * count / 1_000 + 1, "{tenths} of {count}");
            }
        }
    }

    #[test]
    fn percentiles_need_ten_values_above() {
        for (p, enough) in
            [(0.0, 10), (50.0, 20), (75.0, 40), (90.0, 100), (99.0, 1_000), (99.9, 10_000), (99.999, 1_000_000)]
        {
            assert_eq!([enough - 1, enough].map(|count| has_enough_beyond(p, count)), [false, true], "{p} %");
            assert_eq!(enough - rank(p, enough) + 1, BEYOND_MIN, "{p} %");
        }
        assert!(!has_enough_beyond(100.0, u64::MAX) && !has_enough_beyond(50.0, 0));
    }
}
