//! Interference on the machine: steal time, wall-clock steps, accept-queue overflows.

use std::fs;

use onrush_engine::backend::wall_offset_ns;

/// Smallest wall-clock step that is reported: well above the time between two readings.
const STEP_MIN_S: f64 = 0.05;

/// The counters of the machine at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineReading {
    /// Stolen ticks and all ticks of all processors.
    stolen: Option<(u64, u64)>,
    /// Number of accept-queue overflows in this network namespace.
    overflows: Option<u64>,
    /// Offset of the wall clock from the time since boot.
    offset_ns: i64,
}

impl MachineReading {
    /// Reads the counters now; those that cannot be read are unknown.
    pub fn read() -> Self {
        Self {
            stolen: fs::read_to_string("/proc/stat").ok().and_then(|text| parse_stolen_ticks(&text)),
            overflows: fs::read_to_string("/proc/net/netstat").ok().and_then(|text| parse_overflows(&text)),
            offset_ns: wall_offset_ns(),
        }
    }

    /// Share (0 to 1) of the processors' time stolen by the hypervisor since an earlier reading; `None` if unknown.
    pub fn stolen_since(&self, before: &Self) -> Option<f64> {
        let (now, before) = self.stolen.zip(before.stolen)?;
        let all = now.1.saturating_sub(before.1);
        // Within one tick nothing is counted.
        Some(if all > 0 { now.0.saturating_sub(before.0) as f64 / all as f64 } else { 0.0 })
    }

    /// Number of accept-queue overflows since an earlier reading; `None` if unknown.
    pub fn overflows_since(&self, before: &Self) -> Option<u64> {
        self.overflows.zip(before.overflows).map(|(now, before)| now.saturating_sub(before))
    }

    /// Step of the wall clock since an earlier reading, in seconds, negative if backwards; `None` if it is too small to
    /// report.
    pub fn step_since_s(&self, before: &Self) -> Option<f64> {
        let step_s = (self.offset_ns - before.offset_ns) as f64 / 1e9;
        (step_s.abs() >= STEP_MIN_S).then_some(step_s)
    }
}

/// Stolen ticks and all ticks, over all processors. Guest ticks are included in other fields.
fn parse_stolen_ticks(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

/// The value of `ListenOverflows`: one line holds the names, the next one the values.
fn parse_overflows(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let (_, value) = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == "ListenOverflows")?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tables_are_parsed() {
        let stat = "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 5\n";
        assert_eq!(parse_stolen_ticks(stat), Some((80, 360)));
        for text in ["", "cpu0 1 2 3 4 5 6 7 8\n", "cpu  1 2 3 4 5 6 7\n", "cpu  1 2 3 4 5 6 7 x\n"] {
            assert_eq!(parse_stolen_ticks(text), None, "{text:?}");
        }
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: A B\nIpExt: 4 5\n";
        assert_eq!(parse_overflows(netstat), Some(22));
        for text in [
            "",
            "TcpExt: ListenOverflows\n",
            "TcpExt: ListenDrops\nTcpExt: 1\n",
            "TcpExt: ListenOverflows\nTcpExt: x\n",
        ] {
            assert_eq!(parse_overflows(text), None, "{text:?}");
        }
    }

    #[test]
    fn machine_counts_are_differences() {
        let before = MachineReading { stolen: Some((5, 100)), overflows: Some(3), offset_ns: 1_000_000_000_000 };
        let after = MachineReading { stolen: Some((30, 200)), overflows: Some(10), offset_ns: 999_900_000_000 };
        assert_eq!(after.stolen_since(&before), Some(0.25));
        assert_eq!(after.overflows_since(&before), Some(7));
        assert_eq!(after.step_since_s(&before), Some(-0.1));
        assert_eq!((before.stolen_since(&before), before.step_since_s(&before)), (Some(0.0), None));
        let unknown = MachineReading::default();
        assert_eq!((after.stolen_since(&unknown), unknown.overflows_since(&before)), (None, None));
        let (before, after) = (MachineReading::read(), MachineReading::read());
        assert_eq!(after.step_since_s(&before), None, "the clock was not set");
    }
}
