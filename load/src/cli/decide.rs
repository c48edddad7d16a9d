//! Turns the typed options into a plan: fills in defaults, finds contradictions, and applies the rules in which wrk and
//! onrush differ.
//!
//! It is the border to [`onrush_plan`], where nothing depends on how an option was spelled.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use onrush_plan::http::HttpVersion;
use onrush_plan::limits::{GIVE_UP_MIN, GIVE_UP_TIMEOUTS, URL_MAX};
use onrush_plan::load::Limiter;
use onrush_plan::secrets;
use onrush_plan::target::InvalidUrl;
use onrush_plan::{
    Condition, ConnectOptions, Dialect, FileContents, Format, Io, Load, LuaScript, OutputOptions, PerConnection, Plan,
    Request, Schedule, Stop, Target,
};
use onrush_text::units::{format_count, format_duration_exact};

use super::flags::{self, Flag, Id};
use super::probe::TypedProbe;
use super::refusal::{PlanRefusal, url_as_value_hint, wrong};
use super::request::{self, HeaderField};
use super::templates::{self, SentRequest};
use super::typed::Typed;
use super::values::AT_LEAST_ONE;
use super::{Warned, form, framing, hints, list, machines, probe, samples, until};
use crate::requests::Masked;

/// The default number of connections.
pub const CONNECTIONS: u64 = 10;
const THREADS: u64 = 2;
const DURATION: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(2);
const SEED: u64 = 1;

/// Decides the run; checks are in wrk's order. Reads the file of `--body` last; resolves no name.
pub fn decide(mut typed: Typed) -> Result<Warned<Plan>, PlanRefusal> {
    let dialect = typed.dialect;
    templates::check_templates_allowed(&typed)?;
    form::check_form_is_alone(&typed)?;
    let listed = list::read_list_file(&mut typed)?;
    if typed.words.is_empty()
        && let Some(file) = &listed
    {
        typed.words.push(list::first_list_url(file)?.into());
        typed.has_url_of_list = true;
    }
    let Some(url) = typed.words.first() else { return Err(no_url(dialect, typed.taken_url.as_ref())) };
    nothing_is_zero(&typed)?;
    let is_cut = |(_, value): &&HeaderField| value.is_empty() || secrets::is_scheme(value);
    let cut = typed.headers.iter().rfind(is_cut).map(|(name, value)| (&**name, &**value));
    if let Some(line) =
        hints::stray_word_hint(&typed.words, typed.script.is_some(), cut).filter(|_| !dialect.is_compat())
    {
        return Err(PlanRefusal::Misused(line));
    }
    let mut target = if typed.templates { templated(url, dialect) } else { target(url, dialect) }?;
    let load = load(&typed)?;
    let in_flight_max = typed.pace.max_inflight.map(|most| most as u32);
    let staged = typed.pace.stages_duration(typed.duration)?;
    let levels = typed.pace.levels();
    let schedule = std::mem::take(&mut typed.pace).into_schedule(dialect)?;
    typed.duration = typed.duration.or(staged);
    if typed.batch_latency && dialect != Dialect::Wrk2 {
        let line = "--batch_latency: needs --compat wrk2; result files (-o) have the latency of batches anyway";
        return Err(PlanRefusal::Misused(line.to_owned()));
    }
    gates_have_their_rate(&typed.gates, schedule.as_ref())?;
    let until = until::decide_stop_terms(&mut typed, staged, schedule.as_ref())?;
    let (timeout, give_up) = patience(&mut typed)?;
    if typed.once && typed.format == Format::Json {
        return Err(PlanRefusal::Cannot(
            "--format json: --once shows its request as text; leave one of the two out".to_owned(),
        ));
    }
    if typed.basic_auth.is_some() {
        target.userinfo = typed.basic_auth.take();
    }
    let form = form::encode_form_body(&mut typed)?;
    let requests_per_connection = requests_per_connection(&mut typed)?;
    let script = script(&mut typed);
    let seed = typed.seed.unwrap_or(SEED);
    let list = listed.map(|file| list::parse_request_list(&mut typed, file, &target, seed)).transpose()?;
    list::check_gates_have_names(&typed.gates, list.as_ref())?;
    let connect = std::mem::take(&mut typed.connect).into_connect_options(&target, &typed.io, &mut typed.warnings)?;
    let http = std::mem::take(&mut typed.http).into_http(&target, dialect, &mut typed.warnings)?;
    if let Some(time) = typed.delay_stats.filter(|_| http.may_be_http2() && typed.duration.is_none()) {
        let time = format_duration_exact(time);
        typed
            .warnings
            .push(format!("-D {time} is the warm-up, as in wrk-cmm; if you mean h2load's -D, write -d {time}"));
    }
    streams_have_their_requests(http.streams, requests_per_connection)?;
    let tls =
        std::mem::take(&mut typed.tls).into_tls_options(&target, &http, dialect, &typed.io, &mut typed.warnings)?;
    few_requests(&mut typed);
    let stop = stop(&typed);
    let output = output(&mut typed, &connect)?;
    let mut request = request(typed.method, typed.body.is_some() || form.is_some(), typed.headers, &target);
    let body = form.map(|form| FileContents::from_bytes("", form)).or(body(typed.body)?);
    let method = (list.is_none() && script.is_none()).then_some(request.method.as_str());
    let checks = typed.checks.into_checks(dialect, method, &mut typed.warnings)?;
    list::check_gates_have_checks(&output.gates, &checks, &http)?;
    typed.warnings.extend(request::method_case_warning(&request.method, "-X ").filter(|_| script.is_none()));
    // With a script the headers and the body that count are those of the script.
    if script.is_none() {
        // HTTP/2 has frames for all that.
        let is_http1 = http.versions == [HttpVersion::Http11];
        let contradiction = framing::framing_warning(&request, body.as_ref(), typed.once);
        typed.warnings.extend(contradiction.filter(|_| is_http1));
        typed.warnings.extend(
            request::http1_headers_warning(&request.headers).filter(|_| !is_http1 && requests_per_connection.is_none()),
        );
        typed.warnings.extend(request::http2_host_warning(&request).filter(|_| !is_http1));
    }
    let sent = SentRequest { request: &request, body: body.as_ref(), list: list.as_ref(), target: &target };
    let templates =
        if typed.templates { templates::read_template_files(&sent, seed, &mut typed.warnings)? } else { None };
    if !typed.templates && script.is_none() && !dialect.is_compat() {
        typed.warnings.extend(templates::unused_placeholder_warning(&sent));
    }
    if let Some(proxy) = &connect.proxy {
        proxy.address_to_proxy(&target, &mut request);
    }
    let mut plan = Plan {
        load: if typed.once { Load::new(1, 1) } else { load },
        in_flight_max: in_flight_max.filter(|_| !typed.once),
        first_connection: 0,
        schedule: schedule.filter(|_| !typed.once),
        levels: levels.filter(|_| !typed.once),
        requests_per_connection,
        stop,
        run_on: Duration::ZERO,
        until,
        warmup: typed.warmup.filter(|_| !typed.once).unwrap_or_default(),
        timeout,
        give_up,
        dialect,
        io: typed.io,
        phases: output.wants_phases(),
        once: typed.once,
        spin: typed.spin,
        seed,
        list,
        checks,
        templates,
        script,
        request,
        body,
        connect,
        tls,
        http,
        target,
        output,
    };
    plan.run_on = plan.needed_run_on(&plan.output.gates);
    plan.output.probing = probe::decide_probe(&plan, typed.probe)?.filter(|_| plan.output.machines.is_none());
    Ok((plan, typed.warnings))
}

/// A gate about a rate needs one.
fn gates_have_their_rate(gates: &[Condition], schedule: Option<&Schedule>) -> Result<(), PlanRefusal> {
    let term = gates.iter().find_map(Condition::needs_rate).filter(|_| schedule.is_none());
    let line = |text: &str| format!("--fail-if {text}: there is no rate; add -R, for instance -R 1000");
    term.map_or(Ok(()), |term| Err(PlanRefusal::Misused(line(&term.text))))
}

/// From this number of threads on, somebody may have meant seconds.
const SECONDS_MIN: u64 = 5;

fn no_url(dialect: Dialect, taken: Option<&(&'static Flag, OsString)>) -> PlanRefusal {
    match taken {
        _ if dialect.is_compat() => PlanRefusal::Usage,
        Some((flag, url)) => PlanRefusal::Misused(url_as_value_hint(&flag.spelling, url)),
        None => PlanRefusal::Misused("no URL; try onrush -c100 -d30s http://127.0.0.1:8080/".to_owned()),
    }
}

/// Refuses zeros, which wrk does before it reads the URL, and without a message; natively counts are never zero here.
fn nothing_is_zero(typed: &Typed) -> Result<(), PlanRefusal> {
    if typed.threads == Some(0) {
        return Err(zero(Id::Threads, AT_LEAST_ONE));
    }
    if typed.duration == Some(Duration::ZERO) {
        return Err(zero(Id::Duration, "must be longer than 0; try 10s"));
    }
    Ok(())
}

fn zero(id: Id, right: &str) -> PlanRefusal {
    wrong(flags::by_id(id), OsStr::new("0"), right)
}

fn target(url: &OsStr, dialect: Dialect) -> Result<Target, PlanRefusal> {
    if url.len() > URL_MAX {
        return Err(PlanRefusal::Misused(format!("the URL has {} bytes; at most {URL_MAX} are allowed", url.len())));
    }
    let target = match url.to_str() {
        Some(url) => Target::parse(url, dialect),
        None => {
            let typed = url.to_string_lossy().into_owned();
            Err(InvalidUrl { typed, reason: "not UTF-8; write its bytes as %XX".to_owned() })
        }
    };
    match target {
        Ok(target) => Ok(target),
        Err(invalid) if dialect.is_compat() => Err(PlanRefusal::Wrk(format!("invalid URL: {}", invalid.typed))),
        Err(InvalidUrl { typed, reason }) => {
            // The reason may quote a part of the password.
            let reason = if secrets::is_misspelt_user(&typed) { secrets::MISSPELT_USER.to_owned() } else { reason };
            let reason =
                if typed.contains("{{") { format!("{reason}; or add --templates to fill it in") } else { reason };
            let invalid = InvalidUrl { typed: secrets::misspelt_url(&typed), reason };
            Err(PlanRefusal::Misused(invalid.to_string()))
        }
    }
}

/// The target of a URL with placeholders in its path.
fn templated(url: &OsStr, dialect: Dialect) -> Result<Target, PlanRefusal> {
    let Some(typed) = url.to_str() else { return target(url, dialect) };
    let invalid =
        |reason: &str| PlanRefusal::Misused(format!("{:?} is not a URL: {reason}", secrets::redact_url(typed)));
    let masked = Masked::new(typed).map_err(invalid)?;
    let found = target(OsStr::new(masked.text()), dialect)?;
    let path = masked.path(&found.path).map_err(invalid)?.into_owned();
    Ok(Target { typed: typed.to_owned(), path, ..found })
}

/// Natively the default number of threads is at most the number of connections.
fn load(typed: &Typed) -> Result<Load, PlanRefusal> {
    let staged = typed.pace.most_connections();
    let both = |one: &str| {
        let line =
            format!("{one} and --stages c=: the stages set how many connections there are; leave one of the two out");
        Err(PlanRefusal::Misused(line))
    };
    if staged.is_some() && typed.connections.is_some() {
        return both("--connections");
    }
    if staged.is_some() && typed.pace.max_inflight.is_some() {
        return both("--max-inflight");
    }
    let connections = staged.map_or(typed.connections.unwrap_or(CONNECTIONS), u64::from);
    let compat = typed.dialect.is_compat();
    // Each thread sends its own part of the rate, so it needs a connection whenever there are any.
    let fewest = typed.pace.fewest_connections().map_or(connections, u64::from);
    let threads = typed.threads.unwrap_or(if compat { THREADS } else { THREADS.min(fewest) });
    if fewest < threads && fewest < connections {
        let most = format!(
            "at most {fewest}: with a rate every thread needs a connection, and --stages c= goes down to {fewest}"
        );
        return Err(wrong(flags::by_id(Id::Threads), OsStr::new(&threads.to_string()), most));
    }
    if connections < threads && compat {
        return Err(PlanRefusal::Wrk("number of connections must be >= threads".to_owned()));
    }
    if connections < threads {
        // The -t of ab is a duration, and that of hey a timeout.
        let may_be_time = threads >= SECONDS_MIN && typed.duration.is_none();
        let time = if may_be_time { "; if it is a time, write -d or --give-up" } else { "" };
        let most = format!("at most {connections}, the number of connections; every thread needs one{time}");
        return Err(wrong(flags::by_id(Id::Threads), OsStr::new(&threads.to_string()), most));
    }
    let max_inflight = typed.pace.max_inflight.unwrap_or(connections);
    if max_inflight < connections {
        let least = format!("the run starts with {connections} connections (-c); write {connections} or more");
        return Err(wrong(flags::by_id(Id::MaxInflight), OsStr::new(&max_inflight.to_string()), least));
    }
    // All of them fit 32 bits: see the limits.
    let [threads, connections, max_inflight] = [threads, connections, max_inflight].map(|count| count as u32);
    Ok(Load { threads, connections, max_inflight })
}

/// After what time a request counts as timed out, and after what time it is abandoned. In wrk zero makes every response
/// late, and no request is abandoned unless nothing else would end the run; natively zero switches either off. A
/// `--timeout` that was typed also ends the request of `--once`.
fn patience(typed: &mut Typed) -> Result<(Option<Duration>, Option<Duration>), PlanRefusal> {
    let timeout = typed.timeout.unwrap_or(TIMEOUT);
    // A single request that is late has nothing left to show but that.
    let only_timeout = typed.timeout.filter(|timeout| typed.once && !timeout.is_zero());
    if typed.dialect.is_compat() {
        return match typed.give_up {
            Some(_) => {
                let tool = typed.dialect.name();
                Err(PlanRefusal::Cannot(format!("--give-up: {tool} never abandons a request; leave it out")))
            }
            None if only_timeout.is_some() => Ok((Some(timeout), only_timeout)),
            // wrk has neither option, and such a run might never end if no request were ever abandoned.
            None if typed.once || (typed.requests.is_some() && typed.duration.is_none()) => {
                Ok((Some(timeout), Some(GIVE_UP_MIN)))
            }
            None => Ok((Some(timeout), None)),
        };
    }
    let give_up = typed.give_up.or(only_timeout).unwrap_or(GIVE_UP_MIN.max(timeout * GIVE_UP_TIMEOUTS));
    let unless_zero = |time: Duration| (!time.is_zero()).then_some(time);
    let (timeout, give_up) = (unless_zero(timeout), unless_zero(give_up));
    if let (Some(timeout), Some(give_up)) = (timeout, give_up)
        && give_up < timeout
        && !typed.once
    {
        let default = if typed.timeout.is_none() { " (the default)" } else { "" };
        let [give_up, timeout] = [give_up, timeout].map(format_duration_exact);
        typed.warnings.push(format!(
            "--give-up {give_up} is less than --timeout {timeout}{default}: a request is abandoned before it can time out"
        ));
    }
    Ok((timeout, give_up))
}

/// How many requests a connection may have. The last one carries `Connection: close`, so the user cannot set the
/// header.
fn requests_per_connection(typed: &mut Typed) -> Result<Option<PerConnection>, PlanRefusal> {
    let (option, most) = match (typed.disable_keepalive, typed.requests_per_connection) {
        (false, None) => return Ok(None),
        (true, Some(most @ 2..)) => {
            let line = format!(
                "--disable-keepalive and --requests-per-connection {most}: the first means one request; leave one of \
                 the two out"
            );
            return Err(PlanRefusal::Misused(line));
        }
        (true, _) => (Limiter::DisableKeepalive, 1),
        (false, Some(most)) => (Limiter::RequestsPerConnection, most),
    };
    if let Some((_, value)) = typed.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("Connection")) {
        let line = format!("{} and the header 'Connection: {value}': leave one of the two out", option.name());
        return Err(PlanRefusal::Misused(line));
    }
    // A script would write it into every request of a batch, where no request could follow the first. The engine puts
    // it into the last request of every connection, whether a script made it or not.
    if most == 1 && typed.script.is_none() {
        typed.headers.push(("Connection".to_owned(), "close".to_owned()));
    }
    Ok(Some(PerConnection { most, option }))
}

/// Refuses more requests in flight on a connection than it may have at all.
fn streams_have_their_requests(streams: Option<u32>, per_connection: Option<PerConnection>) -> Result<(), PlanRefusal> {
    match (streams, per_connection) {
        (Some(streams), Some(PerConnection { most, option })) if u64::from(streams) > most => {
            Err(PlanRefusal::Misused(format!(
                "--streams {streams}: a connection ends after {} ({}), so that no more are ever in flight on it; leave one of \
             the two out",
                format_count(most, "request"),
                option.name(),
            )))
        }
        _ => Ok(()),
    }
}

fn stop(typed: &Typed) -> Stop {
    match (typed.once, typed.duration, typed.requests) {
        (true, ..) => Stop { duration: None, requests: Some(1) },
        (false, None, None) => Stop { duration: Some(DURATION), requests: None },
        (false, duration, requests) => Stop { duration, requests },
    }
}

/// Warns about fewer requests than connections, if both were typed.
fn few_requests(typed: &mut Typed) {
    let (Some(requests), Some(connections)) = (typed.requests, typed.connections) else { return };
    if requests < connections && !typed.once && typed.warmup.is_none() {
        typed.warnings.push(format!(
            "-n {requests} is less than -c {connections}: at most {} a request",
            if requests == 1 { "1 connection sends".to_owned() } else { format!("{requests} connections send") }
        ));
    }
}

/// What is printed and written of the result.
fn output(typed: &mut Typed, connect: &ConnectOptions) -> Result<OutputOptions, PlanRefusal> {
    if typed.quiet && typed.version {
        let line = "--quiet and -v: the one prints less than usual, the other more; leave one of the two out";
        return Err(PlanRefusal::Misused(line.to_owned()));
    }
    let notes = typed.notes.unwrap_or(!typed.dialect.is_compat());
    let spectrum = match typed.dialect {
        // Natively a list that was asked for takes the place of the spectrum.
        Dialect::Native => typed.spectrum || typed.u_latency && typed.percents.is_none(),
        Dialect::Wrk | Dialect::WrkCmm | Dialect::Wrk2 => typed.latency || typed.u_latency || typed.spectrum,
    };
    let alone = [
        (typed.dialect.is_compat(), typed.dialect.name(), "is one program on one machine"),
        (typed.once, "--once", "sends one request"),
        (matches!(typed.probe, Some(TypedProbe::On { .. })), "--probe", "observes one machine"),
        (typed.sampling.is_typed(), "--sockets", "samples the sockets of one machine"),
        (typed.log.is_typed(), "--request-log", "logs the requests of one machine"),
        (typed.samples.is_some(), "--sample-responses", "keeps the responses of one machine"),
        (matches!(typed.io, Io::Sim(_)), "--io sim", "simulates one machine"),
    ];
    let connections = typed.connections.unwrap_or(CONNECTIONS);
    if typed.script.is_some() && typed.machines.is_typed() {
        let line = "with --machines, the script's done() is not called: each machine has a script of its own";
        typed.warnings.push(line.to_owned());
    }
    let machines = machines::decide_machines(std::mem::take(&mut typed.machines), connections, &alone)?;
    Ok(OutputOptions {
        machines,
        percentiles: typed.latency || typed.u_latency || typed.spectrum || typed.percents.is_some(),
        spectrum,
        u_latency: typed.u_latency,
        batch_latency: typed.batch_latency,
        percents: typed.percents.take(),
        breakout: typed.breakout,
        cmm_layout: typed.cmm_layout || typed.dialect == Dialect::WrkCmm,
        format: typed.format,
        outputs: std::mem::take(&mut typed.outputs),
        sockets: std::mem::take(&mut typed.sampling).into_socket_sampling(connect, &typed.io, typed.once)?,
        request_log: std::mem::take(&mut typed.log).into_request_log_options(typed.dialect)?,
        samples: samples::check_samples_dialect(typed.samples.take(), typed.dialect)?,
        gates: std::mem::take(&mut typed.gates),
        probing: None,
        is_strict: typed.strict,
        annotates: typed.annotate,
        command: String::new(),
        keeps_secrets: typed.keep_secrets,
        labels: std::mem::take(&mut typed.labels),
        position: None,
        verbose: typed.version,
        notes: notes && !typed.quiet,
        is_quiet: typed.quiet,
    })
}

/// The script, whose arguments are the words after the URL; without one they are ignored with a warning.
fn script(typed: &mut Typed) -> Option<LuaScript> {
    let args: Vec<String> = typed.words[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(path) = typed.script.take() else {
        if !args.is_empty() {
            let shown = secrets::redact_words(args.iter().map(String::as_str));
            let words: Vec<String> = shown.iter().map(|word| format!("{word:?}")).collect();
            typed.warnings.push(format!("extra arguments are ignored (only scripts use them): {}", words.join(" ")));
        }
        return None;
    };
    Some(LuaScript { file: FileContents::unread(path), args })
}

/// The request that is sent: with a body a `POST`, unless a method was typed.
fn request(method: Option<String>, has_body: bool, headers: Vec<HeaderField>, target: &Target) -> Request {
    let method = method.unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned());
    Request { method, target: target.path.clone(), headers: request::order_headers(headers, target) }
}

/// The body of `--body`, if it is not empty.
fn body(typed: Option<OsString>) -> Result<Option<FileContents>, PlanRefusal> {
    let Some(typed) = typed else { return Ok(None) };
    let bytes = request::read_body(&typed);
    let bytes =
        bytes.map_err(|reason| PlanRefusal::Cannot(format!("--body {:?}: {reason}", typed.to_string_lossy())))?;
    Ok((!bytes.is_empty()).then(|| FileContents::from_bytes("", bytes)))
}
