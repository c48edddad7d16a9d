//! The arguments of `onrush kubernetes`, and what the command does.

use std::ffi::OsString;
use std::path::PathBuf;

use aws_lc_rs::rand;
use onrush_plan::Dialect;

use super::collect::{Collect, collect_run};
use super::manifest::{Manifest, Placement};
use super::packed::PackedRun;
use super::pod;
use onrush_load::cli::arguments::{HELP, Setter, help, path, switch, text};
use onrush_load::cli::described::Described;
use onrush_load::cli::flags;
use onrush_load::cli::lexer::{ArgLexer, Item, Misuse};
use onrush_load::cli::units::parse_size;
use onrush_load::cli::{Command, CommandWork, CompletionWord, hints};
use onrush_load::program::{print, say};

/// The command `onrush kubernetes`.
pub const COMMAND: Command = Command {
    name: "kubernetes",
    about: "carry a run out in a Kubernetes cluster",
    help: help_text,
    options: described,
    word: CompletionWord::Url,
    parse,
};

/// Default maximum of compressed results in the log, in bytes. The kubelet keeps a log of 10 MiB.
const LOG_MAX: u64 = 8 << 20;
/// Maximum length of a run's name. Host names have at most 63 characters, including what each object appends.
const NAME_MAX: usize = 32;
/// Maximum length of a namespace.
const NAMESPACE_MAX: usize = 63;
/// Minimum memory of a pod: with less, it does not even start.
const MEMORY_MIN: u64 = 16 << 20;
/// Length of a generated name.
const NAME: usize = 8;

#[derive(Debug, Default)]
struct TypedKubernetes {
    image: Option<String>,
    placing: Placement,
    name: Option<String>,
    in_image: Vec<PathBuf>,
    log_max: Option<u64>,
    collect: Option<String>,
    into: Option<PathBuf>,
    run: Option<PathBuf>,
    send: Option<String>,
    is_fetched: bool,
    /// The options and words that belong to the run.
    options: Vec<String>,
    words: Vec<String>,
    has_machines: bool,
}

/// The command's own options.
const OPTIONS: [Setter<TypedKubernetes>; 13] = [
    text("--image NAME", |typed: &mut TypedKubernetes, text| {
        let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        typed.image = Some(is_name.then(|| text.to_owned()).ok_or("write the name of an image, without spaces")?);
        Ok(())
    })
    .help("the image of onrush, whose entry point it is"),
    switch("--one-per-node", |typed: &mut TypedKubernetes| typed.placing.is_one_per_node = true)
        .help("never place two machines on a node (they are spread\nover the nodes as far as possible)"),
    text("--cpu N", |typed: &mut TypedKubernetes, text| {
        typed.placing.cpu = Some(check_cpu(text)?);
        Ok(())
    })
    .help("processors that each machine requests (-t)"),
    text("--memory SIZE", |typed: &mut TypedKubernetes, text| {
        let bytes = parse_size(text).map_err(|_| "write a size such as 512Mi or 2Gi".to_owned())?;
        if bytes < MEMORY_MIN {
            return Err("a machine needs at least 16Mi".to_owned());
        }
        typed.placing.memory = Some(bytes);
        Ok(())
    })
    .help("memory that each machine requests, and may have\n(256Mi and 32Ki for each of its connections)"),
    text("--namespace NAME", |typed: &mut TypedKubernetes, text| {
        typed.placing.namespace = Some(check_label(text, NAMESPACE_MAX)?);
        Ok(())
    })
    .help("the namespace of all this (that of kubectl)"),
    text("--name NAME", |typed: &mut TypedKubernetes, text| {
        typed.name = Some(check_label(text, NAME_MAX)?);
        Ok(())
    })
    .help("what the run is called (drawn at random)"),
    path("--in-image FILE", |typed: &mut TypedKubernetes, path| {
        typed.in_image.push(path);
        Ok(())
    })
    .help("do not send this file along: the image has it under\nthe same absolute path; may be repeated"),
    text("--log-max SIZE", |typed: &mut TypedKubernetes, text| {
        typed.log_max = Some(parse_size(text).map_err(|_| "write a size such as 8M, or 0".to_owned())?);
        Ok(())
    })
    .help("the most that compressed results may add to the log\n(8M); larger ones wait ten minutes to be fetched"),
    text("--collect NAME", |typed: &mut TypedKubernetes, text| {
        typed.collect = Some(check_label(text, NAME_MAX)?);
        Ok(())
    })
    .help("follow this run, fetch its results, delete what it no\nlonger needs, and exit with its code"),
    path("--into DIR", |typed: &mut TypedKubernetes, path| {
        typed.into = Some(path);
        Ok(())
    })
    .help("where --collect writes the results (.)"),
    path("--run FILE", |typed: &mut TypedKubernetes, path| {
        typed.run = Some(path);
        Ok(())
    })
    .help("in the coordinator's pod: carry out what was packed"),
    text("--send NAME", |typed: &mut TypedKubernetes, text| {
        typed.send = Some(text.to_owned());
        Ok(())
    })
    .help("there: write this result to standard output"),
    switch("--fetched", |typed: &mut TypedKubernetes| typed.is_fetched = true)
        .help("there: wait no longer, all results were fetched"),
];

/// Options of a run that this command sets itself.
const SET: [&str; 2] = ["coordinate", "token-file"];

/// Options of a run that are allowed here, although commands that make several runs reject them.
const ALSO: [&str; 9] =
    ["machines", "join-timeout", "loss-timeout", "on-loss", "find-max", "over", "output", "format", "quiet"];

fn own() -> impl Iterator<Item = &'static Setter<TypedKubernetes>> + Clone {
    OPTIONS.iter()
}

/// Descriptions of the command's own options.
fn described() -> Vec<Described> {
    let of_run = ALSO.map(|name| flags::named(name).described);
    own().map(|option| option.described).chain(of_run).chain([HELP]).collect()
}

fn help_text() -> String {
    let above = "\
onrush kubernetes writes what a run on several machines of a cluster consists
of: a Service, a Secret, a ConfigMap if there are certificates, and the Jobs of
the coordinator and of the machines. kubectl applies it, and --collect waits for
the results.

Usage: onrush kubernetes --image NAME --machines N [options] URL |
           kubectl apply -f -
       onrush kubernetes --collect NAME [--into DIR]";
    let below = "\
All other options are those of a run on several machines (onrush --help), except
--coordinate and --token-file. Files that they name are sent along, up to
180 KiB.
For instance:
  onrush kubernetes --image registry.example/onrush:0.1 --name first \\
      --machines 10 -c20000 -R 400k -d1m -o first.json URL | kubectl apply -f -
  onrush kubernetes --collect first";
    help((above, below), described())
}

/// Checks a string that becomes part of an object's name.
fn check_label(text: &str, most: usize) -> Result<String, String> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = text.len() <= most
        && text.starts_with(is_letter)
        && text.ends_with(is_letter)
        && text.chars().all(|c| is_letter(c) || c == '-');
    is_label
        .then(|| text.to_owned())
        .ok_or_else(|| format!("write small letters, digits and dashes between them, {most} at most"))
}

/// Checks a number of processors in the notation of Kubernetes: 2, 0.5 or 500m.
fn check_cpu(text: &str) -> Result<String, String> {
    let (number, least) = text.strip_suffix('m').map_or((text, 0.001), |number| (number, 1.0));
    let is_number = number.chars().all(|c| c.is_ascii_digit() || c == '.') && !number.ends_with('.');
    let is_cpu = is_number && number.parse().is_ok_and(|count: f64| (least..=1e6).contains(&count));
    is_cpu.then(|| text.to_owned()).ok_or_else(|| "write a number of processors such as 2, 0.5 or 500m".to_owned())
}

/// Draws a random name for a run that has none.
fn generate_run_name() -> Result<String, String> {
    // There are no vowels, so that no words can appear.
    const LETTERS: &[u8; 32] = b"0123456789bcdfghjkmnpqrstvwxyzbc";
    let mut bytes = [0; NAME];
    rand::fill(&mut bytes).map_err(|_| "the kernel gives no random numbers; add --name")?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// Parses the arguments; `None` if help was requested. The error says what is wrong.
fn parse(args: &[OsString]) -> Result<Option<CommandWork>, String> {
    let Some(typed) = read(args)? else { return Ok(None) };
    let has_run = !typed.options.is_empty() || !typed.words.is_empty();
    let others = [
        (typed.collect.is_some(), "--collect"),
        (typed.run.is_some(), "--run"),
        (typed.send.is_some(), "--send"),
        (typed.is_fetched, "--fetched"),
    ];
    let others: Vec<&str> = others.into_iter().filter_map(|(is_asked, name)| is_asked.then_some(name)).collect();
    match others[..] {
        [] => pack_run(typed).map(Some),
        [name] if has_run || typed.image.is_some() => {
            Err(format!("{name} takes a run that was applied; leave out --image, the URL and the options of a run"))
        }
        [one, other, ..] => Err(format!("{one} and {other} exclude each other; leave one of the two out")),
        [_] => Ok(Some(CommandWork::new(move || {
            if let Some(run) = typed.collect {
                let into = typed.into.unwrap_or_else(|| PathBuf::from("."));
                collect_run(&Collect { run, namespace: typed.placing.namespace, into })
            } else if let Some(orders) = typed.run {
                pod::run_pod(&orders)
            } else if let Some(name) = typed.send {
                pod::send_result(&name)
            } else {
                pod::mark_fetched()
            }
        }))),
    }
}

/// Parses options and words; `None` if help was requested. The run's own are kept unparsed.
fn read(args: &[OsString]) -> Result<Option<TypedKubernetes>, String> {
    let mut typed = TypedKubernetes::default();
    let mut lexer =
        ArgLexer::new(args, Dialect::Native, false).with_own_options(own().map(|option| &option.described.spelling));
    loop {
        match lexer.next_item() {
            Ok(None) => return Ok(Some(typed)),
            Err(Misuse::Value(spelling)) if spelling.long == "help" => return Ok(None),
            Ok(Some(Item::ShortHelp)) => return Ok(None),
            Ok(Some(Item::Flag(flag, _))) if flag.name() == "help" => return Ok(None),
            Err(misuse) => {
                return Err(hints::command_misuse_hint(&misuse, own().map(|option| option.described.spelling.long)));
            }
            Ok(Some(Item::Word(word))) => typed.words.push(utf8(word)?),
            Ok(Some(Item::Own(spelling, value))) => {
                let option = own().find(|option| option.described.spelling == *spelling);
                option.map_or(Ok(()), |option| option.set(&mut typed, &value))?;
            }
            Ok(Some(Item::Flag(flag, value))) => {
                let name = flag.name();
                if SET.contains(&name) {
                    return Err(format!("--{name} is set by the pods of the run; leave it out"));
                }
                typed.has_machines |= name == "machines";
                let value = utf8(value)?;
                let has_value = flag.described.spelling.takes_value() || !value.is_empty();
                typed.options.push(if has_value { format!("--{name}={value}") } else { format!("--{name}") });
            }
        }
    }
}

fn utf8(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| format!("{word:?} is not valid UTF-8"))
}

/// Packs a run. The returned work prints its objects for `kubectl apply`.
fn pack_run(typed: TypedKubernetes) -> Result<CommandWork, String> {
    let image = typed.image.ok_or("needs --image NAME, the image of onrush; all options: onrush kubernetes --help")?;
    if !typed.has_machines {
        return Err("needs --machines N, the number of machines".to_owned());
    }
    if typed.into.is_some() {
        return Err("--into needs --collect".to_owned());
    }
    if let Some(path) = typed.in_image.iter().find(|path| !path.is_absolute()) {
        return Err(format!("--in-image {path:?}: write the absolute path in the image, here and in the options"));
    }
    let words_are_apart = typed.words.iter().any(|word| word.starts_with('-'));
    let apart = words_are_apart.then(|| "--".to_owned());
    let words = typed.options.into_iter().chain(apart).chain(typed.words).collect();
    let packed = PackedRun::new(words, &typed.in_image, typed.log_max.unwrap_or(LOG_MAX))?;
    let run = typed.name.map_or_else(generate_run_name, Ok)?;
    Ok(CommandWork::new(move || {
        packed.warnings.iter().for_each(|line| say(line));
        let namespace = typed.placing.namespace.as_ref().map_or(String::new(), |name| format!(" --namespace {name}"));
        let manifest = Manifest { run: &run, image: &image, packed: &packed, placing: &typed.placing };
        let code = print("onrush kubernetes", Ok(manifest.to_json()), 0);
        say(&format!(
            "onrush kubernetes: the run is called {run}; once it is applied: onrush kubernetes --collect \
                      {run}{namespace}"
        ));
        code
    }))
}
