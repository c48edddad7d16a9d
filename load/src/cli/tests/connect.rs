//! The destination of connections.

use super::*;

#[test]
fn connections_go_where_curls_four_parts_say() {
    let instead = |typed: &str, url: &str| match parsed(&words(&format!("onrush --connect-to {typed} {url}")), false) {
        Invocation::Run { plan, warnings } => (plan.connect.instead, warnings.len()),
        other => panic!("{typed}: {other:?}"),
    };
    let to = |host: &str, port| (Some((host.to_owned(), port)), 0);
    for (typed, expected) in [
        ("10.0.0.5:81", to("10.0.0.5", Some(81))),
        ("10.0.0.5", to("10.0.0.5", None)),
        ("::1", to("::1", None)),
        ("[::1]", to("::1", None)),
        ("[::1]:81", to("::1", Some(81))),
        ("www.example.com:80:b.example:81", to("b.example", Some(81))),
        ("WWW.example.com::[::1]:81", to("::1", Some(81))),
        ("::b.example:", to("b.example", None)),
        (":80::81", to("www.example.com", Some(81))),
        (":::", to("www.example.com", None)),
        ("a.example:80:b.example:81", (None, 1)),
        (":443:b.example:81", (None, 1)),
        ("a.example::a.example: --connect-to www.example.com:80:b.example:", (Some(("b.example".to_owned(), None)), 1)),
    ] {
        assert_eq!(instead(typed, "http://www.example.com/"), expected, "{typed}");
    }
    assert_eq!(instead("[::1]:80:b:81", "http://[::1]/"), to("b", Some(81)));
    assert_eq!(instead("::there:81", "https://h/"), to("there", Some(81)));
    assert!(refused("onrush --connect-to ::b:81 h").contains("ambiguous; write an IPv6 address in brackets"));
    assert_eq!(instead("h:443::1", "https://h/"), to("h", Some(1)));
    for typed in ["", ":80", "h:", "h:0", "h:x", "[::1", "a:b:c", "a:80:b:81:c", "a:x:b:1", "[]:80:b:1", "h:80:b:0"] {
        let line = refused(&format!("onrush --connect-to '{typed}' http://h/"));
        assert!(line.ends_with("not a host and a port; try 10.0.0.5:8080"), "{line}");
    }
}

#[test]
fn resolve_applies_to_the_connected_host() {
    let plan = run("onrush --connect-to there:81 --resolve there:81:10.0.0.5 http://h/");
    assert_eq!(plan.connect.resolved, ["10.0.0.5".parse::<std::net::IpAddr>().unwrap()]);
}

#[test]
fn proxies_get_whole_urls_without_tunnels() {
    for program in ["onrush", "wrk"] {
        let plan = run(&format!("{program} --http-proxy http://u:p@proxy:3128 http://h:81/a"));
        assert_eq!((plan.request.target.as_str(), plan.target.path.as_str()), ("http://h:81/a", "/a"));
        assert_eq!(plan.connect.proxy.map(|proxy| (proxy.host, proxy.port)), Some(("proxy".to_owned(), 3128)));
        let plan = run(&format!("{program} --http-proxy http://u:p@proxy:3128 https://h/a"));
        assert_eq!((plan.request.target.as_str(), plan.request.headers.len()), ("/a", 1));
    }
}
