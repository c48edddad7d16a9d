//! Reasons why a setting is not changed, or not restored.

use thiserror::Error;

/// Why nothing was changed or restored, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SysctlRefusal {
    /// The text cannot be the name of a setting.
    #[error("{0:?} is not the name of a setting; names consist of letters, digits, _, - and dots: net.core.somaxconn")]
    Name(String),
    /// The kernel has no such setting.
    #[error("the kernel has no setting {name}; {near}")]
    Unknown {
        /// The whole name.
        name: String,
        /// The most similar existing names.
        near: String,
    },
    /// The name is a directory of settings.
    #[error("{0} is a group of settings; name one of them")]
    Group(String),
    /// The value of the setting cannot be read.
    #[error("{0} is write-only: its old value could not be restored")]
    WriteOnly(String),
    /// The setting cannot be read or opened.
    #[error("{name} cannot be opened or read: {reason}")]
    System {
        /// The setting.
        name: String,
        /// The system's reason.
        reason: String,
    },
    /// Nobody may write to the setting here: it can be changed only in the host's network namespace, or never.
    #[error("{0} is read-only here; some settings can be changed only in the host's network namespace")]
    ReadOnly(String),
    /// The setting is read-only because `/proc/sys` is, as in most containers.
    #[error("{0} cannot be changed: /proc/sys is mounted read-only, as in most containers; run onrush on the host")]
    Mounted(String),
    /// This process may not change the setting.
    #[error("{name} cannot be changed: permission denied; this needs {takes}; try sudo")]
    NotPermitted {
        /// The setting.
        name: String,
        /// The permission required.
        takes: &'static str,
    },
    /// The requested value contains a control character, for instance a line break.
    #[error("{name}: {value:?} is not a value; write one line of text")]
    Value {
        /// The setting.
        name: String,
        /// The requested value.
        value: String,
    },
    /// The kernel rejected a value.
    #[error("the kernel refuses {value:?} for {name}: {reason}")]
    Refused {
        /// The setting.
        name: String,
        /// The requested value.
        value: String,
        /// The system's reason.
        reason: String,
    },
    /// Another process has changed the setting since onrush did.
    #[error("{name} is {found:?}, but onrush had set {ours:?}: another process is changing it, too")]
    Changed {
        /// The setting.
        name: String,
        /// The current value.
        found: String,
        /// The value that onrush set.
        ours: String,
    },
    /// The journal cannot be used, so nothing was changed.
    #[error("{path}: {reason}; onrush keeps its journal of changed settings there: make it writable, or start as root")]
    Journal {
        /// Path of the journal.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// The file is not a journal written by onrush.
    #[error("{0} is not a journal of onrush; check the settings that it names, then delete it")]
    Damaged(String),
    /// Another process has borrowed the settings. Holds its PID, if known.
    #[error("another onrush{} is changing settings of this network namespace; wait until it has restored them",
        .0.map_or(String::new(), |pid| format!(" (pid {pid})")))]
    Held(Option<u32>),
    /// A killed process had borrowed the settings and left them changed. Holds its PID.
    #[error("a killed onrush (pid {0}) left settings changed; run onrush restore first")]
    Leftover(u32),
    /// The settings have been restored for good.
    #[error("the settings have been restored and cannot be changed again")]
    Over,
}
