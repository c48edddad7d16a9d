//! What `--help` prints of the three commands.

pub(crate) const LAB: &str = "\
onrush lab measures every point of an experiment several times, in an order in
which a drift of the machine cancels out, and writes everything into a folder.

Usage: onrush lab [options] FILE.toml

      --plan             show points, order and time, and touch nothing
      --out DIR          the folder (onrush-NAME-TIME)
      --resume DIR       go on with an experiment that was not finished
      --force            with --resume: although something has changed since
      --retry N          repeat a failed run at once, N times at most (0)
      --allow-host-changes
                         let settings of this host be changed and restored
  -h, --help             print this text

An experiment, with everything it can say (name and [run] are needed):

  name = \"proxies\"
  rounds = 3
  order = \"interleaved\"        # or \"random\", \"sequential\"
  baseline = { url = \"nginx\" } # the level that others are compared with
  attach = [\"/etc/nginx/nginx.conf\"]

  [run]                        # long names of options of a run
  duration = \"30s\"
  header = [\"Accept: text/html\"]

  [[factor]]                   # factors are crossed
  name = \"url\"
  levels = [{ label = \"nginx\", url = \"http://127.0.0.1:8080/\" },
            { label = \"direct\", url = \"http://127.0.0.1:8081/\" }]

  [[factor]]                   # options within a level go together
  name = \"load\"
  levels = [{ threads = 2, connections = 64 }, { threads = 4, connections = 256 }]

  [target]                     # started for each point, and ended after it
  command = \"./server --port 8080\"
  ready = \"http://127.0.0.1:8080/\"

  [hooks]                      # also after_point, before_run, after_run
  before_point = \"systemctl restart nginx\"
  timeout = \"60s\"
  on_error = \"continue\"        # or \"stop\"

A level may also set \"sysctl.net.ipv4.tcp_rmem\" or another setting of this host,
and \"target.command\". Exit codes: 0 all runs were measured, 1 the plan is wrong
or a run failed, 3 a gate (fail-if) broke, 4 onrush limited a run (strict),
5 nothing was measured, 130 interrupted.
";

pub(crate) const SWEEP: &str = "\
onrush sweep runs a test with several loads, or settings of this host, a few
rounds each in a balanced order, and prints a table and a comparison.

Usage: onrush sweep [options] URL

  -c, -t, -R LIST        levels of an option of a run: -c 1,8,64
      --sysctl NAME=LIST levels of a setting of this host
      --zip              pair the lists instead of crossing them
      --rounds N         how often each point is measured (3)
      --order NAME       interleaved (usual), random or sequential
      --retry N          repeat a failed run at once, N times at most (0)
      --name NAME        what the folder is called (sweep)
      --out DIR          the folder (onrush-NAME-TIME)
      --resume DIR       with the same command line: go on with this folder
      --plan             show points, order and time, and touch nothing
      --allow-host-changes
                         let settings of this host be changed and restored
  -h, --help             print this text

Every other option is one of a run; see onrush --help. For instance:
  onrush sweep -c 1,8,64,512 -d10s http://127.0.0.1:8080/
  onrush sweep --sysctl net.core.somaxconn=128,4096 --allow-host-changes URL
";

pub(crate) const VERSUS: &str = "\
onrush vs compares targets: short runs in turns, so that a noisy machine is noisy
for all of them. The first is the baseline. The same URL twice shows the noise.

Usage: onrush vs [options] URL_A URL_B [URL_C...]

      --rounds N         how often each target is measured (10)
      --order NAME       interleaved (usual), random or sequential
      --retry N          repeat a failed run at once, N times at most (0)
      --name NAME        what the folder is called (vs)
      --out DIR          the folder (onrush-NAME-TIME)
      --resume DIR       with the same command line: go on with this folder
      --plan             show points, order and time, and touch nothing
  -h, --help             print this text

Every other option is one of a run; see onrush --help. A run lasts 2s after a
warm-up of 500ms, unless -d and --warmup say otherwise.
";
