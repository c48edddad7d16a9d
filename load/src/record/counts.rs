//! Counts by key, of statuses or error codes, in sums.

use std::collections::BTreeMap;

/// Adds counts to those with the same key.
pub(super) fn add_counts<K: Ord + Clone>(mine: &mut BTreeMap<K, u64>, theirs: &BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(key.clone()).or_default() += count;
    }
}
