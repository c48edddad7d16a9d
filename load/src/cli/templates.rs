//! The placeholders of requests, and the files named in them (`--templates`).

use std::collections::BTreeMap;

use onrush_plan::limits::VALUES_MAX_MIB;
use onrush_plan::{FileContents, Request, RequestList, Target, Templates, secrets};
use onrush_proto::RequestParts;
use onrush_text::escape_controls;

use super::refusal::PlanRefusal;
use crate::input::InputFiles;
use crate::requests::{Entries, Template, Values, first_likely_placeholder, placeholders};

/// The parts of a plan that are sent as requests, without those sent to open connections.
pub(super) struct SentRequest<'a> {
    pub request: &'a Request,
    pub body: Option<&'a FileContents>,
    pub list: Option<&'a RequestList>,
    pub target: &'a Target,
}

/// Checks all placeholders and reads the files that they name. Warns if there are no placeholders.
pub(super) fn read_template_files(
    sent: &SentRequest,
    seed: u64,
    input: &InputFiles,
    warnings: &mut Vec<String>,
) -> Result<Option<Templates>, PlanRefusal> {
    let mut files: BTreeMap<String, FileContents> = BTreeMap::new();
    let mut are_there = false;
    sent.for_each_part(&mut |parts| {
        for placeholder in all_placeholders(parts)? {
            are_there = true;
            let Some(name) = placeholder.file().filter(|name| !files.contains_key(*name)) else { continue };
            let mut file = FileContents::unread(name);
            input.read(&mut file, "the values", VALUES_MAX_MIB).map_err(|unreadable| unreadable.to_string())?;
            files.insert(name.to_owned(), file);
        }
        Ok(())
    })?;
    if !are_there {
        warnings.push("--templates: no URL, header or body has a placeholder such as {{seq}}".to_owned());
    }
    let files: Vec<FileContents> = files.into_values().collect();
    let mut values =
        Values::from_files(&files).map_err(|reason| PlanRefusal::Cannot(format!("--templates: {reason}")))?;
    sent.for_each_part(&mut |parts| Template::from_parts(parts, &mut values, seed).map(drop))?;
    Ok(Some(Templates { files, seed, part: (0, 1) }))
}

/// A warning if something sent unchanged looks like a placeholder.
pub(super) fn unused_placeholder_warning(sent: &SentRequest) -> Option<String> {
    let headers = sent.request.headers.iter().map(|(_, value)| value.as_bytes());
    let body = sent.body.and_then(|body| body.contents().ok());
    let list = sent.list.and_then(|list| list.file.contents().ok());
    let texts = [sent.request.target.as_bytes()].into_iter().chain(headers).chain(body).chain(list);
    let placeholder = texts.into_iter().find_map(first_likely_placeholder)?;
    Some(format!("{} is sent as it is; --templates fills it in", escape_controls(&placeholder)))
}

impl SentRequest<'_> {
    /// Passes each part that may contain placeholders to `each`. The part is named in its error.
    fn for_each_part(&self, each: &mut dyn FnMut(&RequestParts) -> Result<(), String>) -> Result<(), PlanRefusal> {
        let cannot = |place: String| move |reason: String| PlanRefusal::Cannot(format!("{place}: {reason}"));
        if self.list.is_none() {
            let target = RequestParts { target: self.request.target.clone(), ..RequestParts::default() };
            each(&target).map_err(cannot("the URL".to_owned()))?;
        }
        for header in &self.request.headers {
            let place = || format!("--header {:?}", secrets::misspelt_header(&format!("{}: {}", header.0, header.1)));
            let parts = RequestParts { headers: vec![header.clone()], ..RequestParts::default() };
            each(&parts).map_err(|reason| cannot(place())(reason))?;
        }
        if let Some(body) = self.body {
            let body = body.shared().map_err(|unreadable| PlanRefusal::Cannot(unreadable.to_string()))?;
            each(&RequestParts { body, ..RequestParts::default() }).map_err(cannot("the body".to_owned()))?;
        }
        let Some(list) = self.list else { return Ok(()) };
        let in_list = |reason: String| PlanRefusal::Cannot(format!("--urls {:?}: {reason}", list.file.name));
        let entries = Entries::from_list(list, self.target, true).map_err(|error| in_list(error.to_string()))?;
        let usual =
            RequestParts { method: self.request.method.clone(), target: "/".to_owned(), ..RequestParts::default() };
        for index in entries.possibly_templated() {
            let wrong = |reason| in_list(format!("the request in line {}: {reason}", entries.line(index)));
            each(&entries.request(index, &usual)).map_err(wrong)?;
        }
        Ok(())
    }
}

/// All placeholders in these parts.
fn all_placeholders(parts: &RequestParts) -> Result<Vec<crate::requests::Placeholder>, String> {
    let headers = parts.headers.iter().map(|(_, value)| value.as_bytes());
    let texts = [parts.target.as_bytes(), &parts.body].into_iter().chain(headers);
    let each: Vec<_> = texts.map(placeholders).collect::<Result<_, _>>()?;
    Ok(each.concat())
}
