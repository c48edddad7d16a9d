//! Control groups, versions 1 and 2: allowed processors and throttled time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The CPU-limiting control groups of a set of processes.
#[derive(Debug, Default)]
pub struct ControlGroups {
    /// The directory of each group, followed by its parents up to the topmost visible one.
    levels: BTreeSet<Vec<PathBuf>>,
    /// True if the group of a process is not visible.
    has_hidden: bool,
    /// Throttled time of each directory when it was added, or at the last [restart](Self::restart_counts).
    before_ns: BTreeMap<PathBuf, u64>,
}

impl ControlGroups {
    /// Adds the group of a process, given by its ID or as `self`.
    pub fn add_process(&mut self, process: &str) {
        let root = Path::new("/sys/fs/cgroup");
        // Hybrid mode has both versions, but version 2 then does not limit processors.
        let is_v2 = root.join("cgroup.controllers").is_file();
        let mount = if is_v2 { root.to_owned() } else { root.join("cpu") };
        let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok();
        match text.as_deref().and_then(|text| parse_group_path(text, is_v2)).filter(|_| mount.is_dir()) {
            Some(path) => {
                let levels = directory_and_parents(&mount, path);
                for level in &levels {
                    self.before_ns.entry(level.clone()).or_insert_with(|| read_throttled_ns(level));
                }
                self.levels.insert(levels);
            }
            None => self.has_hidden = true,
        }
    }

    /// True if a group was found for each process, so that the limits are known.
    pub fn are_visible(&self) -> bool {
        !self.has_hidden && !self.levels.is_empty()
    }

    /// Counts throttled time from now on.
    pub fn restart_counts(&mut self) {
        for (level, before_ns) in &mut self.before_ns {
            *before_ns = read_throttled_ns(level);
        }
    }

    /// Throttled time since the last restart in the most throttled group. The kernel sums it over processors, so it may
    /// exceed the length of the run.
    pub fn throttled_ns(&self) -> u64 {
        let gained =
            self.before_ns.iter().map(|(level, before_ns)| read_throttled_ns(level).saturating_sub(*before_ns));
        gained.max().unwrap_or_default()
    }

    /// Number of processors that the groups allow together; `None` if one of them is unlimited.
    pub fn allowed_processors(&self) -> Option<f64> {
        // A limit shared by several groups counts once.
        let limits: Option<BTreeMap<&Path, f64>> = self.levels.iter().map(|levels| tightest_limit(levels)).collect();
        limits.filter(|limits| !limits.is_empty()).map(|limits| limits.values().sum())
    }
}

/// The directory with the tightest limit among a group and its parents, and the number of processors allowed.
fn tightest_limit(levels: &[PathBuf]) -> Option<(&Path, f64)> {
    let limits = levels.iter().filter_map(|level| Some((level.as_path(), processor_limit(level)?)));
    limits.min_by(|one, other| one.1.total_cmp(&other.1))
}

/// Number of processors that a directory allows.
fn processor_limit(directory: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let limit = read("cpu.max")
        .or_else(|| Some(format!("{} {}", read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?)))?;
    parse_quota(&limit)
}

/// Quota divided by its period, both in microseconds; `max` and -1 mean unlimited.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Throttled time of a directory; zero without a limit.
fn read_throttled_ns(directory: &Path) -> u64 {
    fs::read_to_string(directory.join("cpu.stat")).ok().and_then(|text| parse_throttled_ns(&text)).unwrap_or_default()
}

/// Version 2 reports microseconds, version 1 nanoseconds.
fn parse_throttled_ns(text: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", us) => Some(us.parse::<u64>().ok()?.saturating_mul(1_000)),
        ("throttled_time", ns) => ns.parse().ok(),
        _ => None,
    })
}

/// Path of the CPU-limiting group in `/proc/PID/cgroup`; `None` if the group is not visible here.
fn parse_group_path(text: &str, is_v2: bool) -> Option<&str> {
    let path = text.lines().find_map(|line| {
        let (hierarchy, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_it = if is_v2 { hierarchy == "0" } else { controllers.split(',').any(|name| name == "cpu") };
        is_it.then_some(path)
    })?;
    (!path.split('/').any(|part| part == "..")).then_some(path)
}

/// A directory and all its parents, up to the mount. In a container the path may be the host's, with only its end
/// visible.
fn directory_and_parents(mount: &Path, path: &str) -> Vec<PathBuf> {
    let directory = mount.join(path.trim_start_matches('/'));
    directory.ancestors().take_while(|level| level.starts_with(mount)).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let v2 = "0::/user.slice/a.scope\n";
        let v1 = "9:name=systemd:/x\n3:cpuset:/y\n2:cpu,cpuacct:/docker/abc\n0::/z\n";
        assert_eq!(parse_group_path(v2, true), Some("/user.slice/a.scope"));
        assert_eq!(parse_group_path(v1, false), Some("/docker/abc"));
        assert_eq!(parse_group_path(v1, true), Some("/z"));
        for (text, is_v2) in [("", true), ("0::/\n", false), ("0::/../../other\n", true), ("x\n", true)] {
            assert_eq!(parse_group_path(text, is_v2), None, "{text:?}");
        }
        let root = Path::new("/r");
        assert_eq!(directory_and_parents(root, "/a/b"), ["/r/a/b", "/r/a", "/r"].map(PathBuf::from));
        assert_eq!(directory_and_parents(root, "/"), [PathBuf::from("/r/")]);
    }

    #[test]
    fn limits_and_throttling_are_read_in_both_versions() {
        let table =
            [("50000 100000\n", Some(0.5)), ("max 100000\n", None), ("-1 100000", None), ("", None), ("0 0", None)];
        for (text, expected) in table {
            assert_eq!(parse_quota(text), expected, "{text:?}");
        }
        assert_eq!(parse_throttled_ns("nr_periods 5\nnr_throttled 2\nthrottled_usec 1500\n"), Some(1_500_000));
        assert_eq!(parse_throttled_ns("nr_periods 5\nnr_throttled 2\nthrottled_time 1500\n"), Some(1_500));
        assert_eq!(parse_throttled_ns("usage_usec 1\n"), None);
    }

    #[test]
    fn shared_group_limits_count_once() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/cpu.max", "300000 100000\n");
        write("a/b/cpu.max", "max 100000\n");
        write("a/c/cpu.cfs_quota_us", "150000\n");
        write("a/c/cpu.cfs_period_us", "100000\n");
        write("a/c/cpu.stat", "throttled_time 5\n");
        let of = |paths: &[&str]| {
            let mut groups = ControlGroups::default();
            for path in paths {
                let levels = directory_and_parents(root.path(), path);
                groups.before_ns.extend(levels.iter().map(|level| (level.clone(), read_throttled_ns(level))));
                groups.levels.insert(levels);
            }
            groups
        };
        assert_eq!(of(&["/a/b"]).allowed_processors(), Some(3.0));
        assert_eq!(of(&["/a/b", "/a/d"]).allowed_processors(), Some(3.0));
        assert_eq!(of(&["/a/c"]).allowed_processors(), Some(1.5));
        assert_eq!(of(&["/a/b", "/e"]).allowed_processors(), None, "one of them has no limit");
        assert_eq!(of(&[]).allowed_processors(), None);
        let mut groups = of(&["/a/c"]);
        write("a/c/cpu.stat", "throttled_time 12\n");
        assert_eq!(groups.throttled_ns(), 7);
        groups.restart_counts();
        assert_eq!(groups.throttled_ns(), 0);
    }
}
