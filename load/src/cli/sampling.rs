//! The options on socket sampling, and the resulting [`SocketSampling`].

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use onrush_plan::{ConnectOptions, Io, OutputKind, SocketFilter, SocketSampling};

use super::filter::filter;
use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};

/// The options on socket sampling, as typed.
#[derive(Debug, Default)]
pub struct TypedSampling {
    /// `--sockets`; the inner `None` means without a filter.
    filter: Option<Option<SocketFilter>>,
    output: Option<PathBuf>,
}

impl TypedSampling {
    /// True if any of the options was typed.
    pub fn is_typed(&self) -> bool {
        self.filter.is_some() || self.output.is_some()
    }

    /// Applies one option. The file for samples must end in `.ndjson`.
    pub fn apply_option(&mut self, flag: &'static Flag, value: OsString) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::Sockets => self.filter = Some(parse_filter_value(flag, &value)?),
            _ if OutputKind::for_path(Path::new(&value)) != Some(OutputKind::Lines) => {
                return Err(wrong(flag, &value, "its ending must be .ndjson; try s.ndjson"));
            }
            _ => self.output = Some(PathBuf::from(value)),
        }
        Ok(())
    }

    /// Rejects a filter typed as a separate word, which would be taken for the URL.
    pub fn check_filter_is_attached(&self, words: &[OsString]) -> Result<(), PlanRefusal> {
        let first = words.first().and_then(|word| word.to_str());
        let apart = first.filter(|word| self.filter == Some(None) && filter(word).is_ok());
        let line = |word: &str| format!("--sockets: attach the filter with an equals sign: --sockets='{word}'");
        apart.map_or(Ok(()), |word| Err(PlanRefusal::Misused(line(word))))
    }

    /// Name of an option that was typed; `None` if none was.
    pub fn typed_option(&self) -> Option<&'static str> {
        let named = self.filter.as_ref().map(|_| "--sockets");
        named.or(self.output.as_ref().map(|_| OutputKind::Sockets.option()))
    }

    /// The socket sampling of a run; `None` if no option was typed. Rejected without a file for the
    /// samples, and if the run has no sockets to sample.
    pub fn into_socket_sampling(
        self,
        connect: &ConnectOptions,
        io: &Io,
        once: bool,
    ) -> Result<Option<SocketSampling>, PlanRefusal> {
        let Some(option) = self.typed_option() else { return Ok(None) };
        let refused = |line: &str| Err(PlanRefusal::Misused(format!("{option}: {line}")));
        let (filter, Some(output)) = (self.filter.flatten(), self.output) else {
            return refused(
                "there is no file for the samples; add --sockets-output, for instance --sockets-output s.ndjson",
            );
        };
        if let Io::Sim(_) = io {
            return refused("the simulated servers are reached without sockets; leave one of the two out");
        }
        if once {
            return refused("--once is over before there is a sample; leave one of the two out");
        }
        if connect.unix.is_some() && filter.is_none() {
            return refused(
                "--unix uses no TCP, so there is nothing to sample; leave it out, or select sockets: --sockets='sport = :80'",
            );
        }
        Ok(Some(SocketSampling { filter, output }))
    }
}

/// Maximum length of a filter in bytes. The parser is recursive.
const FILTER_MAX: usize = 4096;

/// Parses the filter; `None` for an option without one.
fn parse_filter_value(flag: &Flag, value: &OsStr) -> Result<Option<SocketFilter>, PlanRefusal> {
    let text = value.to_string_lossy();
    if text.len() > FILTER_MAX {
        return Err(wrong(flag, value, format_args!("longer than {FILTER_MAX} bytes")));
    }
    if text.is_empty() {
        return Ok(None);
    }
    filter(&text).map(Some).map_err(|flaw| wrong(flag, value, flaw.shown(&text)))
}
