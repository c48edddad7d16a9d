//! Manifests and log lines, without a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::log::{LineMark, LogLine, ResultDigest, UnreadableLine};
use super::manifest::{Manifest, Placement};
use super::packed::{PackedRun, PodOrders};

/// A run whose command line names one file of each kind, in a scratch folder.
fn packed(folder: &std::path::Path, more: &[&str]) -> Result<PackedRun, String> {
    let [body, list, key] = ["body", "list", "key"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&body, "b0dy").unwrap();
    std::fs::write(&list, "GET /a\nGET /b\n").unwrap();
    std::fs::write(&key, "Authorization: t0ken\n").unwrap();
    let words = ["--machines=3", "--connections=30", "--threads=2", "--header=Authorization: Bearer h3ader"];
    let words = words.iter().map(|word| (*word).to_owned());
    let more = more.iter().map(|word| word.replace("BODY", &body).replace("LIST", &list).replace("KEY", &key));
    PackedRun::new(words.chain(more).chain(["http://h/".to_owned()]).collect(), &[], 1 << 20)
}

fn items(packed: &PackedRun, placing: &Placement) -> BTreeMap<String, Value> {
    let manifest = Manifest { run: "r1", image: "registry/onrush:1", packed, placing };
    let mut list: Value = serde_json::from_str(&manifest.to_json()).unwrap();
    let Value::Array(items) = list["items"].take() else { panic!("a list has items") };
    let named = |item: Value| {
        (format!("{} {}", item["kind"].as_str().unwrap(), item["metadata"]["name"].as_str().unwrap()), item)
    };
    items.into_iter().map(named).collect()
}

#[test]
fn objects_have_the_runs_name_and_label() {
    let scratch = tempfile::tempdir().unwrap();
    let mut packed = packed(scratch.path(), &["--urls=LIST"]).unwrap();
    packed.public.insert("file-9".to_owned(), b"a certificate".to_vec());
    let placing = Placement { namespace: Some("load".to_owned()), ..Placement::default() };
    let items = items(&packed, &placing);
    let names: Vec<&str> = items.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "ConfigMap onrush-r1",
            "Job onrush-r1-coordinator",
            "Job onrush-r1-workers",
            "Secret onrush-r1",
            "Service onrush-r1"
        ]
    );
    for item in items.values() {
        assert_eq!(item["metadata"]["labels"]["app.kubernetes.io/instance"], "onrush-r1");
        assert_eq!(item["metadata"]["namespace"], "load");
        if item["kind"] == "Job" {
            assert_eq!(item["spec"]["ttlSecondsAfterFinished"], 86_400);
        }
    }
}

#[test]
fn secrets_are_only_in_the_secret() {
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("s.lua");
    std::fs::write(&script, "pw = 'scr1pt'").unwrap();
    let script = format!("--script={}", script.display());
    for (more, is_there) in [
        (&["--body=@BODY"], "b0dy"),
        (&["--body=@KEY"], "t0ken"),
        (&["--basic-auth=u:p4ss"], "p4ss"),
        (&[script.as_str()], "scr1pt"),
    ] {
        let packed = packed(scratch.path(), more).unwrap();
        let mut items = items(&packed, &Placement::default());
        let secret = items.remove("Secret onrush-r1").unwrap();
        let data = secret["data"].as_object().unwrap();
        let plain: String = data
            .values()
            .map(|value| STANDARD.decode(value.as_str().unwrap()).unwrap())
            .fold(String::new(), |text, bytes| text + &String::from_utf8_lossy(&bytes));
        let rest = serde_json::to_string(&items).unwrap();
        for word in ["h3ader", is_there] {
            assert!(plain.contains(word) && !rest.contains(word), "{word}");
            assert!(!rest.contains(&STANDARD.encode(word)), "{word}");
        }
        let token = STANDARD.decode(data["token"].as_str().unwrap()).unwrap();
        assert!(token.len() == 64 && !rest.contains(&*String::from_utf8_lossy(&token)));
    }
}

#[test]
fn only_certificates_without_keys_are_public() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(packed(scratch.path(), &["--urls=LIST"]).unwrap().public.is_empty());
    let roots = scratch.path().join("roots.pem");
    let option = format!("--cacert={}", roots.display());
    let public = |text: &str| {
        std::fs::write(&roots, text).unwrap();
        let words = ["--machines=3", "--connections=30", &option, "https://h/"].map(str::to_owned).to_vec();
        PackedRun::new(words, &[], 0).unwrap().public
    };
    let certificate = rcgen::generate_simple_self_signed(vec!["h".to_owned()]).unwrap();
    let pem = certificate.cert.pem();
    assert_eq!(public(&pem), BTreeMap::from([("file-0".to_owned(), pem.clone().into_bytes())]));
    assert!(public(&(pem + &certificate.signing_key.serialize_pem())).is_empty());
}

#[test]
fn sent_files_keep_their_typed_names() {
    let scratch = tempfile::tempdir().unwrap();
    let packed = packed(scratch.path(), &["--body=@BODY"]).unwrap();
    let orders: PodOrders = serde_json::from_slice(&packed.secret["run"]).unwrap();
    let body = scratch.path().join("body");
    assert_eq!(orders.files, BTreeMap::from([(body.clone(), PathBuf::from("/run/onrush/secret/file-0"))]));
    assert_eq!(packed.secret["file-0"], b"b0dy");
    let expected = [
        "onrush",
        "--coordinate=:7070",
        "--token-file=/run/onrush/secret/token",
        "--machines=3",
        "--connections=30",
        "--threads=2",
        "--header=Authorization: Bearer h3ader",
        &format!("--body=@{}", body.display()),
        "http://h/",
    ];
    assert_eq!(orders.words, expected);
}

#[test]
fn pods_run_without_extra_rights() {
    let scratch = tempfile::tempdir().unwrap();
    let packed = packed(scratch.path(), &[]).unwrap();
    let items = items(&packed, &Placement::default());
    for name in ["Job onrush-r1-coordinator", "Job onrush-r1-workers"] {
        let spec = &items[name]["spec"]["template"]["spec"];
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let container = &spec["containers"][0];
        let security = serde_json::json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        });
        assert_eq!(container["securityContext"], security);
        let resources = &container["resources"];
        assert_eq!(resources["requests"]["memory"], resources["limits"]["memory"]);
        assert!(resources["limits"]["cpu"].is_null() && !resources["requests"]["cpu"].is_null());
    }
    let coordinator = &items["Job onrush-r1-coordinator"]["spec"];
    assert_eq!(coordinator["backoffLimit"], 0);
    let annotations = &items["Job onrush-r1-coordinator"]["metadata"]["annotations"];
    assert_eq!(annotations, &serde_json::json!({ "onrush/log-mark": packed.mark.0 }));
    let args = serde_json::json!(["kubernetes", "--run", "/run/onrush/secret/run"]);
    assert_eq!(coordinator["template"]["spec"]["containers"][0]["args"], args);
    let workers = &items["Job onrush-r1-workers"]["spec"];
    for (key, value) in [("completions", 3), ("parallelism", 3), ("backoffLimitPerIndex", 3)] {
        assert_eq!(workers[key], value, "{key}");
    }
    assert_eq!(workers["completionMode"], "Indexed");
    let container = &workers["template"]["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"]["cpu"], "2");
    let args = serde_json::json!([
        "worker",
        "--coordinator",
        "onrush-r1:7070",
        "--token-file",
        "/run/onrush/secret/token",
        "--index",
        "$(JOB_COMPLETION_INDEX)",
        "--name",
        "$(NODE_NAME)",
        "--join-timeout",
        "300s",
    ]);
    assert_eq!(container["args"], args);
    // The machines get the token of the run. The coordinator sends the rest.
    let volume = &workers["template"]["spec"]["volumes"][0]["secret"];
    assert_eq!(volume["items"], serde_json::json!([{ "key": "token", "path": "token" }]));
    let service = &items["Service onrush-r1"]["spec"];
    assert_eq!((&service["clusterIP"], &service["publishNotReadyAddresses"]), (&"None".into(), &true.into()));
}

#[test]
fn machines_are_spread_over_nodes() {
    let scratch = tempfile::tempdir().unwrap();
    let packed = packed(scratch.path(), &[]).unwrap();
    let spec = |is_one_per_node| {
        let placing = Placement { is_one_per_node, ..Placement::default() };
        items(&packed, &placing)["Job onrush-r1-workers"]["spec"]["template"]["spec"].clone()
    };
    let (spread, apart) = (spec(false), spec(true));
    assert_eq!(spread["topologySpreadConstraints"][0]["whenUnsatisfiable"], "ScheduleAnyway");
    assert!(spread["affinity"].is_null() && apart["topologySpreadConstraints"].is_null());
    let required = &apart["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(required["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(required["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "workers");
}

#[test]
fn unsendable_runs_are_refused_before_applying() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |more: &[&str]| packed(scratch.path(), more).unwrap_err();
    assert_eq!(refused(&["--once"]), "--machines and --once: one machine sends the request; leave one of the two out");
    assert_eq!(refused(&["--bogus"]), "unknown option --bogus; all options: onrush --help all");
    let said = refused(&["--output=a/x.json", "--output=b/x.json"]);
    assert_eq!(said, "-o \"x.json\": two results have this name; rename one");
    for name in [".hidden.json", "x\ny.json"] {
        let said = refused(&[&format!("--output={name}")]);
        assert!(
            said.ends_with("names of fetched results must not start with a dot or contain control characters"),
            "{said}"
        );
    }
    let large = scratch.path().join("large");
    std::fs::write(&large, vec![b'x'; 200_000]).unwrap();
    let option = format!("--body=@{}", large.display());
    let said = refused(&[&option]);
    assert!(said.starts_with("the files of the run take 26"), "{said}");
    let rest = format!(
        " KiB in base64, but the limit is 244 KiB; put the largest, {large:?}, into the image under the same absolute \
         path, and add --in-image with that path"
    );
    assert!(said.ends_with(&rest), "{said}");
    let words = ["--machines=2", &option, "http://h/"].map(str::to_owned).to_vec();
    assert!(!PackedRun::new(words, &[large], 0).unwrap().secret.contains_key("file-0"));
}

#[test]
fn log_lines_distinguish_users_and_programs() {
    let mark = &LineMark::draw_random().unwrap();
    assert_ne!(*mark, LineMark::draw_random().unwrap());
    let sum = ResultDigest { name: "a b.json".to_owned(), sha256: "00ff".to_owned() };
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    let text = LogLine::format_result(mark, sum.clone(), &bytes);
    assert!(text.lines().all(|line| line.len() < 8 << 10));
    let mut lines = text.lines().map(|line| LogLine::read(mark, line).unwrap());
    assert_eq!(lines.next(), Some(Ok(LogLine::File(sum.clone(), 4))));
    let pieces =
        lines.map(|line| if let Ok(LogLine::Piece(piece)) = line { piece } else { panic!("{line:?} is no piece") });
    assert_eq!(pieces.collect::<Vec<_>>().concat(), bytes);
    for line in [LogLine::Waiting(sum, "/usr/bin/onrush".to_owned()), LogLine::Exit(6, 2)] {
        assert_eq!(LogLine::read(mark, line.to_marked_line(mark).trim_end()), Some(Ok(line.clone())));
        assert_eq!(LogLine::read(mark, line.to_marked_line(&LineMark("0".repeat(32))).trim_end()), None);
    }
    for line in ["Requests/sec: 1", "onrush-kubernetes exit 0 0", "onrush-kubernetes  exit 0 0"] {
        assert_eq!(LogLine::read(mark, line), None, "{line}");
    }
    for line in ["file 1 00 ../a.json", "file 1 00 /etc/a", "file 1 00 .bashrc", "exit many 1", "exit 0", "cut of", ""]
    {
        let line = format!("onrush-kubernetes {} {line}", mark.0);
        assert_eq!(LogLine::read(mark, &line), Some(Err(UnreadableLine)), "{line}");
    }
}
