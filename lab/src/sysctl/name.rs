//! Name of a kernel setting, in the forms that sysctl(8) accepts.

use std::fmt;

use super::refusal::SysctlRefusal;

/// Name of a kernel setting, such as `net.core.somaxconn`. Two spellings of one setting are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SettingName {
    /// The path below `/proc/sys`; no part is empty, `.` or `..`.
    path: String,
}

impl SettingName {
    /// Parses a name. The first `.` or `/` is the separator; the other is then an ordinary character, as in
    /// `net.ipv4.conf.eth0/1.rp_filter` or `net/ipv4/conf/eth0.1/rp_filter`.
    ///
    /// # Errors
    ///
    /// Fails if the text cannot be the name of a setting.
    pub fn parse(text: &str) -> Result<Self, SysctlRefusal> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
        let is_dotted = text.find(['.', '/']).is_some_and(|at| text[at..].starts_with('.'));
        let path = if is_dotted { swap_separators(text) } else { text.to_owned() };
        // Swapping the separators can produce a `..`.
        let is_whole = |part: &str| !["", ".", ".."].contains(&part);
        if text.chars().all(is_plain) && !text.contains("..") && path.split('/').all(is_whole) {
            Ok(Self { path })
        } else {
            Err(SysctlRefusal::Name(text.to_owned()))
        }
    }

    /// The path of the setting's file below `/proc/sys`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The permission required to change the setting, in words for the user.
    pub(super) fn required_permission(&self) -> &'static str {
        if self.path.starts_with("net/") {
            "CAP_NET_ADMIN in the user namespace that owns the network namespace"
        } else {
            "the host's root user"
        }
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&swap_separators(&self.path))
    }
}

/// Exchanges dots and slashes, which turns a path into a name and back.
pub(super) fn swap_separators(text: &str) -> String {
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    text.chars().map(swap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name() {
        for (typed, path, shown) in [
            ("net.core.somaxconn", "net/core/somaxconn", "net.core.somaxconn"),
            ("net/core/somaxconn", "net/core/somaxconn", "net.core.somaxconn"),
            ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
            ("net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.rp_filter"),
            ("kernel.sched-x_2", "kernel/sched-x_2", "kernel.sched-x_2"),
        ] {
            let name = SettingName::parse(typed).unwrap();
            assert_eq!((name.path(), name.to_string().as_str()), (path, shown));
            assert_eq!(SettingName::parse(shown).unwrap(), name);
        }
    }

    #[test]
    fn no_name_leads_out_of_the_tree() {
        for typed in [
            "",
            ".",
            "/",
            "..",
            "/etc/passwd",
            ".net",
            "net.",
            "net//core",
            "net/../kernel",
            "net.//.kernel",
            "a././b",
            "net/./core",
            "net core",
            "net.core\n",
            "a=b",
            "ü",
        ] {
            let refusal = SettingName::parse(typed).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{typed:?} is not the name of a setting")), "{refusal}");
        }
    }
}
