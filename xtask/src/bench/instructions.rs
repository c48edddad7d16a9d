//! Counts the instructions of operations of `proto` and `stats` with valgrind, and compares them with the reference.
//!
//! The reference is in `benches/instructions.txt` and holds for the compiler that it names.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use super::counter::Counter;
use super::programs::Programs;

/// A count may grow by this share before it counts as a regression.
const TOLERANCE: f64 = 0.05;
/// How often each operation is repeated in two runs; their difference leaves out what starting costs.
const TIMES: [u32; 2] = [100, 1_100];
/// The reference, from the root of the repository.
const REFERENCE: &str = "benches/instructions.txt";

/// One operation and its instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The operation.
    pub operation: String,
    /// How many instructions it takes.
    pub instructions: f64,
    /// How many it took in the reference.
    pub reference: Option<f64>,
}

impl Count {
    /// How it compares with the reference, in words.
    pub fn verdict(&self) -> &'static str {
        match self.growth() {
            None => "no reference",
            Some(growth) if growth > TOLERANCE => "REGRESSION",
            Some(growth) if growth < -TOLERANCE => "better; update the reference",
            Some(_) => "as before",
        }
    }

    /// Whether it exceeds the tolerance.
    pub fn is_regression(&self) -> bool {
        self.growth().is_some_and(|growth| growth > TOLERANCE)
    }

    /// The share by which it has grown.
    fn growth(&self) -> Option<f64> {
        self.reference.map(|reference| self.instructions / reference - 1.0)
    }
}

/// Counts every operation. The inner error says why nothing can be counted.
///
/// # Errors
/// A program that cannot be started.
pub fn count(programs: &Programs, directory: &Path) -> io::Result<Result<Vec<Count>, String>> {
    if let Some(why) = Counter::Instructions.missing() {
        return Ok(Err(why));
    }
    let program = programs.own("instructions");
    let list = Command::new(&program).output()?.stdout;
    let reference = fs::read_to_string(crate::root().join(REFERENCE)).unwrap_or_default();
    let mut counts = Vec::new();
    for operation in String::from_utf8_lossy(&list).lines() {
        let run = |times: u32| Counter::Instructions.count(&program, &[operation, &times.to_string()], directory);
        let [few, many] = TIMES.map(run);
        let instructions = (many? - few?) / f64::from(TIMES[1] - TIMES[0]);
        counts.push(Count { operation: operation.to_owned(), instructions, reference: known(&reference, operation) });
    }
    Ok(Ok(counts))
}

/// Makes the counts the reference for later ones.
///
/// # Errors
/// A file that cannot be written.
pub fn save(counts: &mut [Count], compiler: &str) -> io::Result<()> {
    let lines = counts.iter().map(|count| format!("{} {:.1}\n", count.operation, count.instructions));
    let heading = format!(
        "# Instructions per operation, as valgrind counts them; {compiler}. Updated by make bench ROWS=instructions SAVE=1.\n"
    );
    fs::write(crate::root().join(REFERENCE), heading + &lines.collect::<String>())?;
    counts.iter_mut().for_each(|count| count.reference = Some(count.instructions));
    Ok(())
}

/// An operation's number in the reference.
fn known(reference: &str, operation: &str) -> Option<f64> {
    reference.lines().find_map(|line| line.strip_prefix(operation)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_looked_up_by_the_whole_name() {
        let reference = "# of before\nexchange-small 900.5\nexchange 1.0\n";
        assert_eq!(known(reference, "exchange"), Some(1.0));
        assert_eq!(known(reference, "exchange-small"), Some(900.5));
        assert_eq!(known(reference, "record"), None);
    }

    #[test]
    fn only_more_than_the_tolerance_is_a_regression() {
        for (instructions, reference, verdict) in [
            (104.9, Some(100.0), "as before"),
            (105.1, Some(100.0), "REGRESSION"),
            (94.0, Some(100.0), "better; update the reference"),
            (94.0, None, "no reference"),
        ] {
            let count = Count { operation: "a".to_owned(), instructions, reference };
            assert_eq!(count.verdict(), verdict);
            assert_eq!(count.is_regression(), verdict == "REGRESSION");
        }
    }
}
