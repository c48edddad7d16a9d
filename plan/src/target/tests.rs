use super::*;

const BOTH: [Dialect; 2] = [Dialect::Native, Dialect::Wrk];

/// Scheme, host, port text, path, `Host` header.
type Parts<'a> = (&'a str, &'a str, Option<&'a str>, &'a str, &'a str);

fn check(url: &str, dialect: Dialect, expected: Parts) {
    let target = Target::parse(url, dialect).unwrap();
    let authority = target.authority();
    let parts = (target.scheme.name(), &*target.host, target.port_text.as_deref(), &*target.path, &*authority);
    assert_eq!(parts, expected, "{url}");
    assert_eq!(target.typed, url);
}

fn invalid_url_reason(url: &str, dialect: Dialect) -> String {
    Target::parse(url, dialect).unwrap_err().reason
}

#[test]
fn urls_parse_alike_in_both_dialects() {
    let table: &[(&str, Parts)] = &[
        ("http://h", ("http", "h", None, "/", "h")),
        ("http://127.0.0.1:1323", ("http", "127.0.0.1", Some("1323"), "/", "127.0.0.1:1323")),
        ("http://h:0080/a/b?c=d", ("http", "h", Some("0080"), "/a/b?c=d", "h:0080")),
        ("http://localhost:8080//test2", ("http", "localhost", Some("8080"), "//test2", "localhost:8080")),
        ("http://localhost/asd;lfkwk;lef", ("http", "localhost", None, "/asd;lfkwk;lef", "localhost")),
        ("http://h/p?a=b#frag", ("http", "h", None, "/p?a=b", "h")),
        ("http://h#frag", ("http", "h", None, "/", "h")),
        ("http://h?x=1", ("http", "h", None, "/?x=1", "h")),
        ("http://h:1?x=http://y", ("http", "h", Some("1"), "/?x=http://y", "h:1")),
        ("http://h_x/", ("http", "h_x", None, "/", "h_x")),
        ("HTTP://h/", ("http", "h", None, "/", "h")),
        ("HTTPS://h/", ("https", "h", None, "/", "h")),
        ("http://[::1]:80/", ("http", "::1", Some("80"), "/", "[::1]:80")),
        ("http://[fe80::1%eth0]/", ("http", "fe80::1%eth0", None, "/", "[fe80::1]")),
        ("http://[fe80::1%25eth0]:8/", ("http", "fe80::1%eth0", Some("8"), "/", "[fe80::1]:8")),
        ("http://h/%zz\"<>^`{|}\\", ("http", "h", None, "/%zz\"<>^`{|}\\", "h")),
    ];
    for dialect in BOTH {
        table.iter().for_each(|(url, expected)| check(url, dialect, *expected));
    }
}

#[test]
fn natively_a_missing_scheme_means_http() {
    check("h", Dialect::Native, ("http", "h", None, "/", "h"));
    check("127.0.0.1:80/x", Dialect::Native, ("http", "127.0.0.1", Some("80"), "/x", "127.0.0.1:80"));
    check("h/?u=http://y", Dialect::Native, ("http", "h", None, "/?u=http://y", "h"));
    check("[::1]:80", Dialect::Native, ("http", "::1", Some("80"), "/", "[::1]:80"));
}

#[test]
fn compat_schemes_are_tcp_services() {
    let with_port = Target::parse("xyz://h:8080/", Dialect::Wrk).unwrap();
    assert_eq!((with_port.scheme.clone(), with_port.service()), (Scheme::Other("xyz".to_owned()), "8080".to_owned()));
    assert_eq!(Target::parse("ftp://h/", Dialect::Wrk).unwrap().service(), "ftp");
    assert_eq!(Target::parse("httpsx://h/", Dialect::Wrk).unwrap().scheme, Scheme::Https);
    assert_eq!(invalid_url_reason("ftp://h/", Dialect::Native), "the scheme \"ftp\" is unknown; write http://");
    for scheme in ["h2c", "H2", "grpc"] {
        let expected = format!("the scheme \"{scheme}\" is unknown; write http:// and add --http2");
        assert_eq!(invalid_url_reason(&format!("{scheme}://h/"), Dialect::Native), expected);
    }
}

#[test]
fn user_names_are_kept_and_decoded() {
    let userinfo = |url| Target::parse(url, Dialect::Wrk).unwrap().userinfo;
    assert_eq!(userinfo("http://u:p@127.0.0.1:80?x=1").as_deref(), Some("u:p"));
    assert_eq!(userinfo("http://u%40x:p%3a%25@h/").as_deref(), Some("u@x:p:%"));
    assert_eq!(userinfo("http://u@h/").as_deref(), Some("u:"));
    assert_eq!(userinfo("http://a%zz%4:b@h/").as_deref(), Some("a%zz%4:b"));
    assert_eq!(userinfo("http://@h/"), None);
    assert_eq!(userinfo("http://h/@"), None);
}

#[test]
fn compat_refuses_what_wrk_refuses() {
    let refused = [
        "",
        "foo",
        "127.0.0.1:80/",
        "http://",
        "http:///x",
        "http://h:70000/",
        "http://h:0099999/",
        "http://h:/",
        "http://h/a b",
        "http://h/\u{e9}",
        "http://h/\t",
        "http://h/\u{c}",
        "http://a@b@h/",
        "http://:80/",
        "http:/x",
        "http://[::1/",
        "http://[]:1/",
        "http://h~:1/",
        "http://h:1@/",
        "ht-tp://h/",
        "mailto:x",
        "/",
        "*",
        "-c1",
        "://h/",
        "http://h:+1/",
        "http://[::1]x/",
        "http://h:123456789012345678/",
    ];
    for url in refused {
        assert!(Target::parse(url, Dialect::Wrk).is_err(), "{url}");
    }
}

#[test]
fn url_errors_say_what_where_and_remedy() {
    let error = Target::parse("http://h/a b", Dialect::Native).unwrap_err();
    assert_eq!(error.to_string(), "\"http://h/a b\" is not a URL: a blank at character 11; write %20");
    let table = [
        ("http://h/\t", "a tab at character 10; write %09"),
        ("http://h/\u{7f}", "a control character at character 10; write %7F"),
        ("http://h/\u{e9}", "'é' at character 10; write %C3%A9, or the xn-- form of a host name"),
        ("http:///x", "no host at character 8"),
        ("", "no host at character 1"),
        ("http://h~/", "'~' at character 9 cannot be in a host name"),
        ("http://h:/", "no port after the colon at character 9"),
        ("http://h:70000/", "the port \"70000\" is not a number from 1 to 65535"),
        ("http://h:0/", "the port \"0\" is not a number from 1 to 65535"),
        ("http:/h", "two slashes must follow the scheme; write http://"),
        ("https//h", "a colon must follow the scheme; write https://"),
        ("h2c://h/", "the scheme \"h2c\" is unknown; write http:// and add --http2"),
        ("h2x://h/", "\"h2x\" is not a scheme; write http://"),
        ("http://::1:80/", "an IPv6 address is written in brackets; write [::1]:80"),
        ("::1:8000", "an IPv6 address is written in brackets; write [::1]:8000"),
        ("http://fe80::1/", "an IPv6 address is written in brackets; write [fe80::1]"),
        ("2001:db8:1:2:3:4:5:6", "an IPv6 address is written in brackets; write [2001:db8:1:2:3:4:5:6]"),
        ("http://a:b:c/", "an IPv6 address is written in brackets; for instance [::1]:8080"),
        ("http://[::g]/", "\"::g\" is not an IPv6 address"),
        ("http://[::1/", "the bracket of the address is not closed"),
        ("http://[::1]80/", "only :PORT may follow the address in brackets"),
        ("http://[::1%]/", "\"\" is not the name of a network interface"),
        ("http://a@b@h/", "'@' in the user name at character 9; write %40"),
        ("http://%ff@h/", "the user name is not UTF-8 when decoded"),
    ];
    for (url, expected) in table {
        assert_eq!(invalid_url_reason(url, Dialect::Native), expected, "{url}");
    }
}

#[test]
fn any_url_text_parses_without_panic() {
    let pieces =
        ["http", "https", ":", "/", "//", "@", "[", "]", "%", "%25", "%4", "::1", "h", "80", "?", "#", "é", " "];
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
        }
        for dialect in BOTH {
            let Ok(target) = Target::parse(&text, dialect) else { continue };
            assert!(target.path.starts_with('/') && !target.path.contains(['#', ' ']), "{text}");
            assert!(!target.host.is_empty() && !target.authority().contains('%'), "{text}");
        }
    }
}
