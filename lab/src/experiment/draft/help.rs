//! The help that `--help` prints for the three commands.

use onrush_load::cli::arguments::{HELP, Setter, help};
use onrush_load::cli::described::Described;

use super::typed::{OPTIONS, SHORTHAND, TypedLab};

/// The help of `lab`, above and below its options.
pub(super) const LAB: (&str, &str) = (
    "\
onrush lab measures every point of an experiment several times, in an order that
cancels out a drift of the machine, prints a table and what follows from it, and
writes everything to a folder.

Usage: onrush lab [options] FILE.toml",
    "\
An experiment file with every key (name and [run] are required):

  name = \"proxies\"
  rounds = 3
  order = \"interleaved\"        # or \"random\", \"sequential\"
  baseline = { url = \"nginx\" } # the level the others are compared with
  attach = [\"/etc/nginx/nginx.conf\"]

  [run]                        # options of a run, by their long names
  duration = \"30s\"
  header = [\"Accept: text/html\"]

  [[factor]]                   # factors are crossed
  name = \"url\"
  levels = [{ label = \"nginx\", url = \"http://127.0.0.1:8080/\" },
            { label = \"direct\", url = \"http://127.0.0.1:8081/\" }]

  [[factor]]                   # options in one level are set together
  name = \"load\"
  levels = [{ threads = 2, connections = 64 },
            { threads = 4, connections = 256 }]

  [target]                     # started before each point, ended after it
  command = \"./server --port 8080\"
  ready = \"http://127.0.0.1:8080/\"

  [hooks]                      # also after_point, before_run, after_run
  before_point = \"systemctl restart nginx\"
  timeout = \"60s\"
  on_error = \"continue\"        # or \"stop\"

A level may also set \"sysctl.net.ipv4.tcp_rmem\" or another host setting, and
\"target.command\". Exit codes: 0 all runs were measured, 1 the plan is wrong
or a run failed, 2 the first request to a target was refused, 3 a gate (fail-if)
broke, 4 onrush was the limit (strict), 5 nothing was measured, 130 interrupted:
the first of 1, 2, 5, 3, 4 and 130 that applies.",
);

/// The text of `onrush sweep --help`.
pub(crate) fn sweep_help() -> String {
    let above = "\
onrush sweep measures several loads, or settings of this host, a few rounds
each in a balanced order, and prints a table and from where on more gains
nothing.

Usage: onrush sweep [options] URL

-c, -t, -R and --streams take a list of values to try: -c 1,8,64; 1..64 doubles
from 1 to 64.";
    let below = "\
All other options are those of a run (onrush --help), except -o, --format,
--sockets-output, --request-log, --log-sample, --sample-responses, --quiet,
--once, --compat, --find-max, --over.
A run lasts 10s unless -d says otherwise: three levels take about 90s. --plan
prints the time. For instance:
  onrush sweep -c 1..256 -d10s http://127.0.0.1:8080/
  onrush sweep --sysctl net.core.somaxconn=128,4096 --allow-host-changes URL";
    help((above, below), sweep_options())
}

/// The text of `onrush vs --help`.
pub(crate) fn versus_help() -> String {
    let above = "\
onrush vs compares targets in short alternating runs, so that a noisy machine is
noisy for all. The first is the baseline. The same URL twice shows the noise.

Usage: onrush vs [options] URL_A URL_B [URL_C...]";
    let below = "\
All other options are those of a run (onrush --help), except -o, --format,
--sockets-output, --request-log, --log-sample, --sample-responses, --quiet,
--once, --compat, --find-max, --over.
A run lasts 2s after a warm-up of 500ms, with a rate (-R) of 110 or more as long
as 2,000 responses take, unless -d and --warmup say otherwise. At 2s, two
targets take about 50s; --plan prints the time.";
    help((above, below), versus_options())
}

pub(crate) fn sweep_options() -> Vec<Described> {
    own_options(|name| name != "force")
}

/// Options that only `vs` has.
pub(crate) fn versus_options() -> Vec<Described> {
    own_options(|name| !["force", "sysctl", "zip", "allow-host-changes"].contains(&name))
}

fn own_options(is_shown: impl Fn(&str) -> bool) -> Vec<Described> {
    let described = |option: &Setter<TypedLab>| option.described;
    let all = SHORTHAND.iter().chain(&OPTIONS).map(described).chain([HELP]);
    all.filter(|option| is_shown(option.spelling.long)).collect()
}
