//! The list of requests from `--urls`.

use std::ffi::OsStr;
use std::path::Path;

use onrush_plan::limits::{BODY_MAX_MIB, LIST_MAX_MIB, NAMES_MAX};
use onrush_plan::list::{ListOrder, RequestList};
use onrush_plan::{FileContents, Target, secrets};
use onrush_text::escape_controls;

use super::draft::PlanDraft;
use super::refusal::PlanRefusal;
use super::request;
use crate::input::InputFiles;
use crate::requests::Entries;

/// Reads the file of `--urls`; `None` if the option is not given.
pub(super) fn read_list_file(draft: &PlanDraft, files: &InputFiles) -> Result<Option<FileContents>, PlanRefusal> {
    let Some(path) = &draft.request.urls else { return Ok(None) };
    let is_input = path.as_os_str() == "-";
    if is_input && draft.request.body.as_deref() == Some(OsStr::new("@-")) {
        let line = "--urls - and --body @-: standard input is read once; write one of the two to a file";
        return Err(PlanRefusal::Misused(line.to_owned()));
    }
    let mut file = FileContents::unread(if is_input { Path::new("/dev/stdin") } else { path });
    files.read(&mut file, "--urls", LIST_MAX_MIB).map_err(|unreadable| PlanRefusal::Cannot(unreadable.to_string()))?;
    Ok(Some(file))
}

/// The first URL of the list, which is the target if the command line names none.
pub(super) fn first_list_url(file: &FileContents) -> Result<&str, PlanRefusal> {
    let url = file.contents().ok().and_then(Entries::first_url);
    url.ok_or_else(|| {
        PlanRefusal::Misused(format!(
            "--urls {:?}: no URL names a host; give the target, for instance http://127.0.0.1:8080",
            file.name
        ))
    })
}

/// Parses the list of requests to the target.
pub(super) fn parse_request_list(
    draft: &PlanDraft,
    file: FileContents,
    target: &Target,
    files: &InputFiles,
    warnings: &mut Vec<String>,
) -> Result<RequestList, PlanRefusal> {
    let cannot = |reason: String| PlanRefusal::Cannot(format!("--urls {:?}: {reason}", file.name));
    let text = file.shared().map_err(|unreadable| PlanRefusal::Cannot(unreadable.to_string()))?;
    let entries = Entries::read(text, target, draft.has("templates")).map_err(|bad| cannot(bad.to_string()))?;
    if target.path != "/" && !draft.words.is_empty() {
        let path = escape_controls(&secrets::redact_url(&target.path));
        warnings.push(format!("the path {path} of the URL is not sent: the list has whole paths"));
    }
    warnings.extend(entries.method().and_then(|method| request::method_case_warning(method, "")));
    warnings.extend(entries.first_framing_field().map(|name| {
        format!("{name} in the list is sent as it is, even where the body has another length or form; leave it out")
    }));
    let order = draft.request.urls_order.unwrap_or_default();
    if !entries.weights().is_empty() && order != ListOrder::Weighted {
        warnings.push("the weights of the list count only with --urls-order weighted".to_owned());
    }
    let mut bodies = Vec::new();
    let mut left = BODY_MAX_MIB << 20;
    for name in entries.bodies() {
        let mut body = FileContents::unread(name);
        files.read(&mut body, "the body", BODY_MAX_MIB).map_err(|unreadable| cannot(unreadable.to_string()))?;
        let length = body.contents().map_or(0, <[u8]>::len) as u64;
        left = left.checked_sub(length).ok_or_else(|| {
            cannot(format!("its bodies are longer than {BODY_MAX_MIB} MiB together; send shorter ones"))
        })?;
        bodies.push(body);
    }
    let (names, further) = entries.names();
    if further > 0 {
        let all = NAMES_MAX + further;
        warnings.push(format!(
            "the list has {all} names: the first {NAMES_MAX} have results of their own, the others together"
        ));
    }
    let (length, is_safe, names) = (entries.len() as u64, entries.is_safe(), names.to_vec());
    let list = RequestList {
        file,
        bodies,
        order,
        seed: draft.internals.seed,
        part: (0, 1),
        length,
        is_safe,
        names,
        firsts: entries.first_of_each_name(),
    };
    let writes = !draft.output.outputs.is_empty() || draft.has("request-log") || draft.has("sample-responses");
    if draft.is_once() && list.names.len() > 1 && writes {
        warnings.push("--once shows a request of every name, but the files have only that of the first".to_owned());
    }
    // Starts at the first named request, because `--once` shows one request with each name.
    Ok(if draft.is_once() && !list.names.is_empty() { list.from_first_name() } else { list })
}
