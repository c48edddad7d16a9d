//! The error message for text that is not one or more complete requests.
//!
//! The message starts with wrk's words, then names the wrong field or character (and its place in the table `wrk`, if
//! set there) and the remedy. Header values are not shown, because they may be secret.

use mlua::{Lua, Table, Value};
use onrush_plan::secrets;
use onrush_plan::target::percent_encoded;
use onrush_proto::http1::{self, Malformed, Outline};

/// Maximum number of characters of a string that are shown.
const SHOWN: usize = 80;

/// Finds the requests in a value that the script returned before the run.
///
/// # Errors
///
/// Fails if the return value of `function` is invalid; the message has only wrk's words if `is_compat`.
pub fn find_requests(bytes: &[u8], function: &str, is_compat: bool, lua: &Lua) -> Result<Vec<Outline>, String> {
    find_requests_with(bytes, function, is_compat, lua, if is_compat { http1::outline } else { http1::outline_any })
}

/// Finds the requests in a value that `request` returned during the run, which wrk does not parse.
///
/// # Errors
///
/// Fails like [`find_requests`].
pub fn find_later_requests(bytes: &[u8], is_compat: bool, lua: &Lua) -> Result<Vec<Outline>, String> {
    find_requests_with(
        bytes,
        "request()",
        is_compat,
        lua,
        if is_compat { http1::outline_unread } else { http1::outline_any },
    )
}

fn find_requests_with(
    bytes: &[u8],
    function: &str,
    is_compat: bool,
    lua: &Lua,
    read: fn(&[u8], &mut Vec<Outline>) -> Result<(), Malformed>,
) -> Result<Vec<Outline>, String> {
    let mut found = Vec::new();
    match read(bytes, &mut found) {
        Ok(()) => Ok(found),
        Err(error) if is_compat => Err(error.to_string()),
        Err(error) => {
            let start = found.last().map_or(0, |outline| outline.range.end);
            let wrk = lua.named_registry_value::<Table>("onrush.wrk").ok();
            let reason = RefusedRequest { bytes, start, error, wrk }.describe_fault();
            Err(format!(
                "{function} of the script did not return one or more complete requests: {error} (line and byte of the \
                 returned text): {reason}"
            ))
        }
    }
}

/// A returned string with a faulty request.
struct RefusedRequest<'a> {
    bytes: &'a [u8],
    /// Start of the faulty request.
    start: usize,
    error: Malformed,
    /// The script's table.
    wrk: Option<Table>,
}

impl RefusedRequest<'_> {
    /// The fault and its remedy.
    fn describe_fault(&self) -> String {
        let request = &self.bytes[self.start..];
        let line_endings = request.iter().take_while(|byte| b"\r\n".contains(byte)).count();
        let (request, at) = (&request[line_endings..], self.error.at.saturating_sub(self.start + line_endings));
        if request.is_empty() {
            return "the text is empty; return wrk.format()".to_owned();
        }
        let (head, body) = split_head_and_body(request);
        let lines: Vec<&[u8]> = head.split_inclusive(|&byte| byte == b'\n').collect();
        if at < lines[0].len() {
            // A path that contains a line break moves the version to the next line.
            let is_cut = lines.get(1).is_some_and(|line| line.starts_with(b" HTTP/"));
            return self.line_fault(if is_cut { &head[..lines[0].len() + lines[1].len()] } else { lines[0] }, at);
        }
        if self.error.is_incomplete() {
            let Some(body) = body else {
                return "the empty line after the headers is missing; end the head with \\r\\n\\r\\n".to_owned();
            };
            return self.body_fault(&lines[1..], Some(body.len()));
        }
        let mut end = lines[0].len();
        for line in &lines[1..] {
            end += line.len();
            if at < end {
                return self.field_fault(line, &lines[1..]);
            }
        }
        self.body_fault(&lines[1..], None)
    }

    /// Describes the fault of a request line, at byte `at`.
    fn line_fault(&self, line: &[u8], at: usize) -> String {
        if at == 0 && self.error.reason.contains("connection: close") {
            return "the previous request closes its connection ('Connection: close' or HTTP/1.0); leave that out, or \
                    return that request alone"
                .to_owned();
        }
        let line = String::from_utf8_lossy(line);
        let (method, rest) = line.split_once(' ').unwrap_or((line.trim_end(), ""));
        if at <= method.len() {
            return self.method_fault(method, &line);
        }
        let path = rest.rsplit_once(" HTTP/").map_or(rest.trim_end(), |(path, _)| path).trim_start_matches(' ');
        let name = if self.script_field("path").is_some_and(|set| set == path) { "wrk.path" } else { "the path" };
        match path.chars().find(|character| !character.is_ascii_graphic()) {
            _ if path.is_empty() => format!("{name} is empty; it must begin with /"),
            Some('\r' | '\n') => {
                format!("a line break in {name} {}; cut it off, as with path:gsub(\"%s+$\", \"\")", quote_start(path))
            }
            Some(' ') => format!("a blank in {name} {}; write %20", quote_start(path)),
            // Bytes that are not UTF-8 do not form a character that could be encoded.
            Some('\u{fffd}') => format!("a byte above 127 in {name} {}; write it as %XX", quote_start(path)),
            Some(strange) => format!("{strange:?} in {name} {}; write {}", quote_start(path), percent_encoded(strange)),
            None if !path.starts_with(['/', '*']) && !path.contains("://") => {
                format!("{name} {} does not begin with /", quote_start(path))
            }
            None => format!("{} follows the method; write a path and HTTP/1.1", quote_start(rest)),
        }
    }

    fn method_fault(&self, method: &str, line: &str) -> String {
        let name =
            if self.script_field("method").is_some_and(|set| set == method) { "wrk.method" } else { "the method" };
        let capitals = method.to_ascii_uppercase();
        if self.start > 0 {
            return format!(
                "{} follows a request; give a body a Content-Length, as wrk.format() does, and remove line breaks from \
                 header values",
                quote_start(line)
            );
        }
        if capitals != method
            && http1::outline(format!("{capitals} * HTTP/1.1\r\n\r\n").as_bytes(), &mut Vec::new()).is_ok()
        {
            return format!("{name} is {}, but methods are case-sensitive; write {capitals}", quote_start(method));
        }
        format!("{name} is {}; a method has letters, digits and -, and a path follows it", quote_start(method))
    }

    /// Describes the fault of a header line, possibly the empty line after the fields.
    fn field_fault(&self, line: &[u8], fields: &[&[u8]]) -> String {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let Some((name, value)) = line.split_once(':') else {
            return if line.trim_end().is_empty() {
                self.body_fault(fields, None)
            } else {
                "a header line has no colon; write 'Name: value', without line breaks in the value".to_owned()
            };
        };
        let place = self.header_place(name);
        let is_token = |character: char| character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character);
        match name.chars().find(|&character| !is_token(character)) {
            _ if name.is_empty() => "a header has no name; write 'Name: value'".to_owned(),
            Some(strange) => {
                format!("{strange:?} in the header name {}{place}; use only letters, digits and -", quote_start(name))
            }
            None if name.eq_ignore_ascii_case("content-length") => self.body_fault(fields, None),
            None => {
                let what = if value.contains('\r') { "a line break" } else { "a control character" };
                format!("{what} in the value of the header {name}{place}; leave it out")
            }
        }
    }

    /// Describes the fault of the fields that delimit the body, or of a body of this length.
    fn body_fault(&self, fields: &[&[u8]], body_bytes: Option<usize>) -> String {
        let mut lengths = Vec::new();
        let mut coding = None;
        for field in fields {
            let field = String::from_utf8_lossy(field);
            let Some((name, value)) = field.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                lengths.push((name.to_owned(), value.trim().to_owned()));
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                coding.get_or_insert(name.to_owned());
            }
        }
        // The field set by `wrk.format` is right, unless it is the only one.
        let slip = lengths.iter().find(|(name, _)| name != "Content-Length").or(lengths.first());
        let advice = "leave it out: wrk.format() sets Content-Length";
        match (slip, coding) {
            (Some((name, _)), None) if lengths.len() > 1 => {
                format!(
                    "{} headers give the length, one of them {name}{}; {advice}",
                    lengths.len(),
                    self.header_place(name)
                )
            }
            (Some(_), Some(coding)) => format!(
                "{coding}: chunked{} contradicts Content-Length, which wrk.format() sets; leave {coding} out",
                self.header_place(&coding)
            ),
            (Some((name, value)), None) => match body_bytes {
                Some(bytes) => {
                    format!(
                        "{name}{} is {}, but the body has {bytes} bytes; {advice}",
                        self.header_place(name),
                        quote_start(value)
                    )
                }
                None => {
                    format!(
                        "{name}{} is {}, which is not a length; {advice}",
                        self.header_place(name),
                        quote_start(value)
                    )
                }
            },
            (None, Some(coding)) => format!(
                "{coding}: chunked{} is set, but the body is not in chunks; leave it out: wrk.format() sets \
                 Content-Length",
                self.header_place(&coding)
            ),
            (None, None) => "wrk.format() makes complete requests".to_owned(),
        }
    }

    /// The script's table that contains a header, if known.
    fn header_place(&self, name: &str) -> &'static str {
        let headers = self.wrk.as_ref().and_then(|wrk| wrk.raw_get::<Table>("headers").ok());
        let is_set = headers.is_some_and(|headers| headers.raw_get::<Value>(name).is_ok_and(|value| !value.is_nil()));
        if is_set { " (in wrk.headers)" } else { "" }
    }

    /// A field of the table `wrk`, if it is text.
    fn script_field(&self, field: &str) -> Option<String> {
        let text = self.wrk.as_ref()?.raw_get::<mlua::LuaString>(field).ok()?;
        Some(text.to_string_lossy())
    }
}

/// The head, including the final empty line if present, and the body.
fn split_head_and_body(request: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut end = 0;
    for line in request.split_inclusive(|&byte| byte == b'\n') {
        if end > 0 && matches!(line, b"\n" | b"\r\n") {
            return (&request[..end + line.len()], Some(&request[end + line.len()..]));
        }
        end += line.len();
    }
    (request, None)
}

/// The start of a string, redacted and quoted.
fn quote_start(text: &str) -> String {
    let text: String = text.trim_end().chars().take(SHOWN).collect();
    format!("{:?}", secrets::redact_text(&text))
}
