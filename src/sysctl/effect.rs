//! Warnings about settings that do not have the effect that people expect.

use super::name::SettingName;

/// A caveat about a setting's effect, before conclusions are drawn from it; `None` for most.
pub fn effect(name: &SettingName) -> Option<&'static str> {
    EFFECTS.iter().find(|(paths, _)| paths.contains(&name.path())).map(|(_, sentence)| *sentence)
}

/// Settings by their paths.
const EFFECTS: [(&[&str], &str); 3] = [
    (
        &["net/core/rmem_max", "net/core/wmem_max"],
        "net.core.rmem_max and wmem_max only cap the buffers that a program asks for (--rcvbuf, --sndbuf); \
         all other sizes follow net.ipv4.tcp_rmem and tcp_wmem",
    ),
    (
        &["net/core/somaxconn"],
        "net.core.somaxconn caps the backlog when a server begins to listen: restart the target after each change",
    ),
    (
        &["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"],
        "accepted connections start with the buffers of the listening socket: restart the target after each change of \
         net.ipv4.tcp_rmem or tcp_wmem",
    ),
];
