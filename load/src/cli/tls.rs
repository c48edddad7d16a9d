//! The options on TLS, and the resulting [`TlsOptions`] for a target.

use onrush_plan::target::Scheme;
use onrush_plan::tls::{ClientCertificate, GROUPS, SUITES, TlsName, TlsVersion};
use onrush_plan::{FileContents, Http, Target, TlsOptions};

use super::draft::PlanDraft;
use super::flag::{Flag, flag, put, switch};
use super::refusal::PlanRefusal;
use super::values::Value;

pub(super) const OPTIONS: &[Flag] = &[
    switch("-k, --insecure")
        .common()
        .help("do not check the server's certificate")
        .reference("Does not check the server's certificate.", "onrush -k https://127.0.0.1:8443/"),
    flag("--cacert FILE", |draft, value| put(&mut draft.tls.roots, Ok(FileContents::unread(value.path()))))
        .help("trust the certificates in FILE (PEM) instead of the\nsystem's; one of them may be the server's own")
        .reference(
            "Trusts the certificates in FILE (PEM) instead of the system's; one may be the server's own.",
            "onrush --cacert ca.pem https://127.0.0.1:8443/",
        ),
    flag("--cert FILE", |draft, value| put(&mut draft.tls.certificates, Ok(FileContents::unread(value.path()))))
        .help("client certificate (PEM)")
        .reference(
            "Client certificate (PEM), followed by the intermediate certificates.",
            "onrush -k --cert client.pem --key client-key.pem https://127.0.0.1:8443/",
        ),
    flag("--key FILE", |draft, value| put(&mut draft.tls.key, Ok(FileContents::unread(value.path()))))
        .help("its key (PEM), if it is not in the same file")
        .reference(
            "Unencrypted key of `--cert` (PEM), if it is in a separate file.",
            "onrush -k --cert client.pem --key client-key.pem https://127.0.0.1:8443/",
        ),
    flag("--sni NAME", |draft, value| {
        let name = value.utf8().filter(|text| !text.is_empty());
        draft.tls.name = Some(name.ok_or_else(|| value.wrong("not a name; try www.example.com"))?.to_owned());
        Ok(())
    })
    .help("server name to send and to check (the URL's host)")
    .reference(
        "Server name to send (SNI) and to check, instead of the URL's host. IP addresses are never sent.",
        "onrush --cacert ca.pem --sni www.example.com https://127.0.0.1:8443/",
    ),
    flag("--tls-min VERSION", |draft, value| put(&mut draft.tls.oldest, parse_tls_version(value)))
        .one_of(&["1.2", "1.3"])
        .help("oldest version to offer: 1.2 or 1.3 (1.2)")
        .reference("Oldest version to offer: 1.2 (default) or 1.3.", "onrush -k --tls-min 1.3 https://127.0.0.1:8443/"),
    flag("--tls-max VERSION", |draft, value| put(&mut draft.tls.newest, parse_tls_version(value)))
        .one_of(&["1.2", "1.3"])
        .help("newest version to offer: 1.2 or 1.3 (1.3)")
        .reference("Newest version to offer: 1.2 or 1.3 (default).", "onrush -k --tls-max 1.2 https://127.0.0.1:8443/"),
    flag("--tls-ciphers LIST", |draft, value| {
        put(&mut draft.tls.suites, parse_name_list(value, SUITES, explain_missing_suite))
    })
    .help("cipher suites to offer, by OpenSSL or IANA name, most\npreferred first, separated by colons")
    .reference(
        "Cipher suites to offer, most preferred first, separated by colons or commas, by IANA or OpenSSL name. A \
         TLS version without a suite in the list is not offered.",
        "onrush -k --tls-ciphers TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256 https://127.0.0.1:8443/",
    ),
    flag("--tls-groups LIST", |draft, value| {
        put(&mut draft.tls.groups, parse_name_list(value, GROUPS, |_| String::new()))
    })
    .help("key exchange groups to offer, likewise\n(X25519:P-256:P-384:X25519MLKEM768)")
    .reference(
        "Key exchange groups to offer, most preferred first. Default: `X25519`, `P-256`, `P-384`, \
         `X25519MLKEM768`.",
        "onrush -k --tls-groups P-256 https://127.0.0.1:8443/",
    ),
    flag("--tls-resume WHEN", |draft, value| put(&mut draft.tls.resume, value.choice(&[true, false])))
        .one_of(&["on", "off"])
        .help("whether a connection resumes the TLS session of the\none that it replaces: on or off (on)")
        .reference(
            "`on` (default): a connection resumes the TLS session of the one it replaces; `off`: full handshakes. \
             Simultaneous connections never share a session.",
            "onrush -k --tls-resume off -H 'Connection: close' https://127.0.0.1:8443/",
        ),
];

/// The options on TLS, as typed. Files are read later.
#[derive(Debug, Default)]
pub(super) struct TlsDraft {
    roots: Option<FileContents>,
    certificates: Option<FileContents>,
    key: Option<FileContents>,
    name: Option<String>,
    oldest: Option<TlsVersion>,
    newest: Option<TlsVersion>,
    suites: Vec<u16>,
    groups: Vec<u16>,
    resume: Option<bool>,
}

impl PlanDraft {
    /// The TLS settings for this target. The imitated tools check certificates only if `--cacert` was typed.
    pub(super) fn to_tls_options(
        &self,
        target: &Target,
        http: &Http,
        warnings: &mut Vec<String>,
    ) -> Result<Option<TlsOptions>, PlanRefusal> {
        let (typed, is_compat) = (&self.tls, self.dialect.is_compat());
        if target.scheme != Scheme::Https {
            // ab's -k is keep-alive.
            let unused = |flag: &Flag| {
                let kept = if flag.name() == "insecure" { "; connections are kept alive anyway" } else { "" };
                format!("--{} does nothing: the URL is not https://{kept}", flag.name())
            };
            warnings.extend(self.typed_of(OPTIONS).map(unused));
            return Ok(None);
        }
        if self.is_simulated() {
            return Err(PlanRefusal::Cannot("--io sim: the simulated servers speak no TLS; write http://".to_owned()));
        }
        let is_insecure = self.has("insecure");
        if is_insecure && typed.roots.is_some() {
            return Err(PlanRefusal::both("--insecure", "--cacert", "the first checks no certificate"));
        }
        let identity = match (typed.certificates.clone(), typed.key.clone()) {
            (Some(certificates), key) => Some(ClientCertificate { certificates, key }),
            (None, Some(_)) => return Err(misused("--key needs a certificate; add --cert FILE")),
            (None, None) => None,
        };
        let (oldest, newest) = (typed.oldest.unwrap_or(TlsVersion::V12), typed.newest.unwrap_or(TlsVersion::V13));
        let is_offered = |suite: &u16| (oldest..=newest).contains(&TlsVersion::of_suite(*suite));
        if oldest > newest {
            return Err(misused("--tls-min 1.3 and --tls-max 1.2 leave no version; leave one of the two out"));
        }
        if !typed.suites.is_empty() && !typed.suites.iter().any(is_offered) {
            return Err(misused("--tls-ciphers names no suite that --tls-min and --tls-max allow; name another"));
        }
        let host = target.host.split('%').next().unwrap_or_default();
        Ok(Some(TlsOptions {
            name: typed.name.clone().unwrap_or_else(|| host.to_owned()),
            check: !is_insecure && (!is_compat || typed.roots.is_some()),
            roots: typed.roots.clone(),
            identity,
            oldest,
            newest,
            suites: typed.suites.clone(),
            groups: typed.groups.clone(),
            alpn: if is_compat { Vec::new() } else { http.versions.clone() },
            resume: typed.resume.unwrap_or(true),
        }))
    }
}

fn misused(line: &str) -> PlanRefusal {
    PlanRefusal::Misused(line.to_owned())
}

fn parse_tls_version(value: Value) -> Result<TlsVersion, PlanRefusal> {
    if let Some("1.0" | "1.1" | "1") = value.utf8() {
        return Err(value.wrong("versions before 1.2 are not offered; write 1.2 or 1.3"));
    }
    value.choice(&[TlsVersion::V12, TlsVersion::V13])
}

/// Parses a list of names into their numbers. `why` explains for a known name why it is not offered.
fn parse_name_list(
    value: Value,
    table: &'static [TlsName],
    why: impl Fn(&str) -> String,
) -> Result<Vec<u16>, PlanRefusal> {
    let text = value.lossy();
    let names = text.split([':', ',', ' ']).filter(|name| !name.is_empty());
    let number = |name: &str| {
        let known: Vec<&str> = table.iter().filter_map(|named| named.names.last().copied()).collect();
        let unknown = || value.part(name).wrong(format_args!("{}write some of {}", why(name), known.join(":")));
        TlsName::find(table, name).map(|named| named.number).ok_or_else(unknown)
    };
    let numbers: Vec<u16> = names.map(number).collect::<Result<_, _>>()?;
    if numbers.is_empty() {
        return Err(value.wrong("an empty list; for the usual ones leave the option out"));
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
