//! A run packed for the pod of its coordinator: the command line, the run's secret, and the files that it reads.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use onrush_lab::search::SEARCH;
use onrush_load::cli::{InsteadOfRun, Invocation, parse_with_plan_hook};
use onrush_load::input::InputFiles;
use onrush_load::token::Token;
use onrush_plan::Plan;
use serde::{Deserialize, Serialize};

use super::log::{LineMark, is_valid_name};

/// Mount paths of the Secret and the ConfigMap in the pods, and the folder for results.
pub(super) const SECRETS: &str = "/run/onrush/secret";
pub(super) const FILES: &str = "/run/onrush/files";
pub(super) const RESULTS: &str = "/results";
/// Keys of the run and of its token in the Secret.
pub(super) const RUN: &str = "run";
pub(super) const TOKEN: &str = "token";
/// Port on which the coordinator listens for machines.
pub(super) const PORT: u16 = 7070;
/// Maximum size of the contents of an object. `kubectl apply` keeps a base64 copy of them in an annotation of at most
/// 256 KiB, together with the rest of the object.
const OBJECT_MAX: usize = 250_000;

/// Words in the header and footer of any PEM key.
const KEY: &[u8] = b"PRIVATE KEY";

/// Orders that the coordinator reads when it starts.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct PodOrders {
    /// The arguments of the command line.
    pub words: Vec<String>,
    /// For each file named on the command line, its path in the pod.
    pub files: BTreeMap<PathBuf, PathBuf>,
    /// Maximum number of bytes of results in the log ...
    pub log_max: u64,
    /// ... and the mark of the lines about them.
    pub mark: LineMark,
}

/// A run, and everything that it needs in the cluster.
#[derive(Debug)]
pub(super) struct PackedRun {
    pub plan: Plan,
    /// Contents of the Secret ...
    pub secret: BTreeMap<String, Vec<u8>>,
    /// ... and of the ConfigMap.
    pub public: BTreeMap<String, Vec<u8>>,
    pub warnings: Vec<String>,
    /// Mark of the machine-readable lines of the log.
    pub mark: LineMark,
}

/// The search that options of a run may select instead of a run.
pub(super) const fn search_options() -> InsteadOfRun {
    SEARCH
}

impl PackedRun {
    /// Packs the run of a command line, given without the program's name. Reads all files that the run needs, except
    /// those `in_image`, which the image contains.
    ///
    /// # Errors
    ///
    /// Returns one line about what is wrong with the command line, or the file that cannot be sent.
    pub fn new(words: Vec<String>, in_image: &[PathBuf], log_max: u64) -> Result<Self, String> {
        let of_machines =
            ["onrush".to_owned(), format!("--coordinate=:{PORT}"), format!("--token-file={SECRETS}/{TOKEN}")];
        let words: Vec<String> = of_machines.into_iter().chain(words).collect();
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        let input = InputFiles::kept();
        let mut plan = None;
        let invocation = parse_with_plan_hook(&args, search_options(), &input, &mut |shown| plan = Some(shown.clone()));
        let warnings = match invocation {
            Invocation::Run { warnings, .. } | Invocation::Command { warnings, .. } => warnings,
            Invocation::Print { stdout, stderr, .. } => {
                let said = if stderr.is_empty() { stdout } else { stderr };
                return Err(said.trim_end().trim_start_matches("onrush: ").to_owned());
            }
        };
        let mut plan = plan.ok_or("there is no run")?;
        input.read_files(&mut plan).map_err(|unreadable| format!("{unreadable:#}"))?;
        check_result_names(&plan)?;
        let mut warnings = warnings;
        let host = &plan.target.host;
        if host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
            warnings.push(format!("onrush kubernetes: in a pod, {host} is the pod itself"));
        }
        let mark = LineMark::draw_random().map_err(|error| error.to_string())?;
        let mut packed = Self { plan, secret: BTreeMap::new(), public: BTreeMap::new(), warnings, mark };
        let mut files = BTreeMap::new();
        let sent: Vec<_> = input.into_kept().into_iter().filter(|(name, _)| !in_image.contains(name)).collect();
        let largest = sent.iter().max_by_key(|(_, contents)| contents.len()).map(|(name, _)| name.clone());
        for (number, (name, contents)) in sent.into_iter().enumerate() {
            let is_public = is_public(&packed.plan, &name, &contents);
            let key = format!("file-{number}");
            let folder = if is_public { FILES } else { SECRETS };
            files.insert(name, Path::new(folder).join(&key));
            if is_public { &mut packed.public } else { &mut packed.secret }.insert(key, contents);
        }
        let orders = PodOrders { words, files, log_max, mark: packed.mark.clone() };
        let orders = serde_json::to_vec(&orders).map_err(|_| "the name of a file is not UTF-8")?;
        let token = Token::draw_secret().map_err(|error| error.to_string())?;
        packed.secret.extend([(RUN.to_owned(), orders), (TOKEN.to_owned(), token.into_bytes())]);
        packed.check_size(largest.as_deref())?;
        Ok(packed)
    }

    /// Checks that both objects are small enough to be applied.
    fn check_size(&self, largest: Option<&Path>) -> Result<(), String> {
        for object in [&self.secret, &self.public] {
            let bytes: usize = object.values().map(|contents| contents.len().div_ceil(3) * 4 + 32).sum();
            if bytes > OBJECT_MAX {
                let what = largest.map_or_else(|| "the command line".to_owned(), |name| format!("{name:?}"));
                return Err(format!(
                    "the files of the run take {} KiB in base64, but the limit is {} KiB; put the largest, {what}, \
                     into the image under the same absolute path, and add --in-image with that path",
                    bytes / 1024,
                    OBJECT_MAX / 1024,
                ));
            }
        }
        Ok(())
    }

    /// Total size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.secret.values().chain(self.public.values()).map(|contents| contents.len() as u64).sum()
    }
}

/// True if a file may be in the ConfigMap, which more people may read: this holds only for trusted certificates without
/// a key. All other files are scripts, lists of requests, bodies, keys and values, any of which may contain a secret.
fn is_public(plan: &Plan, name: &Path, contents: &[u8]) -> bool {
    let mut roots = plan.tls.iter().filter_map(|tls| tls.roots.as_ref());
    let has_key = || contents.windows(KEY.len()).any(|here| here == KEY);
    roots.any(|file| Path::new(&file.name) == name) && !has_key()
}

/// Rejects results with equal names, or with a name that cannot be in a log: all results are in one folder of the pod
/// and are fetched by name.
fn check_result_names(plan: &Plan) -> Result<(), String> {
    let mut all = plan.output.outputs.iter().filter_map(|output| output.path.file_name());
    if let Some(name) = all.find(|name| !name.to_str().is_some_and(is_valid_name)) {
        return Err(format!(
            "-o {name:?}: names of fetched results must not start with a dot or contain control characters"
        ));
    }
    let mut names: Vec<_> = plan.output.outputs.iter().filter_map(|output| output.path.file_name()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("-o {:?}: two results have this name; rename one", pair[0])),
        None => Ok(()),
    }
}
