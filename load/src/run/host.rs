//! Limits of this machine (file descriptors, local ports) and the machine facts included in a result.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread;

use onrush_engine::backend::PortRing;
use onrush_engine::backend::ports::{self, Unchosen};
use onrush_plan::limits::SCRIPT_STACK_BYTES;
use onrush_plan::load::Load;
use onrush_plan::{Io, Plan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::resolve::Addresses;

/// File descriptors a run needs apart from connections and threads: standard streams, name service, files.
const SPARE: u64 = 32;

/// File descriptors per thread: its ring or epoll instance, and its [`SCHEDSTAT`].
const PER_THREAD: u64 = 2;

/// Scheduler statistics of the thread that opens this file.
pub const SCHEDSTAT: &str = "/proc/thread-self/schedstat";

/// The machine allows fewer descriptors than a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// Number of descriptors the run needs.
    pub needed: u64,
    /// The hard limit, which only an administrator can raise.
    pub hard: u64,
}

/// The oldest kernel on which every part is tested before a release.
const OLDEST: (u32, u32) = (5, 10);

/// End of an error message, to append to the reason, if this kernel release is older than supported; `None` also if the
/// release cannot be parsed.
pub fn kernel_too_old_message(release: &str) -> Option<String> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    let (needed_major, needed_minor) = OLDEST;
    let words = || format!("; this is Linux {major}.{minor}, and onrush needs {needed_major}.{needed_minor} or newer");
    ((major, minor) < OLDEST).then(words)
}

/// The remedy for too few descriptors, to append to the reason in a message.
pub fn descriptor_remedy(needed: u64) -> String {
    format!("; the run needs {needed} open files: {}", open_files_command(needed))
}

/// Shell command that raises the open-file limit to `needed`.
pub fn open_files_command(needed: u64) -> String {
    format!("'sudo prlimit --pid $$ --nofile={needed}' raises the limit")
}

/// Number of descriptors needed by a run with this many connections and threads.
pub fn descriptors_needed(connections: u32, threads: u32) -> u64 {
    u64::from(connections) + PER_THREAD * u64::from(threads) + SPARE
}

/// The shortage, if the hard limit on open files is too low for a run.
pub fn descriptor_shortage(plan: &Plan) -> Option<Shortage> {
    let (needed, hard) = (descriptors_needed_by_plan(plan), getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX));
    (hard < needed).then_some(Shortage { needed, hard })
}

/// Raises the soft open-file limit to the run's need, up to the hard limit. Returns the shortage if that is not enough;
/// the run then continues with fewer connections.
pub fn raise_descriptor_limit(plan: &Plan) -> Option<Shortage> {
    raise_descriptor_limit_to(descriptors_needed_by_plan(plan));
    descriptor_shortage(plan)
}

/// Raises the soft open-file limit to `needed`, as far as the hard limit allows. Returns the soft limit if it is still
/// lower.
pub fn raise_descriptor_limit_to(needed: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        let most = limit.maximum.unwrap_or(u64::MAX);
        // If the kernel refuses, later connects fail with their own error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(needed.min(most)), maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.filter(|soft| *soft < needed)
}

/// Maximum number of a thread's connections that wait for their last responses while replacements are already open.
pub(super) const STAND_INS_MAX: u32 = 64;

/// Number of descriptors a plan needs; zero in simulations.
pub fn descriptors_needed_by_plan(plan: &Plan) -> u64 {
    if matches!(plan.io, Io::Sim(_)) { 0 } else { descriptors_needed(useful_connections(plan), plan.load.threads) }
}

/// Number of a plan's connections that have a request to send: at most one per request, at least one per thread.
fn useful_connections(plan: &Plan) -> u32 {
    let Load { threads, max_inflight, .. } = plan.load;
    let stand_ins = if plan.http.may_be_http2() { max_inflight.min(STAND_INS_MAX * threads) } else { 0 };
    let most = u64::from(max_inflight + stand_ins);
    plan.stop.requests.map_or(most, |requests| requests.min(most)).max(u64::from(threads)) as u32
}

/// Number of connections that fit under the open-file limit, if they are certainly too few for the whole run. `None`
/// without a shortage, for imitated tools (wrk keeps trying to open all connections), and for a changing number of
/// connections, which may reach its maximum only briefly.
pub fn connections_within_limit(plan: &Plan, shortage: Option<Shortage>) -> Option<u32> {
    let load = &plan.load;
    let is_constant = !load.may_grow() && plan.levels.is_none() && !plan.dialect.is_compat();
    let Shortage { hard, .. } = shortage.filter(|_| is_constant)?;
    let left = hard.saturating_sub(descriptors_needed(0, load.threads));
    Some(u32::try_from(left).unwrap_or(u32::MAX).clamp(load.threads, load.connections))
}

/// The address-space limit leaves too little for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cramped {
    /// Number of threads in the run.
    pub threads: u32,
    /// Number of connections that the run would open.
    pub connections: u32,
    /// Address space needed, in MiB.
    pub needed_mib: u64,
    /// Address space available under the limit, in MiB.
    pub left_mib: u64,
}

/// Checks that the address-space limit leaves enough for a run, because a thread allocates some of its memory in a way
/// that cannot fail gracefully. `has_script`: true if the program has loaded a script, even for another run.
///
/// # Errors
///
/// Fails if too little is left, with the memory needed and the memory left. Never fails without a limit.
pub fn check_address_space(plan: &Plan, has_script: bool) -> Result<(), Cramped> {
    let Some(limit) = getrlimit(Resource::As).current else { return Ok(()) };
    let size = read_small_file("/proc/self/status").and_then(|status| find_proc_field(&status, "VmSize"));
    let kib = size.and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
    let left = limit.saturating_sub(kib.unwrap_or(0) * 1024);
    let connections =
        connections_within_limit(plan, descriptor_shortage(plan)).unwrap_or(u32::MAX).min(useful_connections(plan));
    let needed = address_space(plan, connections, has_script);
    let (needed_mib, left_mib) = (needed.div_ceil(MIB), left / MIB);
    let cramped = Cramped { threads: plan.load.threads, connections, needed_mib, left_mib };
    if left < needed { Err(cramped) } else { Ok(()) }
}

/// Upper estimate of the address space of a run with this many connections, in bytes.
fn address_space(plan: &Plan, connections: u32, has_script: bool) -> u64 {
    let large = SCRIPT_STACK_BYTES as u64;
    let stack = if plan.script.is_some() { large } else { 2 * MIB };
    // The script is loaded in its own thread, and called from the reporting thread.
    let scripts = if has_script { 2 * large } else { 0 };
    let threads = u64::from(plan.load.threads) * (stack + THREAD_BYTES);
    let is_encrypted = plan.tls.is_some() && !matches!(plan.io, Io::Sim(_));
    let connection = if is_encrypted { TLS_CONNECTION_BYTES } else { CONNECTION_BYTES };
    let connections = u64::from(connections);
    let http2 = if plan.http.may_be_http2() {
        let streams = connections * u64::from(plan.http.streams.unwrap_or(1));
        let requests = plan.stop.requests.filter(|_| plan.warmup.is_zero());
        let most = plan.in_flight_max.map_or(u64::MAX, u64::from).min(requests.unwrap_or(u64::MAX));
        connections * HTTP2_CONNECTION_BYTES + streams.min(most) * STREAM_BYTES
    } else {
        0
    };
    RUN_BYTES + scripts + threads + connections * connection + http2
}

const MIB: u64 = 1024 * 1024;
/// Bytes that a run needs once: threads for signals, files and monitoring, the reserve, the results.
const RUN_BYTES: u64 = 64 * MIB;
/// Bytes per thread, in addition to its stack: receive buffers, ring, histograms, script state.
const THREAD_BYTES: u64 = 12 * MIB;
/// Bytes per connection, real or simulated: about 1 KiB measured.
const CONNECTION_BYTES: u64 = 2 * 1024;
/// Bytes per TLS connection: about 8 KiB measured with small responses, plus room for a record of up to 16 KiB.
const TLS_CONNECTION_BYTES: u64 = 32 * 1024;
/// Additional bytes per connection that may use HTTP/2: about 2 KiB measured ...
const HTTP2_CONNECTION_BYTES: u64 = 4 * 1024;
/// ... and about 350 bytes for each stream with a request in flight.
const STREAM_BYTES: u64 = 512;

/// Facts about the machine for readers of a result. Facts that cannot be read are omitted.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// The identifier of this boot of the machine.
    pub boot_id: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processor model.
    pub cpu_model: Option<String>,
    /// Number of processors available to this process.
    pub cpus: usize,
    /// Soft open-file limit.
    pub open_files_soft: Option<u64>,
    /// Hard open-file limit.
    pub open_files_hard: Option<u64>,
    /// Kernel settings and their values.
    pub sysctls: Vec<(String, String)>,
}

/// Kernel settings that influence a load test.
const SYSCTLS: [&str; 17] = [
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
];

/// Reads the facts of this machine.
pub fn read_host_facts() -> HostFacts {
    let limit = getrlimit(Resource::Nofile);
    let named = |name: &&str| Some(((*name).to_owned(), read_sysctl(name)?));
    HostFacts {
        boot_id: read_small_file("/proc/sys/kernel/random/boot_id"),
        kernel: read_small_file("/proc/sys/kernel/osrelease"),
        cpu_model: read_cpu_field("model name"),
        cpus: thread::available_parallelism().map_or(1, |cpus| cpus.get()),
        open_files_soft: limit.current,
        open_files_hard: limit.maximum,
        sysctls: SYSCTLS.iter().filter_map(named).collect(),
    }
}

/// Value of a kernel setting, with its parts separated by single spaces; `None` if it cannot be read.
pub fn read_sysctl(name: &str) -> Option<String> {
    let value = read_small_file(&format!("/proc/sys/{}", name.replace('.', "/")))?;
    Some(value.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Contents of a small file, trimmed; `None` if the file cannot be read.
pub fn read_small_file(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Value under this name in `/proc/cpuinfo` for the first processor; the names depend on the architecture.
pub fn read_cpu_field(name: &str) -> Option<String> {
    find_proc_field(&read_small_file("/proc/cpuinfo")?, name)
}

/// The value of the first line `name : value` with this name; `None` if there is none.
pub fn find_proc_field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim_end() == name).map(|(_, value)| value.trim().to_owned())
}

/// Opens the calling thread's [`SCHEDSTAT`]; `None` if the kernel has none or no descriptor is free.
pub fn open_schedstat(path: &str) -> Option<OwnedFd> {
    fs::File::open(path).ok().map(OwnedFd::from)
}

/// Local ports of this machine. Two connections from one address to the same address and port need different local
/// ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Number of ports usable between a local and a remote address.
    pub usable: u64,
    /// Number of connections, to any peer, that this machine closed first: each blocks its port for a minute
    /// (TIME_WAIT).
    pub time_wait: u64,
}

impl Ports {
    /// Reads the counts from the kernel; `None` if they are unavailable.
    pub fn read() -> Option<Self> {
        let sockets = fs::read_to_string("/proc/net/sockstat").ok()?;
        Some(Self { usable: ports::usable_ports()?.len() as u64, time_wait: parse_time_wait(&sockets)? })
    }
}

/// The number after `tw` in the TCP line.
fn parse_time_wait(sockets: &str) -> Option<u64> {
    let line = sockets.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    line.split_whitespace().skip_while(|word| *word != "tw").nth(1)?.parse().ok()
}

/// Reason why the kernel has to choose the local ports of a run; `None` if the run chooses them, or needs none.
pub fn unchosen_ports_reason(plan: &Plan) -> Option<Unchosen> {
    let has_ports = plan.connect.unix.is_none() && !matches!(plan.io, Io::Sim(_));
    PortRing::from_system_settings().err().filter(|_| has_ports)
}

/// Number of local ports available to a plan, if lower than its number of connections. `None` also if `ports` is
/// unknown, or if the plan needs no ports.
pub fn port_shortage(plan: &Plan, addresses: &Addresses, ports: Option<Ports>) -> Option<u64> {
    let pairs = addresses.0.len() as u64 * plan.connect.sources.map_or(1, |sources| u64::from(sources.count()));
    let there_are = ports?.usable * pairs;
    let takes_ports = plan.connect.unix.is_none() && !matches!(plan.io, Io::Sim(_));
    (takes_ports && there_are < u64::from(plan.load.connections)).then_some(there_are)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onrush_plan::Dialect;
    use onrush_plan::http::HttpVersion;

    use super::*;
    use crate::fixtures::plan;

    #[test]
    fn old_kernels_are_named_with_the_minimum() {
        for (release, expected) in [
            ("4.19.0-26-amd64", Some("; this is Linux 4.19, and onrush needs 5.10 or newer")),
            ("5.4.0", Some("; this is Linux 5.4, and onrush needs 5.10 or newer")),
            ("5.10.0-32-cloud-amd64", None),
            ("6.1", None),
            ("unknown", None),
        ] {
            assert_eq!(kernel_too_old_message(release).as_deref(), expected, "{release}");
        }
    }

    #[test]
    fn streams_need_space_only_for_requests() {
        let of = |version: HttpVersion, change: fn(&mut Plan)| {
            let mut plan = plan(Dialect::Native, "http://h/", 10, 1, 10);
            (plan.http.versions, plan.http.streams) = (vec![version], Some(100));
            change(&mut plan);
            address_space(&plan, 10, false)
        };
        let without = of(HttpVersion::Http11, |_| ());
        let streams = |change| of(HttpVersion::Http2, change) - without - 10 * HTTP2_CONNECTION_BYTES;
        assert_eq!(streams(|_| ()), 1_000 * STREAM_BYTES);
        assert_eq!(streams(|plan| plan.in_flight_max = Some(300)), 300 * STREAM_BYTES);
        assert_eq!(streams(|plan| plan.stop.requests = Some(7)), 7 * STREAM_BYTES);
        let warmed_up = |plan: &mut Plan| {
            (plan.stop.requests, plan.warmup) = (Some(7), Duration::from_secs(1));
        };
        assert_eq!(streams(warmed_up), 1_000 * STREAM_BYTES);
    }

    #[test]
    fn host_facts_describe_this_machine() {
        let facts = read_host_facts();
        assert!(facts.kernel.is_some_and(|kernel| kernel.contains('.')));
        assert!(facts.boot_id.is_some_and(|id| id.len() == 36), "a UUID");
        assert!(facts.cpus >= 1);
        let range = facts.sysctls.iter().find(|(name, _)| name == "net.ipv4.ip_local_port_range");
        assert!(range.is_none_or(|(_, value)| value.split(' ').count() == 2), "{range:?}");
    }

    #[test]
    fn processors_are_named_if_known() {
        assert_eq!(
            find_proc_field("processor\t: 0\nmodel name\t: A B @ 1\n", "model name").as_deref(),
            Some("A B @ 1")
        );
        assert_eq!(find_proc_field("processor\t: 0\nmodel name 2\t: x\n", "model name"), None);
    }

    #[test]
    fn missing_schedstat_is_none() {
        assert!(open_schedstat(SCHEDSTAT).is_some() && open_schedstat("/proc/no-such-file").is_none());
    }

    #[test]
    fn kernel_files_are_parsed() {
        let sockets = "sockets: used 290\nTCP: inuse 5 orphan 0 tw 17 alloc 8 mem 2\nUDP: inuse 1 mem 0\n";
        assert_eq!(parse_time_wait(sockets), Some(17));
        assert!(Ports::read().is_some_and(|ports| ports.usable > 0));
    }
}
