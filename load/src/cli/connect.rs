//! The options on connecting to the target, and the resulting [`ConnectOptions`].

use std::net::IpAddr;

use onrush_plan::connect::{BadSources, ConnectOptions, Family, SourceAddresses};
use onrush_plan::limits::BUFFER_MAX;
use onrush_plan::target::Scheme;
use onrush_plan::{SocketOptions, Target, secrets};

use super::draft::PlanDraft;
use super::flag::Origin::WrkCmm;
use super::flag::{Flag, Need, Secrecy, flag, put};
use super::proxy;
use super::refusal::PlanRefusal;
use super::values::Value;

/// Maximum length of a Unix socket path, in bytes, without the terminating zero.
const UNIX_MAX: usize = 107;

/// Simulated servers have neither addresses nor sockets.
const REAL_SERVERS: Need = (
    |draft| !draft.is_simulated(),
    "the simulated servers are reached directly, without sockets; leave it out, or --io sim",
);

const OWN_DESTINATION: &str = "both set where connections go";

pub(super) const OPTIONS: &[Flag] = &[
    flag("-b, --bind-ip A", |draft, value| put(&mut draft.connect.options.sources, parse_source_addresses(value)))
        .from(WrkCmm)
        .needs(&[REAL_SERVERS])
        .help("source address, or a range of them: ADDR[/BITS]")
        .reference(
            "Source address of connections, or a range used in turn: `10.0.0.5` or `10.0.0.0/28` (15 addresses: as in \
             wrk-cmm the first is skipped, except in a /31). At most 65,536, each with its own [local \
             ports](pacing.md#connections-and-local-ports).",
            "onrush -b 127.0.0.1/28 http://127.0.0.1:8080/",
        ),
    flag("--connect-to ADDR", |draft, value| {
        draft.connect.instead.push(parse_connect_to(value)?);
        Ok(())
    })
    .repeatable()
    .needs(&[REAL_SERVERS])
    .help("connect to HOST:PORT instead of the URL's; curl's form\nHOST1:PORT1:HOST2:PORT2 is accepted too")
    .reference(
        "Connects to `HOST:PORT` instead of the URL's host and port, with the same `Host` and certificate name. \
         curl's `HOST1:PORT1:HOST2:PORT2` works too. Repeatable; the last match wins.",
        "onrush --connect-to 127.0.0.1:8080 http://www.example.com/",
    ),
    flag("--resolve H:A", |draft, value| {
        draft.connect.resolved.push(parse_resolved_host(value)?);
        Ok(())
    })
    .repeatable()
    .needs(&[REAL_SERVERS])
    .help("use address A for the URL's host H; may be repeated")
    .reference(
        "Uses address A for the URL's host H instead of the resolver, also as curl's `HOST:PORT:ADDR`. Repeatable: \
         connections use the addresses in turn.",
        "onrush --resolve www.example.com:127.0.0.1 http://www.example.com:8080/",
    ),
    flag("-4, --ipv4", |draft, _| put(&mut draft.connect.options.family, Ok(Family::V4)))
        .needs(&[REAL_SERVERS])
        .help("use IPv4 addresses only")
        .reference("Uses IPv4 addresses only.", "onrush -4 http://127.0.0.1:8080/"),
    flag("-6, --ipv6", |draft, _| put(&mut draft.connect.options.family, Ok(Family::V6)))
        .needs(&[REAL_SERVERS])
        .help("use IPv6 addresses only")
        .reference(
            "Uses IPv6 addresses only.\n\n\
             ```console\n\
             $ onrush -6 http://127.0.0.1:8080/\n\
             onrush: cannot resolve 127.0.0.1: the name has no IPv6 address\n\
             ```",
            "",
        ),
    flag("--unix PATH", |draft, value| {
        if !(1..=UNIX_MAX).contains(&value.text.len()) {
            return Err(value.wrong(format_args!("a path has 1 to {UNIX_MAX} bytes; try /run/app.sock")));
        }
        draft.connect.options.unix = Some(value.path());
        Ok(())
    })
    .excludes(&[
        ("connect-to", "a Unix socket has no address"),
        ("bind-ip", "a Unix socket has no address"),
        ("congestion", "a Unix socket does not use TCP"),
        ("rcvbuf", "on a Unix socket the sender's buffer counts"),
    ])
    .needs(&[REAL_SERVERS])
    .help("connect to a Unix socket instead of the URL's host")
    .reference(
        "Connects to a Unix socket instead of the URL's host. The URL still determines the request and the TLS \
         name.",
        "onrush --unix app.sock http://www.example.com/",
    ),
    flag("--http-proxy URL", |draft, value| put(&mut draft.connect.options.proxy, proxy::parse_proxy(value)))
        .hiding(Secrecy::Replaced(|value| Some(secrets::redact_url(value))))
        .excludes(&[("unix", OWN_DESTINATION), ("connect-to", OWN_DESTINATION)])
        .needs(&[REAL_SERVERS])
        .help("go through a proxy: http://[user:pass@]host:port")
        .reference(
            "Sends everything through a proxy: `http://host:port` or `http://user:password@host:port`. The port is \
             required. Variables such as `http_proxy` are ignored; TLS and SOCKS proxies are refused.\n\n\
             For `http://`, requests carry the whole URL; if a proxy closes after every response without notice, use \
             `--disable-keepalive`. For `https://`, each connection opens a tunnel (`CONNECT`), which is part of \
             [`connect`](output.md#phases) and not of a latency. The proxy resolves the URL's host; `-b`, `-4`, `-6` \
             and `--resolve` apply to the proxy. Not with `--connect-to`, `--unix` and `--io sim:`.",
            "onrush -n 10 --http-proxy http://127.0.0.1:8080 http://www.example.com/",
        ),
    flag("--rcvbuf N", |draft, value| {
        draft.connect.options.socket.rcvbuf = Some(value.count(BUFFER_MAX)? as u32);
        Ok(())
    })
    .needs(&[REAL_SERVERS])
    .help("receive buffer of each connection, in bytes")
    .reference(
        "Sets the receive buffer of each connection to N bytes (`SO_RCVBUF`). The kernel doubles it and caps it at \
         `net.core.rmem_max`, with a note; [result files](output.md#sockets) give the actual sizes. Not with \
         `--unix`.",
        "onrush -n 10 --rcvbuf 65536 http://127.0.0.1:8080/",
    ),
    flag("--sndbuf N", |draft, value| {
        draft.connect.options.socket.sndbuf = Some(value.count(BUFFER_MAX)? as u32);
        Ok(())
    })
    .needs(&[REAL_SERVERS])
    .help("send buffer of each connection, in bytes")
    .reference(
        "Sets the send buffer (`SO_SNDBUF`) likewise, capped at `net.core.wmem_max`. Also for Unix sockets.",
        "onrush -n 10 --sndbuf 65536 http://127.0.0.1:8080/",
    ),
    flag("--congestion NAME", |draft, value| {
        // Whether the kernel has the algorithm is checked only before the run.
        let name = value.utf8().filter(|text| SocketOptions::is_name(text));
        let bad = || value.wrong(format_args!("a name has 1 to {} characters; try cubic", SocketOptions::NAME_MAX));
        draft.connect.options.socket.congestion = Some(name.ok_or_else(bad)?.to_owned());
        Ok(())
    })
    .needs(&[REAL_SERVERS])
    .help("congestion control of each connection, such as cubic")
    .reference(
        "Sets the congestion control (`TCP_CONGESTION`), which affects what onrush sends. An unavailable name is \
         refused with a list of the available ones.",
        "onrush -n 10 --congestion reno http://127.0.0.1:8080/",
    ),
];

/// The options on connecting, as typed.
#[derive(Debug, Default)]
pub(super) struct ConnectDraft {
    options: ConnectOptions,
    /// All `--connect-to` options, in order.
    instead: Vec<ConnectTo>,
    /// All `--resolve` options, in order.
    resolved: Vec<ResolvedHost>,
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

impl PlanDraft {
    /// The options for connecting to this target. Warns about options that are ignored because they name another host
    /// or port.
    pub(super) fn to_connect_options(
        &self,
        target: &Target,
        warnings: &mut Vec<String>,
    ) -> Result<ConnectOptions, PlanRefusal> {
        let options = &self.connect.options;
        if let (Some(sources), Some(family)) = (options.sources, options.family)
            && sources.family() != family
        {
            let option = if family == Family::V4 { "-4" } else { "-6" };
            let typed = sources.family().name();
            let allowed = family.name();
            let line =
                format!("--bind-ip has {typed} addresses, but {option} means {allowed}; leave one of the two out");
            return Err(PlanRefusal::Misused(line));
        }
        Ok(self.connect.with_destination(target, warnings))
    }
}

impl ConnectDraft {
    /// The options with the host and addresses to connect to. If several `--connect-to` match, the last one wins.
    fn with_destination(&self, target: &Target, warnings: &mut Vec<String>) -> ConnectOptions {
        let mut options = self.options.clone();
        let usual = if target.scheme == Scheme::Https { 443 } else { 80 };
        let host = &target.host;
        let port = target.port.unwrap_or(usual);
        for ConnectTo { typed, of, to } in &self.instead {
            let is_meant = (of.0.is_empty() || of.0.eq_ignore_ascii_case(host)) && of.1.is_none_or(|only| only == port);
            if is_meant {
                let there = if to.0.is_empty() { host.clone() } else { to.0.clone() };
                options.instead = Some((there, to.1));
            } else {
                warnings.push(format!("--connect-to {typed} is ignored: the URL is for {host}:{port}"));
            }
        }
        let instead = options.instead.as_ref().map(|to| (&to.0, to.1.unwrap_or(port), "--connect-to"));
        let proxy = options.proxy.as_ref().map(|proxy| (&proxy.host, proxy.port, "the proxy"));
        let (wanted, port, whose) = proxy.or(instead).unwrap_or((host, port, "the URL"));
        for ResolvedHost { typed, host, port: only, address } in &self.resolved {
            if host.eq_ignore_ascii_case(wanted) && only.is_none_or(|only| only == port) {
                options.resolved.push(*address);
            } else {
                warnings.push(format!("--resolve {typed} is ignored: {whose} is for {wanted}:{port}"));
            }
        }
        options
    }
}

/// Parses a range of source addresses. The compat dialects print wrk-cmm's messages, where it has one.
fn parse_source_addresses(value: Value) -> Result<SourceAddresses, PlanRefusal> {
    let text = value.lossy();
    SourceAddresses::parse(&text).map_err(|reason| match (reason, value.dialect.is_compat()) {
        (BadSources::Address, true) => PlanRefusal::Wrk(format!("could not parse range: {text}")),
        (BadSources::Mask, true) => PlanRefusal::Wrk(format!("invalid mask in range: {text}")),
        (BadSources::Address, false) => {
            let meant = value.foreign_hint();
            // curl's `-b` takes cookies, which are secrets.
            let shown = text.split_once('=').map_or(text.to_string(), |(name, _)| format!("{name}=…"));
            value.part(&shown).wrong(meant.unwrap_or("not an address; try 10.0.0.5 or 10.0.0.0/28"))
        }
        (BadSources::Mask, false) => {
            value.wrong("the number after the slash is the length of the network prefix: at most 32, or 128 for IPv6")
        }
        (BadSources::TooMany, _) => value.wrong(format_args!("more than {} addresses", SourceAddresses::MAX)),
    })
}

/// Parses `HOST:PORT`, `HOST`, or curl's `HOST1:PORT1:HOST2:PORT2` with any part empty. An IPv6 address is in brackets
/// unless it stands alone.
fn parse_connect_to(value: Value) -> Result<ConnectTo, PlanRefusal> {
    const EXAMPLE: &str = "not a host and a port; try 10.0.0.5:8080";
    let bad = || value.wrong(EXAMPLE);
    let host = |part: &str| {
        let inside = part.strip_prefix('[').and_then(|inside| inside.strip_suffix(']'));
        let host = inside.unwrap_or(part);
        if inside == Some("") || host.contains(['[', ']']) { Err(bad()) } else { Ok(host.to_owned()) }
    };
    let port = |part: &str| match part {
        "" => Ok(None),
        part => part.parse().ok().filter(|port| *port > 0).map(Some).ok_or_else(bad),
    };
    let typed = value.utf8().ok_or_else(bad)?;
    let any = || (String::new(), None);
    let parts = split_at_colons(typed);
    let is_address = typed.parse::<IpAddr>().is_ok();
    if is_address && parts.len() == 4 {
        return Err(value.wrong(
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
fn parse_resolved_host(value: Value) -> Result<ResolvedHost, PlanRefusal> {
    const EXAMPLE: &str = "write a host and an address, for instance www.example.com:10.0.0.5";
    let bad = || value.wrong(EXAMPLE);
    let typed = value.utf8().ok_or_else(bad)?.to_owned();
    let (host, rest) = typed.split_once(':').filter(|(host, _)| !host.is_empty()).ok_or_else(bad)?;
    let address = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    let (port, address) = match (address(rest), rest.split_once(':')) {
        (Some(whole), _) => (None, whole),
        (None, Some((port, rest))) => (Some(port.parse().map_err(|_| bad())?), address(rest).ok_or_else(bad)?),
        (None, None) => return Err(bad()),
    };
    Ok(ResolvedHost { host: host.to_owned(), port, address, typed })
}
