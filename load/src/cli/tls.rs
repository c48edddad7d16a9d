//! The options on TLS, and the resulting [`TlsOptions`] for a target.

use std::ffi::{OsStr, OsString};

use onrush_plan::target::Scheme;
use onrush_plan::tls::{ClientCertificate, GROUPS, SUITES, TlsName, TlsVersion};
use onrush_plan::{Dialect, FileContents, Http, Io, Target, TlsOptions};

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};

/// The options on TLS, as typed.
#[derive(Debug, Default)]
pub struct TypedTls {
    insecure: bool,
    roots: Option<FileContents>,
    certificates: Option<FileContents>,
    key: Option<FileContents>,
    name: Option<String>,
    oldest: Option<TlsVersion>,
    newest: Option<TlsVersion>,
    suites: Vec<u16>,
    groups: Vec<u16>,
    resume: Option<bool>,
    /// Names of the typed options, without duplicates.
    names: Vec<&'static str>,
}

impl TypedTls {
    /// Applies one option. Files are read later.
    pub fn apply_option(&mut self, flag: &'static Flag, value: OsString) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::CaCert => self.roots = Some(FileContents::unread(value)),
            Id::Cert => self.certificates = Some(FileContents::unread(value)),
            Id::Key => self.key = Some(FileContents::unread(value)),
            Id::Sni => self.name = Some(parse_utf8(flag, &value)?),
            Id::TlsMin => self.oldest = Some(parse_tls_version(flag, &value)?),
            Id::TlsMax => self.newest = Some(parse_tls_version(flag, &value)?),
            Id::TlsCiphers => self.suites = parse_name_list(flag, &value, SUITES, explain_missing_suite)?,
            Id::TlsGroups => self.groups = parse_name_list(flag, &value, GROUPS, |_| String::new())?,
            Id::TlsResume => self.resume = Some(parse_on_or_off(flag, &value)?),
            _ => self.insecure = true,
        }
        if !self.names.contains(&flag.spelling.long) {
            self.names.push(flag.spelling.long);
        }
        Ok(())
    }

    /// The TLS settings for this target. The imitated tools check certificates only if `--cacert` was typed.
    pub fn into_tls_options(
        self,
        target: &Target,
        http: &Http,
        dialect: Dialect,
        io: &Io,
        warnings: &mut Vec<String>,
    ) -> Result<Option<TlsOptions>, PlanRefusal> {
        if target.scheme != Scheme::Https {
            // ab's -k is keep-alive.
            let unused = |name| {
                let kept = if name == "insecure" { "; connections are kept alive anyway" } else { "" };
                format!("--{name} does nothing: the URL is not https://{kept}")
            };
            warnings.extend(self.names.into_iter().map(unused));
            return Ok(None);
        }
        if matches!(io, Io::Sim(_)) {
            return Err(PlanRefusal::Cannot("--io sim: the simulated servers speak no TLS; write http://".to_owned()));
        }
        if self.insecure && self.roots.is_some() {
            return Err(misused("--insecure and --cacert contradict each other; leave one of the two out"));
        }
        let identity = match (self.certificates, self.key) {
            (Some(certificates), key) => Some(ClientCertificate { certificates, key }),
            (None, Some(_)) => return Err(misused("--key needs a certificate; add --cert FILE")),
            (None, None) => None,
        };
        let (oldest, newest) = (self.oldest.unwrap_or(TlsVersion::V12), self.newest.unwrap_or(TlsVersion::V13));
        let is_offered = |suite: &u16| (oldest..=newest).contains(&TlsVersion::of_suite(*suite));
        if oldest > newest {
            return Err(misused("--tls-min 1.3 and --tls-max 1.2 leave no version; leave one of the two out"));
        }
        if !self.suites.is_empty() && !self.suites.iter().any(is_offered) {
            return Err(misused("--tls-ciphers names no suite that --tls-min and --tls-max allow; name another"));
        }
        let host = target.host.split('%').next().unwrap_or_default();
        Ok(Some(TlsOptions {
            name: self.name.unwrap_or_else(|| host.to_owned()),
            check: !self.insecure && (!dialect.is_compat() || self.roots.is_some()),
            roots: self.roots,
            identity,
            oldest,
            newest,
            suites: self.suites,
            groups: self.groups,
            alpn: if dialect.is_compat() { Vec::new() } else { http.versions.clone() },
            resume: self.resume.unwrap_or(true),
        }))
    }
}

fn misused(line: &str) -> PlanRefusal {
    PlanRefusal::Misused(line.to_owned())
}

fn parse_utf8(flag: &Flag, value: &OsStr) -> Result<String, PlanRefusal> {
    let text = value.to_str().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| wrong(flag, value, "not a name; try www.example.com"))
}

fn parse_tls_version(flag: &Flag, value: &OsStr) -> Result<TlsVersion, PlanRefusal> {
    match value.to_str() {
        Some("1.2") => Ok(TlsVersion::V12),
        Some("1.3") => Ok(TlsVersion::V13),
        Some("1.0" | "1.1" | "1") => Err(wrong(flag, value, "versions before 1.2 are not offered; write 1.2 or 1.3")),
        _ => Err(wrong(flag, value, "unknown; write 1.2 or 1.3")),
    }
}

fn parse_on_or_off(flag: &Flag, value: &OsStr) -> Result<bool, PlanRefusal> {
    match value.to_str() {
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        _ => Err(wrong(flag, value, "unknown; write on or off")),
    }
}

/// Parses a list of names into their numbers. `why` explains for a known name why it is not offered.
fn parse_name_list(
    flag: &Flag,
    value: &OsStr,
    table: &'static [TlsName],
    why: impl Fn(&str) -> String,
) -> Result<Vec<u16>, PlanRefusal> {
    let text = value.to_string_lossy();
    let names = text.split([':', ',', ' ']).filter(|name| !name.is_empty());
    let number = |name: &str| {
        let known: Vec<&str> = table.iter().filter_map(|named| named.names.last().copied()).collect();
        let unknown = || wrong(flag, OsStr::new(name), format_args!("{}write some of {}", why(name), known.join(":")));
        TlsName::find(table, name).map(|named| named.number).ok_or_else(unknown)
    };
    let numbers: Vec<u16> = names.map(number).collect::<Result<_, _>>()?;
    if numbers.is_empty() {
        return Err(wrong(flag, value, "an empty list; for the usual ones leave the option out"));
    }
    Ok(numbers)
}

/// The reason why a cipher suite known to OpenSSL is not offered.
fn explain_missing_suite(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    let has = |part: &str| name.contains(part);
    let is_modern = has("GCM") || has("CHACHA20") || has("CCM");
    let reason = if !has("ECDHE") && !has("DHE") {
        "RSA key exchange is"
    } else if !is_modern {
        "suites with CBC are"
    } else if !has("ECDHE") {
        "DHE is"
    } else {
        return String::new();
    };
    format!("{reason} not offered; ")
}
