//! A list of requests: the lines of a file, and the files named there.
//!
//! The text is kept as is, and a request is parsed when sent: a million requests take the size of the file and four
//! bytes each. The whole list is checked before the first request is sent.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use onrush_plan::limits::{NAMES_MAX, URL_MAX};
use onrush_plan::list::{First, RequestList};
use onrush_plan::target::{InvalidUrl, Scheme, percent_encoded};
use onrush_plan::{Dialect, Target, secrets};
use onrush_proto::RequestParts;
use thiserror::Error;

use super::line::{EntryHead, ListLine, shown};
use super::template::Masked;

/// Byte order mark, with which some editors start a file.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A fault in a list of requests.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadLine {
    /// A fault in one line.
    #[error("line {number}: {reason}")]
    Line {
        /// Number of the line, from 1.
        number: usize,
        /// Description of the fault.
        reason: String,
    },
    /// A fault that concerns the whole list.
    #[error("{0}")]
    All(&'static str),
}

// Name numbers are stored as bytes.
const _: () = assert!(NAMES_MAX <= u8::MAX as usize);

/// The requests from a list.
#[derive(Debug)]
pub struct Entries {
    text: Arc<[u8]>,
    /// Offset of each request in the text.
    places: Vec<u32>,
    /// Cumulative weight of each request; empty if all weights are equal.
    weights: Arc<[u64]>,
    /// Names in the order of the list, at most [`NAMES_MAX`].
    names: Vec<String>,
    /// Name number of each request, from 1; empty without names.
    numbers: Vec<u8>,
    further_names: usize,
    target: Target,
    /// Everything before the path in a URL of the target.
    origin: String,
    /// True if paths may have placeholders.
    has_templates: bool,
    /// Contents of the files that hold bodies, by name.
    bodies: BTreeMap<String, Arc<[u8]>>,
    is_safe: bool,
    /// The first method with a lower-case letter.
    method: Option<String>,
    /// The first header field about the length or the encoding of a body.
    framed: Option<String>,
}

impl Entries {
    /// Reads and checks a list of requests to this target. `has_templates`: paths may have placeholders. Does not read
    /// the files with bodies: all bodies are empty.
    ///
    /// # Errors
    ///
    /// Names the first faulty line, and the fault.
    pub fn read(text: Arc<[u8]>, target: &Target, has_templates: bool) -> Result<Self, BadLine> {
        let mut entries = Self {
            text: Arc::clone(&text),
            places: Vec::new(),
            weights: Arc::default(),
            names: Vec::new(),
            numbers: Vec::new(),
            further_names: 0,
            origin: origin_of(target),
            has_templates,
            target: target.clone(),
            bodies: BTreeMap::new(),
            is_safe: true,
            method: None,
            framed: None,
        };
        let text = check_utf8(&text)?;
        let (mut weights, mut is_open, mut has_body) = (Vec::new(), false, false);
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (number, at, line) in numbered_lines(text) {
            let wrong = |reason| BadLine::Line { number: number + 1, reason };
            match ListLine::read(line).map_err(wrong)? {
                ListLine::Blank => is_open = false,
                ListLine::Comment => {}
                ListLine::Request(head) => {
                    entries.request_path(head.url).map_err(wrong)?;
                    (is_open, has_body) = (true, false);
                    let method = head.method.filter(|method| method.bytes().any(|byte| byte.is_ascii_lowercase()));
                    entries.method = entries.method.take().or_else(|| method.map(str::to_owned));
                    entries.is_safe &= head.method.is_none_or(|method| ["GET", "HEAD"].contains(&method));
                    let before = entries.places.len() as u64;
                    if weights.is_empty() && head.weight > 1 {
                        weights.extend(1..=before);
                    }
                    if !weights.is_empty() || head.weight > 1 {
                        weights.push(weights.last().copied().unwrap_or(before) + u64::from(head.weight));
                    }
                    entries.places.push(at as u32);
                    if let Some(name) = head.name {
                        let next = numbers.len() + 1;
                        let number = *numbers.entry(name).or_insert(next);
                        // Earlier requests have no name.
                        entries.numbers.resize(entries.places.len(), 0);
                        if let (Some(last), true) = (entries.numbers.last_mut(), number <= NAMES_MAX) {
                            *last = number as u8;
                        }
                    }
                }
                ListLine::Field(..) | ListLine::Body(_) if !is_open => {
                    return Err(wrong(format!(
                        "{} belongs to no request; remove the blank line that ends the request above",
                        shown(line)
                    )));
                }
                ListLine::Field(name, _) => {
                    let frames = ["content-length", "transfer-encoding"].contains(&&*name.to_ascii_lowercase());
                    entries.framed = entries.framed.take().or_else(|| frames.then(|| name.to_owned()));
                }
                ListLine::Body(_) if has_body => {
                    return Err(wrong(
                        "the request already has a body; leave one of the \
                                                                   two out"
                            .to_owned(),
                    ));
                }
                ListLine::Body(name) => {
                    has_body = true;
                    entries.is_safe = false;
                    entries.bodies.entry(name.to_owned()).or_default();
                }
            }
        }
        if entries.places.is_empty() {
            return Err(BadLine::All(
                "the list is empty; write one request on each line, such as /path or GET http://host/path",
            ));
        }
        entries.weights = weights.into();
        entries.further_names = numbers.len().saturating_sub(NAMES_MAX);
        let mut names: Vec<(&str, usize)> = numbers.into_iter().filter(|(_, number)| *number <= NAMES_MAX).collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        entries.names = names.into_iter().map(|(name, _)| name.to_owned()).collect();
        Ok(entries)
    }

    /// Reads a plan's list, with the contents of its body files.
    ///
    /// # Errors
    ///
    /// Fails like [`Entries::read`], and if the plan lacks the contents of a file.
    pub fn from_list(list: &RequestList, target: &Target, has_templates: bool) -> anyhow::Result<Self> {
        let mut entries = Self::read(list.file.shared()?, target, has_templates)?;
        for body in &list.bodies {
            entries.bodies.insert(body.name.clone(), body.shared()?);
        }
        Ok(entries)
    }

    /// The first URL in a list that is complete, not only a path; `None` also if the list is not UTF-8.
    pub fn first_url(text: &[u8]) -> Option<&str> {
        let text = check_utf8(text).ok()?;
        numbered_lines(text).find_map(|(_, _, line)| match ListLine::read(line) {
            Ok(ListLine::Request(EntryHead { url, .. })) if !url.starts_with('/') => Some(url),
            _ => None,
        })
    }

    /// Number of requests; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Cumulative weight of each request; empty if all weights are equal.
    pub fn weights(&self) -> Arc<[u64]> {
        Arc::clone(&self.weights)
    }

    /// The names with separate results, in the order of the list, and the number of further names, which have none.
    pub fn names(&self) -> (&[String], usize) {
        (&self.names, self.further_names)
    }

    /// The first request with each of the names that have separate results.
    pub fn first_of_each_name(&self) -> Vec<First> {
        let mut firsts = Vec::new();
        for (index, number) in self.numbers.iter().enumerate() {
            // Names are numbered in the order of the list.
            if usize::from(*number) == firsts.len() + 1 {
                firsts.push(First { number: index as u64, text: (self.offset(index), self.offset(index + 1)) });
            }
        }
        firsts
    }

    /// Number of a request's name, from 1; zero without a name, or if the name has no separate results.
    pub fn name(&self, index: usize) -> u16 {
        self.numbers.get(index).copied().unwrap_or_default().into()
    }

    /// Names of the files that hold bodies, sorted.
    pub fn bodies(&self) -> impl Iterator<Item = &str> {
        self.bodies.keys().map(String::as_str)
    }

    /// The first method with a lower-case letter, which is probably a mistake.
    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Name of the first header field about the length or the encoding of a body.
    pub fn first_framing_field(&self) -> Option<&str> {
        self.framed.as_deref()
    }

    /// True if no request has a body and every method that is given is `GET` or `HEAD`.
    pub fn is_safe(&self) -> bool {
        self.is_safe
    }

    /// The request at this index: the parts that it gives, and those in `usual` for the rest. A body without a method
    /// makes a GET a POST.
    pub fn request(&self, index: usize, usual: &RequestParts) -> RequestParts {
        let mut parts = usual.clone();
        let mut lines = numbered_lines(self.text(index)).filter_map(|(_, _, line)| ListLine::read(line).ok());
        let Some(ListLine::Request(EntryHead { method, url, .. })) = lines.next() else { return parts };
        let path = self.request_path(url).unwrap_or_default();
        // A proxy gets the whole URL.
        parts.target = if usual.target.starts_with('/') { path.into_owned() } else { format!("{}{path}", self.origin) };
        let mut own: Vec<(String, String)> = Vec::new();
        for line in lines {
            match line {
                ListLine::Comment => {}
                ListLine::Field(name, value) => own.push((name.to_owned(), value.to_owned())),
                ListLine::Body(name) => {
                    parts.body = self.bodies.get(name).cloned().unwrap_or_default();
                    if parts.method == "GET" {
                        "POST".clone_into(&mut parts.method);
                    }
                }
                ListLine::Blank | ListLine::Request(_) => break,
            }
        }
        if let Some(method) = method {
            method.clone_into(&mut parts.method);
        }
        parts.headers.retain(|(usual, _)| !own.iter().any(|(name, _)| name.eq_ignore_ascii_case(usual)));
        parts.headers.append(&mut own);
        parts
    }

    /// Indices of the requests that may contain placeholders.
    pub fn possibly_templated(&self) -> impl Iterator<Item = usize> {
        // The body may be in a file.
        let have_bodies = self.bodies.values().any(|body| memchr::memmem::find(body, b"{{").is_some());
        (0..self.len()).filter(move |index| {
            let text = self.text(*index);
            text.contains("{{") || have_bodies && text.contains('@')
        })
    }

    /// Line number of a request, from 1.
    pub fn line(&self, index: usize) -> usize {
        let before = self.offset(index) as usize;
        1 + self.text[..before].iter().filter(|byte| **byte == b'\n').count()
    }

    /// Text of a request, including the gap before the next one.
    fn text(&self, index: usize) -> &str {
        let range = self.offset(index) as usize..self.offset(index + 1) as usize;
        std::str::from_utf8(&self.text[range]).unwrap_or_default()
    }

    /// Offset of a request; after the last one, the end of the text.
    fn offset(&self, index: usize) -> u64 {
        self.places.get(index).map_or(self.text.len() as u64, |place| (*place).into())
    }

    /// Path and query of a URL or path; a URL must have the target's scheme, host and port.
    fn request_path<'a>(&self, url: &'a str) -> Result<Cow<'a, str>, String> {
        if !self.has_templates || !url.contains("{{") {
            return path_on_target(url, &self.origin, &self.target);
        }
        if url.len() > URL_MAX {
            return Err(format!("the URL has {} bytes; at most {URL_MAX} are allowed", url.len()));
        }
        let masked = Masked::new(url)?;
        let path = path_on_target(masked.text(), &self.origin, &self.target)?;
        Ok(masked.path(&path)?)
    }
}

/// Checks that a list is UTF-8.
fn check_utf8(bytes: &[u8]) -> Result<&str, BadLine> {
    std::str::from_utf8(bytes).map_err(|error| {
        let number = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        BadLine::Line { number, reason: "not UTF-8; write other bytes as %XX".to_owned() }
    })
}

/// The lines, with their numbers and offsets.
fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    text.split('\n').enumerate().map(move |(number, line)| {
        let place = at;
        at += line.len() + 1;
        (number, place, line.strip_prefix(BYTE_ORDER_MARK).filter(|_| place == 0).unwrap_or(line))
    })
}

/// Everything before the path in a URL of the target.
fn origin_of(target: &Target) -> String {
    format!("{}://{}", target.scheme.name(), target.authority())
}

/// Path and query of a URL or path; a URL must have the target's scheme, host and port.
fn path_on_target<'a>(url: &'a str, origin: &str, target: &Target) -> Result<Cow<'a, str>, String> {
    let url = url.split('#').next().unwrap_or_default();
    let rest = url.strip_prefix(origin).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    let path = match rest {
        _ if url.starts_with('/') => Cow::from(url),
        Some(rest) if rest.starts_with('/') => Cow::from(rest),
        Some(rest) => Cow::from(format!("/{rest}")),
        // The URL may spell the target's host differently, for example with the default port.
        None => Cow::from(path_on_same_host(url, origin, target)?),
    };
    if path.len() > URL_MAX {
        return Err(format!("the path has {} bytes; at most {URL_MAX} are allowed", path.len()));
    }
    if let Some(strange) = path.chars().find(|character| !character.is_ascii_graphic()) {
        let fill = if path.contains("{{") { "add --templates to fill it in, or " } else { "" };
        return Err(format!("{strange:?} in a path; {fill}write {}", percent_encoded(strange)));
    }
    Ok(path)
}

/// Path of a URL with the scheme, the host and the port of the target.
fn path_on_same_host(url: &str, origin: &str, target: &Target) -> Result<String, String> {
    let other = Target::parse(url, Dialect::Native).map_err(|InvalidUrl { typed, reason }| {
        // The reason may quote a part of the password.
        let reason = if secrets::is_misspelt_user(&typed) { secrets::MISSPELT_USER.to_owned() } else { reason };
        InvalidUrl { typed: secrets::misspelt_url(&typed), reason }.to_string()
    })?;
    let port = |target: &Target| target.port.unwrap_or(if target.scheme == Scheme::Https { 443 } else { 80 });
    let is_same =
        other.scheme == target.scheme && other.host.eq_ignore_ascii_case(&target.host) && port(&other) == port(target);
    if !is_same {
        let url = shown(&secrets::redact_url(url));
        return Err(format!("{url} is not on {origin}, the target of the run; measure each target in its own run"));
    }
    if other.userinfo.is_some() && other.userinfo != target.userinfo {
        return Err("the user differs from the target's; write an Authorization header below the request".to_owned());
    }
    Ok(other.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Result<Entries, BadLine> {
        let target = Target::parse("http://127.0.0.1:80/base", Dialect::Native).unwrap();
        Entries::read(text.as_bytes().into(), &target, true)
    }

    fn usual(target: &str) -> RequestParts {
        let headers =
            [("Host", "127.0.0.1:80"), ("A", "usual")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        RequestParts {
            method: "GET".to_owned(),
            target: target.to_owned(),
            headers: headers.into(),
            ..RequestParts::default()
        }
    }

    #[test]
    fn list_entries_differ_from_the_base_request() {
        let list = "/a\nPUT http://127.0.0.1:80/b#c\na: own\na: twice\n#\nB: c\n\n\nhttp://127.0.0.1?q\n@body\nHTTP://127.0.0.1/e";
        let mut entries = entries(list).unwrap();
        *entries.bodies.get_mut("body").unwrap() = b"text"[..].into();
        let seen: Vec<String> = (0..entries.len())
            .map(|index| {
                let RequestParts { method, target, headers, body } = entries.request(index, &usual("/base"));
                let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{method} {target} {} {}", headers.join(","), String::from_utf8_lossy(&body))
            })
            .collect();
        let expected = [
            "GET /a Host=127.0.0.1:80,A=usual ",
            "PUT /b Host=127.0.0.1:80,a=own,a=twice,B=c ",
            "POST /?q Host=127.0.0.1:80,A=usual text",
            "GET /e Host=127.0.0.1:80,A=usual ",
        ];
        assert_eq!(seen, expected);
        assert!(!entries.is_safe() && entries.weights().is_empty() && entries.first_of_each_name().is_empty());
        let proxied = entries.request(0, &usual("http://127.0.0.1:80/base"));
        assert_eq!(proxied.target, "http://127.0.0.1:80/a");
    }

    #[test]
    fn first_requests_of_names_are_known() {
        let list = "/a\n/b name=x\n/c name=x\n/d\n/e name=y\n/f name=x\n";
        let numbers: Vec<u64> = entries(list).unwrap().first_of_each_name().iter().map(|first| first.number).collect();
        assert_eq!(numbers, [1, 4]);
    }

    #[test]
    fn paths_may_contain_placeholders() {
        for (line, expected) in [
            ("/a/{{rand 1 9}}?b={{csv \"a #.csv\" c}}#d weight=2", Ok("/a/{{rand 1 9}}?b={{csv \"a #.csv\" c}}")),
            ("http://127.0.0.1:80?{{seq}}", Ok("/?{{seq}}")),
            ("http://127.0.0.1/{{seq}}", Ok("/{{seq}}")),
            ("/{{seq}}/é", Err("in a path")),
            ("/{{seq", Err("without }}")),
            ("http://{{seq}}/", Err("is not on http")),
        ] {
            let read = entries(line).map(|entries| entries.request(0, &usual("/")).target);
            match expected {
                Ok(target) => assert_eq!(read.as_deref(), Ok(target)),
                Err(words) => assert!(read.is_err_and(|error| error.to_string().contains(words)), "{line}"),
            }
        }
    }

    #[test]
    fn weights_are_summed_up_once_one_differs() {
        let weights = |list: &str| entries(list).unwrap().weights().to_vec();
        assert!(weights("/a\n/b\n").is_empty());
        assert_eq!(weights("/a\n/b weight=3\n/c\n"), [1, 4, 5]);
        assert_eq!(weights("/a weight=2"), [2]);
    }

    #[test]
    fn urls_lead_to_the_target() {
        for (url, is_good) in [
            ("http://127.0.0.1/", true),
            ("http://127.0.0.1:80", true),
            ("http://127.0.0.1:8080/", false),
            ("http://127.0.0.11/", false),
            ("http://127.0.0.1.example/", false),
            ("https://127.0.0.1/", false),
            ("http://user:secret@127.0.0.1/", false),
            ("http://elsewhere/?password=secret", false),
        ] {
            let read = entries(url);
            assert_eq!(read.is_ok(), is_good, "{url}: {read:?}");
            assert!(read.err().is_none_or(|error| !error.to_string().contains("secret")), "{url}");
        }
    }
}
