//! Exit codes and their order of precedence. docs/command-line.md has a table of them.

/// An option, URL or file is bad, a host name cannot be resolved, or a script or a write failed; in compatible runs,
/// any failure.
pub const EXIT_WRONG: u8 = 1;
/// The run could not start.
pub const EXIT_NOT_STARTED: u8 = 2;
/// A gate is broken (`--fail-if`), or no load of a search holds.
pub const EXIT_BROKEN: u8 = 3;
/// onrush itself limited the run (`--strict`).
pub const EXIT_OUR_FAULT: u8 = 4;
/// The run ended without a single response, or its target was unreachable.
pub const EXIT_NOTHING_COMPLETED: u8 = 5;
/// The result is inconclusive for a reason other than a signal.
pub const EXIT_INCONCLUSIVE: u8 = 6;
/// A first signal left a question undecided, or a second signal quit.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Codes of runs and experiments, in descending order of precedence.
pub const ORDER: [u8; 7] = [
    EXIT_WRONG,
    EXIT_NOT_STARTED,
    EXIT_NOTHING_COMPLETED,
    EXIT_BROKEN,
    EXIT_OUR_FAULT,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
];

/// Exit codes of searches. A load that onrush could not generate is not a failed objective, so that code comes first.
pub const SEARCH_ORDER: [u8; 7] = [
    EXIT_WRONG,
    EXIT_NOT_STARTED,
    EXIT_NOTHING_COMPLETED,
    EXIT_OUR_FAULT,
    EXIT_BROKEN,
    EXIT_INCONCLUSIVE,
    EXIT_INTERRUPTED,
];

/// The first code in `order` that applies, according to `codes`; 0 if none does.
pub fn highest_precedence(order: [u8; 7], codes: &[(u8, bool)]) -> u8 {
    let applies = |code: &u8| codes.iter().any(|(known, applies)| known == code && *applies);
    order.into_iter().find(applies).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_precedence_code_counts() {
        let all = |codes: &[u8]| codes.iter().map(|code| (*code, true)).collect::<Vec<_>>();
        assert_eq!(highest_precedence(ORDER, &[]), 0);
        assert_eq!(highest_precedence(ORDER, &all(&[130, 4, 3])), 3);
        assert_eq!(highest_precedence(SEARCH_ORDER, &all(&[130, 4, 3])), 4);
        assert_eq!(highest_precedence(ORDER, &all(&[3, 5, 2, 1])), 1);
        assert_eq!(highest_precedence(ORDER, &[(3, false), (130, true)]), 130);
    }
}
