//! The table of paths, which selects the response and generates the help.

use super::ask::{RequestContext, RequestNumbers};
use super::reply::{AfterBody, Reply};
use super::resources::Resources;
use super::response::{AfterResponse, Response, ResponseForm};
use super::responses;

/// A path and its response.
pub(super) struct PathRoute {
    /// The path. A path that ends with `/`, except the root, takes an argument.
    pub path: &'static str,
    /// The argument and query that the path takes, for the help.
    pub usage: &'static str,
    /// Behaviour of the path, in one line for the help.
    pub about: &'static str,
    /// Keys allowed in the query.
    keys: &'static [&'static str],
    action: Action,
}

/// Maximum number of characters of an unknown key that the error repeats.
const KEY_MAX: usize = 40;

impl PathRoute {
    /// Sets the keys allowed in the query. A path without keys ignores any query, because clients add queries to make
    /// each URL unique.
    const fn with_query_keys(mut self, keys: &'static [&'static str]) -> Self {
        self.keys = keys;
        self
    }

    /// The first unknown key of a query.
    fn unknown_query_key<'a>(&self, query: &'a str) -> Option<&'a str> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty() && !self.keys.is_empty());
        pairs.map(|pair| pair.split('=').next().unwrap_or(pair)).find(|key| !self.keys.contains(key))
    }
}

/// The action for a request: makes the response, after or before the body is received.
enum Action {
    /// Discards the body, then makes the response; an `Err` names the fault in the argument or query.
    Make(fn(&RequestContext) -> Result<Response, String>),
    /// Makes and sends the response at once, then discards the body.
    Early(fn(&RequestContext) -> Response),
    /// Sends back the request, head and body, as received.
    Echo,
    /// Sends back the length of the body.
    Sink,
    /// Sends the server's counts, without this request.
    Stats,
}

/// All paths, in the order of the help.
pub(super) const ROUTES: &[PathRoute] = &[
    route("/", "", "13 bytes: Hello, World!", Action::Make(|ask| Ok(Response::greeting_response(ask.manner)))),
    route("/bytes/", "N", "N bytes, up to 10 GiB", Action::Make(responses::bytes_response)),
    route(
        "/delay/",
        "MS[?sd=S]",
        "a response after MS milliseconds (or fractions)",
        Action::Make(responses::delay_response),
    )
    .with_query_keys(&["sd", "dist", "slow"]),
    route("/status/", "N", "status N; 1xx: an interim response, then 200", Action::Make(responses::status_response)),
    route(
        "/chunked/",
        "N",
        "N bytes chunked, with an extension and a trailer",
        Action::Make(responses::chunked_response),
    ),
    route(
        "/drip",
        "?bytes=N&ms=M&delay=S",
        "N bytes spread over M ms, after S s",
        Action::Make(responses::drip_response),
    )
    .with_query_keys(&["bytes", "ms", "delay", "numbytes", "duration"]),
    route("/close", "", "sends Connection: close, then closes", Action::Make(responses::close_response)),
    route(
        "/closenohdr",
        "",
        "closes after the response without announcing it",
        Action::Make(responses::unannounced_close_response),
    ),
    route(
        "/reset",
        "",
        "RST instead of a response",
        Action::Make(|_| Ok(Response::empty_response(AfterResponse::Reset))),
    ),
    route("/garbage", "", "bytes that are not HTTP, then closes", Action::Make(responses::garbage_response)),
    route("/hang", "", "never responds", Action::Make(|_| Ok(Response::empty_response(AfterResponse::Hang)))),
    route("/stall", "?every=K&ms=M", "on a connection every K-th waits M ms", Action::Make(responses::stall_response))
        .with_query_keys(&["every", "ms"]),
    route(
        "/mixed",
        "?every=K&ms=M&rest=N",
        "every K-th connection waits M ms, others N ms",
        Action::Make(responses::mixed_response),
    )
    .with_query_keys(&["every", "ms", "rest"]),
    route(
        "/freeze",
        "?every=T&ms=M",
        "every T the whole target stops for M ms",
        Action::Make(responses::freeze_response),
    )
    .with_query_keys(&["every", "ms"]),
    route(
        "/capacity",
        "?rps=N[&sd=S]",
        "a queue that serves N requests/s in all",
        Action::Make(responses::capacity_response),
    )
    .with_query_keys(&["rps", "sd"]),
    route(
        "/pool",
        "?workers=K&ms=M[&sd=S]",
        "K workers serve all requests, M ms each",
        Action::Make(responses::pool_response),
    )
    .with_query_keys(&["workers", "ms", "sd", "dist", "slow"]),
    route(
        "/prefork",
        "?serves=K[&ms=M]",
        "only K connections are served at a time",
        Action::Make(responses::prefork_response),
    )
    .with_query_keys(&["serves", "ms", "sd", "dist", "slow"]),
    route("/eof", "", "a body without a length, ended by closing", Action::Make(responses::eof_response)),
    route(
        "/http10",
        "[?keep-alive]",
        "an HTTP/1.0 response, then closes [or not]",
        Action::Make(responses::http10_response),
    )
    .with_query_keys(&["keep-alive"]),
    route("/early-hints", "", "103 Early Hints, then 200", Action::Make(responses::early_hints_response)),
    route("/100", "", "100 Continue, then 200", Action::Make(responses::unasked_continue_response)),
    route("/echo", "", "the request as it was received, up to 1 MiB", Action::Echo),
    route("/sink", "", "the length of the request's body in bytes", Action::Sink),
    route("/early/413", "", "413 before the body is read, then reads it", Action::Early(responses::early_413_response)),
    route("/extra", "", "a response followed by 5 stray bytes", Action::Make(responses::extra_bytes_response)),
    route("/endless-head", "", "endless header fields", Action::Make(responses::endless_head_response)),
    route("/bad-length", "", "Content-Length: -13", Action::Make(responses::bad_length_response)),
    route("/two-lengths", "", "two different lengths", Action::Make(responses::two_lengths_response)),
    route("/length-and-chunked", "", "both a length and chunks", Action::Make(responses::length_and_chunked_response)),
    route("/bad-chunk", "", "a chunk whose size is not a number", Action::Make(responses::bad_chunk_response)),
    route("/stats", "", "JSON: connections and requests so far", Action::Stats),
];

const fn route(path: &'static str, usage: &'static str, about: &'static str, action: Action) -> PathRoute {
    PathRoute { path, usage, about, keys: &[], action }
}

/// Describes the paths and what each does, as text.
pub fn describe_paths() -> String {
    let mut text = String::from("Paths, for any method:\n");
    for PathRoute { path, usage, about, .. } in ROUTES {
        let shown = format!("{path}{usage}");
        text += &format!("  {shown:<27} {about}\n");
    }
    text += "\n/mixed without a query: every 10th connection waits 0.1 ms, the others a second;\n\
             each thread numbers its own connections.\n\
             /freeze without a query: every=5s&ms=1000. T counts from the first request,\n\
             and again after a second without requests. All paths on all connections\n\
             stop; requests that arrive meanwhile get their responses afterwards.\n\
             /capacity serves the requests of all connections one after the other. S is\n\
             the standard deviation of the service time, as a share of its mean, for\n\
             instance sd=0.3 (default 0).\n\
             /delay, /pool and /prefork take the same service times: M ms each; with sd=S\n\
             log-normal with the mean M and the standard deviation S, in ms; with dist=exp\n\
             exponential with the mean M; with dist=two&slow=N half M, half N ms.\n\
             /pool serves the requests of all connections in the order of arrival. Other\n\
             parameters are other workers. A client that closes while it waits has left.\n\
             /prefork reads nothing more from connections beyond K, from their first\n\
             request for it on, until one of the K is closed. K is 4096 at most.\n\
             /drip also takes httpbin's numbytes, duration (seconds) and delay (seconds).\n\
             /stats counts the requests whose head was read, except those for /stats.\n\
             \n\
             Over HTTP/2 (prior knowledge, or ALPN with --tls) paths do the same, except:\n\
             /reset resets the stream, and so do /bad-chunk and /length-and-chunked, as\n\
             there are no chunks; /chunked has only the trailer. /hang leaves the stream\n\
             open. After a malformed response the connection stays open. /extra has five\n\
             bytes more than its length says, and /endless-head CONTINUATION frames.\n\
             /close, /eof and /http10 send GOAWAY, and what was requested before is served;\n\
             /closenohdr and /garbage end the connection with all its streams. /prefork\n\
             holds up its own requests only. /echo shows the head in the form of HTTP/1.1.\n\
             /status/101 is malformed: HTTP/2 has no such status.";
    text
}

/// The reply to a request for this target (path and query). For `/echo`, `echoed` returns the request without its body.
pub(super) fn reply_to_request(
    target: &[u8],
    manner: ResponseForm,
    numbers: RequestNumbers,
    resources: &Resources,
    echoed: impl FnOnce() -> Vec<u8>,
) -> Reply {
    let later = |response| Reply { early: None, then: AfterBody::Response(Box::new(response)), counts: true };
    let Ok(target) = str::from_utf8(target) else {
        return later(Response::text_response(400, &b"the target is not valid UTF-8\n"[..], manner));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let Some((route, argument)) = find_route(path) else {
        return later(Response::text_response(
            404,
            &b"no such path; onrush serve --help lists all paths\n"[..],
            manner,
        ));
    };
    if let Some(key) = route.unknown_query_key(query) {
        let key: String = key.chars().take(KEY_MAX).collect();
        let why = format!("{path} has no parameter {key:?}; it takes {}\n", route.keys.join(", "));
        return later(Response::text_response(400, why.into_bytes(), manner));
    }
    let ask = RequestContext { argument, query, manner, numbers, resources };
    match route.action {
        Action::Make(make) => {
            later(make(&ask).unwrap_or_else(|why| Response::text_response(400, (why + "\n").into_bytes(), manner)))
        }
        Action::Early(make) => {
            let response = make(&ask);
            let then = AfterBody::Response(Box::new(Response::empty_response(response.end)));
            Reply { early: Some(response), then, counts: true }
        }
        Action::Echo => Reply { early: None, then: AfterBody::Echo(echoed(), manner), counts: true },
        Action::Sink => Reply { early: None, then: AfterBody::Length(manner), counts: true },
        Action::Stats => {
            let json = super::counters::to_json(resources.all_counters());
            Reply { counts: false, ..later(Response::text_response(200, json.into_bytes(), manner)) }
        }
    }
}

fn find_route(path: &str) -> Option<(&'static PathRoute, &str)> {
    ROUTES.iter().find_map(|route| {
        let argument = path.strip_prefix(route.path)?;
        let takes_argument = route.path.len() > 1 && route.path.ends_with('/');
        (takes_argument || argument.is_empty()).then_some((route, argument))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_described_within_80_columns() {
        let help = describe_paths();
        for PathRoute { path, usage, .. } in ROUTES {
            assert!(help.contains(&format!("\n  {path}{usage} ")), "{path}{usage} is missing");
        }
        for line in help.lines() {
            assert!(line.len() <= 80, "{} columns: {line}", line.len());
        }
    }

    #[test]
    fn mistyped_query_keys_are_found() {
        let unknown = |path: &str, query| {
            find_route(path).and_then(|(route, _)| route.unknown_query_key(query).map(str::to_owned))
        };
        assert_eq!(unknown("/capacity", "rps=5&sd=0.3"), None);
        assert_eq!(unknown("/capacity", "rsp=5"), Some("rsp".to_owned()));
        assert_eq!(unknown("/stall", "every=5&&ms"), None);
        assert_eq!(unknown("/drip", "numbytes=4&duration=0&delay=0"), None);
        assert_eq!(unknown("/", "id=7"), None, "a path without keys");
        assert_eq!(unknown("/stall", "duration=3"), Some("duration".to_owned()), "of another path");
        assert_eq!(unknown("/http10", "keep-alive"), None);
        assert_eq!(unknown("/http10", "keepalive"), Some("keepalive".to_owned()));
    }

    #[test]
    fn no_path_hides_another() {
        for (index, route) in ROUTES.iter().enumerate() {
            let found = find_route(route.path).map(|(found, _)| found.path);
            assert_eq!(found, Some(route.path), "route {index}");
        }
        assert!(find_route("/unknown").is_none());
        assert!(find_route("/closed").is_none());
        assert_eq!(find_route("/bytes/12").map(|(route, argument)| (route.path, argument)), Some(("/bytes/", "12")));
    }
}
