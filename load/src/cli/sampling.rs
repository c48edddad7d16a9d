//! Socket sampling, from its options.

use std::ffi::OsString;
use std::path::PathBuf;

use onrush_plan::{ConnectOptions, SocketFilter, SocketSampling};

use super::filter::filter;
use super::refusal::PlanRefusal;
use super::values::Value;

/// The options on socket sampling, as typed.
#[derive(Debug, Default)]
pub(super) struct SamplingDraft {
    /// `--sockets`; the inner `None` means without a filter.
    pub filter: Option<Option<SocketFilter>>,
    /// `--sockets-output`.
    pub output: Option<PathBuf>,
}

impl SamplingDraft {
    /// Rejects a filter typed as a separate word, which would be taken for the URL.
    pub fn check_filter_is_attached(&self, words: &[OsString]) -> Result<(), PlanRefusal> {
        let first = words.first().and_then(|word| word.to_str());
        let apart = first.filter(|word| self.filter == Some(None) && filter(word).is_ok());
        let line = |word: &str| format!("--sockets: attach the filter with an equals sign: --sockets='{word}'");
        apart.map_or(Ok(()), |word| Err(PlanRefusal::Misused(line(word))))
    }

    /// The socket sampling of a run; `None` if no option was typed. Rejected if the run has no sockets to sample.
    pub fn to_socket_sampling(&self, connect: &ConnectOptions) -> Result<Option<SocketSampling>, PlanRefusal> {
        let Some(output) = self.output.clone() else { return Ok(None) };
        let filter = self.filter.clone().flatten();
        if connect.unix.is_some() && filter.is_none() {
            let option = if self.filter.is_some() { "--sockets" } else { "--sockets-output" };
            return Err(PlanRefusal::Misused(format!(
                "{option}: --unix uses no TCP, so there is nothing to sample; leave it out, or select sockets: \
                 --sockets='sport = :80'"
            )));
        }
        Ok(Some(SocketSampling { filter, output }))
    }
}

/// Maximum length of a filter in bytes. The parser is recursive.
const FILTER_MAX: usize = 4096;

/// Parses the filter; `None` for an option without one.
pub(super) fn parse_filter_value(value: Value) -> Result<Option<SocketFilter>, PlanRefusal> {
    let text = value.lossy();
    if text.len() > FILTER_MAX {
        return Err(value.wrong(format_args!("longer than {FILTER_MAX} bytes")));
    }
    if text.is_empty() {
        return Ok(None);
    }
    filter(&text).map(Some).map_err(|flaw| value.wrong(flaw.shown(&text)))
}
