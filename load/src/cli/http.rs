//! The options on HTTP versions, as typed, and the resulting [`Http`] for a target.

use std::ffi::OsStr;

use onrush_plan::http::{Http2Settings, HttpVersion};
use onrush_plan::limits::{H2_FRAME_MAX, H2_FRAME_MIN, H2_TABLE_MAX, H2_WINDOW_MAX, H2_WINDOW_USUAL, STREAMS_MAX};
use onrush_plan::target::Scheme;
use onrush_plan::{Dialect, Http, Target};
use onrush_text::units::format_count;

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use super::units;
use super::values::parse_count;

/// The options for HTTP versions, as typed.
#[derive(Debug, Default)]
pub struct TypedHttp {
    /// Versions requested by `--http2`, `--http1.1` and `--alpn-list`, each with the option's name.
    versions: Vec<(&'static str, Vec<HttpVersion>)>,
    streams: Option<u32>,
    settings: Http2Settings,
    /// Names of the typed options that make sense only with HTTP/2.
    of_http2: Vec<&'static str>,
}

impl TypedHttp {
    /// Applies one option. Whether the requested versions agree is checked later.
    pub fn apply_option(&mut self, flag: &'static Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        let name = flag.spelling.long;
        let versions = match flag.id {
            Id::Http2 | Id::Http2PriorKnowledge => vec![HttpVersion::Http2],
            Id::Http11 => vec![HttpVersion::Http11],
            Id::AlpnList => parse_alpn_list(flag, value)?,
            _ => return self.apply_http2_setting(flag, value),
        };
        self.versions.retain(|(other, _)| *other != name);
        self.versions.push((name, versions));
        Ok(())
    }

    fn apply_http2_setting(&mut self, flag: &'static Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::Streams => self.streams = Some(parse_count(flag, value, Dialect::Native, STREAMS_MAX)? as u32),
            Id::H2Window => self.settings.window = Some(parse_size(flag, value, 1, H2_WINDOW_MAX)?),
            Id::H2ConnectionWindow => {
                self.settings.connection_window = Some(parse_size(flag, value, H2_WINDOW_USUAL, H2_WINDOW_MAX)?);
            }
            Id::H2MaxFrame => self.settings.frame_max = Some(parse_size(flag, value, H2_FRAME_MIN, H2_FRAME_MAX)?),
            _ => self.settings.table = Some(parse_size(flag, value, 0, H2_TABLE_MAX)?),
        }
        self.of_http2.push(flag.spelling.long);
        Ok(())
    }

    /// The HTTP settings for this target. Rejects contradictory versions, and HTTP/2 options without HTTP/2. Warns
    /// about a window size that may be meant as h2load's exponent.
    pub fn into_http(self, target: &Target, dialect: Dialect, warnings: &mut Vec<String>) -> Result<Http, PlanRefusal> {
        let first = self.versions.first().map(|(name, _)| *name).or_else(|| self.of_http2.first().copied());
        if let Some(name) = first.filter(|_| dialect.is_compat()) {
            let line = format!("--{name}: {} speaks HTTP/1.1 only; leave it out", dialect.name());
            return Err(PlanRefusal::Cannot(line));
        }
        let versions = match &self.versions[..] {
            [] => vec![HttpVersion::Http11],
            [(_, versions)] => versions.clone(),
            [(_, one), (_, same)] if one == same => one.clone(),
            [(one, _), .., (other, _)] => {
                let line = format!("--{one} and --{other} ask for different versions; leave one of the two out");
                return Err(PlanRefusal::Misused(line));
            }
        };
        if target.scheme != Scheme::Https && versions.len() > 1 {
            let line = "--alpn-list: without TLS the server cannot choose; write --http2 or --http1.1, or https://";
            return Err(PlanRefusal::Misused(line.to_owned()));
        }
        let exponent = self.settings.window.filter(|bits| (1..=EXPONENT_MAX).contains(bits));
        warnings.extend(exponent.map(|bits| {
            let (bytes, meant) = (format_count(bits.into(), "byte"), power_of_two(bits));
            format!("--h2-window {bits} is {bytes}; if you mean 2^{bits} bytes, as with h2load, write {meant}")
        }));
        let http = Http { versions, streams: self.streams, settings: self.settings };
        match self.of_http2.first() {
            Some(name) if !http.may_be_http2() => {
                let add = match &self.versions[..] {
                    [] => "add --http2",
                    [("alpn-list", _)] if target.scheme == Scheme::Https => "add h2 to --alpn-list",
                    versions => {
                        let typed: Vec<String> = versions.iter().map(|(version, _)| format!("--{version}")).collect();
                        &format!("write --http2 instead of {}", typed.join(" and "))
                    }
                };
                Err(PlanRefusal::Misused(format!("--{name} is for HTTP/2; {add}, or leave out --{name}")))
            }
            _ => Ok(http),
        }
    }
}

/// Parses the protocols of `--alpn-list`.
fn parse_alpn_list(flag: &Flag, value: &OsStr) -> Result<Vec<HttpVersion>, PlanRefusal> {
    let text = value.to_string_lossy();
    let mut versions = Vec::new();
    for name in text.split([',', ' ']).filter(|name| !name.is_empty()) {
        let version = match name {
            // The names of onrush's options are accepted as names of protocols.
            "http2" => Some(HttpVersion::Http2),
            "http1.1" => Some(HttpVersion::Http11),
            _ => HttpVersion::ALL.into_iter().find(|version| version.alpn() == name),
        };
        let version = version.ok_or_else(|| wrong(flag, OsStr::new(name), "unknown; write h2,http/1.1"))?;
        if versions.contains(&version) {
            return Err(wrong(flag, value, format_args!("{} is there twice", version.alpn())));
        }
        versions.push(version);
    }
    if versions.is_empty() {
        return Err(wrong(flag, value, "an empty list; write h2,http/1.1"));
    }
    Ok(versions)
}

/// Parses a size in bytes from `least` to `most`, with a decimal or binary unit.
fn parse_size(flag: &Flag, value: &OsStr, least: u32, most: u32) -> Result<u32, PlanRefusal> {
    let text = value.to_string_lossy();
    let size = units::parse_size(&text).ok().and_then(|size| u32::try_from(size).ok());
    size.filter(|size| (least..=most).contains(size)).ok_or_else(|| {
        let exponent = size.filter(|bits| flag.id == Id::H2ConnectionWindow && (1..=EXPONENT_MAX).contains(bits));
        let exponent = exponent.map(|bits| format!("h2load's {bits} is {}", power_of_two(bits)));
        let units = exponent.or_else(|| explain_both_units(&text));
        let units = units.unwrap_or_else(|| "k, M, KiB and MiB are units".to_owned());
        wrong(flag, value, format_args!("write {least} to {most} bytes; {units}"))
    })
}

/// Maximum exponent that h2load accepts for a window.
const EXPONENT_MAX: u32 = 30;

/// The power of two in the form in which to type it: `64KiB`.
fn power_of_two(bits: u32) -> String {
    match bits {
        20.. => format!("{}MiB", 1_u64 << (bits - 20)),
        10.. => format!("{}KiB", 1_u64 << (bits - 10)),
        _ => (1_u64 << bits).to_string(),
    }
}

/// Explains a size such as `16K` or `16KB`, which may be meant in decimal or binary units; `None` for other texts.
fn explain_both_units(text: &str) -> Option<String> {
    let (number, unit) = text.split_at(text.find(|character: char| character.is_ascii_alphabetic())?);
    let (decimal, binary) = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => ("k", "KiB"),
        "m" | "mb" => ("M", "MiB"),
        _ => return None,
    };
    let [decimal, binary] = [decimal, binary].map(|unit| format!("{number}{unit}"));
    Some(format!(
        "{decimal} is {}, and {binary} is {}",
        units::parse_size(&decimal).ok()?,
        units::parse_size(&binary).ok()?
    ))
}
