//! URLs: any string, in every dialect.

use onrush_plan::target::Scheme;
use onrush_plan::{Dialect, Target};

use crate::COMPAT;

/// Any text as a URL. An accepted URL can be sent unchanged, and gives the same target when reduced to the parts that
/// are sent. Dialects differ only in what they refuse.
pub fn url(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let native = Target::parse(text, Dialect::Native);
    let wrk = Target::parse(text, Dialect::Wrk);
    for dialect in COMPAT {
        assert_eq!(Target::parse(text, dialect), wrk, "{dialect:?}");
    }
    for (dialect, parsed) in [(Dialect::Native, &native), (Dialect::Wrk, &wrk)] {
        match parsed {
            Ok(target) => check_accepted(target, text, dialect),
            Err(invalid) => assert_eq!(invalid.typed, text),
        }
    }
    let Ok(native) = native else { return };
    if wrk.as_ref() != Ok(&native) {
        // wrk requires a scheme. With a scheme, the URL must keep its meaning.
        let completed = Target::parse(&format!("http://{text}"), Dialect::Wrk)
            .map(|target| Target { typed: text.into(), ..target });
        assert_eq!(completed.as_ref(), Ok(&native));
        assert!(wrk.is_err());
    }
}

fn check_accepted(target: &Target, text: &str, dialect: Dialect) {
    assert_eq!(target.typed, text);
    assert!(target.path.starts_with('/'), "{target:?}");
    assert!(is_sendable(&target.path) && !target.path.contains('#'), "{target:?}");
    let authority = target.authority();
    assert!(is_sendable(&authority) && !authority.contains(['/', '?', '#', '@', '%']), "{target:?}");
    assert_eq!(target.port_text.as_ref().map(|port| port.parse()), target.port.map(Ok), "{target:?}");
    assert!(target.userinfo.as_ref().is_none_or(|userinfo| userinfo.contains(':')), "{target:?}");

    let sent = format!("{}://{authority}{}", target.scheme.name(), target.path);
    let again = Target::parse(&sent, dialect).unwrap_or_else(|invalid| panic!("{invalid}, from {text:?}"));
    // The zone of an address is only used on this machine, and the user goes into a header.
    let host = target.host.split('%').next().unwrap_or_default().to_owned();
    assert_eq!(again, Target { typed: sent, host, userinfo: None, ..target.clone() });
    assert!(dialect.is_compat() || !matches!(target.scheme, Scheme::Other(_)), "{target:?}");
}

/// True for nonempty visible ASCII, which may be part of a request head.
fn is_sendable(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
