//! The command line of `onrush serve`, parsed into a [`Config`].
//!
//! Nothing is started and nothing is printed here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use lexopt::prelude::*;
use strsim::damerau_levenshtein;

use super::Config;

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Print [`super::help`].
    Help,
    /// Serve.
    Run(Config),
}

/// Reads the words after `serve`.
///
/// # Errors
/// One line that names the option, its value and what is expected.
pub fn parse(mut args: lexopt::Parser) -> Result<Command, String> {
    let mut config = Config::default();
    while let Some(arg) = args.next().map_err(|error| error.to_string())? {
        match arg {
            Long("addr") => config.address = address(&value("--addr", &mut args)?)?,
            Long("threads") => config.threads = threads(&value("--threads", &mut args)?)?,
            Long("help") | Short('h') => return Ok(Command::Help),
            Value(word) => return Err(format!("unexpected argument {word:?}: {KNOWN}")),
            Long(name) if nearest(name).is_some() => {
                let near = nearest(name).unwrap_or_default();
                return Err(format!("unknown option --{}; did you mean --{near}?", name.escape_debug()));
            }
            Long(name) => return Err(format!("unknown option --{}: {KNOWN}", name.escape_debug())),
            Short(letter) => return Err(format!("unknown option -{}: {KNOWN}", letter.escape_debug())),
        }
    }
    Ok(Command::Run(config))
}

/// The most threads that make sense; more is a typing error.
const THREADS_MAX: usize = 1024;

const KNOWN: &str = "onrush serve takes --addr A, --threads N and --help";

/// The option that begins with this name, or differs from it by one letter.
fn nearest(name: &str) -> Option<&'static str> {
    let is_near = |option: &&str| option.starts_with(name) || damerau_levenshtein(name, option) <= 1;
    ["addr", "threads", "help"].into_iter().find(is_near)
}

fn value(option: &str, args: &mut lexopt::Parser) -> Result<String, String> {
    let value = args.value().map_err(|_| format!("{option} needs a value"))?;
    value.into_string().map_err(|value| format!("{option} {value:?} is not valid UTF-8"))
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=THREADS_MAX) => Ok(count),
        _ => Err(format!("--threads {text:?} is not a whole number from 1 to {THREADS_MAX}")),
    }
}

/// Reads `PORT`, `:PORT`, `HOST:PORT`, `[IPv6]:PORT` or an IP address alone; the default supplies what is missing.
fn address(text: &str) -> Result<SocketAddr, String> {
    let default = Config::default().address;
    let unbracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = unbracketed.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, default.port()));
    }
    let (host, port) = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        ("", text)
    } else {
        text.rsplit_once(':').ok_or_else(|| unusable(text, "there is no port"))?
    };
    let port = port.parse().map_err(|_| unusable(text, "the port is not a number from 0 to 65535"))?;
    if host.is_empty() {
        return Ok(SocketAddr::new(default.ip(), port));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found = (host, port).to_socket_addrs().map_err(|_| unusable(text, "the host cannot be resolved"))?;
    found.next().ok_or_else(|| unusable(text, "the host has no address"))
}

fn unusable(text: &str, why: &str) -> String {
    let any = Ipv4Addr::UNSPECIFIED;
    format!("--addr {text:?}: {why}; give PORT, HOST:PORT or [IPv6]:PORT, such as 8080, {any}:80 or [::1]:8080")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(words))
    }

    fn at(address: &str, threads: usize) -> Result<Command, String> {
        Ok(Command::Run(Config { address: address.parse().unwrap(), threads }))
    }

    #[test]
    fn without_options_it_is_one_thread_on_loopback_port_8080() {
        assert_eq!(parsed(&[]), at("127.0.0.1:8080", 1));
    }

    #[test]
    fn an_address_may_leave_out_the_host_or_the_port() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("192.0.2.7", "192.0.2.7:8080"),
            ("[::1]:9000", "[::1]:9000"),
            ("[::1]", "[::1]:8080"),
            ("::1", "[::1]:8080"),
        ] {
            assert_eq!(parsed(&["--addr", text]), at(address, 1), "--addr {text}");
            assert_eq!(parsed(&[&format!("--addr={text}")]), at(address, 1), "--addr={text}");
        }
    }

    #[test]
    fn a_host_name_is_resolved() {
        let Ok(Command::Run(config)) = parsed(&["--addr", "localhost:9000"]) else { panic!("localhost is an address") };
        assert!(config.address.ip().is_loopback());
        assert_eq!(config.address.port(), 9000);
    }

    #[test]
    fn a_bad_address_is_named_with_what_would_be_right() {
        let right = "give PORT, HOST:PORT or [IPv6]:PORT, such as 8080, 0.0.0.0:80 or [::1]:8080";
        for (text, why) in [
            ("70000", "the port is not a number from 0 to 65535"),
            ("127.0.0.1:x", "the port is not a number from 0 to 65535"),
            ("", "the port is not a number from 0 to 65535"),
            ("example", "there is no port"),
            ("no.such.invalid:80", "the host cannot be resolved"),
        ] {
            assert_eq!(parsed(&["--addr", text]), Err(format!("--addr {text:?}: {why}; {right}")));
        }
    }

    #[test]
    fn threads_are_counted_from_one_to_1024() {
        assert_eq!(parsed(&["--threads", "4"]), at("127.0.0.1:8080", 4));
        for text in ["0", "1025", "-1", "two", ""] {
            let message = format!("--threads {text:?} is not a whole number from 1 to 1024");
            assert_eq!(parsed(&[&format!("--threads={text}")]), Err(message));
        }
    }

    #[test]
    fn what_it_does_not_know_is_named_with_what_it_knows() {
        let known = "onrush serve takes --addr A, --threads N and --help";
        assert_eq!(parsed(&["--port", "1"]), Err(format!("unknown option --port: {known}")));
        assert_eq!(parsed(&["--adr", "1"]), Err("unknown option --adr; did you mean --addr?".into()));
        assert_eq!(parsed(&["--thread=1"]), Err("unknown option --thread; did you mean --threads?".into()));
        assert_eq!(parsed(&["-x"]), Err(format!("unknown option -x: {known}")));
        assert_eq!(parsed(&["8080"]), Err(format!("unexpected argument \"8080\": {known}")));
        assert_eq!(parsed(&["--addr"]), Err("--addr needs a value".into()));
    }

    #[test]
    fn help_wins_over_the_rest() {
        assert_eq!(parsed(&["--threads", "2", "--help", "--port"]), Ok(Command::Help));
        assert_eq!(parsed(&["-h"]), Ok(Command::Help));
    }
}
