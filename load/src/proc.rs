//! Reads the files in `/proc` about a process or one of its threads.
//!
//! The crate `procfs` would replace only a few lines. It has neither `netstat` nor `sockstat`, drops the flags of Unix
//! sockets, requires every field of a file, and panics at a truncated `stat`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::RangeInclusive;

/// Length of a tick, in which the kernel reports processor time, in nanoseconds.
pub const TICK_NS: u64 = 10_000_000;

/// The contents of a `stat` file, as far as they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcStat {
    /// Name of the program or thread.
    pub name: String,
    /// True if the process or thread has not ended. A zombie has ended, but is still listed.
    pub is_alive: bool,
    /// Id of the process group.
    pub group: i32,
    /// Processor time in nanoseconds. That of a process includes its ended threads.
    pub cpu_ns: u64,
    /// Start time in nanoseconds since the machine was booted.
    pub started_ns: u64,
}

/// Numbers among the names in a directory of `/proc`, such as processes, in descending order: usually the latest
/// process comes first.
pub fn numeric_entries(directory: &str) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(directory)?;
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    Ok(numbers)
}

/// Reads the `stat` of a process (`PID`) or a thread (`PID/task/TID`); `None` if it no longer exists or cannot be read.
pub fn read_stat(path: &str) -> Option<ProcStat> {
    parse_stat(&line(&format!("/proc/{path}/stat"))?)
}

/// A thread's processor time, and the time for which it was ready to run but waited for a processor, both in
/// nanoseconds. `None` if the thread no longer exists. Without the kernel's scheduling statistics, the first is exact
/// only to [`TICK_NS`], and the second is `None`.
pub fn thread_ns(process: u32, thread: u32) -> Option<(u64, Option<u64>)> {
    let path = format!("{process}/task/{thread}");
    let exact = line(&format!("/proc/{path}/schedstat")).and_then(|text| parse_schedstat(&text));
    exact
        .map(|(cpu_ns, queued_ns)| (cpu_ns, Some(queued_ns)))
        .or_else(|| read_stat(&path).map(|stat| (stat.cpu_ns, None)))
}

/// The processors on which a thread may run, as a list such as `0-3,8`; `None` if unknown.
pub fn allowed_processors(process: u32, thread: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// The processors that are online, as a list such as `0-3,8`; `None` if unknown.
pub fn online_processors() -> Option<String> {
    line("/sys/devices/system/cpu/online").map(|list| list.trim().to_owned())
}

/// Parses a list such as `0-3,8` of processors or other numbers; `None` if it is malformed.
pub fn parse_list(list: &str) -> Option<Vec<u32>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    let ranges: Option<Vec<RangeInclusive<u32>>> = list.split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

/// The start of a file, at most 1,024 bytes, read with as few system calls as possible.
fn line(path: &str) -> Option<String> {
    let mut text = [0; 1024];
    let length = File::open(path).ok()?.read(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text[..length]).into_owned())
}

/// Parses a `stat` file. The name is in parentheses, and may itself contain parentheses.
fn parse_stat(text: &str) -> Option<ProcStat> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ns = |at: usize| Some(fields.get(at)?.parse::<u64>().ok()?.saturating_mul(TICK_NS));
    Some(ProcStat {
        name: name.to_owned(),
        is_alive: !matches!(fields[0], "Z" | "X" | "x"),
        group: fields.get(2)?.parse().ok()?,
        cpu_ns: ns(11)? + ns(12)?,
        started_ns: ns(19)?,
    })
}

/// The first two of three numbers. If the kernel keeps no statistics, all three are zero: `None`.
fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
    let [cpu_ns, queued_ns, turns] = [numbers.next()??, numbers.next()??, numbers.next()??];
    (turns > 0).then_some((cpu_ns, queued_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_names_may_contain_parentheses() {
        let text = |name: &str, state: &str| {
            format!("7 ({name}) {state} 1 6 7 0 -1 0 9 0 0 0 12 3 100 100 20 0 1 0 555 4096 1\n")
        };
        for name in ["nginx", "a b", ")) R 1 (", ""] {
            let expected = ProcStat {
                name: name.to_owned(),
                is_alive: true,
                group: 6,
                cpu_ns: 150_000_000,
                started_ns: 5_550_000_000,
            };
            assert_eq!(parse_stat(&text(name, "R")), Some(expected));
        }
        assert!(["Z", "X"].iter().all(|state| !parse_stat(&text("n", state)).unwrap().is_alive));
        for bad in ["", "7 (n", "7 (n) R", "7 (n) R 1 7 7 0 -1 0 9 0 0 0 x 3 100 100 20 0 1 0 555 4096\n"] {
            assert_eq!(parse_stat(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn processor_lists_are_parsed() {
        let table = [("0", Some(vec![0])), ("0-2,8,10-11", Some(vec![0, 1, 2, 8, 10, 11])), ("", None), ("0-x", None)];
        for (list, expected) in table {
            assert_eq!(parse_list(list), expected, "{list:?}");
        }
    }

    #[test]
    fn missing_schedstat_figures_are_none() {
        let table = [("12 34 5\n", Some((12, 34))), ("0 0 0\n", None), ("", None), ("1 2\n", None), ("x 2 3\n", None)];
        for (text, expected) in table {
            assert_eq!(parse_schedstat(text), expected, "{text:?}");
        }
    }
}
