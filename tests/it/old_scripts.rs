//! Scripts that users wrote for wrk and wrk-cmm run unchanged, under any name of the program.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Context, Onrush, ProgramOutput, Scratch, cases, target, url};
use crate::recorder::RecordingServer;

cases! {
    paths_load_from_the_working_directory (Once);
    batches_are_built_from_arguments;
    flat_lists_are_fetched_from_threads (Once);
    libraries_beside_scripts_are_found (Once);
    whole_number_rows_are_written (Once);
}

fn paths_load_from_the_working_directory(context: &Context) {
    for onrush in callers(context) {
        let (recorder, scratch) = (RecordingServer::start("127.0.0.1"), Scratch::new("paths"));
        scratch.file("paths.txt", "/a\n/b?x=1\n\n/c\n");
        let url = format!("http://{}/start", recorder.address());
        let output = in_directory(onrush, &scratch, "paths_file").words("-t1 -c1 -n12").word(url).run();
        assert_ran(&output);
        let paths: Vec<_> =
            recorder.requests().iter().map(|request| request.split(' ').nth(1).unwrap().to_owned()).collect();
        // onrush called the script once more at the start, only to inspect its request.
        assert_eq!(paths[..8].join(" "), "/a /b?x=1 /c /start /a /b?x=1 /c /start");
    }
    let scratch = Scratch::new("paths");
    let server = target();
    let onrush = in_directory(context.onrush(), &scratch, "paths_file");
    let output = onrush.words("-t1 -c1 -n1").word(url(&server, "/")).run();
    assert_eq!((output.code, output.stderr.as_str()), (1, "there is no paths.txt\n"), "{output:?}");
}

fn batches_are_built_from_arguments(context: &Context) {
    for onrush in callers(context) {
        let (recorder, scratch) = (RecordingServer::start("127.0.0.1"), Scratch::new("batch"));
        let url = format!("http://{}/", recorder.address());
        let onrush = in_directory(onrush, &scratch, "batch_debug").words("-t1 -c1 -n12").word(url).script_args("3");
        let output = onrush.run();
        assert_ran(&output);
        let bytes: usize = recorder.requests()[..3].iter().map(String::len).sum();
        assert!(output.stdout.starts_with(&format!("[debug] sends 3 in {bytes} bytes\nRunning ")), "{output:?}");
        assert!(output.stdout.contains("[debug] 200 12 hello world!\n"), "{output:?}");
        for (request, path) in recorder.requests().iter().zip(["/a.css?v=1", "/b.js?v=2", "/a.css?v=3"].iter().cycle())
        {
            assert!(request.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{request}");
        }
    }
}

fn flat_lists_are_fetched_from_threads(context: &Context) {
    for onrush in callers(context) {
        let (server, scratch) = (target(), Scratch::new("plot"));
        let onrush = in_directory(onrush, &scratch, "plot").words("-t2 -c8 -n200");
        let output = onrush.word(url(&server, "/bytes/7")).run();
        assert_ran(&output);
        let text = fs::read_to_string(scratch.path().join("plot.csv")).expect("it was written");
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let counts: Vec<u64> = rows[1..3].iter().map(|row| row[1].parse().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), output.requests(), "{text}");
        for (row, thread) in rows[1..3].iter().zip(["1", "2"]) {
            assert_eq!(
                (row[0], row[2], row[3], row[4]),
                (thread, "7.0", "7.0", &*format!("sample {}", row[1])),
                "{text}"
            );
        }
        assert_eq!(rows.len(), 12, "{text}");
    }
}

fn libraries_beside_scripts_are_found(context: &Context) {
    for onrush in callers(context) {
        let (server, scratch) = (target(), Scratch::new("export"));
        let onrush = in_directory(onrush, &scratch, "json_export").words("-t1 -c1 -n20");
        let output = onrush.word(url(&server, "/status/404")).run();
        assert_ran(&output);
        assert!(output.stdout.ends_with("\nexported\n"), "{output:?}");
        let text = fs::read_to_string(scratch.path().join("result.json")).expect("it was written");
        let requests = output.requests();
        for field in [
            format!("\"requests\":{requests}}}"),
            format!("\"errors\":{{\"connect\":0,\"read\":0,\"status\":{requests},\"timeout\":0,\"write\":0}}"),
            "\"note\":\"a \\u0022quoted\\u0022 word\"".to_owned(),
        ] {
            assert!(text.contains(&field), "no {field} in {text}");
        }
    }
}

fn whole_number_rows_are_written(context: &Context) {
    let scratch = Scratch::new("rows");
    let server = target();
    let mut rows = Vec::new();
    for onrush in callers(context) {
        let onrush = in_directory(onrush, &scratch, "report_csv").words("-t2 -c4 -n100");
        let output = onrush.with(|command| _ = command.env("REPORT", "rows.csv")).word(url(&server, "/")).run();
        assert_ran(&output);
        assert!(output.stdout.ends_with("\nerrors: 0\n"), "{output:?}");
        let row = output.stdout.split("\nCSV\n").nth(1).and_then(|rest| rest.lines().next()).expect("a row");
        assert!(row.split(',').all(|word| word.bytes().all(|byte| byte.is_ascii_digit())), "{row}");
        assert_eq!(row.split(',').nth(9), Some(&*output.requests().to_string()), "{row}");
        rows.push(row.to_owned());
    }
    let text = fs::read_to_string(scratch.path().join("rows.csv")).expect("it was written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "min,max,mean,stdev,50%,90%,99%,99.999%,duration,requests,bytes");
    assert_eq!(lines[1..], rows);
}

/// The program under all names that such scripts expect.
fn callers(context: &Context) -> [Onrush; 3] {
    [context.onrush(), context.called("wrk"), context.called("wrk-cmm")]
}

/// Runs one of the scripts in a directory other than the script's.
fn in_directory(onrush: Onrush, scratch: &Scratch, script: &str) -> Onrush {
    onrush.with(|command| _ = command.current_dir(scratch.path())).script(file(script))
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/scripts/{name}.lua"))
}

#[track_caller]
fn assert_ran(output: &ProgramOutput) {
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.requests() > 0, "{output:?}");
    assert_eq!(output.line("Socket errors"), None, "{output:?}");
}
