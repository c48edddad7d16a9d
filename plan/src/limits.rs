//! Limits on the user's values, each with its reason. Limits on a peer's data are in the protocol crate.

use std::time::Duration;

/// Largest number of connections of a run: below the 1,048,576 descriptors that Linux allows a process unless
/// `fs.nr_open` was raised, with some left for listeners, event queues and files.
pub const CONNECTIONS_MAX: u64 = 1_000_000;

/// Largest number of threads: more than the processors of any machine sold, few enough that a typing error is noticed
/// instead of exhausting the memory (each thread has its own histograms).
pub const THREADS_MAX: u64 = 1024;

/// Largest number of requests of a run: the largest count up to which every whole number is exact in JSON readers with
/// 64-bit floating point.
pub const REQUESTS_MAX: u64 = 1 << 53;

/// Highest rate in requests per second: one every nanosecond, the unit of all due times.
pub const RATE_MAX: u64 = 1_000_000_000;
/// Highest rate of Poisson arrivals in requests per second. Drawing a due time takes 20 to 70 ns, even for a request
/// that is never sent: above this rate, one thread could not draw the due times as fast as they pass.
pub const POISSON_RATE_MAX: u64 = 10_000_000;
/// Largest number of requests in one burst: a thread can send them within seconds.
pub const BURST_MAX: u64 = 1_000_000;
/// Longest slice into which sends are gathered: longer ones would be bursts, for which there is `--arrivals`.
pub const SEND_SLICE_MAX: Duration = Duration::from_secs(1);

/// Longest time for any option: a leap year. Nothing is tested for longer, and all arithmetic on nanoseconds stays far
/// below the limit of 64 bits.
pub const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Longest run with `--until`, unless `-d` sets another limit: if the metrics are not precise enough by then, the load
/// is not steady.
pub const UNTIL_CAP: Duration = Duration::from_secs(5 * 60);
/// Shortest run with `--until`: estimating the precision of a metric takes 20 batches of one second.
pub const UNTIL_MIN: Duration = Duration::from_secs(20);

/// Longest URL in bytes: no known server reads a longer one, and Linux allows an argument twice that length.
pub const URL_MAX: usize = 64 << 10;

/// Largest request body in MiB. It is kept in memory, once per thread.
pub const BODY_MAX_MIB: u64 = 1024;

/// Longest list of requests in MiB. It is kept in memory once.
pub const LIST_MAX_MIB: u64 = 1024;

/// Largest number of request names with separate results: each takes some 20 KB per thread.
pub const NAMES_MAX: usize = 200;

/// Largest number of checks of heads and bodies: each request records the failed ones in one word.
pub const CHECKS_MAX: usize = 31;

/// Largest file with values for placeholders in MiB. It is kept in memory once, along with its columns in the form
/// sent.
pub const VALUES_MAX_MIB: u64 = 1024;

/// Largest script in MiB. It is compiled once per thread; real ones are less than a hundredth of that.
pub const SCRIPT_MAX_MIB: u64 = 16;

/// Stack of a thread that calls a script, in bytes. Half of it is for calls with a checked depth, the other half for
/// the code between two checks. Unused stack costs only address space.
pub const SCRIPT_STACK_BYTES: usize = 32 << 20;

/// Largest file of certificates in MiB: a system's root certificates take less than one.
pub const PEM_MAX_MIB: u64 = 16;

/// Largest plan of an experiment in MiB: 10,000 points with long URLs take less.
pub const PLAN_MAX_MIB: u64 = 1;

/// Largest file attached to an experiment in MiB: it is held in memory until the folder exists.
pub const ATTACHED_MAX_MIB: u64 = 64;

/// Largest result in MiB, uncompressed: a run of a thousand threads with the longest timeline takes half of that.
pub const RESULT_MAX_MIB: u64 = 64;

/// Largest kept output of a hook or of a target's command in MiB: more than anybody reads, and too little to fill a
/// disk.
pub const OUTPUT_MAX_MIB: u64 = 16;

/// Largest socket buffer in bytes: the kernel doubles the value and keeps it in 31 bits.
pub const BUFFER_MAX: u64 = i32::MAX as u64 / 2;

/// Largest number of requests in flight per HTTP/2 connection.
pub const STREAMS_MAX: u64 = 100_000;

/// The initial window of a stream or a connection, in bytes (RFC 9113, 6.9.2). A connection's window can only grow.
pub const H2_WINDOW_USUAL: u32 = 65_535;

/// Largest window, in bytes (RFC 9113, 6.9.1).
pub const H2_WINDOW_MAX: u32 = (1 << 31) - 1;

/// Smallest permitted limit on a frame's payload size, in bytes (RFC 9113, 4.2).
pub const H2_FRAME_MIN: u32 = 1 << 14;

/// Largest permitted limit on a frame's payload size, in bytes (RFC 9113, 4.2).
pub const H2_FRAME_MAX: u32 = (1 << 24) - 1;

/// Largest header table, in bytes: each connection may need as much.
pub const H2_TABLE_MAX: u32 = 1 << 20;

/// Multiple of `--timeout` after which a request is abandoned, unless `--give-up` sets a time.
pub const GIVE_UP_TIMEOUTS: u32 = 5;

/// Shortest time after which a request is abandoned, unless `--give-up` sets another: servers that recover from an
/// overload often respond within it.
pub const GIVE_UP_MIN: Duration = Duration::from_secs(30);

/// Longest delay between a request's limit and its abandonment: requests are checked ten times a second.
pub const ABANDONED_WITHIN: Duration = Duration::from_millis(200);

/// Time added to a percentile limit for the continuation of the schedule, so that a request still open then is older by
/// any clock.
pub const RUN_ON_SLACK: Duration = Duration::from_millis(1);

/// Time in nanoseconds that a server may take to close a connection after its last response
/// (`--requests-per-connection`): long enough for any server that does close, and short enough to lose little load
/// otherwise.
pub const CLOSE_PATIENCE_NS: u64 = 1_000_000_000;

const _: () = {
    assert!(THREADS_MAX <= CONNECTIONS_MAX, "every thread must be able to have a connection");
    assert!(CONNECTIONS_MAX <= 1_048_576 - 16 * THREADS_MAX, "every thread must have descriptors to spare");
    assert!(CONNECTIONS_MAX <= u32::MAX as u64, "a load counts in 32 bits");
    assert!(TIME_MAX.as_nanos() * (GIVE_UP_TIMEOUTS as u128) < u64::MAX as u128 / 8, "times are 64-bit nanoseconds");
    assert!(URL_MAX < 128 << 10, "Linux lets one argument be 128 KiB");
    assert!(BODY_MAX_MIB << 20 <= isize::MAX as u64, "a body is one piece of memory");
};
