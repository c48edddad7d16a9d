//! Warnings about settings without the expected effect.

use super::name::SettingName;

/// Caveat about what a setting really affects, to consider before a conclusion; `None` for most settings.
pub fn effect(name: &SettingName) -> Option<&'static str> {
    EFFECTS.iter().find(|(paths, _)| paths.contains(&name.path())).map(|(_, sentence)| *sentence)
}

/// Settings by path.
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
