//! Tests of what is redacted, and of what stays.

use super::*;
use crate::{Dialect, LuaScript, Plan, Templates, fixtures};

#[test]
fn urls_lose_their_user_and_secret_parameters() {
    for (typed, shown) in [
        ("http://user:pa@ss@h:80/a?x=1&token=abc&y=2#f", "http://REDACTED@h:80/a?x=1&token=REDACTED&y=2#f"),
        ("user:pass@h/", "REDACTED@h/"),
        ("session-store:8080/key?a=1", "session-store:8080/key?a=1"),
        ("http://session:80", "http://session:80"),
        ("h?api_key=1", "h?api_key=REDACTED"),
        ("https://h/?q=me@h", "https://h/?q=me@h"),
        ("http://me:it's@h/", "http://REDACTED@h/"),
        ("me:pw@h/?token=1&to=http://a/", "REDACTED@h/?token=REDACTED&to=http://a/"),
        ("h/?to=http://me:pw@a/", "h/?to=http://REDACTED@a/"),
    ] {
        assert_eq!(redact_url(typed), shown);
    }
    assert_eq!(misspelt_url("http://me:a/b@h /"), "http://REDACTED@h /");
    assert_eq!(misspelt_header("Authorization Bearer S"), "Authorization REDACTED");
    let said = "--header \"http://a:S@h/\": no; token: x, http://h/@b http://a:S@http://b:S@h";
    assert_eq!(users(said), "--header \"http://REDACTED@h/\": no; token: x, http://h/@b http://REDACTED@h");
}

#[test]
fn values_of_secret_names_are_redacted() {
    for (typed, shown) in [
        ("Authorization: Bearer abc", "Authorization: REDACTED"),
        ("Cookie: \"a\"; b=2\r\nAccept: a", "Cookie: REDACTED\r\nAccept: a"),
        ("-HCookie: a=1; b=2", "-HCookie: REDACTED"),
        ("Password:\nX: y", "Password:\nX: y"),
        ("user=me&password=my pass&n=1", "user=me&password=REDACTED&n=1"),
        ("a=1&password=it's;#a\"b&n=1", "a=1&password=REDACTED&n=1"),
        ("a=1&%74oken=S%26S&b=2", "a=1&%74oken=REDACTED&b=2"),
        ("to=http%3A%2F%2Fme%3Apw%40h%2F&q=a%26pwd%3DS", "to=http%3A%2F%2FREDACTED%40h%2F&q=a%26pwd%3DREDACTED"),
        ("q=caf%C3%A9%20au%20lait&n=100%25&token=", "q=caf%C3%A9%20au%20lait&n=100%25&token="),
        ("größe=1&schlüssel=2&kéy=3, the key is here", "größe=1&schlüssel=2&kéy=3, the key is here"),
        ("--http-proxy=http://u:p@proxy:3128", "--http-proxy=http://REDACTED@proxy:3128"),
        (r#"headers["Authorization"] = "Bearer a b" x"#, r#"headers["Authorization"] = "REDACTED" x"#),
        (r#"{"password": "a\"b,\\","n":{"sid" : 12}}"#, r#"{"password": "REDACTED","n":{"sid" : REDACTED}}"#),
        (r#"{"url":"http://h/?token=abc","n":1}"#, r#"{"url":"http://h/?token=REDACTED","n":1}"#),
        (r#"{"keys":["a","b"],"n":1}"#, r#"{"keys":REDACTED"#),
        ("X: Bearer abc.d3f-x y", "X: Bearer REDACTED y"),
        ("Basic authentication, bearer of news", "Basic authentication, bearer of news"),
    ] {
        assert_eq!(redact_text(typed), shown);
    }
    let form = |value: &str| {
        let part = |name: &str, value: &str| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        part("user", "me") + &part("my-password", value) + &part("n", "1") + "--x--\r\n"
    };
    assert_eq!([redact_text(&form("a\r\n-b")), redact_text(&form(""))], [form(REDACTED), form("")]);
    let known = KnownSecrets::default();
    assert_eq!(known.redact_in("were 302 to /?token=abc: you saw it"), "were 302 to /?token=REDACTED you saw it");
    assert_eq!(
        redact_words(["--user", "me", "--password", "a", "key=1"]),
        ["--user", "me", "--password", "REDACTED", "key=REDACTED"]
    );
    assert_eq!(
        redact_words(["Bearer", "abc", "http://h/", "basic", "json"]),
        ["Bearer", "REDACTED", "http://h/", "basic", "json"]
    );
}

#[test]
fn bodies_are_shown_only_as_forms() {
    for (sent, shown) in [
        ("user=me&user[pass]=S&n=", "user=me&user[pass]=REDACTED&n="),
        (r#"{"user":"me"}"#, REDACTED),
        ("<login password='S'/>", REDACTED),
        ("a = 1", REDACTED),
        ("a=1&b", REDACTED),
        ("aHVudGVyMjpodW50ZXIyMw==", REDACTED),
        ("NAME=x\nPIN=1", REDACTED),
        ("user: me", REDACTED),
    ] {
        assert_eq!(redact_body(sent), shown);
    }
}

#[test]
fn long_texts_are_scanned_once() {
    // If each place caused a scan of everything after it, this would not end.
    for piece in [
        "name=\"x\" ",
        "bearer a",
        "basic/",
        "key: |\n ",
        "a%20b+",
        "ab/cd+ef",
        "key:[",
        "\"key\":[",
        "\\",
        "://",
        "a\\",
        "form-data; name=\"key\"",
    ] {
        let text = piece.repeat((1 << 18) / piece.len());
        assert!(!redact_text(&text).is_empty(), "{piece}");
    }
}

#[test]
fn secrets_of_several_words_are_hidden_whole() {
    let known = KnownSecrets::from_plan(&plan(&[("X-Api-Key", "my old cat")]));
    assert_eq!(known.redact_in("X-Note: password=my old cat"), "X-Note: password=REDACTED");
}

fn plan(headers: &[(&str, &str)]) -> Plan {
    let mut plan = fixtures::plan(Dialect::Native, "http://me:pa%2Fss@h/?token=tok+en%21", 1, 1, 1);
    plan.target.userinfo = Some("me:pa/ss".to_owned());
    plan.request.headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    plan
}

fn known() -> KnownSecrets {
    let headers =
        [("Authorization", "Bearer abcd.efgh"), ("Cookie", "a=cookie-1; b=cookie-2"), ("Accept", "text/html")];
    let mut plan = plan(&headers);
    plan.body = Some(FileContents::from_bytes("", br#"{"user":"alice","password":"a secret, 1"}"#.to_vec()));
    let args = ["--password", "an-argument", "harmless"].map(str::to_owned).to_vec();
    let script = b"wrk.headers['X-Api-Key'] = 'in-a-script'\nlocal password = user_name".to_vec();
    plan.script = Some(LuaScript { file: FileContents::from_bytes("x.lua", script), args });
    KnownSecrets::from_plan(&plan)
}

#[test]
fn given_secrets_are_found_anywhere() {
    let known = known();
    for (text, expected) in [
        ("no pa/ss here, nor PA%2fSS", "no REDACTED here, nor REDACTED"),
        ("tok+en! and tok en!", "REDACTED and REDACTED"),
        ("got abcd.efgh.", "got REDACTED."),
        ("cookie-2 is old", "REDACTED is old"),
        ("not a secret, 1", "not REDACTED"),
        ("an-argument in-a-script", "REDACTED REDACTED"),
        ("alice text/html harmless user_name", "alice text/html harmless user_name"),
        ("616263642E65666768 abcd%2eefg%6", "REDACTED REDACTED"),
        ("this is in-a-scr", "this is REDACTED"),
        ("this is in-", "this is in-"),
    ] {
        assert_eq!(known.hide_in(text), expected, "{text}");
    }
    let base64 = |text: &str| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    for ahead in ["", "1", "12", "123"] {
        let shown = known.hide_in(&base64(&format!("{ahead}in-a-script---")));
        assert!(shown.contains(REDACTED) && shown.len() < 8 + REDACTED.len() + 6, "{shown}");
    }
    let header = format!("basic {}", base64("someone:hunter-2"));
    let known = KnownSecrets::from_plan(&plan(&[("Authorization", &header)]));
    assert_eq!(known.hide_in("as hunter-2 you may"), "as REDACTED you may");
}

#[test]
fn ordinary_words_of_commands_are_not_secret() {
    let commands = ["TOKEN=hunter-2 ./server --connections 5", "curl -H 'Cookie: id=12345678901' -o results.json"];
    let known = KnownSecrets::of_all(&[], commands);
    assert_eq!(known.hide_in("hunter-2 12345678901"), "REDACTED REDACTED");
    assert_eq!(known.hide_in("server connections results.json"), "server connections results.json");
}

#[test]
fn placeholders_in_secrets_make_their_values_secret() {
    for (value, file, expected) in [
        ("id={{csv users.csv city | raw}}", "\u{feff}id, city\n1,Springfield\n2\n", "from REDACTED an-other"),
        ("Bearer {{line users.csv}}", "a-line\r\nan-other\n", "from Springfield REDACTED"),
    ] {
        let mut plan = plan(&[("Cookie", value)]);
        let files = vec![FileContents::from_bytes("users.csv", file.as_bytes().to_vec())];
        plan.templates = Some(Templates { files, seed: 1, part: (0, 1) });
        assert_eq!(KnownSecrets::from_plan(&plan).hide_in("from Springfield an-other"), expected);
    }
}

#[test]
fn huge_bodies_keep_a_bounded_number_of_secrets() {
    let fields: Vec<String> = (0..45_000).map(|n| format!("\"token\":\"secret-{n}\"")).collect();
    let mut plan = plan(&[]);
    plan.body = Some(FileContents::from_bytes("", fields.join(",").into_bytes()));
    let known = KnownSecrets::from_plan(&plan);
    assert_eq!(known.hide_in("they were secret-7 and secret-400"), "they were REDACTED and REDACTED");
}

#[test]
fn kept_secrets_are_shown() {
    let mut plan = plan(&[("Cookie", "a-cookie")]);
    plan.output.keeps_secrets = true;
    let known = KnownSecrets::from_plan(&plan);
    assert_eq!(known.redact_in("Cookie: a-cookie"), "Cookie: a-cookie");
    assert_eq!(known.redact_typed("token=S", redact_text), "token=S");
}
