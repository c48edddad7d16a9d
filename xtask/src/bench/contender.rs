//! The contenders, with the command line of each for the same work.

use super::load::{Load, RESULT};
use super::outputs::Format;

/// A generator, or a target that onrush measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contender {
    /// onrush on io_uring.
    Uring,
    /// onrush on epoll.
    Epoll,
    /// onrush on io_uring, without the feature that the row is about.
    Without,
    /// onrush on io_uring, holding the rate of the load.
    Paced(&'static Paced),
    /// Another build of onrush, on io_uring.
    Before,
    /// The same build, on epoll.
    EpollBefore,
    /// wrk, from Debian.
    Wrk,
    /// wrk2, if there is one.
    Wrk2,
    /// h2load, from Debian.
    H2load,
    /// shb, from crates.io.
    Shb,
    /// oha, from crates.io.
    Oha,
    /// The bare loop on io_uring.
    BareUring,
    /// The bare loop on io_uring, busy-polling.
    BareSpin,
    /// The bare loop on epoll.
    BareEpoll,
    /// The bare loop of non-blocking receive on one connection.
    BarePoll,
    /// The bare loop that discards large bodies.
    BareDiscard,
    /// The bare loop of connects.
    BareStorm,
    /// onrush on io_uring with a thousand connections instead of many.
    Thousand,
    /// `onrush serve` as the target of onrush.
    Serve,
    /// The bare server as the target of onrush.
    BareServer,
}

/// A way to hold a rate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Paced {
    /// Its name in tables.
    pub name: &'static str,
    /// Further options of onrush.
    pub options: &'static [&'static str],
}

impl Contender {
    /// The peers that `PEERS=` can choose.
    pub const PEERS: &[Self] = &[Self::Wrk, Self::Wrk2, Self::H2load, Self::Shb, Self::Oha];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "onrush",
            Self::Epoll => "onrush (epoll)",
            Self::Without => "onrush without",
            Self::Paced(paced) => paced.name,
            Self::Before => "onrush before",
            Self::EpollBefore => "onrush before (epoll)",
            Self::Wrk => "wrk",
            Self::Wrk2 => "wrk2",
            Self::H2load => "h2load",
            Self::Shb => "shb",
            Self::Oha => "oha",
            Self::BareUring => "bare io_uring",
            Self::BareSpin => "bare io_uring, busy-polling",
            Self::BareEpoll => "bare epoll",
            Self::BarePoll => "bare receive",
            Self::BareDiscard => "bare discard",
            Self::BareStorm => "bare connects",
            Self::Thousand => "onrush with 1,000",
            Self::Serve => "onrush serve",
            Self::BareServer => "bare server",
        }
    }

    /// The program that generates the load.
    pub fn program(self) -> &'static str {
        match self {
            Self::Uring | Self::Epoll | Self::Before | Self::EpollBefore => "onrush",
            Self::Without | Self::Paced(_) | Self::Thousand | Self::Serve | Self::BareServer => "onrush",
            Self::BareUring | Self::BareSpin => "bare-uring",
            Self::BareEpoll => "bare-epoll",
            Self::BarePoll => "bare-poll",
            Self::BareDiscard => "bare-discard",
            Self::BareStorm => "bare-storm",
            peer => peer.name(),
        }
    }

    /// How the program writes its report.
    pub fn format(self) -> Format {
        match self {
            Self::H2load => Format::H2load,
            Self::Shb => Format::Shb,
            Self::Oha => Format::Oha,
            _ => Format::Wrk,
        }
    }

    /// The same contender in the other build, if it is compared with one.
    pub fn before(self) -> Option<Self> {
        match self {
            Self::Uring => Some(Self::Before),
            Self::Epoll => Some(Self::EpollBefore),
            _ => None,
        }
    }

    /// The arguments that make the program put `load` on the target at `origin`: scheme, host and port.
    pub fn arguments(self, load: &Load, origin: &str) -> Vec<String> {
        let Load { path, threads, connections, rate, seconds, .. } = load;
        let line = match self {
            Self::Uring | Self::Before | Self::Without | Self::Thousand | Self::Serve | Self::BareServer => {
                format!("-t{threads} -c{connections} -d{seconds}s --io uring")
            }
            Self::Epoll | Self::EpollBefore => format!("-t{threads} -c{connections} -d{seconds}s --io epoll"),
            Self::Paced(_) => format!("-t{threads} -c{connections} -d{seconds}s --io uring -R{rate} -o {RESULT}"),
            Self::Wrk => format!("-t{threads} -c{connections} -d{seconds}s"),
            Self::Wrk2 => format!("-t{threads} -c{connections} -d{seconds}s -R{rate}"),
            Self::H2load => format!("--h1 -t{threads} -c{connections} -D{seconds}"),
            Self::Shb => format!("-t {threads} -c {connections} -z {seconds}s"),
            // It starts a thread for every processor that it is pinned to.
            Self::Oha => format!("--no-tui --output-format json -c {connections} -z {seconds}s"),
            Self::BareUring
            | Self::BareSpin
            | Self::BareEpoll
            | Self::BarePoll
            | Self::BareDiscard
            | Self::BareStorm => {
                let (_, address) = origin.split_once("://").unwrap_or(("", origin));
                let spin = (self == Self::BareSpin).then(|| "spin".to_owned());
                let words = [address.to_owned(), connections.to_string(), seconds.to_string()];
                return words.into_iter().chain(spin).collect();
            }
        };
        // The certificate is self-signed; the peers never check it.
        let unchecked = (self.program() == "onrush" && origin.starts_with("https")).then_some("-k");
        let url = format!("{origin}{path}");
        line.split(' ')
            .chain(unchecked)
            .chain(self.options(load).iter().copied())
            .map(str::to_owned)
            .chain([url])
            .collect()
    }

    /// Its further options.
    pub fn options(self, load: &Load) -> &'static [&'static str] {
        match self {
            Self::Uring | Self::Epoll | Self::Before | Self::EpollBefore | Self::Wrk => load.options,
            Self::Without => load.without,
            Self::Paced(paced) => paced.options,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::Target;
    use super::*;

    #[test]
    fn every_generator_is_told_the_same_work() {
        let load = Load {
            target: Target::Bare,
            path: "/a",
            options: &["-s", "a b.lua"],
            without: &["-X", "PUT"],
            body_bytes: 13,
            threads: 1,
            connections: 100,
            rate: 1_000,
            seconds: 2,
            pinned: true,
        };
        for (contender, expected) in [
            (Contender::Uring, "-t1|-c100|-d2s|--io|uring|-s|a b.lua|http://h:1/a"),
            (Contender::Epoll, "-t1|-c100|-d2s|--io|epoll|-s|a b.lua|http://h:1/a"),
            (Contender::Without, "-t1|-c100|-d2s|--io|uring|-X|PUT|http://h:1/a"),
            (Contender::Before, "-t1|-c100|-d2s|--io|uring|-s|a b.lua|http://h:1/a"),
            (
                Contender::Paced(&Paced { name: "", options: &["--spin", "off"] }),
                "-t1|-c100|-d2s|--io|uring|-R1000|-o|target/bench/result.json|--spin|off|http://h:1/a",
            ),
            (Contender::Wrk, "-t1|-c100|-d2s|-s|a b.lua|http://h:1/a"),
            (Contender::Wrk2, "-t1|-c100|-d2s|-R1000|http://h:1/a"),
            (Contender::H2load, "--h1|-t1|-c100|-D2|http://h:1/a"),
            (Contender::Shb, "-t|1|-c|100|-z|2s|http://h:1/a"),
            (Contender::Oha, "--no-tui|--output-format|json|-c|100|-z|2s|http://h:1/a"),
            (Contender::BareEpoll, "h:1|100|2"),
            (Contender::BareSpin, "h:1|100|2|spin"),
        ] {
            assert_eq!(contender.arguments(&load, "http://h:1").join("|"), expected);
        }
        for (contender, expected) in [
            (Contender::Epoll, "-t1|-c100|-d2s|--io|epoll|-k|-s|a b.lua|https://h:1/a"),
            (Contender::Wrk, "-t1|-c100|-d2s|-s|a b.lua|https://h:1/a"),
        ] {
            assert_eq!(contender.arguments(&load, "https://h:1").join("|"), expected);
        }
    }
}
