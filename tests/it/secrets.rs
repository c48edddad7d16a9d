//! Secrets must not appear in a result, even if a server echoes them in another spelling.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, target, url};
use crate::peers::{read_head, server};

cases! {
    secrets_are_in_no_output (Once);
    results_contain_only_form_bodies (Once);
    echoed_secrets_are_redacted_in_any_spelling (Once);
    experiment_folders_contain_no_secret (Once);
    vs_and_sweep_print_no_secret (Once);
    secrets_are_kept_on_request (Once);
    refusals_quote_no_secret (Once);
}

/// The text to search for: a part of every secret in these tests.
const CANARY: &str = "kanarienvogel7";

/// Every format of result files.
const FILES: [&str; 5] = ["r.json", "r.csv", "r.hgrm", "r.md", "r.ndjson"];

/// Spelling of a server's echo.
type Spelling = fn(&str) -> String;

/// A server that sends two responses with the received text on each connection: a redirect, and one that is not HTTP.
fn echoing(spelled: Spelling) -> SocketAddr {
    server(move |mut stream| {
        let mut requests = BufReader::new(stream.try_clone()?);
        let (first, _) = read_request(&mut requests)?;
        let target = first.split(' ').nth(1).unwrap_or_default();
        write!(stream, "HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n")?;
        let (head, body) = read_request(&mut requests)?;
        let secret = format!("{head}{body}");
        let start = secret.find(CANARY).unwrap_or_default();
        // In one piece, because the note shows its first bytes.
        let garbage = format!("not for {}\r\n\r\n", spelled(&secret[start.saturating_sub(9)..]));
        stream.write_all(garbage.as_bytes())
    })
}

/// The head and the body of a request.
fn read_request(stream: &mut BufReader<std::net::TcpStream>) -> std::io::Result<(String, String)> {
    let head = read_head(stream)?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs the program. Returns its output, and the contents of standard output, standard error and the files.
fn everything(program: Onrush, scratch: &Scratch) -> (ProgramOutput, Vec<String>) {
    let paths = FILES.map(|name| scratch.path().join(name));
    let program = paths.iter().fold(program, |program, path| program.word("-o").word(path));
    let output = program.run();
    assert_eq!(output.code, 0, "{output:?}");
    let mut texts = vec![output.stdout.clone(), output.stderr.clone()];
    texts.extend(paths.map(|path| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))));
    (output, texts)
}

/// Searches for the canary in every possible spelling.
fn assert_silent(texts: &[String], what: &str) {
    let reversed: String = CANARY.chars().rev().collect();
    let mut spellings = vec![CANARY.to_owned(), reversed, percent(CANARY), hex(CANARY)];
    // In base64, its first and last letters may be merged with their neighbours.
    spellings.extend((0..3).map(|cut| STANDARD.encode(&CANARY[cut..])[..12].to_owned()));
    for text in texts {
        let lower = text.to_lowercase();
        let found = spellings.iter().find(|spelling| lower.contains(&spelling.to_lowercase()));
        assert_eq!(found, None, "{what}: {text}");
    }
}

fn secrets_are_in_no_output(context: &Context) {
    let scratch = Scratch::new("canary");
    let bodies = [
        format!("user=me&pass%77ord={CANARY}"),
        format!("data=%7B%22password%22%3A%22{CANARY}%22%7D"),
        format!(r#"{{"user":"me","password":"{CANARY}"}}"#),
        format!("<login password='{CANARY}'/>"),
        format!("user: me\npwd: {CANARY}\n"),
        format!("[a]\npassword = \"{CANARY}\"\n"),
    ];
    for body in bodies {
        let address = echoing(str::to_owned);
        let program = context.onrush().words("-n2 -c1 --body").word(&body).word(format!("http://{address}/"));
        assert_silent(&everything(program, &scratch).1, &body);
    }
    let script = scratch.file("script.lua", format!("wrk.headers['X-Api-Key'] = '{CANARY}'"));
    let words: [&[&str]; 10] = [
        &["--form", "password={}", "http://{at}/"],
        &["-H", "X-Copy: Bearer aaa.{}.ccc", "http://{at}/"],
        &["--once", "-H", "X-Jwt: {}", "http://{at}/?pwd={}&n=1"],
        &["http://me:{}@{at}/"],
        &["http://{at}/?%74oken={}&n=1"],
        &["http://{at}/;jsessionid={}?n=1"],
        &["--basic-auth", "me:{}", "http://{at}/"],
        &["-H", "Cookie: id={}; n=1", "http://{at}/"],
        &["-H", "Authorization: Bearer {}", "-H", "X-Copy: {}", "http://{at}/?n=1"],
        &["-s", "{script}", "http://{at}/", "--", "--token", "{}", "n={}"],
    ];
    for words in words {
        let at = echoing(str::to_owned).to_string();
        let filled = |word: &&str| {
            let word = word.replace("{script}", &script.display().to_string());
            word.replace("{at}", &at).replace("{}", CANARY)
        };
        let (before, after) = words.split_at(words.iter().position(|word| *word == "--").unwrap_or(words.len()));
        let program = context.onrush().words(if words[0] == "--once" { "-c1" } else { "-n2 -c1" });
        let program = before.iter().map(filled).fold(program, |program, word| program.word(word));
        let after: Vec<String> = after.iter().skip(1).map(filled).collect();
        let program = if after.is_empty() { program } else { program.script_args(&after.join(" ")) };
        assert_silent(&everything(program, &scratch).1, &words.join(" "));
    }
}

fn results_contain_only_form_bodies(context: &Context) {
    let (server, scratch) = (target(), Scratch::new("bodies"));
    let part = format!("--x\r\nContent-Disposition: form-data; name=password\r\n\r\n{CANARY}\r\n--x--\r\n");
    let bodies = [
        format!(r#"{{"user":"me","pass\u0077ord":"{CANARY}"}}"#),
        format!(r#"{{"name":"password","value":"{CANARY}"}}"#),
        format!("<login><ns:password>{CANARY}</ns:password></login>"),
        format!("keys:\n- {CANARY}\npass: |\n  {CANARY}\n"),
        format!("words like {CANARY}"),
        part,
    ];
    for body in bodies {
        for word in ["--body".to_owned(), format!("--body={body}")] {
            let program = context.onrush().words("-n2 -c1").word(&word);
            let program = if word == "--body" { program.word(&body) } else { program };
            let (_, texts) = everything(program.word(url(&server, "/")), &scratch);
            assert_silent(&texts, &body);
            assert!(texts[2].contains("\"body_sha256\": \""), "{}", texts[2]);
        }
    }
}

fn echoed_secrets_are_redacted_in_any_spelling(context: &Context) {
    let scratch = Scratch::new("spelled");
    let spellings: [Spelling; 6] = [
        str::to_owned,
        str::to_uppercase,
        percent,
        hex,
        |text| STANDARD.encode(text),
        |text| {
            // Truncated in the middle.
            text[..9 + CANARY.len() / 2].to_owned()
        },
    ];
    for (index, spelled) in spellings.into_iter().enumerate() {
        let url = format!("http://{}/?token={CANARY}", echoing(spelled));
        let (output, texts) = everything(context.onrush().words("-n2 -c1").word(url), &scratch);
        assert_silent(&texts, &index.to_string());
        let half = &CANARY[..CANARY.len() / 2];
        assert!(texts.iter().all(|text| !text.contains(half)), "{index}: {output:?}");
        assert!(output.stderr.contains("REDACTED") && texts[2].contains("not for "), "{index}: {output:?}");
    }
}

/// Names and contents of all files of a folder except those of the commands, which are kept unchanged.
fn contents(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.flat_map(|path| [path.display().to_string(), fs::read_to_string(path).unwrap()]).collect()
}

fn experiment_folders_contain_no_secret(context: &Context) {
    let server = target();
    // A secret that appears nowhere else.
    const OF_COMMAND: &str = "zaunkoenig8";
    let commands = [
        format!("curl -H 'Authorization: Bearer {OF_COMMAND}' http://h/"),
        format!("curl -u a:{OF_COMMAND} http://h/"),
        format!("./prepare {OF_COMMAND}"),
    ];
    for (index, command) in commands.iter().enumerate() {
        // The second pass is with a target that dies and prints its input.
        for dies in [false, true] {
            let scratch = Scratch::new("experiment");
            let address = if dies { "127.0.0.1:1".to_owned() } else { server.address().to_string() };
            let spoken = [CANARY.to_owned(), percent(CANARY), STANDARD.encode(CANARY)].join(" ");
            let died = format!("[target]\ncommand = '''echo got {spoken}; : {command}; exit 7'''\n");
            let text = format!(
                "name = \"x\"\nrounds = 1\n[run]\nio = \"{}\"\nrequests = 2\nconnections = 1\n\
                 url = \"http://{address}/\"\nlabel = [\"token={CANARY}\", \"note=it is {CANARY}\"]\n\
                 [[factor]]\nname = \"who\"\nlevels = [{{ label = \"as {CANARY}\", header = \"Accept: x\" }}, \
                 {{ header = \"Cookie: {CANARY}\" }}]\n[hooks]\nbefore_point = ''': {command}'''\n{}",
                context.backend,
                if dies { died.as_str() } else { "" }
            );
            let file = scratch.file("x.toml", &text);
            let onrush = |words: &str| {
                let onrush = context.onrush().words(words).word(&file);
                onrush.with(|command| _ = command.current_dir(scratch.path())).run_plain()
            };
            let shown = onrush("lab --plan");
            let output = onrush("lab --out folder");
            assert_eq!((shown.code, output.code), (0, if dies { 5 } else { 0 }), "{shown:?} {output:?}");
            let mut texts = contents(&scratch.path().join("folder"));
            let plan = texts.iter().find(|text| text.contains("before_point = ")).expect("there is a plan");
            assert!(plan.contains("REDACTED") && plan.contains("before_point = \"sha256:"), "{plan}");
            assert!(!dies || plan.contains("command = \"sha256:"), "{plan}");
            texts.extend([shown.stdout, shown.stderr, output.stdout.clone(), output.stderr.clone()]);
            assert_silent(&texts, &format!("{index} {dies}"));
            assert!(texts.iter().all(|text| !text.contains(OF_COMMAND)), "{texts:?}");
            assert!(!dies || output.stderr.contains("printed: got REDACTED REDACTED "), "{output:?}");
            assert!(!dies || output.stderr.contains("; its output is in folder/output/target-"), "{output:?}");
        }
    }
}

fn vs_and_sweep_print_no_secret(context: &Context) {
    let server = target();
    let words: [&[&str]; 5] = [
        &["vs", "-v", "http://{at}/?token={}", "http://me:{}@{at}/status/302?token={}2"],
        &["vs", "-v", "-H", "Cookie: id={}", "--label", "token={}", "--label", "n=it is {}", "http://{at}/", "{at}/a"],
        &["sweep", "-v", "-c", "1,2", "-H", "Authorization: Bearer {}", "--body", "password={}", "http://{at}/?n={}"],
        // A refusal quotes its URL.
        &["vs", "http://127.0.0.1:1/?token={}", "http://{at}/"],
        &["sweep", "--plan", "-c", "1,2", "--basic-auth", "me:{}", "http://{at}/?api_key={}"],
    ];
    for (index, words) in words.into_iter().enumerate() {
        let scratch = Scratch::new("said");
        let at = server.address().to_string();
        let filled = words.iter().map(|word| word.replace("{at}", &at).replace("{}", CANARY));
        let onrush = filled.fold(context.onrush(), |onrush, word| onrush.word(word));
        let onrush = onrush.words("-d50ms --rounds 2 --out folder");
        let output = onrush.with(|command| _ = command.current_dir(scratch.path())).run_plain();
        let expected = [0, 0, 0, 2, 0][index];
        assert_eq!(output.code, expected, "{words:?}: {output:?}");
        let folder = scratch.path().join("folder");
        let mut texts = if folder.exists() { contents(&folder) } else { Vec::new() };
        let files = texts.len() / 2;
        texts.extend([output.stdout, output.stderr]);
        assert_silent(&texts, &words.join(" "));
        assert!(files >= [8, 8, 8, 0, 0][index], "{words:?}: {files}");
    }
}

fn secrets_are_kept_on_request(context: &Context) {
    let scratch = Scratch::new("kept");
    let url = format!("http://{}/?%74oken={CANARY}", echoing(str::to_owned));
    let (output, texts) = everything(context.onrush().words("--keep-secrets -n2 -c1").word(&url), &scratch);
    assert!(texts[0].starts_with(&format!("Running 2 requests test @ {url}\n")), "{output:?}");
    assert!(output.note("not for").contains(CANARY), "{output:?}");
    // In the command, in the plan's URL and in the ledger.
    assert!(texts[2].matches(CANARY).count() >= 3, "{}", texts[2]);
    // In wrk mode, the report shows the URL as typed.
    let url = format!("http://{}/?token={CANARY}", echoing(str::to_owned));
    let wrk = context.called("wrk").words("-t1 -c1 -n2").word(&url).run();
    assert!(wrk.stdout.contains(&format!(" test @ {url}\n")), "{wrk:?}");
}

fn refusals_quote_no_secret(context: &Context) {
    for words in [
        &["http://me:{}@h:port/"][..],
        &["http://me:a/{}@h/"],
        &["http://h/ /?token={}"],
        &["http://h/?token={}", "http://b/?token={}"],
        &["80?token={}"],
        &["http://h/", "-H", "Authorization Bearer {}"],
        &["http://h/", "--http-proxy", "me:{}@proxy"],
        &["http://127.0.0.1:1/", "-X", "me:{}@proxy:3128"],
        &["http://127.0.0.1:1/", "-s", "http://me:{}@h/"],
        &["http://127.0.0.1:1/", "--body", "@http://me:{}@h/"],
        &["lab", "http://me:{}@h/"],
        &["lab", "--resume", "http://me:{}@h/"],
        &["show", "http://me:{}@h/"],
        &["merge", "http://me:{}@h/"],
        &["table", "http://me:{}@h/"],
        &["compare", "http://me:{}@h/"],
        &["restore", "http://me:{}@h/"],
        &["serve", "--addr", "http://me:{}@h/"],
        &["http://127.0.0.1:1/", "--fail-if", "p99>5ms,http://me:{}@h"],
    ] {
        // To a parser, some characters end a user or a password, but not to the person who types them.
        for secret in [CANARY.to_owned(), format!("p/{CANARY}"), format!("p?{CANARY}"), format!("p#{CANARY}")] {
            let filled = words.iter().map(|word| word.replace("{}", &secret));
            let output = filled.fold(context.onrush(), |program, word| program.word(word)).run_plain();
            assert_eq!(output.code, 1, "{output:?}");
            assert_silent(&[output.stdout, output.stderr], &words.join(" "));
        }
    }
    let socket = context.onrush().words("-d10ms http://h/ --unix").word(format!("http://u:{CANARY}@h/")).run_plain();
    assert_ne!(socket.code, 0, "{socket:?}");
    assert_silent(&[socket.stdout, socket.stderr], "--unix");
    let ignored =
        context.onrush().words("-d10ms http://127.0.0.1:1/").script_args(&format!("--token {CANARY}")).run_plain();
    assert!(ignored.stderr.contains("extra arguments are ignored"), "{ignored:?}");
    assert_silent(&[ignored.stdout, ignored.stderr], "ignored");
}
