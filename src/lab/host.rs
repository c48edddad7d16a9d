//! Facts about the machine that an experiment runs on. What cannot be read is left out.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::run::host;

/// The machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Host {
    /// The processor's model name.
    pub cpu_model: Option<String>,
    /// Number of processors that this process may use.
    pub cpus: usize,
    /// Threads of the first core: more than one with simultaneous multithreading.
    pub threads_per_core: Option<usize>,
    /// The frequency governor of the first processor.
    pub governor: Option<String>,
    /// Total memory, in KiB.
    pub memory_kib: Option<u64>,
    /// The hypervisor or product name of a virtual machine; `yes` if only its being virtual is known.
    pub virtualisation: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The kernel's identifier of the boot.
    pub boot: Option<String>,
    /// The soft limit on open files.
    pub open_files_soft: Option<u64>,
    /// The hard limit on open files, to which the soft one can be raised.
    pub open_files_hard: Option<u64>,
    /// Settings that affect what a load test measures.
    pub sysctls: BTreeMap<String, String>,
}

impl Host {
    /// Reads the facts.
    pub fn read() -> Self {
        let facts = host::facts();
        let memory = file("/proc/meminfo").and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        });
        let siblings = file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
        Self {
            cpu_model: facts.cpu_model,
            cpus: facts.cpus,
            threads_per_core: siblings.map(|list| members(&list)),
            governor: file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_kib: memory,
            virtualisation: virtualisation(),
            kernel: facts.kernel,
            boot: file("/proc/sys/kernel/random/boot_id"),
            open_files_soft: facts.open_files_soft,
            open_files_hard: facts.open_files_hard,
            sysctls: facts.sysctls.into_iter().collect(),
        }
    }
}

fn virtualisation() -> Option<String> {
    let is_virtual =
        file("/proc/cpuinfo")?.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let product = file("/sys/class/dmi/id/product_name").or_else(|| file("/sys/hypervisor/type"));
    is_virtual.then(|| product.filter(|name| !name.is_empty()).unwrap_or_else(|| "yes".to_owned()))
}

fn file(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// How many numbers are in a list as the kernel writes it, such as `0-1,4`.
fn members(list: &str) -> usize {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(last.parse::<usize>().ok()?.checked_sub(first.parse().ok()?)? + 1)
    };
    list.split(',').filter_map(range).sum()
}
