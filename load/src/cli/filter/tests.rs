//! Filters, and the messages about invalid filters.

use super::*;

fn states(name: &str) -> SocketFilter {
    let (_, states) = States::NAMED.iter().find(|(known, _)| *known == name).unwrap();
    SocketFilter::States(*states)
}

fn port(end: ConnectionEnd, comparison: ComparisonOperator, port: u16) -> SocketFilter {
    SocketFilter::Port(end, comparison, port)
}

/// A filter without named states, limited to the usual ones.
fn usual(filter: SocketFilter) -> Result<SocketFilter, Flaw> {
    Ok(SocketFilter::All(vec![SocketFilter::States(States::USUAL), filter]))
}

#[test]
fn filters_know_all_comparison_words() {
    for (word, comparison) in COMPARISONS {
        assert_eq!(filter(&format!("sport {word} :80")), usual(port(ConnectionEnd::Local, comparison, 80)), "{word}");
        assert_eq!(filter(&format!("dport {word} 80")), usual(port(ConnectionEnd::Peer, comparison, 80)), "{word}");
    }
    for text in ["sport :80", "sport 80", "sport=:80", "sport==80", "  sport  *:80 "] {
        assert_eq!(filter(text), usual(port(ConnectionEnd::Local, ComparisonOperator::Equal, 80)), "{text}");
    }
    assert_eq!(filter("dport>=:1024"), usual(port(ConnectionEnd::Peer, ComparisonOperator::AtLeast, 1024)));
}

#[test]
fn filters_join_left_to_right() {
    let at = |number| port(ConnectionEnd::Local, ComparisonOperator::Equal, number);
    let not = |filter| SocketFilter::Not(Box::new(filter));
    let (all, any) = (SocketFilter::All, SocketFilter::Any);
    for (text, expected) in [
        ("sport 1 sport 2 and sport 3", all(vec![at(1), at(2), at(3)])),
        ("sport 1 && sport 2 & sport 3", all(vec![at(1), at(2), at(3)])),
        ("sport 1 or sport 2 || sport 3", any(vec![at(1), at(2), at(3)])),
        ("sport 1 or sport 2 and sport 3", all(vec![any(vec![at(1), at(2)]), at(3)])),
        ("sport 1 or (sport 2 and sport 3)", any(vec![at(1), all(vec![at(2), at(3)])])),
        ("not sport 1 sport 2", all(vec![not(at(1)), at(2)])),
        ("!(sport 1|sport 2)", not(any(vec![at(1), at(2)]))),
        ("not ! sport 1", not(not(at(1)))),
        ("((sport 1))", at(1)),
    ] {
        assert_eq!(filter(text), usual(expected), "{text}");
    }
    for (text, expected) in [
        ("state established", states("established")),
        ("state ESTABLISHED state close-wait", SocketFilter::States(States(1 << 1 | 1 << 8))),
        ("exclude time-wait exclude listening", SocketFilter::States(States(0xfff & !(1 << 6 | 1 << 10)))),
        ("state all sport 1 or sport 2", all(vec![states("all"), any(vec![at(1), at(2)])])),
        ("state connected exclude bucket sport 1", {
            let unlike = SocketFilter::States(States(0xfff & !(1 << 3 | 1 << 6)));
            all(vec![states("connected"), all(vec![unlike, at(1)])])
        }),
        ("state listening or sport 1", any(vec![states("listening"), at(1)])),
        ("sport 1 and not state listening", all(vec![at(1), not(states("listening"))])),
    ] {
        assert_eq!(filter(text), Ok(expected), "{text}");
    }
}

#[test]
fn filter_ends_take_addresses_prefixes_and_ports() {
    let of = |ip: &str, bits: u8, port: Option<u16>| AddressRange { prefix: Some((ip.parse().unwrap(), bits)), port };
    for (text, expected) in [
        ("10.0.0.5", of("10.0.0.5", 32, None)),
        ("10.0.0.5:80", of("10.0.0.5", 32, Some(80))),
        ("10.0.0.5:*", of("10.0.0.5", 32, None)),
        ("10.0.0.0/8", of("10.0.0.0", 8, None)),
        ("10.0.0.0/8:80", of("10.0.0.0", 8, Some(80))),
        (":80", AddressRange { prefix: None, port: Some(80) }),
        ("*:80", AddressRange { prefix: None, port: Some(80) }),
        ("*", AddressRange::default()),
        ("::1", of("::1", 128, None)),
        ("[::1]", of("::1", 128, None)),
        ("[::1]:80", of("::1", 128, Some(80))),
        ("[fe80::]/10", of("fe80::", 10, None)),
        ("[fe80::/10]:80", of("fe80::", 10, Some(80))),
        ("fe80::/10", of("fe80::", 10, None)),
    ] {
        assert_eq!(
            filter(&format!("dst {text}")),
            usual(SocketFilter::Address(ConnectionEnd::Peer, expected)),
            "{text}"
        );
        let other = SocketFilter::Not(Box::new(SocketFilter::Address(ConnectionEnd::Local, expected)));
        assert_eq!(filter(&format!("src != {text}")), usual(other), "{text}");
    }
}

#[test]
fn filter_mistakes_name_position_and_nearest_word() {
    for (text, expected) in [
        ("", "at the end: a filter is missing here; try sport = :80"),
        ("sprot = :80", "unknown word \"sprot\"; did you mean sport?"),
        ("sport = :80 and sorc ::1", "at \"sorc ::1\": unknown word \"sorc\"; did you mean src?"),
        (
            "(sport 80 or fwmark 1)",
            "at \"fwmark 1)\": expected a filter here, not \"fwmark\"; it begins with state, sport, dport, src, dst or not",
        ),
        ("state establishd", "at \"establishd\": unknown state \"establishd\"; did you mean established?"),
        ("state", "at the end: a state is missing here; try state established"),
        ("sport = :http", "at \":http\": \":http\" is not a port from 0 to 65535; try :80"),
        ("dport > :65536", "at \":65536\": \":65536\" is not a port from 0 to 65535; try :80"),
        ("sport = 10.0.0.1:80", "at \"10.0.0.1:80\": \"10.0.0.1:80\" has an address; write src or dst before it"),
        ("sport =", "at the end: a port is missing here; try :80"),
        (
            "dst 10.0.0.0/33",
            "at \"10.0.0.0/33\": \"10.0.0.0/33\" is not an address or port; try 10.0.0.5, 10.0.0.0/8, [::1]:80 or :80",
        ),
        ("dst > 10.0.0.1", "at \"> 10.0.0.1\": addresses can only be compared with = and !="),
        ("dst", "at the end: an address is missing here; try 10.0.0.0/8"),
        ("sport 80 and", "at the end: a filter is missing here; try sport = :80"),
        ("or sport 80", "a filter is missing before \"or\"; try sport = :80"),
        ("sport 80 and or sport 81", "at \"or sport 81\": a filter is missing before \"or\"; try sport = :80"),
        ("not (sport 80", "at \"(sport 80\": this is never closed; add a )"),
        ("sport 80) or sport 81", "at \") or sport 81\": this closes nothing; leave it out"),
    ] {
        assert_eq!(filter(text).unwrap_err().shown(text), expected, "{text}");
    }
    let deep = |depth: usize| filter(&format!("{}sport 80{}", "(".repeat(depth), ")".repeat(depth)));
    assert!(deep(DEPTH_MAX - 1).is_ok());
    for text in ["(".repeat(100_000), "not ".repeat(100_000)] {
        assert!(filter(&text).unwrap_err().reason.starts_with("nested more than 32 levels"));
    }
}

#[test]
fn random_filters_never_panic() {
    let pieces = [
        "sport",
        "dst",
        "state",
        "established",
        "not",
        "(",
        ")",
        "and",
        "or",
        "=",
        "[",
        "]:",
        "::1",
        "é",
        "*",
        "sport > :80",
        "dst 10.0.0.0/8",
        "state bucket",
        "exclude big",
        "or sport 80",
        "( not dport 80 )",
    ];
    let mut random = onrush_plan::Random::new(1);
    let mut read = 0;
    for _ in 0..20_000 {
        let text: String =
            (0..=random.below(6)).flat_map(|_| [pieces[random.below(pieces.len() as u64) as usize], " "]).collect();
        for text in [text.clone(), text.replace(' ', "")] {
            match filter(&text) {
                Ok(_) => read += 1,
                Err(flaw) => assert!(!flaw.shown(&text).is_empty()),
            }
        }
    }
    assert!(read > 100, "{read}");
}
