//! Why a setting is not changed, or not restored.

use thiserror::Error;

/// Why nothing was changed or restored, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A text that can be no name.
    #[error("{0:?} is not the name of a setting: it has letters, digits, _ and - between dots, as net.core.somaxconn")]
    Name(String),
    /// There is no such setting.
    #[error("the kernel has no setting {name}; {near}")]
    Unknown {
        /// The whole name.
        name: String,
        /// What there is instead.
        near: String,
    },
    /// A name of several settings.
    #[error("{0} is a group of settings; name one of them")]
    Group(String),
    /// A setting whose value cannot be known.
    #[error("{0} is write-only: what it was could not be restored")]
    WriteOnly(String),
    /// A setting that cannot be read or opened.
    #[error("{name}: {reason}")]
    System {
        /// Which setting.
        name: String,
        /// In the system's words.
        reason: String,
    },
    /// A setting that nobody can change from here.
    #[error("{0} is read-only here; some settings can be changed in the host's network namespace only")]
    ReadOnly(String),
    /// The settings of this container.
    #[error("{0} cannot be changed: /proc/sys is mounted read-only, as in most containers; run onrush on the host")]
    Mounted(String),
    /// Somebody else may change it.
    #[error(
        "{name} cannot be changed without permission: it takes {takes}; start onrush with that, for instance by sudo"
    )]
    NotPermitted {
        /// Which setting.
        name: String,
        /// Who may.
        takes: &'static str,
    },
    /// A value of several lines.
    #[error("{name}: {value:?} is no value: it has to be one line of text")]
    Value {
        /// Which setting.
        name: String,
        /// What was asked for.
        value: String,
    },
    /// The kernel does not take a value.
    #[error("the kernel refuses {value:?} for {name}: {reason}")]
    Refused {
        /// Which setting.
        name: String,
        /// What was asked for.
        value: String,
        /// In the system's words.
        reason: String,
    },
    /// Somebody else changes the same setting.
    #[error("{name} is {found:?}, though onrush has set it to {ours:?}: another process changes it, too")]
    Changed {
        /// Which setting.
        name: String,
        /// Its value now.
        found: String,
        /// The value that we gave it.
        ours: String,
    },
    /// No journal, no change.
    #[error(
        "{path}: {reason}; settings are journalled there before they are changed: make it writable, or start as root"
    )]
    Journal {
        /// Its path.
        path: String,
        /// In the system's words.
        reason: String,
    },
    /// A journal that onrush has not written.
    #[error("{0} is no journal of onrush; look at the settings it names, then delete it")]
    Damaged(String),
    /// Another process has the settings.
    #[error("another onrush{} changes settings of this network namespace and restores them at its end; wait for that",
        .0.map_or(String::new(), |pid| format!(" (pid {pid})")))]
    Held(Option<u32>),
    /// A process that was killed had them.
    #[error("an onrush that was killed (pid {0}) has left settings changed; run onrush restore first")]
    Leftover(u32),
    /// Everything was restored for good.
    #[error("the settings have been restored, and stay so")]
    Over,
}
