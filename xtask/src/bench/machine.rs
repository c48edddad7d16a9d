//! Describes the measuring machine, and picks a processor each for generator and target.

use std::fs;
use std::io;
use std::process::Command;

/// The machine that measures, and the processors to use on it.
#[derive(Debug)]
pub struct BenchMachine {
    /// One line: processor, number of processors, kernel, compiler, load.
    pub about: String,
    /// The processor of the generator in pinned rows.
    pub generator: String,
    /// The processor of the target in pinned rows.
    pub target: String,
    /// All usable processors, for unpinned rows.
    pub all: String,
}

impl BenchMachine {
    /// Reads the properties of the machine.
    ///
    /// # Errors
    ///
    /// If the machine has only one processor, or its properties cannot be read.
    pub fn inspect() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        let allowed = field(&status, "Cpus_allowed_list").map(list).unwrap_or_default();
        let Some(&first) = allowed.first() else {
            return Err(io::Error::other("the processors of this machine cannot be read"));
        };
        let siblings = fs::read_to_string(format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list"));
        let Some(second) = second(&allowed, &list(&siblings.unwrap_or_default())) else {
            return Err(io::Error::other("generator and target need a processor each, and there is only one"));
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let model = field(&cpuinfo, "model name").unwrap_or("unknown processor");
        let place = if cpuinfo.contains(" hypervisor") { ", virtual" } else { "" };
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default();
        let count = allowed.len();
        let about = format!(
            "{model}{place}, {count} processors, Linux {}, {}, load average {load} before the start",
            kernel.trim(),
            rustc()?
        );
        let all: Vec<String> = allowed.iter().map(u32::to_string).collect();
        Ok(Self { about, generator: first.to_string(), target: second.to_string(), all: all.join(",") })
    }
}

/// Version of the compiler, such as `rustc 1.95.0`.
fn rustc() -> io::Result<String> {
    let output = Command::new("rustc").arg("--version").output()?;
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(version.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

/// Value of the first line `name : value` with this name.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(field, _)| field.trim() == name).map(|(_, value)| value.trim()).next()
}

/// The numbers in one of the kernel's lists, such as `0-3,8`.
fn list(text: &str) -> Vec<u32> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// A processor on a different core than the first allowed one; if there is none, any other processor.
fn second(allowed: &[u32], siblings: &[u32]) -> Option<u32> {
    let others = &allowed[1..];
    others.iter().find(|cpu| !siblings.contains(cpu)).or(others.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_and_target_use_different_cores() {
        assert_eq!(second(&[0, 1, 2, 3], &[0, 1]), Some(2));
        assert_eq!(second(&[0, 1, 2, 3], &[0, 2]), Some(1));
        assert_eq!(second(&[0, 1], &[0, 1]), Some(1));
        assert_eq!(second(&[3], &[3]), None);
    }

    #[test]
    fn kernel_lists_and_fields_are_read() {
        assert_eq!(list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(list(""), [] as [u32; 0]);
        assert_eq!(field("a: 1\nmodel name\t: Fast CPU\nmodel name\t: x\n", "model name"), Some("Fast CPU"));
    }
}
