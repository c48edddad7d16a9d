//! `make simulate`: random runs for any length of time. The runs are a test of the library; this sets the length and
//! the first seed.

use std::io;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The test that draws the runs.
const TEST: &str = "run::tests::random::whatever_happens_in_a_run_its_figures_hold";

/// Runs until the time is over or a run fails.
///
/// # Errors
/// A process that cannot be started, or an argument that cannot be read.
pub fn run(words: &[&str]) -> io::Result<ExitCode> {
    let (seconds, seed) = options(words).map_err(io::Error::other)?;
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut command = crate::cargo();
    command.args(["test", "--package", "onrush", "--lib", "--", "--exact", TEST, "--show-output"]);
    // Different on different days, and short enough to be typed.
    command.env("RUST_BACKTRACE", "0").env("SIMULATE_SECONDS", seconds.to_string());
    command.env("SIMULATE_SEED", seed.unwrap_or_else(|| now() * 1_000).to_string());
    Ok(if command.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads `SECONDS=60` and `SEED=7`; an empty value is none.
fn options(words: &[&str]) -> Result<(u64, Option<u64>), String> {
    let (mut seconds, mut seed) = (60, None);
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {name} is a whole number"));
        match name {
            _ if value.is_empty() => {}
            "SECONDS" => seconds = number()?,
            "SEED" => seed = Some(number()?),
            _ => return Err(format!("{word}: there are SECONDS and SEED")),
        }
    }
    Ok((seconds, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_seed_may_be_left_out() {
        assert_eq!(options(&[]), Ok((60, None)));
        assert_eq!(options(&["SECONDS=5", "SEED="]), Ok((5, None)));
        assert_eq!(options(&["SEED=9", "SECONDS="]), Ok((60, Some(9))));
        assert!(options(&["SEED=x"]).is_err() && options(&["ROUNDS=1"]).is_err());
    }
}
