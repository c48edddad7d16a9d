//! Requests: the options, and the method, headers and body that all requests have.
//!
//! `Content-Length` is not added here, but by the protocol.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use onrush_plan::http::HttpVersion;
use onrush_plan::limits::{BODY_MAX_MIB, REQUESTS_MAX};
use onrush_plan::list::ListOrder;
use onrush_plan::load::Limiter;
use onrush_plan::{Checks, Dialect, FileContents, Format, Http, LuaScript, PerConnection, Request, Target, secrets};
use onrush_proto::http2::is_forbidden_field;
use onrush_text::error_reason;
use onrush_text::units::join_list;

use super::draft::PlanDraft;
use super::flag::Origin::Wrk;
use super::flag::{Flag, Secrecy, flag, put, switch};
use super::form::FormBody;
use super::refusal::PlanRefusal;
use super::templates::{self, SentRequest};
use super::values::Value;
use super::{checks, framing, hints};
use crate::input::InputFiles;
use crate::requests::{field, is_token, raw_field};

/// The reason for which only one of two options may set the body.
const ONE_BODY: &str = "a request has one body";
const BODIES_OF_LIST: &str = "the requests of a list have their bodies in files";
const BODIES_OF_SCRIPT: &str = "a script makes its bodies itself";

/// The words after a tool's name that refuse the checks of responses.
const NO_CHECKS: &str = "does not check responses";

pub(super) const OPTIONS: &[Flag] = &[
    flag("-X, --method NAME", |draft, value| put(&mut draft.request.method, parse_method(value)))
        .one_of(&["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
        .common()
        .help("request method (GET; POST with a body)")
        .reference(
            "Method, case kept: `GET` by default, or `POST` with a body.",
            "onrush -X DELETE http://127.0.0.1:8080/status/204",
        ),
    flag("-H, --header H", add_header)
        .common()
        .from(Wrk)
        .repeatable()
        .help("add a header, \"Name: value\"; may be repeated")
        .reference(
            "Adds a header, `Name: value`. Repeatable; headers are sent in this order. Your `Host`, `Authorization` \
             and `Content-Length` replace onrush's. Headers that do not fit the body are sent with a warning.",
            "onrush -H 'Host: www.example.com' -H 'Accept: text/html' http://127.0.0.1:8080/",
        ),
    flag("--body DATA", |draft, value| put(&mut draft.request.body, Ok(value.text.to_owned())))
        .common()
        .hiding(Secrecy::Replaced(|value| (!value.starts_with('@')).then(|| secrets::redact_body(value))))
        .excludes(&[("form", ONE_BODY), ("data-urlencode", ONE_BODY)])
        .help("request body; @FILE reads a file, @- standard input")
        .reference(
            "Request body: text, the content of a file (`@FILE`) or standard input (`@-`). At most 1 GiB, in memory \
             once per thread.",
            "onrush --body 'name=x&size=3' http://127.0.0.1:8080/sink",
        ),
    flag("-F, --form NAME=CONTENT", |draft, value| {
        draft.request.forms.push(value.text.to_owned());
        Ok(())
    })
    .common()
    .repeatable()
    .excludes(&[("data-urlencode", ONE_BODY), ("script", BODIES_OF_SCRIPT), ("urls", BODIES_OF_LIST)])
    .help("send a form in parts, as curl does; NAME=@FILE sends a\nfile, NAME=<FILE its content; may be repeated")
    .reference(
        "Sends a part of a multipart [form](requests.md#forms), as curl does. Repeatable.",
        "onrush --form 'user=ada' --form 'list=@examples/users.csv' http://127.0.0.1:8080/sink",
    ),
    flag("--data-urlencode DATA", |draft, value| {
        draft.request.urlencoded.push(value.text.to_owned());
        Ok(())
    })
    .repeatable()
    // Without a name, all of it is the body.
    .hiding(Secrecy::Replaced(|value| {
        let is_nameless = value.starts_with('=') || !value.contains(['=', '@']);
        is_nameless.then(|| secrets::REDACTED.to_owned())
    }))
    .excludes(&[("script", BODIES_OF_SCRIPT), ("urls", BODIES_OF_LIST)])
    .help("send percent-encoded fields, as curl does: NAME=TEXT\nor NAME@FILE; may be repeated, and are joined by &")
    .reference(
        "Sends a percent-encoded [form field](requests.md#forms), as curl does. Repeatable.",
        "onrush --data-urlencode 'q=1+1' http://127.0.0.1:8080/sink",
    ),
    flag("--urls FILE", |draft, value| put(&mut draft.request.urls, Ok(value.path())))
        .common()
        .native_only("has no lists of requests")
        .excludes(&[("script", "both say what is sent")])
        .help(
            "send the requests in FILE (-: standard input), a line\n\
             each: [METHOD] URL-or-path [weight=N] [name=X], then\n\
             perhaps header lines and @FILE, its body",
        )
        .reference(
            "Sends the requests of a [list](requests.md#a-list), one per line: `[METHOD] URL-or-path [weight=N] \
             [name=X]`.",
            "onrush -n 8 --urls examples/urls.txt http://127.0.0.1:8080",
        ),
    flag("--urls-order HOW", |draft, value| {
        put(&mut draft.request.urls_order, value.choice(&[ListOrder::Seq, ListOrder::Shuffle, ListOrder::Weighted]))
    })
    .one_of(&["seq", "shuffle", "weighted"])
    .needs(&[(|draft| draft.has("urls"), "there is no list; add --urls FILE, or leave it out")])
    .help("seq (one after the other), shuffle, or weighted\n(drawn by weight) (seq)")
    .reference(
        "[Order](requests.md#the-order) of the list: `seq` (default), `shuffle` or `weighted`.",
        "onrush -n 8 --urls examples/urls.txt --urls-order shuffle http://127.0.0.1:8080",
    ),
    switch("--templates")
        .common()
        .native_only("has no placeholders")
        .excludes(&[("script", "a script fills in its requests itself")])
        .help(
            "fill in {{seq}}, {{rand A B}}, {{uuid}}, {{now}},\n\
             {{line FILE}} and {{csv FILE COLUMN}} in URLs, headers\n\
             and bodies, anew for every request",
        )
        .reference(
            "Fills in [placeholders](requests.md#placeholders) such as `{{seq}}`, `{{uuid}}` and `{{csv FILE COLUMN}}` \
             for every request.",
            "onrush -n 8 --templates 'http://127.0.0.1:8080/bytes/{{rand 1 9}}?n={{seq}}'",
        ),
    flag("-s, --script FILE", |draft, value| {
        // The `-s` of k6 is for stages.
        let meant = value.foreign_hint().filter(|_| !value.dialect.is_compat());
        put(&mut draft.request.script, meant.map_or_else(|| Ok(value.path()), |meant| Err(value.wrong(meant))))
    })
    .common()
    .from(Wrk)
    .help("a Lua script that makes requests\n(the words after the URL are its arguments)")
    .reference(
        "Runs a [Lua script](scripting.md). The words after the URL are its arguments.",
        "onrush -c2 -d1s -s examples/scripts/post.lua http://127.0.0.1:8080/sink",
    ),
    flag("--basic-auth U:P", |draft, value| put(&mut draft.request.basic_auth, parse_user(value)))
        .hiding(Secrecy::Whole)
        .help("log in as user U with password P, as U:P@ in the URL")
        .reference(
            "Logs in as user U with password P, like `http://U:P@host/` but without escaping.",
            "onrush --basic-auth user:secret http://127.0.0.1:8080/",
        ),
    switch("--disable-keepalive")
        .help("use a new connection for every request, and send\n\"Connection: close\"")
        .reference(
            "A new connection for every request: `--requests-per-connection 1`. Over TLS, sessions are resumed; \
             [`--tls-resume off`](tls.md#sessions) makes full handshakes.",
            "onrush --disable-keepalive http://127.0.0.1:8080/",
        ),
    flag("--requests-per-connection N", |draft, value| {
        put(&mut draft.request.requests_per_connection, value.count(REQUESTS_MAX))
    })
    .help("replace a connection after N requests; the last one\ncarries \"Connection: close\"")
    .reference(
        "Replaces a connection after N requests. The last one carries `Connection: close`; over HTTP/2 onrush \
         sends GOAWAY after its response.\n\n\
         Over HTTP/1.1 onrush waits up to a second for the server to close, outside of any latency, because the \
         side that closes first keeps the port in TIME_WAIT for a minute (`connections.closed_first`). A script's \
         batch stays on one connection; a batch of more than N ends the run.",
        "onrush --requests-per-connection 100 http://127.0.0.1:8080/",
    ),
    flag("--expect-status LIST", |draft, value| checks::expect_status(&mut draft.request.checks, value))
        .common()
        .native_only(NO_CHECKS)
        .help("statuses of success, such as 200,204, 2xx or\n200-204,404; every other one is an error (below 400)")
        .reference(
            "Successful statuses: `200`, `200,204`, `2xx`, `200-204,404`; by default those below 400. Others are \
             errors ([checks](requests.md#checks)).",
            "onrush --expect-status 200,204 http://127.0.0.1:8080/",
        ),
    flag("--expect-body TEXT", |draft, value| checks::expect_body(&mut draft.request.checks, value))
        .common()
        .repeatable()
        .native_only(NO_CHECKS)
        .help("count a response as an error unless its body contains\nTEXT; may be repeated")
        .reference(
            "Responses whose body does not contain TEXT, byte for byte, are errors (`check`). Repeatable.",
            "onrush --expect-body '\"name\":\"x\"' --body '{\"name\":\"x\"}' http://127.0.0.1:8080/echo",
        ),
    flag("--expect-header H", |draft, value| checks::expect_header(&mut draft.request.checks, value))
        .repeatable()
        .native_only(NO_CHECKS)
        .help("the same for a header: \"Name: value\", or \"Name\" for\nany value; may be repeated")
        .reference(
            "Responses without this header are errors (`check`): `Name: value`, or `Name` for any value. Case matters \
             in values only. Repeatable.",
            "onrush --expect-header 'Content-Length: 0' http://127.0.0.1:8080/status/200",
        ),
    switch("--once")
        .common()
        .single_run_only("an experiment sends one request to each target first anyway")
        .needs(&[(
            |draft| draft.output.format != Format::Json,
            "the request is shown as text; leave --format json out",
        )])
        .help("send one request, and show it and the response")
        .reference(
            "Sends one request and shows it with its response and timing. Options about the amount of load are \
             ignored. HTTP/2 is shown as [frames](http2.md#frames), a long binary body as length and type. From a \
             list, the first request of each [name](requests.md#results-by-name) is sent.",
            "onrush --once -c400 -d30s http://127.0.0.1:8080/",
        ),
];

/// The options on requests, as typed. No file has been read.
#[derive(Debug, Default)]
pub(super) struct RequestDraft {
    pub method: Option<String>,
    pub headers: Vec<HeaderField>,
    pub body: Option<OsString>,
    pub forms: Vec<OsString>,
    pub urlencoded: Vec<OsString>,
    pub urls: Option<PathBuf>,
    pub urls_order: Option<ListOrder>,
    pub script: Option<PathBuf>,
    pub basic_auth: Option<String>,
    requests_per_connection: Option<u64>,
    pub checks: Checks,
}

impl PlanDraft {
    /// How many requests a connection may have. The last one carries `Connection: close`, so the user cannot set the
    /// header.
    pub(super) fn to_requests_per_connection(&self) -> Result<Option<PerConnection>, PlanRefusal> {
        let (option, most) = match (self.has("disable-keepalive"), self.request.requests_per_connection) {
            (false, None) => return Ok(None),
            (true, Some(most @ 2..)) => {
                let other = format!("--requests-per-connection {most}");
                return Err(PlanRefusal::both("--disable-keepalive", other, "the first means one request"));
            }
            (true, _) => (Limiter::DisableKeepalive, 1),
            (false, Some(most)) => (Limiter::RequestsPerConnection, most),
        };
        if let Some((_, value)) = self.request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Connection"))
        {
            let line = format!("{} and the header 'Connection: {value}': leave one of the two out", option.name());
            return Err(PlanRefusal::Misused(line));
        }
        Ok(Some(PerConnection { most, option }))
    }

    /// The script, whose arguments are the words after the URL; without one they are ignored with a warning.
    pub(super) fn to_script(&self, warnings: &mut Vec<String>) -> Option<LuaScript> {
        let args: Vec<String> = self.words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(path) = &self.request.script {
            return Some(LuaScript { file: FileContents::unread(path), args });
        }
        if !args.is_empty() {
            let shown = secrets::redact_words(args.iter().map(String::as_str));
            let words: Vec<String> = shown.iter().map(|word| format!("{word:?}")).collect();
            warnings.push(format!("extra arguments are ignored (only scripts use them): {}", words.join(" ")));
        }
        None
    }

    /// The request that is sent: with a body a `POST`, unless a method was typed. `closes`: it ends its connection.
    pub(super) fn to_request(&self, target: &Target, form: Option<&FormBody>, closes: bool) -> Request {
        let has_body = self.has("body") || form.is_some();
        let method = self.request.method.clone().unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned());
        let mut headers = self.request.headers.clone();
        let content_type = form.and_then(|(_, content_type)| content_type.clone());
        headers.extend(content_type.map(|value| ("Content-Type".to_owned(), value)));
        // A script would write it into every request of a batch, where no request could follow the first. The engine
        // puts it into the last request of every connection, whether a script made it or not.
        if closes && self.request.script.is_none() {
            headers.push(("Connection".to_owned(), "close".to_owned()));
        }
        Request { method, target: target.path.clone(), headers: order_headers(headers, target) }
    }

    /// Warnings about what is sent; none with a script, whose method, headers and body count instead.
    pub(super) fn sent_warnings(&self, sent: &SentRequest, http: &Http) -> Vec<String> {
        let SentRequest { request, body, list, .. } = sent;
        let mut warnings = Vec::new();
        if self.request.script.is_some() {
            return warnings;
        }
        if !self.request.checks.body.is_empty() && list.is_none() && request.method == "HEAD" {
            warnings.push("--expect-body: no response to HEAD has a body, so every one fails this check".to_owned());
        }
        warnings.extend(method_case_warning(&request.method, "-X "));
        if http.versions == [HttpVersion::Http11] {
            warnings.extend(framing::framing_warning(request, *body, self.is_once()));
        } else {
            let are_typed = !self.has("disable-keepalive") && !self.has("requests-per-connection");
            warnings.extend(http1_headers_warning(&request.headers).filter(|_| are_typed));
            warnings.extend(http2_host_warning(request));
        }
        if !self.has("templates") && !self.dialect.is_compat() {
            warnings.extend(templates::unused_placeholder_warning(sent));
        }
        warnings
    }

    /// The body of `--body`, if it is not empty.
    pub(super) fn read_typed_body(&self, files: &InputFiles) -> Result<Option<FileContents>, PlanRefusal> {
        let Some(typed) = &self.request.body else { return Ok(None) };
        let cannot = |reason| PlanRefusal::Cannot(format!("--body {:?}: {reason}", typed.to_string_lossy()));
        let bytes = read_body(typed, files).map_err(cannot)?;
        Ok((!bytes.is_empty()).then(|| FileContents::from_bytes("", bytes)))
    }

    /// One line about words that must be misplaced; `None` if they may be right.
    pub(super) fn stray_word_hint(&self) -> Option<String> {
        let is_cut = |(_, value): &&HeaderField| value.is_empty() || secrets::is_scheme(value);
        let cut = self.request.headers.iter().rfind(is_cut).map(|(name, value)| (&**name, &**value));
        hints::stray_word_hint(&self.words, self.request.script.is_some(), cut)
    }
}

/// Adds a header. Natively a malformed one is refused; in the compat dialects it is ignored as in wrk, but with a
/// warning.
fn add_header(draft: &mut PlanDraft, value: Value) -> Result<(), PlanRefusal> {
    let shown = secrets::misspelt_header(&value.lossy());
    let text = value.utf8().ok_or_else(|| value.part(&shown).wrong("not UTF-8"))?;
    match parse_header(text, value.dialect) {
        Ok(header) => draft.request.headers.push(header),
        Err(reason) if value.dialect.is_compat() => {
            draft.warnings.push(format!("--header {shown:?} is ignored: {reason}"));
        }
        Err(reason) => return Err(value.part(&shown).wrong(reason)),
    }
    Ok(())
}

fn parse_method(value: Value) -> Result<String, PlanRefusal> {
    let token = value.utf8().filter(|text| is_token(text));
    token.map(str::to_owned).ok_or_else(|| {
        let meant = value.foreign_hint();
        // The proxy may contain a user, as in ab.
        let shown = secrets::misspelt_url(&value.lossy());
        value.part(&shown).wrong(meant.unwrap_or("not the name of a method; try PUT"))
    })
}

/// Parses a user and a password. Without a colon, the password is empty.
fn parse_user(value: Value) -> Result<String, PlanRefusal> {
    // The value must not be shown: it may contain a password.
    let bad = || value.part("…").wrong("no user before the colon; try 'user:password'");
    let text = value.utf8().filter(|text| !text.is_empty() && !text.starts_with(':')).ok_or_else(bad)?;
    Ok(if text.contains(':') { text.to_owned() } else { format!("{text}:") })
}

/// Name and value of a header.
pub(super) type HeaderField = (String, String);

/// Parses a header and removes leading blanks from its value. Natively, the header must conform to RFC 9110. The compat
/// dialects send it unchanged, as wrk does, and require only a name and a colon. The error says what is wrong.
pub(super) fn parse_header(text: &str, dialect: Dialect) -> Result<HeaderField, &'static str> {
    let (name, value) = if dialect.is_compat() { raw_field(text) } else { field(text) }?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The methods of RFC 9110 and RFC 5789.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];

/// A warning about a `Host` header that HTTP/2 changes: the first one becomes `:authority`.
fn http2_host_warning(request: &Request) -> Option<String> {
    let hosts = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("Host"));
    let mut hosts = hosts.map(|(name, value)| (format!("'{name}: {value}'"), value.is_empty()));
    // The authority of a tunnel is its target, not the `Host`.
    let first = hosts.next().filter(|_| request.method != "CONNECT")?;
    match (first, hosts.next()) {
        ((empty, true), _) => Some(format!(
            "{} is left out with HTTP/2, and :authority with it, which servers may refuse with 400 or PROTOCOL_ERROR",
            empty.replace(": '", ":'")
        )),
        ((sent, false), Some((other, _))) => {
            Some(format!("{other} is left out with HTTP/2, which has one host; {sent} is sent as :authority"))
        }
        _ => None,
    }
}

/// A warning about headers that do not exist in HTTP/2.
fn http1_headers_warning(headers: &[(String, String)]) -> Option<String> {
    let is_other_te =
        |name: &str, value: &str| name.eq_ignore_ascii_case("TE") && !value.eq_ignore_ascii_case("trailers");
    let left_out: Vec<_> =
        headers.iter().filter(|(name, value)| is_forbidden_field(name) || is_other_te(name, value)).collect();
    let named: Vec<String> = left_out.iter().map(|(name, value)| format!("'{name}: {value}'")).collect();
    let (is, headers) = if named.len() == 1 { ("is", "header") } else { ("are", "headers") };
    let instead = if left_out.iter().any(|(name, _)| name.eq_ignore_ascii_case("Connection")) {
        "; --disable-keepalive and --requests-per-connection end connections"
    } else {
        ""
    };
    (!named.is_empty())
        .then(|| format!("{} {is} left out with HTTP/2, which has no such {headers}{instead}", join_list(&named)))
}

/// The warning about a standard method typed with `option` in the wrong case.
pub(super) fn method_case_warning(method: &str, option: &str) -> Option<String> {
    let meant = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method) && *known != method)?;
    Some(format!("the case of a method matters, and servers know {meant}, not {method}; write {option}{meant}"))
}

/// The headers in the order in which they are sent: `Host`, possibly the user's; `Authorization`, if the URL contains a
/// user and the header is missing; and the user's headers in their own order.
fn order_headers(typed: Vec<HeaderField>, target: &Target) -> Vec<HeaderField> {
    let is = |header: &HeaderField, name: &str| header.0.eq_ignore_ascii_case(name);
    let (mut headers, rest): (Vec<_>, Vec<_>) = typed.into_iter().partition(|header| is(header, "Host"));
    if headers.is_empty() {
        headers.push(("Host".to_owned(), target.authority()));
    }
    if let Some(userinfo) =
        target.userinfo.as_deref().filter(|_| !rest.iter().any(|header| is(header, "Authorization")))
    {
        headers.push(("Authorization".to_owned(), basic_credentials(userinfo)));
    }
    headers.extend(rest);
    headers
}

/// The body that `--body` sets: as typed, the contents of a file (`@FILE`), or standard input (`@-`). The error says
/// what is wrong.
pub(super) fn read_body(typed: &OsStr, files: &InputFiles) -> Result<Vec<u8>, String> {
    let [b'@', name @ ..] = typed.as_bytes() else { return Ok(typed.as_bytes().to_vec()) };
    let name = Path::new(OsStr::from_bytes(name));
    let contents = match files.brought_path(name) {
        Some(there) => read_file(there),
        None if name.as_os_str() == "-" => read_limited(io::stdin().lock(), BODY_MAX_MIB),
        None => read_file(name),
    }?;
    files.keep(name, &contents);
    Ok(contents)
}

/// The contents of a file named in a form, or of standard input for `-`.
pub(super) fn read_contents(file: &[u8], files: &InputFiles) -> Result<Vec<u8>, String> {
    match file {
        [] => Err("no file after the @ or <".to_owned()),
        file => read_body(OsStr::from_bytes(&[b"@", file].concat()), files),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error_reason(&error))?;
    let length = file.metadata().map_err(|error| error_reason(&error))?.len();
    if length > BODY_MAX_MIB << 20 { Err(too_long_message(BODY_MAX_MIB)) } else { read_limited(file, BODY_MAX_MIB) }
}

fn read_limited(source: impl Read, most_mib: u64) -> Result<Vec<u8>, String> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes).map_err(|error| error_reason(&error))?;
    if bytes.len() as u64 > most { Err(too_long_message(most_mib)) } else { Ok(bytes) }
}

fn too_long_message(most_mib: u64) -> String {
    format!("it is longer than {most_mib} MiB; send a shorter body")
}

/// The value of `Authorization` or `Proxy-Authorization` for `user:password`, which is encoded as it is.
pub(super) fn basic_credentials(userinfo: &str) -> String {
    format!("Basic {}", STANDARD.encode(userinfo))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(typed: &[&str], url: &str) -> String {
        let typed = typed.iter().map(|text| parse_header(text, Dialect::Wrk).unwrap()).collect();
        let headers = order_headers(typed, &Target::parse(url, Dialect::Wrk).unwrap());
        headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    #[test]
    fn host_comes_first_then_typed_order() {
        assert_eq!(sent(&[], "http://127.0.0.1:80/"), "Host: 127.0.0.1:80\n");
        assert_eq!(
            sent(&["A: b: c", "NoSpace:x", "Dup: 1", "Dup: 2"], "http://h/"),
            "Host: h\nA: b: c\nNoSpace: x\nDup: 1\nDup: 2\n"
        );
    }

    #[test]
    fn typed_host_replaces_ours_in_any_case() {
        assert_eq!(sent(&["A: 1", "hOST: h.example"], "http://h/"), "hOST: h.example\nA: 1\n");
    }

    #[test]
    fn url_userinfo_is_sent_unless_overridden() {
        assert_eq!(sent(&["A: 1"], "http://u:p@h/"), "Host: h\nAuthorization: Basic dTpw\nA: 1\n");
        assert_eq!(sent(&["authorization: x"], "http://u:p@h/"), "Host: h\nauthorization: x\n");
    }

    #[test]
    fn lower_case_methods_are_warned_about() {
        let line = "the case of a method matters, and servers know POST, not post; write -X POST";
        assert_eq!(method_case_warning("post", "-X ").as_deref(), Some(line));
        assert!(method_case_warning("Get", "").is_some_and(|line| line.ends_with("not Get; write GET")));
        assert_eq!(
            ["POST", "PURGE", "purge", "query"].map(|method| method_case_warning(method, "")),
            [const { None }; 4]
        );
    }

    #[test]
    fn invalid_headers_are_refused_natively() {
        let table = [
            ("A:", Ok(("A", ""))),
            ("A: b: c", Ok(("A", "b: c"))),
            ("A: \t b ", Ok(("A", "b "))),
            ("A:b\tc", Ok(("A", "b\tc"))),
            ("A: é", Ok(("A", "é"))),
            ("A", Err("no colon; write 'Name: value'")),
            (": b", Err("no name before the colon; write 'Name: value'")),
            ("'A: c'", Err("a quotation mark before the name; leave it out")),
            ("A b: c", Err("a header name consists of letters, digits and -; write 'Name: value'")),
            (
                "\u{201c}A: c",
                Err("a typographic quotation mark, which is not a quote character in the shell; write ' or \""),
            ),
            ("A: b\r\nC: d", Err("a control character in the value; leave it out")),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(parse_header(text, Dialect::Native), expected, "{text}");
        }
    }

    #[test]
    fn bodies_are_texts_or_readable_files() {
        let read_body = |typed: &str| read_body(OsStr::new(typed), &InputFiles::default());
        assert_eq!(read_body("a=1").as_deref(), Ok(&b"a=1"[..]));
        assert_eq!(read_body("").as_deref(), Ok(&b""[..]));
        assert_eq!(read_body("@/proc/self/comm").map(|bytes| bytes.is_empty()), Ok(false));
        assert_eq!(read_body("@/nonexistent"), Err("No such file or directory".to_owned()));
        assert_eq!(read_body("@/"), Err("Is a directory".to_owned()));
        assert_eq!(read_body("@"), Err("No such file or directory".to_owned()));
    }

    #[test]
    fn endless_bodies_are_errors() {
        assert_eq!(read_limited(io::repeat(b'x'), 1), Err("it is longer than 1 MiB; send a shorter body".to_owned()));
        assert_eq!(read_limited(io::repeat(b'x').take(1 << 20), 1).map(|bytes| bytes.len()), Ok(1 << 20));
    }
}
