//! The options on connecting to the target, as typed, and the resulting [`ConnectOptions`].

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::path::PathBuf;

use onrush_plan::connect::{BadSources, ConnectOptions, Family, SourceAddresses};
use onrush_plan::target::Scheme;
use onrush_plan::{Dialect, Io, Target};

use super::flags::{Flag, Id};
use super::foreign;
use super::proxy;
use super::refusal::{PlanRefusal, wrong};
use super::values::{parse_buffer, parse_congestion};

/// Maximum length of a Unix socket path, in bytes, without the terminating zero.
const UNIX_MAX: usize = 107;

/// The options on connecting, as typed.
#[derive(Debug, Default)]
pub struct TypedConnect {
    options: ConnectOptions,
    /// All `--connect-to` options, in order.
    instead: Vec<ConnectTo>,
    /// All `--resolve` options, in order.
    resolved: Vec<ResolvedHost>,
    /// The last option that was applied; a simulation rejects all of them.
    last: Option<&'static Flag>,
}

/// A `--connect-to` option. An empty host or a missing port stands for any in `of`, and for that of the URL in `to`.
#[derive(Debug)]
struct ConnectTo {
    typed: String,
    of: (String, Option<u16>),
    to: (String, Option<u16>),
}

/// A `--resolve` option.
#[derive(Debug)]
struct ResolvedHost {
    typed: String,
    host: String,
    port: Option<u16>,
    address: IpAddr,
}

impl TypedConnect {
    /// Applies one option. `--connect-to` and `--resolve` accumulate; of the others, the last one wins.
    pub fn apply_option(&mut self, flag: &'static Flag, value: &OsStr, dialect: Dialect) -> Result<(), PlanRefusal> {
        match flag.id {
            Id::BindIp => self.options.sources = Some(parse_source_addresses(flag, value, dialect)?),
            Id::ConnectTo => self.instead.push(parse_connect_to(flag, value)?),
            Id::Resolve => self.resolved.push(parse_resolved_host(flag, value)?),
            Id::HttpProxy => self.options.proxy = Some(proxy::parse_proxy(flag, value)?),
            Id::Ipv4 => self.options.family = Some(Family::V4),
            Id::Ipv6 => self.options.family = Some(Family::V6),
            _ if !(1..=UNIX_MAX).contains(&value.len()) => {
                let right = format!("a path has 1 to {UNIX_MAX} bytes; try /run/app.sock");
                return Err(wrong(flag, value, right));
            }
            _ => self.options.unix = Some(PathBuf::from(OsString::from(value))),
        }
        self.last = Some(flag);
        Ok(())
    }

    /// Applies one option that sets a property of sockets.
    pub fn apply_socket_option(&mut self, flag: &'static Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        let socket = &mut self.options.socket;
        match flag.id {
            Id::Rcvbuf => socket.rcvbuf = Some(parse_buffer(flag, value)?),
            Id::Sndbuf => socket.sndbuf = Some(parse_buffer(flag, value)?),
            _ => socket.congestion = Some(parse_congestion(flag, value)?),
        }
        self.last = Some(flag);
        Ok(())
    }

    /// The options for connecting to this target. Rejects contradictory combinations, and warns about options that are
    /// ignored because they name another host or port.
    pub fn into_connect_options(
        mut self,
        target: &Target,
        io: &Io,
        warnings: &mut Vec<String>,
    ) -> Result<ConnectOptions, PlanRefusal> {
        if let (Io::Sim(_), Some(flag)) = (io, self.last) {
            let why = match flag.id {
                Id::Rcvbuf | Id::Sndbuf | Id::Congestion => "are reached without sockets",
                _ => "are reached directly",
            };
            let line = format!("--{}: the simulated servers {why}; leave one of the two out", flag.spelling.long);
            return Err(PlanRefusal::Cannot(line));
        }
        if self.options.unix.is_some() && (!self.instead.is_empty() || self.options.sources.is_some()) {
            let line = "--unix connects to no address: leave out --connect-to and --bind-ip, or --unix";
            return Err(PlanRefusal::Misused(line.to_owned()));
        }
        if self.options.unix.is_some() && self.options.socket.congestion.is_some() {
            let line = "--congestion is for TCP, which --unix does not use: leave one of the two out";
            return Err(PlanRefusal::Misused(line.to_owned()));
        }
        if self.options.unix.is_some() && self.options.socket.rcvbuf.is_some() {
            let line =
                "--rcvbuf has no effect on a Unix socket, where the sender's buffer counts: leave one of the two out";
            return Err(PlanRefusal::Misused(line.to_owned()));
        }
        let elsewhere = self.options.unix.as_ref().map(|_| "--unix");
        if let (Some(option), Some(_)) =
            (elsewhere.or(self.instead.first().map(|_| "--connect-to")), &self.options.proxy)
        {
            let line = format!("--http-proxy and {option} both set where connections go: leave one of the two out");
            return Err(PlanRefusal::Misused(line));
        }
        if let (Some(sources), Some(family)) = (self.options.sources, self.options.family)
            && sources.family() != family
        {
            let option = if family == Family::V4 { "-4" } else { "-6" };
            let typed = sources.family().name();
            let allowed = family.name();
            let line =
                format!("--bind-ip has {typed} addresses, but {option} means {allowed}; leave one of the two out");
            return Err(PlanRefusal::Misused(line));
        }
        self.decide_host(target, warnings);
        Ok(self.options)
    }

    /// Decides the host and addresses to connect to. If several `--connect-to` match, the last one wins.
    fn decide_host(&mut self, target: &Target, warnings: &mut Vec<String>) {
        let usual = if target.scheme == Scheme::Https { 443 } else { 80 };
        let host = &target.host;
        let port = target.port.unwrap_or(usual);
        for ConnectTo { typed, of, to } in std::mem::take(&mut self.instead) {
            let is_meant = (of.0.is_empty() || of.0.eq_ignore_ascii_case(host)) && of.1.is_none_or(|only| only == port);
            if is_meant {
                let there = if to.0.is_empty() { host.clone() } else { to.0 };
                self.options.instead = Some((there, to.1));
            } else {
                warnings.push(format!("--connect-to {typed} is ignored: the URL is for {host}:{port}"));
            }
        }
        let instead = self.options.instead.as_ref().map(|to| (&to.0, to.1.unwrap_or(port), "--connect-to"));
        let proxy = self.options.proxy.as_ref().map(|proxy| (&proxy.host, proxy.port, "the proxy"));
        let (wanted, port, whose) = proxy.or(instead).unwrap_or((host, port, "the URL"));
        for ResolvedHost { typed, host, port: only, address } in std::mem::take(&mut self.resolved) {
            if host.eq_ignore_ascii_case(wanted) && only.is_none_or(|only| only == port) {
                self.options.resolved.push(address);
            } else {
                warnings.push(format!("--resolve {typed} is ignored: {whose} is for {wanted}:{port}"));
            }
        }
    }
}

/// Parses a range of source addresses. The compat dialects print wrk-cmm's messages, where it has one.
fn parse_source_addresses(flag: &Flag, value: &OsStr, dialect: Dialect) -> Result<SourceAddresses, PlanRefusal> {
    let text = value.to_string_lossy();
    SourceAddresses::parse(&text).map_err(|reason| match (reason, dialect.is_compat()) {
        (BadSources::Address, true) => PlanRefusal::Wrk(format!("could not parse range: {text}")),
        (BadSources::Mask, true) => PlanRefusal::Wrk(format!("invalid mask in range: {text}")),
        (BadSources::Address, false) => {
            let meant = foreign::foreign_value_hint(flag.id, &text);
            // curl's `-b` takes cookies, which are secrets.
            let shown = text.split_once('=').map_or(text.to_string(), |(name, _)| format!("{name}=…"));
            wrong(flag, OsStr::new(&shown), meant.unwrap_or("not an address; try 10.0.0.5 or 10.0.0.0/28"))
        }
        (BadSources::Mask, false) => wrong(
            flag,
            value,
            "the number after the slash is the length of the network prefix: at most 32, or 128 for IPv6",
        ),
        (BadSources::TooMany, _) => wrong(flag, value, format_args!("more than {} addresses", SourceAddresses::MAX)),
    })
}

/// Parses `HOST:PORT`, `HOST`, or curl's `HOST1:PORT1:HOST2:PORT2` with any part empty. An IPv6 address is in brackets
/// unless it stands alone.
fn parse_connect_to(flag: &Flag, value: &OsStr) -> Result<ConnectTo, PlanRefusal> {
    const EXAMPLE: &str = "not a host and a port; try 10.0.0.5:8080";
    let bad = || wrong(flag, value, EXAMPLE);
    let host = |part: &str| {
        let inside = part.strip_prefix('[').and_then(|inside| inside.strip_suffix(']'));
        let host = inside.unwrap_or(part);
        if inside == Some("") || host.contains(['[', ']']) { Err(bad()) } else { Ok(host.to_owned()) }
    };
    let port = |part: &str| match part {
        "" => Ok(None),
        part => part.parse().ok().filter(|port| *port > 0).map(Some).ok_or_else(bad),
    };
    let typed = value.to_str().ok_or_else(bad)?;
    let any = || (String::new(), None);
    let parts = split_at_colons(typed);
    let is_address = typed.parse::<IpAddr>().is_ok();
    if is_address && parts.len() == 4 {
        return Err(wrong(
            flag,
            value,
            "ambiguous; write an IPv6 address in brackets, as in [::1]:80, or HOST:PORT:HOST:PORT with no part empty",
        ));
    }
    let (of, to) = match *parts {
        _ if is_address => (any(), (typed.to_owned(), None)),
        [there] if !there.is_empty() => (any(), (host(there)?, None)),
        [there, number] if !there.is_empty() && !number.is_empty() => (any(), (host(there)?, port(number)?)),
        [of, of_port, to, to_port] => ((host(of)?, port(of_port)?), (host(to)?, port(to_port)?)),
        _ => return Err(bad()),
    };
    Ok(ConnectTo { typed: typed.to_owned(), of, to })
}

/// Splits a text at its colons, except those inside brackets.
fn split_at_colons(text: &str) -> Vec<&str> {
    let mut is_inside = false;
    let is_border = |character: char| {
        is_inside = character == '[' || (is_inside && character != ']');
        character == ':' && !is_inside
    };
    text.split(is_border).collect()
}

/// Parses `HOST:ADDRESS`, or curl's `HOST:PORT:ADDRESS`. An IPv6 address may be in brackets.
fn parse_resolved_host(flag: &Flag, value: &OsStr) -> Result<ResolvedHost, PlanRefusal> {
    const EXAMPLE: &str = "write a host and an address, for instance www.example.com:10.0.0.5";
    let bad = || wrong(flag, value, EXAMPLE);
    let typed = value.to_str().ok_or_else(bad)?.to_owned();
    let (host, rest) = typed.split_once(':').filter(|(host, _)| !host.is_empty()).ok_or_else(bad)?;
    let address = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let (port, address) = match (address(rest), rest.split_once(':')) {
        (Some(whole), _) => (None, whole),
        (None, Some((port, rest))) => (Some(port.parse().map_err(|_| bad())?), address(rest).ok_or_else(bad)?),
        (None, None) => return Err(bad()),
    };
    Ok(ResolvedHost { host: host.to_owned(), port, address, typed })
}
