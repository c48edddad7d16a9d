//! Turns an outline into an experiment: combines the levels of all factors, and makes a plan for each point.

use std::collections::BTreeSet;
use std::time::Duration;

use onrush_load::input::InputFiles;
use onrush_plan::experiment::{self, Experiment, Factor, Level, ManagedServer, Point, ResultDestination};
use onrush_plan::secrets::KnownSecrets;
use onrush_plan::{Dialect, Plan, secrets};
use onrush_text::{escape_controls, units};

use super::names::{check_distinct_files, factor_file, result_prefix, slug};
use super::options::{COMMAND, LIST, OptionMap, SYSCTL, URL, is_digest, nearest_name_hint, redact_value};
use super::outline::{ExperimentOutline, OutlineFactor, OutlineLevel, OutlineServer};
use super::resolved;
use crate::compare::{DECISIVE, RESPONSES_NEEDED};
use onrush_load::cli::decide;
use onrush_load::cli::draft::PlanDraft;
use onrush_load::cli::lexer::ArgLexer;
use onrush_load::cli::refusal::PlanRefusal;
use onrush_load::cli::{Warned, command_line, probe};

/// Maximum number of points in an experiment.
const POINTS_MAX: usize = 10_000;

/// Decisions of the command line, not the outline, about the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Circumstances {
    pub folder: ResultDestination,
    pub may_change_host: bool,
    /// Number of retries, which overrides that in the file.
    pub retries: Option<u32>,
}

/// Makes the experiment. Warns about weaknesses with which it can still be carried out.
pub(super) fn decide_experiment(
    mut outline: ExperimentOutline,
    around: Circumstances,
) -> Result<Warned<Experiment>, String> {
    if slug(&outline.name).is_empty() {
        return Err("the experiment has no name; write name = \"…\" at the top".to_owned());
    }
    let known = known_secrets(&outline);
    let levels = outline.factors.iter_mut().flat_map(|factor| &mut factor.levels);
    levels
        .filter_map(|level| level.label.as_mut())
        .for_each(|label| *label = known.redact_typed(label, secrets::redact_text));
    refuse_controls(&outline)?;
    if matches!(around.folder, ResultDestination::New(_)) {
        refuse_digests(&outline)?;
    }
    let names = || outline.factors.iter().map(|factor| factor.name.as_str());
    if let Some((unknown, _)) = outline.baseline.iter().find(|(factor, _)| !names().any(|name| name == factor)) {
        let hint = nearest_name_hint(unknown, names()).unwrap_or_else(|| "name one of the factors".to_owned());
        return Err(format!("baseline: there is no factor {unknown:?}; {hint}"));
    }
    let factors =
        outline.factors.iter().map(|factor| decide_factor(factor, &outline, &known)).collect::<Result<Vec<_>, _>>()?;
    // From here on, baselines are identified by the displayed names of their levels, which contain no secrets.
    for (name, level) in &mut outline.baseline {
        let factor = factors.iter().find(|factor| factor.name == *name);
        factor.iter().for_each(|factor| *level = factor.levels[factor.baseline].shown.clone());
    }
    let mut warnings = BTreeSet::new();
    let mut points = Vec::new();
    for levels in cross_levels(&outline.factors)? {
        let sets = outline.factors.iter().zip(&levels).flat_map(|(factor, &level)| &factor.levels[level].sets);
        let options = outline.run.overridden_by(sets);
        let shown = || describe_levels(&factors, &levels);
        let (plan, said) = plan_from_options(&options).map_err(|words| format!("{}{words}", shown()))?;
        warnings.extend(said);
        let file = result_prefix(&factors, &levels);
        points.push(Point { levels, file, plan, settings: options.settings(), command: options.command() });
    }
    check_distinct_files(&factors, &points)?;
    let server =
        decide_server(outline.server.as_ref(), &outline.run, points.iter().any(|point| point.command.is_some()))?;
    let (text, shown) = resolved::resolved_texts(&outline);
    let ExperimentOutline { name, rounds, order, seed, retries, attach, hooks, .. } = outline;
    let Circumstances { folder, may_change_host, retries: instead } = around;
    let retries = instead.unwrap_or(retries);
    let experiment = Experiment {
        name,
        rounds,
        order,
        seed,
        retries,
        factors,
        points,
        server,
        hooks,
        attach,
        may_change_host,
        folder,
        text,
        shown,
    };
    warnings.extend(too_short_warning(&experiment));
    Ok((experiment, warnings.into_iter().collect()))
}

/// A warning if runs with a rate will be too short to compare the deciding percentile.
fn too_short_warning(experiment: &Experiment) -> Option<String> {
    let Experiment { factors, points, .. } = experiment;
    // Different rates are not compared: the question is which of them were reached.
    if points.len() < 2 || factors.iter().all(|factor| factor.name == "rate") {
        return None;
    }
    let expected = points.iter().map(|point| ExpectedRequests::from_plan(&point.plan)).collect::<Option<Vec<_>>>()?;
    let fewest = expected.into_iter().min_by_key(ExpectedRequests::requests)?;
    (fewest.requests() < RESPONSES_NEEDED).then(|| {
        format!(
            "there will be no verdict: comparing the {DECISIVE} takes {} responses per run, but one run has only {} \
             requests; {}",
            units::format_thousands(RESPONSES_NEEDED),
            units::format_thousands(fewest.requests()),
            fewest.remedy()
        )
    })
}

/// Number of requests to expect in a run with a rate.
struct ExpectedRequests {
    /// Number of requests due within the duration; `None` without a duration.
    of_time: Option<f64>,
    /// The limit on the number of requests, if there is one.
    limit: Option<u64>,
    /// The rate; `None` if stages set the rate or the duration.
    per_s: Option<f64>,
}

impl ExpectedRequests {
    /// The requests to expect from a plan; `None` if it has no rate.
    fn from_plan(plan: &Plan) -> Option<Self> {
        let schedule = plan.schedule.as_ref()?;
        let due = |length: Duration| schedule.per_second_between(Duration::ZERO, length) * length.as_secs_f64();
        let is_staged = plan.levels.is_some() || schedule.stages.iter().any(|stage| stage.length.is_some());
        Some(Self {
            of_time: plan.stop.duration.map(due),
            limit: plan.stop.requests,
            per_s: (!is_staged).then(|| schedule.most_per_second()),
        })
    }

    fn requests(&self) -> u64 {
        self.of_time.map_or(u64::MAX, |due| due as u64).min(self.limit.unwrap_or(u64::MAX))
    }

    /// The remedy for too few requests: the limit to raise, and how far.
    fn remedy(&self) -> String {
        let is_too_few = |requests: &f64| *requests < RESPONSES_NEEDED as f64;
        let longer = self.of_time.filter(is_too_few).map(|due| match self.per_s {
            Some(per_s) => format!("measure for longer, such as {:.0}s (-d)", enough_s(per_s).ceil()),
            // Rounded up to a decimal.
            None => format!("make its stages {} times as long (--stages)", (enough_s(due) * 10.0).ceil() / 10.0),
        });
        let more = self.limit.filter(|limit| *limit < RESPONSES_NEEDED);
        let more = more.map(|_| format!("send {} requests or more (-n)", units::format_thousands(RESPONSES_NEEDED)));
        longer.into_iter().chain(more).collect::<Vec<_>>().join(", and ")
    }
}

/// Number of seconds that a run at this rate needs for a comparison, with a margin for random arrivals.
pub(super) fn enough_s(per_s: f64) -> f64 {
    RESPONSES_NEEDED as f64 * 1.1 / per_s
}

/// Rejects names that would move the terminal's cursor.
fn refuse_controls(outline: &ExperimentOutline) -> Result<(), String> {
    let labels = outline.factors.iter().flat_map(|factor| &factor.levels).filter_map(|level| level.label.as_ref());
    let names = outline.factors.iter().map(|factor| &factor.name);
    match [&outline.name].into_iter().chain(names).chain(labels).find(|name| escape_controls(name) != **name) {
        Some(name) => {
            Err(format!("\"{}\" has control characters; remove them from names and labels", escape_controls(name)))
        }
        None => Ok(()),
    }
}

/// Rejects the stored plan of an experiment from which commands were left out.
fn refuse_digests(outline: &ExperimentOutline) -> Result<(), String> {
    match all_commands(outline).into_iter().any(|command| is_digest(&command)) {
        true => Err("this file has only digests of the commands; use the original file".to_owned()),
        false => Ok(()),
    }
}

/// All combinations of one level of each factor. The level of the first factor changes least often.
fn cross_levels(factors: &[OutlineFactor]) -> Result<Vec<Vec<usize>>, String> {
    let count = factors.iter().try_fold(1_usize, |count, factor| count.checked_mul(factor.levels.len()));
    let count = count.filter(|count| *count <= POINTS_MAX);
    if count.is_none() {
        let lengths: Vec<String> = factors.iter().map(|factor| factor.levels.len().to_string()).collect();
        let product = lengths.join(" × ");
        return Err(format!("{product} levels make more than {POINTS_MAX} points; zip factors or remove levels"));
    }
    let mut points = vec![Vec::new()];
    for factor in factors {
        let with = |point: &Vec<usize>, level| point.iter().copied().chain([level]).collect();
        points =
            points.iter().flat_map(|point| (0..factor.levels.len()).map(move |level| with(point, level))).collect();
    }
    Ok(points)
}

fn describe_levels(factors: &[Factor], levels: &[usize]) -> String {
    let each =
        factors.iter().zip(levels).map(|(factor, &level)| format!("{}={}", factor.name, factor.levels[level].shown));
    let words: Vec<String> = each.collect();
    if words.is_empty() { String::new() } else { format!("{}: ", words.join(" ")) }
}

/// Makes a factor: its baseline, and the names of its levels.
fn decide_factor(factor: &OutlineFactor, outline: &ExperimentOutline, known: &KnownSecrets) -> Result<Factor, String> {
    let name = &factor.name;
    if factor.levels.is_empty() {
        return Err(format!("factor {name:?} has no levels; try levels = [1, 8, 64]"));
    }
    if outline.factors.iter().filter(|other| other.name == *name).count() > 1 {
        return Err(format!("two factors are called {name:?}; rename one of them"));
    }
    check_options(factor, outline)?;
    let mut levels = Vec::new();
    for (index, level) in factor.levels.iter().enumerate() {
        let shown = known.hide_in(&level_name(level, index));
        if levels.iter().any(|other: &Level| other.shown == shown) {
            return Err(format!("factor {name:?} has two levels {shown:?}; give each its own label"));
        }
        levels.push(Level { file: factor_file(name, level, index, known), shown });
    }
    let baseline = match outline.baseline.iter().find(|(factor, _)| factor == name) {
        None => 0,
        Some((_, wanted)) => find_baseline(factor, &levels, wanted)?,
    };
    Ok(Factor { name: name.clone(), levels, baseline })
}

/// Rejects a factor that sets nothing, or that sets an option which is also set elsewhere.
fn check_options(factor: &OutlineFactor, outline: &ExperimentOutline) -> Result<(), String> {
    let name = &factor.name;
    let others = || outline.factors.iter().filter(|other| other.name != *name).flat_map(|other| &other.levels);
    let keys: BTreeSet<&String> = factor.levels.iter().flat_map(|level| &level.sets).map(|(key, _)| key).collect();
    if let Some(key) = keys.iter().find(|key| others().flat_map(|level| &level.sets).any(|(other, _)| other == **key)) {
        return Err(format!("{key} is set by two factors; set it in one of them"));
    }
    let unset = keys.iter().find(|key| {
        let is_set = |level: &OutlineLevel| level.sets.iter().any(|(set, _)| set == **key);
        outline.run.0.contains_key(**key) && !factor.levels.iter().all(is_set)
    });
    if let Some(key) = unset {
        return Err(format!("{key} is set in [run], but not in every level of factor {name:?}; remove it from [run]"));
    }
    if keys.is_empty() {
        return Err(format!(
            "factor {name:?} sets nothing; put an option in each level, such as {{ connections = 8 }}"
        ));
    }
    Ok(())
}

/// Index of the level that is called `wanted`, or that sets only this value.
fn find_baseline(factor: &OutlineFactor, levels: &[Level], wanted: &String) -> Result<usize, String> {
    let found = factor.levels.iter().zip(levels).position(|(level, named)| {
        named.shown == *wanted
            || named.shown == secrets::redact_text(wanted)
            || matches!(&level.sets[..], [(_, values)] if values[..] == [wanted.clone()])
    });
    found.ok_or_else(|| {
        let names = levels.iter().map(|level| level.shown.as_str());
        let hint = nearest_name_hint(wanted, names.clone())
            .unwrap_or_else(|| format!("it has {}", names.collect::<Vec<_>>().join(", ")));
        format!("baseline: factor {:?} has no level {wanted:?}; {hint}", factor.name)
    })
}

/// The name of a level: its label, else its settings. A command is named by its number, which is `index` + 1.
fn level_name(level: &OutlineLevel, index: usize) -> String {
    let value = |key: &str, values: &[String]| match values {
        _ if key == COMMAND => (index + 1).to_string(),
        [] => "on".to_owned(),
        _ => values.iter().map(|value| redact_value(key, value)).collect::<Vec<_>>().join(" "),
    };
    match (&level.label, &level.sets[..]) {
        (Some(label), _) => label.clone(),
        (None, []) => "off".to_owned(),
        (None, [(key, values)]) => value(key, values),
        (None, sets) => {
            // The last part of a setting's path is clear enough next to its value.
            let one = |(key, values): &(String, Vec<String>)| {
                let name = if key.starts_with(SYSCTL) { key.rsplit('.').next() } else { None };
                format!("{}={}", name.unwrap_or(key), value(key, values))
            };
            let each: Vec<String> = sets.iter().map(one).collect();
            each.join(",")
        }
    }
}

/// The secrets in the commands and in the options of all levels, before any file has been read.
fn known_secrets(outline: &ExperimentOutline) -> KnownSecrets {
    let plan_of = |options: &OptionMap| {
        let mut options = options.clone();
        // A file is read only once, when the points are made, because it may be standard input.
        options.0.retain(|key, values| key != "body" || !values.iter().any(|value| value.starts_with('@')));
        // The URL may be set by another factor.
        options.0.entry(URL.to_owned()).or_insert_with(|| vec!["http://localhost/".to_owned()]);
        // If something is wrong with the options, this is reported when the points are made.
        plan_from_options(&options).ok().map(|(plan, _)| plan)
    };
    let plans: Vec<Plan> = all_option_maps(outline).iter().filter_map(plan_of).collect();
    KnownSecrets::of_all(&plans, all_commands(outline).iter().map(String::as_str))
}

/// The options of each level of each factor, joined with those of the runs.
fn all_option_maps(outline: &ExperimentOutline) -> Vec<OptionMap> {
    let levels = outline.factors.iter().flat_map(|factor| &factor.levels);
    levels.map(|level| outline.run.overridden_by(&level.sets)).chain([outline.run.clone()]).collect()
}

fn all_commands(outline: &ExperimentOutline) -> Vec<String> {
    let of_target = outline.server.as_ref().and_then(|server| server.command.as_ref());
    let of_points: Vec<String> = all_option_maps(outline).iter().filter_map(OptionMap::command).collect();
    experiment::commands(&outline.hooks, of_target, &of_points).map(str::to_owned).collect()
}

fn decide_server(
    outline: Option<&OutlineServer>,
    run: &OptionMap,
    is_varied: bool,
) -> Result<Option<ManagedServer>, String> {
    let Some(outline) = outline else {
        let words = "target.command is varied, but there is no [target]; add one, with ready = \"http://…\"";
        return if is_varied { Err(words.to_owned()) } else { Ok(None) };
    };
    if outline.command.is_none() && !is_varied {
        return Err(format!("[target] has no command; add command = \"…\", or vary {COMMAND}"));
    }
    let ready = outline.ready.as_ref().map(|url| {
        // The options on TLS, proxies and sockets are those of the runs.
        let mut options = run.clone();
        options.0.insert(URL.to_owned(), vec![url.clone()]);
        ["script", "args", "body", "method", "urls", "urls-order"].iter().for_each(|key| drop(options.0.remove(*key)));
        plan_from_options(&options).map(|(plan, _)| Box::new(plan)).map_err(|words| format!("[target] ready: {words}"))
    });
    Ok(Some(ManagedServer { command: outline.command.clone(), ready: ready.transpose()?, timeout: outline.timeout }))
}

/// Makes the plan that these options would give on a command line.
pub(super) fn plan_from_options(options: &OptionMap) -> Result<Warned<Plan>, String> {
    // Standard input would be empty for every run but the first.
    let of_input = [(LIST, "-"), ("body", "@-")]
        .into_iter()
        .find(|(key, input)| options.0.get(*key).is_some_and(|values| values.iter().any(|value| value == input)));
    if let Some((key, input)) = of_input {
        return Err(format!(
            "{key} {input}: standard input can be read only once; save it to a file, and name the file"
        ));
    }
    // The URL may be in the list of requests.
    if options.0.get(URL).is_none_or(Vec::is_empty) && !options.0.contains_key(LIST) {
        return Err(format!("there is no {URL}; add {URL} = \"http://…\" to [run] or to every level of a factor"));
    }
    let words = options.to_arguments()?;
    let refused = |refusal| match refusal {
        PlanRefusal::Misused(line) | PlanRefusal::Wrk(line) | PlanRefusal::Cannot(line) => line,
        PlanRefusal::Usage | PlanRefusal::Help(_) => "these options start no run".to_owned(),
    };
    let mut draft = PlanDraft::new(Dialect::Native);
    draft.read(&mut ArgLexer::new(&words[1..], Dialect::Native, false)).map_err(refused)?;
    probe::forbid_probe(&mut draft.load.probe).map_err(refused)?;
    let (mut plan, warnings) = decide::decide(draft, &InputFiles::default()).map_err(refused)?;
    plan.output.command = command_line::redacted_command_line(&words, &plan);
    Ok((plan, warnings))
}
