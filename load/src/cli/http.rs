//! The options on HTTP versions, and the resulting [`Http`] for a target.

use onrush_plan::http::{Http2Settings, HttpVersion};
use onrush_plan::limits::{H2_FRAME_MAX, H2_FRAME_MIN, H2_TABLE_MAX, H2_WINDOW_MAX, H2_WINDOW_USUAL, STREAMS_MAX};
use onrush_plan::target::Scheme;
use onrush_plan::{Http, PerConnection, Target};
use onrush_text::units::format_count;

use super::draft::PlanDraft;
use super::flag::{Flag, flag, put};
use super::refusal::PlanRefusal;
use super::units;
use super::values::Value;

/// The words after a tool's name that refuse the options.
const HTTP11_ONLY: &str = "speaks HTTP/1.1 only";

pub(super) const OPTIONS: &[Flag] = &[
    flag("--http2", |draft, value| draft.http.set_versions(value, vec![HttpVersion::Http2]))
        .common()
        .native_only(HTTP11_ONLY)
        .help("speak HTTP/2 and nothing else: by ALPN to https,\nfrom the first byte (prior knowledge) to http")
        .reference(
            "Speaks HTTP/2 only: `https://` offers only `h2` (ALPN), `http://` uses prior knowledge (h2c).",
            "onrush --http2 http://127.0.0.1:8080/",
        ),
    flag("--http2-prior-knowledge", |draft, value| draft.http.set_versions(value, vec![HttpVersion::Http2]))
        .native_only(HTTP11_ONLY)
        .help("the same")
        .reference(
            "The same, as curl spells it for `http://`.",
            "onrush --http2-prior-knowledge http://127.0.0.1:8080/",
        ),
    flag("--http1.1", |draft, value| draft.http.set_versions(value, vec![HttpVersion::Http11]))
        .native_only(HTTP11_ONLY)
        .help("speak HTTP/1.1 (the default)")
        .reference("Speaks HTTP/1.1, the default.", "onrush --http1.1 http://127.0.0.1:8080/"),
    flag("--alpn-list LIST", |draft, value| draft.http.set_versions(value, parse_alpn_list(value)?))
        .one_of(&["h2,http/1.1", "http/1.1,h2", "h2", "http/1.1"])
        .native_only(HTTP11_ONLY)
        .help("versions that an https server may choose from, the\npreferred first: h2,http/1.1")
        .reference(
            "Versions that the TLS handshake may choose from, most preferred first: `h2,http/1.1` (or \
             `http2,http1.1`). A note counts the connections by version.",
            "onrush -k --alpn-list h2,http/1.1 https://127.0.0.1:8443/",
        ),
    flag("--streams N", |draft, value| {
        draft.http.streams = Some(value.count(STREAMS_MAX)? as u32);
        Ok(())
    })
    .common()
    .swept_as("--http2 --streams")
    .native_only(HTTP11_ONLY)
    .help("most requests in flight on a connection of HTTP/2 (1);\nthe server may allow fewer")
    .reference(
        "Most requests in flight per HTTP/2 connection, 1 by default; in all up to `-c` × N. A note reports if the \
         server allows fewer. A script's batch is in flight together unless this option allows fewer.",
        "onrush --http2 -c 4 --streams 32 http://127.0.0.1:8080/",
    ),
    flag("--h2-window SIZE", |draft, value| put(&mut draft.http.settings.window, parse_size(value, 1, H2_WINDOW_MAX)))
        .native_only(HTTP11_ONLY)
        .help("how much of a response the server may send ahead\n(1 GiB)")
        .reference(
            "Bytes of a response that the server may send before it must wait (`SETTINGS_INITIAL_WINDOW_SIZE`): by \
             default 1 GiB less a byte, so that the window is not the limit. Units: `k`, `M`, `KiB`, `MiB`.",
            "onrush --http2 --h2-window 64KiB http://127.0.0.1:8080/",
        ),
    flag("--h2-connection-window SIZE", |draft, value| {
        put(&mut draft.http.settings.connection_window, parse_size(value, H2_WINDOW_USUAL, H2_WINDOW_MAX))
    })
    .native_only(HTTP11_ONLY)
    .help("the same for all responses of a connection (1 GiB)")
    .reference(
        "The window for all responses of a connection, at least 65,535 bytes.",
        "onrush --http2 --h2-connection-window 1MiB http://127.0.0.1:8080/",
    ),
    flag("--h2-max-frame SIZE", |draft, value| {
        put(&mut draft.http.settings.frame_max, parse_size(value, H2_FRAME_MIN, H2_FRAME_MAX))
    })
    .native_only(HTTP11_ONLY)
    .help("longest frame to accept (16 KiB)")
    .reference(
        "Largest frame that the server may send (`SETTINGS_MAX_FRAME_SIZE`): 16 KiB (default) to 16 MiB less a \
         byte.",
        "onrush --http2 --h2-max-frame 1MiB http://127.0.0.1:8080/",
    ),
    flag("--h2-table SIZE", |draft, value| put(&mut draft.http.settings.table, parse_size(value, 0, H2_TABLE_MAX)))
        .native_only(HTTP11_ONLY)
        .help("table for the server's header fields (4 KiB)")
        .reference(
            "Table size for the server's header compression (`SETTINGS_HEADER_TABLE_SIZE`): 4 KiB by default; 0 \
             disables the table.",
            "onrush --http2 --h2-table 0 http://127.0.0.1:8080/",
        ),
];

/// The options on HTTP versions, as typed.
#[derive(Debug, Default)]
pub(super) struct HttpDraft {
    /// Versions requested by `--http2`, `--http1.1` and `--alpn-list`, each with the option's name.
    versions: Vec<(&'static str, Vec<HttpVersion>)>,
    streams: Option<u32>,
    settings: Http2Settings,
}

impl HttpDraft {
    /// Contradictions between the requested versions are found later.
    fn set_versions(&mut self, value: Value, versions: Vec<HttpVersion>) -> Result<(), PlanRefusal> {
        let name = value.flag.name();
        self.versions.retain(|(other, _)| *other != name);
        self.versions.push((name, versions));
        Ok(())
    }
}

impl PlanDraft {
    /// The HTTP settings for this target. Rejects contradictory versions, and HTTP/2 options without HTTP/2. Warns
    /// about a window size that may be meant as h2load's exponent.
    pub(super) fn to_http(&self, target: &Target, warnings: &mut Vec<String>) -> Result<Http, PlanRefusal> {
        let HttpDraft { versions: typed, streams, settings } = &self.http;
        let versions = match &typed[..] {
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
        let exponent = settings.window.filter(|bits| (1..=EXPONENT_MAX).contains(bits));
        warnings.extend(exponent.map(|bits| {
            let (bytes, meant) = (format_count(bits.into(), "byte"), power_of_two(bits));
            format!("--h2-window {bits} is {bytes}; if you mean 2^{bits} bytes, as with h2load, write {meant}")
        }));
        let http = Http { versions, streams: *streams, settings: *settings };
        let is_of_http2 = |flag: &&Flag| flag.name() == "streams" || flag.name().starts_with("h2-");
        match self.typed_of(OPTIONS).find(is_of_http2) {
            Some(flag) if !http.may_be_http2() => {
                let name = flag.name();
                let add = match &typed[..] {
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

/// Refuses more requests in flight on a connection than it may have at all.
pub(super) fn check_streams(streams: Option<u32>, per_connection: Option<PerConnection>) -> Result<(), PlanRefusal> {
    match (streams, per_connection) {
        (Some(streams), Some(PerConnection { most, option })) if u64::from(streams) > most => {
            Err(PlanRefusal::Misused(format!(
                "--streams {streams}: a connection ends after {} ({}), so that no more are ever in flight on it; leave \
                 one of the two out",
                format_count(most, "request"),
                option.name(),
            )))
        }
        _ => Ok(()),
    }
}

/// Parses the protocols of `--alpn-list`.
fn parse_alpn_list(value: Value) -> Result<Vec<HttpVersion>, PlanRefusal> {
    let text = value.lossy();
    let mut versions = Vec::new();
    for name in text.split([',', ' ']).filter(|name| !name.is_empty()) {
        let version = match name {
            // The names of onrush's options are accepted as names of protocols.
            "http2" => Some(HttpVersion::Http2),
            "http1.1" => Some(HttpVersion::Http11),
            _ => HttpVersion::ALL.into_iter().find(|version| version.alpn() == name),
        };
        let version = version.ok_or_else(|| value.part(name).wrong("unknown; write h2,http/1.1"))?;
        if versions.contains(&version) {
            return Err(value.wrong(format_args!("{} is there twice", version.alpn())));
        }
        versions.push(version);
    }
    if versions.is_empty() {
        return Err(value.wrong("an empty list; write h2,http/1.1"));
    }
    Ok(versions)
}

/// Parses a size in bytes from `least` to `most`, with a decimal or binary unit.
fn parse_size(value: Value, least: u32, most: u32) -> Result<u32, PlanRefusal> {
    let text = value.lossy();
    let size = units::parse_size(&text).ok().and_then(|size| u32::try_from(size).ok());
    size.filter(|size| (least..=most).contains(size)).ok_or_else(|| {
        let exponent =
            size.filter(|bits| value.flag.name() == "h2-connection-window" && (1..=EXPONENT_MAX).contains(bits));
        let exponent = exponent.map(|bits| format!("h2load's {bits} is {}", power_of_two(bits)));
        let units = exponent.or_else(|| explain_both_units(&text));
        let units = units.unwrap_or_else(|| "k, M, KiB and MiB are units".to_owned());
        value.wrong(format_args!("write {least} to {most} bytes; {units}"))
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
