//! The command `onrush serve` and its arguments.

use std::ffi::OsString;

use onrush_load::cli::arguments::{self, Subcommand, switch, text};
use onrush_load::cli::{Command, CommandWork, CompletionWord};
use onrush_load::program::print;
use onrush_serve::{Address, ServeConfig, ServeOptions, describe_paths, parse_address};

/// The command `onrush serve`.
pub const COMMAND: Command = Command {
    name: SERVE.name,
    about: "run the embedded target",
    help,
    options: || SERVE.described_options(),
    word: CompletionWord::Text,
    parse: |args| {
        Ok(parse_arguments(args)?.map(|asked| {
            CommandWork::new(move || print("onrush serve", onrush_serve::run(&asked).map(|()| String::new()), 0))
        }))
    },
};

/// Maximum number of threads; a larger number is taken for a typo.
const THREADS_MAX: usize = 1024;

const SERVE: Subcommand<ServeOptions> = Subcommand {
    name: "serve",
    help: (
        "\
onrush serve is a small HTTP server to aim at: fast, and as badly behaved as you
ask. It speaks HTTP/1.1, and HTTP/2 with clients that begin with that. It ends
on Ctrl-C (SIGINT) and SIGTERM.

Usage: onrush serve [options]",
        "",
    ),
    options: &[
        text("--addr A", |asked: &mut ServeOptions, text| parse_address(text).map(|address| asked.address = address))
            .help("PORT, HOST:PORT, [IPv6]:PORT or an IP (127.0.0.1:8080)"),
        text("--threads N", |asked: &mut ServeOptions, text| {
            parse_threads(text).map(|threads| asked.threads = threads)
        })
        .help("threads, 1 to 1024 (1)"),
        switch("--tls", |asked: &mut ServeOptions| asked.tls = true)
            .help("TLS, with a certificate made at the start (clients need -k)"),
    ],
    word: |_, word| Err(format!("unexpected argument {word:?}; an address is given with --addr")),
};

/// The text of `onrush serve --help`.
fn help() -> String {
    arguments::help((SERVE.help.0, &describe_paths()), SERVE.described_options())
}

/// Parses the arguments of `serve`; `None` if help was requested. Errors name the fault.
fn parse_arguments(args: &[OsString]) -> Result<Option<ServeOptions>, String> {
    let ServeConfig { address, threads, tls } = ServeConfig::default();
    SERVE.read(args, ServeOptions { address: Address::Numeric(address), threads, tls })
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=THREADS_MAX) => Ok(count),
        _ => Err(format!("write a whole number from 1 to {THREADS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Option<ServeOptions>, String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        parse_arguments(&args)
    }

    fn options_with(address: &str, threads: usize) -> Result<Option<ServeOptions>, String> {
        Ok(Some(ServeOptions { address: Address::Numeric(address.parse().unwrap()), threads, tls: false }))
    }

    #[test]
    fn serve_defaults_to_loopback_port_8080() {
        assert_eq!(parse_line(""), options_with("127.0.0.1:8080", 1));
        assert_eq!(parse_line("--threads 4 --addr=:9000"), options_with("127.0.0.1:9000", 4));
        assert_eq!(parse_line("--tls").unwrap().map(|asked| asked.tls), Some(true));
        assert_eq!(parse_line("--threads 2 --help --port"), Ok(None));
    }

    #[test]
    fn threads_are_counted_from_one_to_1024() {
        for text in ["0", "1025", "-1", "two", ""] {
            let message = format!("--threads {text:?}: write a whole number from 1 to 1024");
            assert_eq!(parse_line(&format!("--threads={text}")), Err(message));
        }
    }

    #[test]
    fn serve_argument_errors_name_the_fault() {
        for (line, said) in [
            ("--port 1", "unknown option --port; all options: onrush serve --help"),
            ("--adr 1", "unknown option --adr; did you mean --addr?"),
            ("--thread=1", "unknown option --thread; did you mean --threads?"),
            ("8080", "unexpected argument \"8080\"; an address is given with --addr"),
            ("--addr", "--addr needs a value: --addr A"),
        ] {
            assert_eq!(parse_line(line), Err(said.to_owned()));
        }
        assert!(parse_line("--addr 70000").unwrap_err().starts_with("--addr \"70000\": the port is not a number"));
    }
}
