//! Facts about the machine on which an experiment runs. Facts that cannot be read are left out.

use std::collections::BTreeMap;

use onrush_load::proc::parse_list;
use onrush_load::run::host::{self, read_small_file};
use serde::Serialize;

/// The machine on which an experiment runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabHost {
    /// Model name of the processor.
    pub cpu_model: Option<String>,
    /// Number of processors that this process may use.
    pub cpus: usize,
    /// Number of threads of the first core; more than one with simultaneous multithreading.
    pub threads_per_core: Option<usize>,
    /// Frequency governor of the first processor.
    pub governor: Option<String>,
    /// Total memory in KiB.
    pub memory_kib: Option<u64>,
    /// Name of the hypervisor or virtual machine; `yes` if all that is known is that the machine is
    /// virtual.
    pub virtualisation: Option<String>,
    /// Release of the running kernel.
    pub kernel: Option<String>,
    /// The kernel's boot id, which changes with each restart.
    pub boot: Option<String>,
    /// Soft limit on the open files of this process.
    pub open_files_soft: Option<u64>,
    /// Hard limit on open files, to which the soft one can be raised.
    pub open_files_hard: Option<u64>,
    /// Kernel settings that influence a load test, by name.
    pub sysctls: BTreeMap<String, String>,
}

impl LabHost {
    /// Reads the facts from the system.
    pub fn read() -> Self {
        let facts = host::read_host_facts();
        let memory = read_small_file("/proc/meminfo").and_then(|text| host::find_proc_field(&text, "MemTotal"));
        let siblings = read_small_file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
        Self {
            cpu_model: facts.cpu_model,
            cpus: facts.cpus,
            threads_per_core: siblings.and_then(|list| parse_list(&list)).map(|threads| threads.len()),
            governor: read_small_file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_kib: memory.and_then(|memory| memory.strip_suffix(" kB")?.parse().ok()),
            virtualisation: virtualisation(),
            kernel: facts.kernel,
            boot: read_small_file("/proc/sys/kernel/random/boot_id"),
            open_files_soft: facts.open_files_soft,
            open_files_hard: facts.open_files_hard,
            sysctls: facts.sysctls.into_iter().collect(),
        }
    }
}

fn virtualisation() -> Option<String> {
    let is_virtual = host::read_cpu_field("flags")?.split(' ').any(|flag| flag == "hypervisor");
    let product = read_small_file("/sys/class/dmi/id/product_name").or_else(|| read_small_file("/sys/hypervisor/type"));
    is_virtual.then(|| product.filter(|name| !name.is_empty()).unwrap_or_else(|| "yes".to_owned()))
}
