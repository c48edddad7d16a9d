//! Turns the draft into a plan: finds contradictions, fills in defaults, and applies the rules in which wrk and onrush
//! differ.
//!
//! It is the border to [`onrush_plan`], where nothing depends on how an option was spelled. Each part of the plan is a
//! function of the draft, which does not change; refusals are in wrk's order.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use onrush_plan::limits::URL_MAX;
use onrush_plan::target::InvalidUrl;
use onrush_plan::{Dialect, FileContents, Load, Plan, Target, secrets};

use super::draft::PlanDraft;
use super::refusal::{PlanRefusal, url_as_value_hint};
use super::templates::{self, SentRequest};
use super::{Warned, form, gates, http, list, probe};
use crate::input::InputFiles;
use crate::requests::Masked;

/// Decides the run. Reads the file of `--body` last; resolves no name.
pub fn decide(mut draft: PlanDraft, files: &InputFiles) -> Result<Warned<Plan>, PlanRefusal> {
    let mut warnings = std::mem::take(&mut draft.warnings);
    draft.check_exclusions()?;
    let listed = list::read_list_file(&draft, files)?;
    let target = find_target(&draft, listed.as_ref())?;
    draft.check_needs()?;
    let load = draft.to_load()?;
    draft.load.duration = draft.pace.stages_duration(draft.load.duration)?.or(draft.load.duration);
    let schedule = draft.pace.to_schedule(draft.dialect)?;
    let until = draft.to_stop_terms(schedule.as_ref())?;
    let (timeout, give_up) = draft.to_timeouts(&mut warnings);
    let form = form::encode_form(&draft, files)?;
    let requests_per_connection = draft.to_requests_per_connection()?;
    let script = draft.to_script(&mut warnings);
    let list = listed.map(|file| list::parse_request_list(&draft, file, &target, files, &mut warnings)).transpose()?;
    let connect = draft.to_connect_options(&target, &mut warnings)?;
    let http = draft.to_http(&target, &mut warnings)?;
    http::check_streams(http.streams, requests_per_connection)?;
    warnings.extend(draft.delay_stats_warning(&http));
    let tls = draft.to_tls_options(&target, &http, &mut warnings)?;
    warnings.extend(draft.few_requests_warning());
    let output = draft.to_output_options(&connect, &mut warnings)?;
    let checks = draft.request.checks.clone();
    gates::check_gates(&output.gates, schedule.as_ref(), list.as_ref(), &checks, &http)?;
    let closes = requests_per_connection.is_some_and(|limit| limit.most == 1);
    let mut request = draft.to_request(&target, form.as_ref(), closes);
    let body = match form {
        Some((body, _)) => Some(FileContents::from_bytes("", body)),
        None => draft.read_typed_body(files)?,
    };
    let sent = SentRequest { request: &request, body: body.as_ref(), list: list.as_ref(), target: &target };
    warnings.extend(draft.sent_warnings(&sent, &http));
    let seed = draft.internals.seed;
    let has_templates = draft.has("templates");
    let templates =
        if has_templates { templates::read_template_files(&sent, seed, files, &mut warnings)? } else { None };
    if let Some(proxy) = &connect.proxy {
        proxy.address_to_proxy(&target, &mut request);
    }
    // A single request has no amount and no rate.
    let is_load = !draft.is_once();
    let mut plan = Plan {
        load: if is_load { load } else { Load::new(1, 1) },
        in_flight_max: draft.pace.max_inflight.filter(|_| is_load).map(|most| most as u32),
        first_connection: 0,
        schedule: schedule.filter(|_| is_load),
        levels: draft.pace.to_levels().filter(|_| is_load),
        requests_per_connection,
        stop: draft.to_stop(),
        run_on: Duration::ZERO,
        until,
        warmup: draft.load.warmup.filter(|_| is_load).unwrap_or_default(),
        timeout,
        give_up,
        dialect: draft.dialect,
        io: draft.internals.io.clone(),
        phases: output.wants_phases(),
        once: draft.is_once(),
        spin: draft.internals.spin,
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
    plan.output.probing = probe::decide_probe(&plan, draft.load.probe)?.filter(|_| plan.output.machines.is_none());
    Ok((plan, warnings))
}

impl PlanDraft {
    /// Refuses the first option that the imitated tool does not have, or that another option excludes.
    fn check_exclusions(&self) -> Result<(), PlanRefusal> {
        for flag in self.typed() {
            let name = flag.name();
            if let Some(reason) = flag.native_only.filter(|_| self.dialect.is_compat()) {
                let tool = self.dialect.name();
                return Err(PlanRefusal::Cannot(format!("--{name}: {tool} {reason}; leave it out")));
            }
            if let Some((other, reason)) = flag.excludes.iter().find(|(other, _)| self.has(other)) {
                return Err(PlanRefusal::both(format_args!("--{name}"), format_args!("--{other}"), reason));
            }
        }
        Ok(())
    }

    /// Refuses the first option of which a condition is not met.
    fn check_needs(&self) -> Result<(), PlanRefusal> {
        for flag in self.typed() {
            if let Some((_, message)) = flag.needs.iter().find(|(is_met, _)| !is_met(self)) {
                return Err(PlanRefusal::Misused(format!("--{}: {message}", flag.name())));
            }
        }
        Ok(())
    }
}

/// The target: that of the URL, or without one that of the list.
fn find_target(draft: &PlanDraft, listed: Option<&FileContents>) -> Result<Target, PlanRefusal> {
    let url = match (draft.words.first(), listed) {
        (Some(url), _) => url.clone(),
        (None, Some(file)) => OsString::from(list::first_list_url(file)?),
        (None, None) => return Err(no_url(draft)),
    };
    draft.load.check_nothing_is_zero()?;
    if let Some(line) = draft.stray_word_hint().filter(|_| !draft.dialect.is_compat()) {
        return Err(PlanRefusal::Misused(line));
    }
    let parse = if draft.has("templates") { parse_templated_url } else { parse_url };
    let mut target = parse(&url, draft.dialect)?;
    target.userinfo = draft.request.basic_auth.clone().or(target.userinfo);
    Ok(target)
}

fn no_url(draft: &PlanDraft) -> PlanRefusal {
    match &draft.taken_url {
        _ if draft.dialect.is_compat() => PlanRefusal::Usage,
        Some((flag, url)) => PlanRefusal::Misused(url_as_value_hint(&flag.described.spelling, url)),
        None => PlanRefusal::Misused("no URL; try onrush -c100 -d30s http://127.0.0.1:8080/".to_owned()),
    }
}

fn parse_url(url: &OsStr, dialect: Dialect) -> Result<Target, PlanRefusal> {
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

/// Parses a URL with placeholders in its path.
fn parse_templated_url(url: &OsStr, dialect: Dialect) -> Result<Target, PlanRefusal> {
    let Some(typed) = url.to_str() else { return parse_url(url, dialect) };
    let invalid =
        |reason: &str| PlanRefusal::Misused(format!("{:?} is not a URL: {reason}", secrets::redact_url(typed)));
    let masked = Masked::new(typed).map_err(invalid)?;
    let found = parse_url(OsStr::new(masked.text()), dialect)?;
    let path = masked.path(&found.path).map_err(invalid)?.into_owned();
    Ok(Target { typed: typed.to_owned(), path, ..found })
}
