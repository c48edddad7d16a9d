//! Requests, byte by byte, natively and called as wrk.

use crate::harness::{Context, Onrush, Scratch, cases, target, url};
use crate::recorder::RecordingServer;

cases! {
    plain_gets_have_line_and_host;
    paths_are_optional_and_fragments_unsent (Once);
    ipv6_addresses_keep_their_brackets (Once) needs "::1";
    requested_methods_are_sent (Once);
    bodyless_posts_announce_length_zero (Once);
    bodies_imply_post_with_length (Once);
    bodies_load_from_files_or_stdin (Once);
    unreadable_bodies_are_named (Once);
    large_bodies_arrive_completely;
    headers_keep_order_and_repetitions (Once);
    user_hosts_replace_ours (Once);
    user_lengths_replace_ours (Once);
    url_users_become_basic_authentication (Once);
    head_responses_have_no_body;
    equal_requests_are_repeated;
    once_shows_what_a_run_sends (Once);
}

/// The only request that a command line sends, to a path of a new server. In the text returned, the server's address is
/// replaced by `HOST`.
fn sent(program: Onrush, path: &str) -> String {
    let server = RecordingServer::start("127.0.0.1");
    let address = server.address().to_string();
    let output = program.words("-t1 -c1 -n1").word(format!("http://{address}{path}")).run();
    assert_eq!((output.code, output.requests()), (0, 1), "{output:?}");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    requests[0].replace(&address, "HOST")
}

/// Checks the bytes of the request that a command line sends, under both names of the program.
fn assert_sends(context: &Context, words: &[&str], path: &str, expected: &str) {
    for program in context.both() {
        let program = words.iter().fold(program, |program, word| program.word(word));
        assert_eq!(sent(program, path), expected, "{words:?} {path}");
    }
}

fn plain_gets_have_line_and_host(context: &Context) {
    assert_sends(context, &[], "/", "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n");
}

fn paths_are_optional_and_fragments_unsent(context: &Context) {
    let table = [
        ("", "/"),
        ("?x=1", "/?x=1"),
        ("#top", "/"),
        ("?x=1#top", "/?x=1"),
        ("/p?q=1#frag", "/p?q=1"),
        ("/%20/../a//b?c=d&e=[f]", "/%20/../a//b?c=d&e=[f]"),
    ];
    for (typed, target) in table {
        assert_sends(context, &[], typed, &format!("GET {target} HTTP/1.1\r\nHost: HOST\r\n\r\n"));
    }
}

fn ipv6_addresses_keep_their_brackets(context: &Context) {
    for program in context.both() {
        let server = RecordingServer::start("::1");
        let address = server.address();
        let output = program.words("-t1 -c1 -n1").word(format!("http://{address}/")).run();
        assert_eq!(output.code, 0, "{output:?}");
        let expected = format!("GET / HTTP/1.1\r\nHost: [::1]:{}\r\n\r\n", address.port());
        assert_eq!(server.requests(), [expected]);
    }
}

fn requested_methods_are_sent(context: &Context) {
    for method in ["DELETE", "OPTIONS", "HEAD", "PROPFIND", "get"] {
        assert_sends(context, &["-X", method], "/", &format!("{method} / HTTP/1.1\r\nHost: HOST\r\n\r\n"));
    }
}

fn bodyless_posts_announce_length_zero(context: &Context) {
    for method in ["POST", "PUT", "PATCH"] {
        let expected = format!("{method} / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n");
        assert_sends(context, &["--method", method], "/", &expected);
    }
    let expected = "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n";
    assert_sends(context, &["--body", ""], "/", expected);
}

fn bodies_imply_post_with_length(context: &Context) {
    let body = ["--body", "name=é&size=3"];
    let expected = "POST /p HTTP/1.1\r\nHost: HOST\r\nContent-Length: 14\r\n\r\nname=é&size=3";
    assert_sends(context, &body, "/p", expected);
    let expected = "PUT /p HTTP/1.1\r\nHost: HOST\r\nContent-Length: 14\r\n\r\nname=é&size=3";
    assert_sends(context, &["-X", "PUT", body[0], body[1]], "/p", expected);
}

fn bodies_load_from_files_or_stdin(context: &Context) {
    let text = "{\"a\": 1}\r\n\r\nGET /not-a-request HTTP/1.1\r\n\r\n";
    let expected = format!("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    let scratch = Scratch::new("body");
    let file = scratch.file("body.json", text);
    assert_sends(context, &["--body", &format!("@{}", file.display())], "/", &expected);
    for program in context.both() {
        assert_eq!(sent(program.words("--body @-").stdin(text.as_bytes()), "/"), expected);
    }
}

fn unreadable_bodies_are_named(context: &Context) {
    let scratch = Scratch::new("no-body");
    let directory = format!("@{}", scratch.path().display());
    let missing = format!("{directory}/missing");
    for (program, name) in context.both().into_iter().zip(["onrush", "wrk"]) {
        let output = program.words("http://127.0.0.1:1/ --body").word(&missing).run_plain();
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
        assert_eq!(output.stderr, format!("{name}: --body {missing:?}: No such file or directory\n"));
    }
    let output = context.onrush().words("http://127.0.0.1:1/ --body").word(&directory).run_plain();
    assert_eq!(output.stderr, format!("onrush: --body {directory:?}: Is a directory\n"));
}

fn large_bodies_arrive_completely(context: &Context) {
    let body: String = (0..200_000).map(|number| format!("{number:06}\n")).collect();
    let head = format!("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: {}\r\n\r\n", body.len());
    for program in context.both() {
        let request = sent(program.words("--body @-").stdin(body.as_bytes()), "/");
        assert!(request == head.clone() + &body, "{} bytes that begin with {:?}", request.len(), &request[..80]);
    }
}

fn headers_keep_order_and_repetitions(context: &Context) {
    let words = ["-H", "Zeta: 1", "--header=alpha:  2 ", "-HCookie: a=b", "-H", "Cookie: c=d", "-H", "Empty:"];
    let expected =
        "GET / HTTP/1.1\r\nHost: HOST\r\nZeta: 1\r\nalpha: 2 \r\nCookie: a=b\r\nCookie: c=d\r\nEmpty: \r\n\r\n";
    assert_sends(context, &words, "/", expected);
}

fn user_hosts_replace_ours(context: &Context) {
    for name in ["Host", "host", "HOST", "hOsT"] {
        let header = format!("{name}: www.example.com");
        let expected = format!("GET / HTTP/1.1\r\n{header}\r\nA: 1\r\n\r\n");
        assert_sends(context, &["-H", "A: 1", "-H", &header], "/", &expected);
    }
}

fn user_lengths_replace_ours(context: &Context) {
    let words = ["-H", "content-length: 3", "-H", "A: 1", "--body", "abc"];
    let expected = "POST / HTTP/1.1\r\nHost: HOST\r\ncontent-length: 3\r\nA: 1\r\n\r\nabc";
    assert_sends(context, &words, "/", expected);
}

fn url_users_become_basic_authentication(context: &Context) {
    // The text before the @ and its `user:password` in base64.
    let table = [("u:p", "dTpw"), ("user", "dXNlcjo="), ("a%40b:p%3Aw", "YUBiOnA6dw==")];
    for program_words in [&[][..], &["-H", "authorization: mine"]] {
        for (userinfo, base64) in table {
            for program in context.both() {
                let server = RecordingServer::start("127.0.0.1");
                let address = server.address();
                let program = program_words.iter().fold(program, |program, word| program.word(word));
                let output = program.words("-t1 -c1 -n1").word(format!("http://{userinfo}@{address}/")).run();
                assert_eq!(output.code, 0, "{output:?}");
                let field = match program_words {
                    [] => format!("Authorization: Basic {base64}"),
                    _ => "authorization: mine".to_owned(),
                };
                let expected = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{field}\r\n\r\n");
                assert_eq!(server.requests(), [expected]);
            }
        }
    }
}

/// The server announces 12 bytes and sends none. A waiting client would never send another request.
fn head_responses_have_no_body(context: &Context) {
    for program in context.both() {
        let compat = program.is_compat();
        let server = RecordingServer::start("127.0.0.1");
        let output = program.words("-X HEAD -t1 -c1 -n20").word(format!("http://{}/", server.address())).run();
        assert_eq!((output.code, output.requests()), (0, 20), "{output:?}");
        output.assert_bytes_per_request(39);
        assert_eq!(server.requests().len(), 20);
        assert_eq!(server.connections(), 1 + u64::from(compat), "one connection, and wrk's extra one");
    }
}

fn equal_requests_are_repeated(context: &Context) {
    for program in context.both() {
        let server = RecordingServer::start("127.0.0.1");
        let address = server.address();
        let words = "-X PUT --body abc -t2 -c4 -n40";
        let output = program.words(words).word(format!("http://{address}/")).run();
        assert_eq!((output.code, output.requests()), (0, 40), "{output:?}");
        let expected = format!("PUT / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(server.requests(), vec![expected; 40]);
    }
}

fn once_shows_what_a_run_sends(context: &Context) {
    let server = target();
    let output = context.onrush().words("--once --body abc -H A:b").word(url(&server, "/echo")).run();
    assert_eq!(output.code, 0, "{output:?}");
    let address = server.address();
    let head = format!("POST /echo HTTP/1.1\nHost: {address}\nA: b\nContent-Length: 3\n");
    let shown: String = head.lines().map(|line| format!("> {line}\n")).collect();
    assert!(output.stdout.starts_with(&shown), "{}", output.stdout);
    let echo = output.stdout.replace("\\x0d\n", "\n");
    assert!(echo.contains(&format!("\n{head}\nabc")), "the server saw the same: {}", output.stdout);
}
