//! Kernel settings changed by an experiment. They are really changed, in the test's own network namespace, and must be
//! restored after every end of the experiment. Runs of a minute end by a signal.

use std::process::Command;

use crate::harness::{Context, Scratch, cases};

cases! {
    experiments_restore_varied_settings (Once) needs "unshare -rnm true", "ip -V";
    published_buffer_experiment_varies_buffers (Once) needs "unshare -rnm true", "ip -V";
    every_signal_restores_settings (Once) needs "unshare -rnm true", "ip -V";
    second_signals_restore_and_quit (Once) needs "unshare -rnm true", "ip -V";
    errors_restore_settings (Once) needs "unshare -rnm true", "ip -V";
    refusals_precede_the_first_run (Once) needs "unshare -rnm true", "ip -V";
    leftovers_of_killed_experiments_are_restorable (Once) needs "unshare -rnm true", "ip -V";
    kills_during_changes_lose_nothing (Once) needs "unshare -rnm true", "ip -V", "strace -V";
    foreign_settings_are_left_alone (Once) needs "unshare -rnm true", "ip -V";
    missing_permission_changes_nothing (Once) needs "unshare -nm true", "ip -V", "setpriv --version";
}

/// Start of every script: an empty `/run`, a target, and helper functions. `$0` is the program, `$1` the backend and
/// `$2` an empty directory.
const BEGIN: &str = r#"
exec 2>&1
mount -t tmpfs run /run && ip link set lo up && cd "$2" || exit 9
"$0" serve --addr 127.0.0.1:8080 > serve & server=$!
until [ -s serve ]; do sleep 0.02; done
url=http://127.0.0.1:8080/delay/2
core=/proc/sys/net/core/somaxconn
all() { cat $core /proc/sys/net/ipv4/tcp_rmem; }
before=$(all)
# Lines that the test looks at.
tell() { echo "> $*"; }
# Waits for a run with settings that are changed, until it has a connection and for a moment more.
changed() {
    until grep -q "ended\|begun" $1/journal 2>/dev/null && [ -e $1/targets.json ] && [ "$(all)" != "$before" ] &&
        grep -q ":1F90 01 " /proc/net/tcp
    do
        sleep 0.02
    done
    sleep 0.2
}
state() {
    [ "$(all)" = "$before" ] && echo restored || echo changed
    [ -z "$(ls /run/onrush 2>/dev/null)" ] || echo journal
}
# What onrush said, but for its lines about runs.
said() { grep '^onrush' err | sed 's/^/> /'; }
sweep="--io $1 --allow-host-changes --rounds 1 --sysctl net.core.somaxconn=128,200"
rmem="net.ipv4.tcp_rmem=4096 16384 65536,4096 8192 32768"
"#;

/// End of every script.
const END: &str = "
kill $server
wait $server
";

/// Runs a script as root in a separate network namespace, and returns the lines that it reports.
fn lines(context: &Context, script: &str) -> Vec<String> {
    lines_in("-rnm", context, script)
}

fn lines_in(namespaces: &str, context: &Context, script: &str) -> Vec<String> {
    let scratch = Scratch::new("settings");
    let script = format!("{BEGIN}{script}{END}");
    let output = Command::new("timeout")
        .args(["60", "unshare", namespaces, "sh", "-c", &script, env!("CARGO_BIN_EXE_onrush"), context.backend])
        .arg(scratch.path())
        .output()
        .expect("unshare(1) starts");
    let output = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<String> = output.lines().filter_map(|line| line.strip_prefix("> ")).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{output}");
    lines
}

fn experiments_restore_varied_settings(context: &Context) {
    let script = r#"
cat > experiment.toml <<EOF
name = "settings"
order = "sequential"
rounds = 1
[run]
url = "$url"
io = "$1"
requests = 50
[[factor]]
name = "net.core.somaxconn"
levels = [{ "sysctl.net.core.somaxconn" = "128" }, { "sysctl.net.core.somaxconn" = "200" }]
[[factor]]
name = "rmem"
levels = [{ "sysctl.net/ipv4/tcp_rmem" = "4096 16384 65536" }, { "sysctl.net/ipv4/tcp_rmem" = "4096  8192  32768" }]
[hooks]
before_run = "cat $core /proc/sys/net/ipv4/tcp_rmem >> $2/seen"
EOF
"$0" lab --allow-host-changes --out out experiment.toml >/dev/null 2>err
tell $? $(state)
said
tell $(cat seen)
"#;
    let seen = "128 4096 16384 65536 128 4096 8192 32768 200 4096 16384 65536 200 4096 8192 32768";
    assert_eq!(lines(context, script), ["0 restored", seen]);
}

fn published_buffer_experiment_varies_buffers(context: &Context) {
    // The limits that this experiment varies are read-only in a network namespace; the sizes that they limit are not.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/experiments/socket-buffers.toml");
    let script = format!(
        r#"
sed -e 's/net.core.\(.\)mem_max" = \([0-9]*\)/net.ipv4.tcp_\1mem" = "4096 131072 \2"/g' -e 's/^duration = "3s"/requests = 100/' \
    -e "s|http://localhost/index.php|$url|" -e 's/^rounds = 3/rounds = 1/' -e 's/^before_point = .*/before_point = "true"/' \
    -e "s/^threads = 2/threads = 2\nio = \"$1\"/" {file} > experiment.toml
"$0" lab -v --allow-host-changes --out out experiment.toml >/dev/null 2>err
tell $? $(state) $(ls out/*-1.json | wc -l) $(ls out/sockets-*.ndjson | wc -l)
grep -c 'buffers of 131,072.* and .* bytes (receive, send)' err | sed 's/^/> /'
said
"#
    );
    assert_eq!(lines(context, &script), ["0 restored 7 7", "7"]);
}

fn every_signal_restores_settings(context: &Context) {
    let script = r#"
for signal in INT TERM HUP QUIT; do
    env --default-signal=QUIT "$0" sweep $sweep --sysctl "$rmem" -d 60s --out $signal $url >/dev/null & lab=$!
    changed $signal
    kill -$signal $lab
    wait $lab
    tell $signal $? $(state) $(ls $signal | grep -c interrupted)
done
"#;
    assert_eq!(lines(context, script), ["INT", "TERM", "HUP", "QUIT"].map(|name| format!("{name} 130 restored 1")));
}

fn second_signals_restore_and_quit(context: &Context) {
    let script = r#"
cat > experiment.toml <<EOF
name = "hanging"
rounds = 1
[run]
url = "$url"
io = "$1"
duration = "60s"
[[factor]]
name = "somaxconn"
levels = [{ "sysctl.net.core.somaxconn" = "128" }, { "sysctl.net.core.somaxconn" = "200" }]
[hooks]
after_run = "echo \$\$ > $2/hook; trap '' TERM; sleep 60"
EOF
"$0" lab --allow-host-changes --out out experiment.toml >/dev/null & lab=$!
changed out
kill -INT $lab
until [ -s hook ]; do sleep 0.02; done
sleep 0.1
tell $(state)
kill -INT $lab
wait $lab
tell $? $(state)
while grep -q "^State:.[^Z]" /proc/$(cat hook)/status 2>/dev/null; do sleep 0.02; done
tell the hook is gone
"#;
    assert_eq!(lines(context, script), ["changed journal", "130 restored", "the hook is gone"]);
}

fn errors_restore_settings(context: &Context) {
    let script = r#"
cat > experiment.toml <<EOF
name = "failing"
rounds = 1
[run]
url = "$url"
io = "$1"
requests = 50
[[factor]]
name = "somaxconn"
levels = [{ "sysctl.net.core.somaxconn" = "128" }, { "sysctl.net.core.somaxconn" = "200" }]
[hooks]
before_run = "cat $core > $2/seen; exit 3"
on_error = "stop"
EOF
"$0" lab --allow-host-changes --out out experiment.toml >/dev/null 2>err
tell $? $(state) $(cat seen)
said
"#;
    let lines = lines(context, script);
    assert_eq!(lines[0].split_once(" restored ").map(|(code, _)| code), Some("5"), "{lines:?}");
    assert!(["128", "200"].iter().any(|value| lines[0].ends_with(value)), "it was changed: {lines:?}");
}

fn refusals_precede_the_first_run(context: &Context) {
    let script = r#"
for setting in net.core.somaxconnn=1,2 net.core=1,2 net.ipv4.route.flush=1,2 net.core.rmem_max=4096,8192 \
    net.core.somaxconn=128,many net..core=1,2
do
    "$0" sweep --io $1 --allow-host-changes --sysctl $setting -n 50 --out out-$setting $url >/dev/null 2>err
    tell $? $(state) $(ls out-$setting 2>/dev/null | grep -c somaxconn)
    said
done
"$0" sweep --io $1 --sysctl net.core.somaxconn=1,2 -n 50 --out out $url >/dev/null 2>err
tell $? $(state)
said
mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
"$0" sweep $sweep -n 50 --out out1 $url >/dev/null 2>err
tell $? $(state)
said
umount /proc/sys
mount -o remount,ro /run
"$0" sweep $sweep -n 50 --out out2 $url >/dev/null 2>err
tell $? $(state)
said
"#;
    let lines = lines(context, script);
    for words in [
        "onrush: the kernel has no setting net.core.somaxconnn; nearest in net.core: somaxconn, ",
        "onrush: net.core is a group of settings; name one of them",
        "onrush: net.ipv4.route.flush is write-only: its old value could not be restored",
        "onrush: net.core.rmem_max is read-only here; some settings can be changed only in the host's network namespace",
        "onrush: the kernel refuses \"many\" for net.core.somaxconn: Invalid argument",
        "\"net..core\" is not the name of a setting; names consist of letters, digits, _, - and dots: net.core.somaxconn",
        "net.core.somaxconn is a setting of this host; add --allow-host-changes to change it and restore it afterwards",
        "onrush: net.core.somaxconn cannot be changed: /proc/sys is mounted read-only, as in most containers; run onrush on \
         the host",
        ".journal: Read-only file system; onrush keeps its journal of changed settings there: make it writable, or start as root",
    ] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:#?}");
    }
    let codes: Vec<&String> = lines.iter().filter(|line| !line.starts_with("onrush")).collect();
    assert!(codes.iter().all(|code| code.starts_with("1 restored")), "{lines:#?}");
}

fn leftovers_of_killed_experiments_are_restorable(context: &Context) {
    let script = r#"
"$0" restore 2>&1; tell $?
"$0" sweep $sweep --sysctl "$rmem" -d 60s --out killed $url >/dev/null & lab=$!
changed killed
"$0" restore >err 2>&1; tell $?; said
"$0" sweep $sweep -n 50 --out second $url >/dev/null 2>err; tell $?; said
kill -KILL $lab; wait $lab; tell $? $(state)
"$0" sweep $sweep -n 50 --out third $url >/dev/null 2>err; tell $? $(state); said
"$0" -n1 -c1 $url >/dev/null; tell "single runs go on: $?"
"$0" restore | sed 's/^/> /'; tell $(state)
"$0" restore | sed 's/^/> /'
"$0" sweep $sweep -n 50 --out fourth $url >/dev/null 2>err; tell $? $(state)
"#;
    let lines = lines(context, script);
    let is_pid = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let shape = |line: &String| {
        let words: Vec<&str> = line.split_inclusive(&[' ', ')'][..]).collect();
        let is_number = |word: &str| word.len() > 1 && is_pid(&word[..word.len() - 1]) && word.ends_with(')');
        words.iter().map(|word| if is_number(word) { "N)" } else { word }).collect::<String>()
    };
    let held = "another onrush (pid N) is changing settings of this network namespace; wait until it has restored them";
    let lines: Vec<String> = lines.iter().map(shape).collect();
    assert_eq!(
        lines[..7],
        [
            "0".to_owned(),
            "1".to_owned(),
            format!("onrush restore: {held}"),
            "1".to_owned(),
            format!("onrush: {held}"),
            "137 changed journal".to_owned(),
            "1 changed journal".to_owned(),
        ]
    );
    assert_eq!(
        lines[7..9],
        ["onrush: a killed onrush (pid N) left settings changed; run onrush restore first", "single runs go on: 0",]
    );
    assert!(lines[9].starts_with("net.ipv4.tcp_rmem was restored from \"4096 "), "{lines:#?}");
    assert!(
        lines[10].starts_with("net.core.somaxconn was restored from ") && lines[10].ends_with("to \"4096\""),
        "{lines:#?}"
    );
    assert_eq!(lines[11..], ["restored", "nothing to restore in this network namespace", "0 restored"]);
}

fn kills_during_changes_lose_nothing(context: &Context) {
    // The file of the setting is opened once to check that it exists, and four times per change: to be read, tried,
    // written and read again.
    let script = r#"
for call in openat:3 openat:4 write:1 openat:5 openat:8 write:2 openat:9; do
    strace -f -qq -o trace -P $core -e trace=write,openat -e inject=${call%:*}:signal=KILL:when=${call#*:} \
        "$0" sweep $sweep -n 50 --out out-$call $url >/dev/null 2>&1
    tell $? $(grep -c '"change"' /run/onrush/*) $(state)
    "$0" restore >/dev/null; tell $? $(state)
done
"#;
    let lines = lines(context, script);
    let expected = [
        "137 0 restored journal",
        "137 1 restored journal",
        "137 1 restored journal",
        "137 1 changed journal",
        "137 2 changed journal",
        "137 2 changed journal",
        "137 2 changed journal",
    ];
    for (pair, expected) in lines.chunks(2).zip(expected) {
        assert_eq!((pair[0].as_str(), pair[1].as_str()), (expected, "0 restored"), "{lines:#?}");
    }
    assert_eq!(lines.len(), 2 * expected.len(), "{lines:#?}");
}

fn foreign_settings_are_left_alone(context: &Context) {
    let script = r#"
"$0" sweep $sweep --sysctl "$rmem" -d 60s --out out $url >/dev/null 2>err & lab=$!
changed out
echo 512 > $core
kill -TERM $lab; wait $lab
tell $? $(cat $core) $(ls /run/onrush)
said
"#;
    let lines = lines(context, script);
    assert_eq!(lines[0], "1 512");
    let [left] = &lines[1..] else { panic!("{lines:#?}") };
    assert!(left.starts_with("onrush: net.core.somaxconn is \"512\" and was left alone: onrush had set "), "{left}");
    assert!(left.ends_with(", and the original value was \"4096\""), "{left}");
}

fn missing_permission_changes_nothing(context: &Context) {
    let script = r#"
chmod 1777 /run; mkdir own; chmod 777 own
setpriv --reuid 65534 --regid 65534 --clear-groups \
    "$0" sweep $sweep -n 50 --out own/out $url >/dev/null 2>err
tell $? $(state)
said
"#;
    let expected = [
        "1 restored",
        "onrush: net.core.somaxconn cannot be changed: permission denied; this needs CAP_NET_ADMIN in the user namespace that \
         owns the network namespace; try sudo",
    ];
    assert_eq!(lines_in("-nm", context, script), expected);
}
