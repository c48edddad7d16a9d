//! A parsed URL: where to connect, and what to request.
//!
//! The rules are wrk's, widened where wrk loses or refuses a valid URL of RFC 3986: a fragment is not sent, a query
//! needs no path, a user name is kept, a host may contain `_`. Nothing is resolved or normalised: the path is sent as
//! typed.

use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::{Dialect, percent_encoding};

/// The server and the path that a URL names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The URL exactly as typed, for the report's first line.
    pub typed: String,
    /// The scheme; in the native dialect, `http` if the URL has none.
    pub scheme: Scheme,
    /// The name, or the address without brackets; an IPv6 address may end in `%zone`.
    pub host: String,
    /// The port, if the URL names one; `None`: the scheme's default port.
    pub port: Option<u16>,
    /// The port as typed, leading zeros included.
    pub port_text: Option<String>,
    /// The request target: path and query without the fragment, beginning with `/`.
    pub path: String,
    /// `user:password`, percent-decoded; the colon is always there.
    pub userinfo: Option<String>,
}

/// The protocol of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// HTTP over TCP.
    Http,
    /// HTTP over TLS over TCP.
    Https,
    /// Any other word, in upper or lower case: as in wrk, HTTP over TCP with a required port. Compat dialects only.
    Other(String),
}

/// A string that is not a usable URL. The message gives the reason and, for most faults, the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{typed:?} is not a URL: {reason}")]
pub struct InvalidUrl {
    /// The text as typed.
    pub typed: String,
    /// The fault and the remedy, in words.
    pub reason: String,
}

impl Target {
    /// Parses a URL. In the native dialect a missing scheme means `http` and an unknown one is an error; the compat
    /// dialects require a scheme and accept any.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, InvalidUrl> {
        parse(text, dialect).map_err(|reason| InvalidUrl { typed: text.to_owned(), reason })
    }

    /// The service to resolve: the port as typed, or else the scheme.
    pub fn service(&self) -> String {
        self.port_text.as_deref().unwrap_or(self.scheme.name()).to_owned()
    }

    /// The value of the `Host` header: an IPv6 address in brackets and without its zone, the port as typed.
    pub fn authority(&self) -> String {
        let host = self.host.split('%').next().unwrap_or_default();
        let mut authority = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        if let Some(port) = &self.port_text {
            authority.push(':');
            authority.push_str(port);
        }
        authority
    }
}

impl Scheme {
    /// The scheme's name in a URL.
    pub fn name(&self) -> &str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Other(name) => name,
        }
    }

    /// The scheme named by a word; wrk treats every word that begins with `https` as `https`.
    fn parse(name: &str, dialect: Dialect) -> Result<Self, String> {
        let is_http2 = ["h2c", "h2", "grpc"].iter().any(|other| name.eq_ignore_ascii_case(other));
        if is_http2 && !dialect.is_compat() {
            Err(format!("the scheme \"{name}\" is unknown; write http:// and add --http2"))
        } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            Err(format!("\"{name}\" is not a scheme; write http://"))
        } else if name.eq_ignore_ascii_case("http") {
            Ok(Self::Http)
        } else if name.eq_ignore_ascii_case("https") || (dialect.is_compat() && name.starts_with("https")) {
            Ok(Self::Https)
        } else if dialect.is_compat() {
            Ok(Self::Other(name.to_owned()))
        } else {
            Err(format!("the scheme \"{name}\" is unknown; write http://"))
        }
    }
}

fn parse(text: &str, dialect: Dialect) -> Result<Target, String> {
    check_characters(text)?;
    let (scheme, start) = parse_scheme(text, dialect)?;
    let end = text[start..].find(['/', '?', '#']).map_or(text.len(), |length| start + length);
    let (userinfo, start) = match text[start..end].rfind('@') {
        Some(length) => (parse_userinfo(text, start, start + length)?, start + length + 1),
        None => (None, start),
    };
    let (host, port_text) = parse_host(text, start, end)?;
    let port = port_text.as_deref().map(|port| parse_port(port, dialect)).transpose()?;
    Ok(Target { typed: text.to_owned(), scheme, host, port, port_text, path: request_target(&text[end..]), userinfo })
}

/// Accepts only printable ASCII, so that every byte is a character afterwards. Positions in messages count from 1.
fn check_characters(text: &str) -> Result<(), String> {
    let Some((index, strange)) = text.chars().enumerate().find(|(_, character)| !character.is_ascii_graphic()) else {
        return Ok(());
    };
    let what = match strange {
        ' ' => "a blank".to_owned(),
        '\t' => "a tab".to_owned(),
        _ if strange.is_control() => "a control character".to_owned(),
        _ => format!("{strange:?}"),
    };
    let encoded = percent_encoded(strange);
    let host = if strange.is_ascii() { "" } else { ", or the xn-- form of a host name" };
    Err(format!("{what} at character {}; write {encoded}{host}", index + 1))
}

/// The bytes of a character in UTF-8, each as `%XX`.
pub fn percent_encoded(character: char) -> String {
    character.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The scheme, and the start of the authority.
fn parse_scheme(text: &str, dialect: Dialect) -> Result<(Scheme, usize), String> {
    if let Some((name, _)) = text.split_once("://").filter(|(name, _)| !name.contains(['/', '?', '#'])) {
        return Ok((Scheme::parse(name, dialect)?, name.len() + "://".len()));
    }
    let word = text.split(':').next().unwrap_or_default();
    if text.contains(':') && (word.eq_ignore_ascii_case("http") || word.eq_ignore_ascii_case("https")) {
        return Err(format!("two slashes must follow the scheme; write {word}://"));
    }
    let word = text.split('/').next().unwrap_or_default();
    let is_http = word.eq_ignore_ascii_case("http") || word.eq_ignore_ascii_case("https");
    if !dialect.is_compat() && is_http && text[word.len()..].starts_with("//") {
        return Err(format!("a colon must follow the scheme; write {word}://"));
    }
    if dialect.is_compat() { Err("no scheme; write http:// in front".to_owned()) } else { Ok((Scheme::Http, 0)) }
}

/// The user and password between two positions of the text; `None` if there are none.
fn parse_userinfo(text: &str, start: usize, end: usize) -> Result<Option<String>, String> {
    let raw = &text[start..end];
    if let Some(length) = raw.find(|character: char| !is_userinfo(character)) {
        let (strange, place) = (raw.as_bytes()[length], start + length + 1);
        return Err(format!("{:?} in the user name at character {place}; write %{strange:02X}", char::from(strange)));
    }
    if raw.is_empty() {
        return Ok(None);
    }
    let mut decoded = String::from_utf8(percent_encoding::percent_decoded(raw.as_bytes()))
        .map_err(|_| "the user name is not UTF-8 when decoded")?;
    if !raw.contains(':') {
        decoded.push(':');
    }
    Ok(Some(decoded))
}

fn is_userinfo(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.!~*'()%;:&=+$,".contains(character)
}

/// The host without brackets and the port's digits, between two positions of the text.
fn parse_host(text: &str, start: usize, end: usize) -> Result<(String, Option<String>), String> {
    let authority = &text[start..end];
    if !authority.starts_with('[') && authority.matches(':').count() > 1 {
        return Err(unbracketed_ipv6_suggestion(authority));
    }
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (address, rest) = inside.split_once(']').ok_or("the bracket of the address is not closed")?;
            (parse_bracketed_host(address)?, rest)
        }
        None => {
            let (name, rest) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            (parse_named_host(name, start)?, rest)
        }
    };
    let port = match rest.strip_prefix(':') {
        Some("") => return Err(format!("no port after the colon at character {end}")),
        Some(port) => Some(port.to_owned()),
        None if rest.is_empty() => None,
        None => return Err("only :PORT may follow the address in brackets".to_owned()),
    };
    Ok((host, port))
}

/// A suggestion for an IPv6 address without brackets. The part after its last colon is the port if the rest is an
/// address.
fn unbracketed_ipv6_suggestion(text: &str) -> String {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    let with_port = text.rsplit_once(':').filter(|(address, port)| is_address(address) && port.parse::<u16>().is_ok());
    let right = match with_port {
        Some((address, port)) => format!("write [{address}]:{port}"),
        None if is_address(text) => format!("write [{text}]"),
        None => "for instance [::1]:8080".to_owned(),
    };
    format!("an IPv6 address is written in brackets; {right}")
}

/// The host in brackets: an address, optionally with a zone after `%` or, as in RFC 6874, `%25`.
fn parse_bracketed_host(text: &str) -> Result<String, String> {
    let (address, zone) = text.split_once('%').map_or((text, None), |(address, zone)| (address, Some(zone)));
    if address.parse::<IpAddr>().is_err() {
        return Err(format!("\"{address}\" is not an IPv6 address"));
    }
    let Some(zone) = zone else { return Ok(address.to_owned()) };
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if zone.is_empty() || !zone.bytes().all(allowed) {
        return Err(format!("\"{zone}\" is not the name of a network interface"));
    }
    Ok(format!("{address}%{zone}"))
}

/// The host as a name or IPv4 address, starting at `start` of the text.
fn parse_named_host(name: &str, start: usize) -> Result<String, String> {
    if name.is_empty() {
        return Err(format!("no host at character {}", start + 1));
    }
    let allowed = |character: char| character.is_ascii_alphanumeric() || ".-_".contains(character);
    match name.find(|character: char| !allowed(character)) {
        Some(place) => {
            let strange = char::from(name.as_bytes()[place]);
            Err(format!("{strange:?} at character {} cannot be in a host name", start + place + 1))
        }
        None => Ok(name.to_owned()),
    }
}

/// The port number. Like wrk, the compat dialects accept 0; connecting to it fails.
fn parse_port(port: &str, dialect: Dialect) -> Result<u16, String> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { port.parse::<u16>().ok() } else { None };
    number
        .filter(|number| *number != 0 || dialect.is_compat())
        .ok_or_else(|| format!("the port \"{port}\" is not a number from 1 to 65535"))
}

/// The request target, from the text after the authority.
fn request_target(text: &str) -> String {
    let sent = text.split('#').next().unwrap_or_default();
    if sent.starts_with('/') { sent.to_owned() } else { format!("/{sent}") }
}

#[cfg(test)]
mod tests;
