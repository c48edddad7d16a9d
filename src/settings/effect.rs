//! What some settings do not do, though people change them for it.

use super::name::Name;

/// What is to be known of a setting before a result is drawn from it; `None` of most.
pub fn effect(name: &Name) -> Option<&'static str> {
    EFFECTS.iter().find(|(paths, _)| paths.contains(&name.path())).map(|(_, sentence)| *sentence)
}

/// Settings by their paths.
const EFFECTS: [(&[&str], &str); 3] = [
    (
        &["net/core/rmem_max", "net/core/wmem_max"],
        "net.core.rmem_max and wmem_max only cap the buffers that a program asks for (--rcvbuf, --sndbuf); \
         the sizes of all others follow net.ipv4.tcp_rmem and tcp_wmem",
    ),
    (
        &["net/core/somaxconn"],
        "net.core.somaxconn caps the backlog when a server begins to listen: restart the target after each change",
    ),
    (
        &["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"],
        "the first buffers of accepted connections are those of the listening socket: restart the target after each \
         change of net.ipv4.tcp_rmem or tcp_wmem",
    ),
];
