//! The URL of a proxy.

use onrush_plan::secrets;
use onrush_plan::target::Scheme;
use onrush_plan::{Dialect, Proxy, Target};

use super::refusal::PlanRefusal;
use super::request::basic_credentials;
use super::values::Value;

/// Parses `http://[user:password@]host:port`. The scheme is optional.
pub(super) fn parse_proxy(value: Value) -> Result<Proxy, PlanRefusal> {
    let refused = |reason: &str| value.part(&secrets::misspelt_url(&value.lossy())).wrong(reason);
    let text = value.utf8().ok_or_else(|| refused("not UTF-8"))?;
    if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| scheme.to_lowercase().starts_with("socks")) {
        return Err(refused(&format!(
            "onrush does not support {scheme} proxies; write the http:// URL of an HTTP proxy"
        )));
    }
    if secrets::is_misspelt_user(text) {
        return Err(refused(secrets::MISSPELT_USER));
    }
    let target = Target::parse(text, Dialect::Native).map_err(|invalid| refused(&invalid.reason))?;
    let Target { scheme, host, port, path, userinfo, .. } = target;
    if scheme != Scheme::Http {
        let reason = "onrush does not speak TLS with a proxy; write http:// and a port for plain text";
        return Err(refused(reason));
    }
    let Some(port) = port else {
        return Err(refused("no port, and proxies have no default port; try http://proxy:3128"));
    };
    if path != "/" {
        return Err(refused("nothing can follow the port; try http://proxy:3128"));
    }
    let login = userinfo.map(|userinfo| basic_credentials(&userinfo));
    Ok(Proxy { typed: text.to_owned(), host, port, login })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flags;

    fn read(text: &str) -> Result<(String, u16, Option<String>), String> {
        match parse_proxy(Value::new(flags::named("http-proxy"), text.as_ref(), Dialect::Native)) {
            Ok(Proxy { host, port, login, .. }) => Ok((host, port, login)),
            Err(PlanRefusal::Misused(line)) => Err(line),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn host_port_and_login_are_found() {
        let login = Some("Basic dTpw".to_owned());
        for (text, host, expected) in [
            ("http://proxy:3128", "proxy", None),
            ("http://proxy:3128/", "proxy", None),
            ("HTTP://10.0.0.1:3128", "10.0.0.1", None),
            ("proxy:3128", "proxy", None),
            ("http://[::1]:3128", "::1", None),
            ("http://u:p@proxy:3128", "proxy", login.clone()),
            ("u:%70@proxy:3128", "proxy", login.clone()),
        ] {
            assert_eq!(read(text), Ok((host.to_owned(), 3128, expected)), "{text}");
        }
    }

    #[test]
    fn bad_proxies_are_refused_without_their_password() {
        for (text, expected) in [
            ("http://u:pass@proxy", "--http-proxy \"http://REDACTED@proxy\": no port"),
            ("u:pass@proxy", "--http-proxy \"REDACTED@proxy\": no port"),
            ("https://proxy:443", "onrush does not speak TLS with a proxy"),
            ("socks5://proxy:1080", "onrush does not support socks5 proxies"),
            ("SOCKS5h://proxy:1080", "onrush does not support SOCKS5h proxies"),
            ("ftp://proxy:21", "the scheme \"ftp\" is unknown"),
            ("http://:3128", "no host"),
            ("", "no host"),
            ("http://proxy:0", "the port \"0\" is not a number from 1 to 65535"),
            ("http://proxy:port", "the port \"port\" is not a number"),
            ("http://proxy:3128/path", "nothing can follow the port"),
            ("http://proxy:3128?q", "nothing can follow the port"),
            ("http://pro xy:3128", "a blank at character"),
            ("http://::1:3128", "is written in brackets"),
            ("http://u:12/pass@proxy:3128", "--http-proxy \"http://REDACTED@proxy:3128\": in a user name or password"),
            ("u:pass@word/2@proxy:3128", "--http-proxy \"REDACTED@proxy:3128\": in a user name or password"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected) && !refused.contains("pass@"), "{text}: {refused}");
        }
    }
}
