//! Finds secrets in a Lua script: only those in string literals, because what follows `password =` may also be the name
//! of a variable, and comments are never sent.

use std::ops::Range;

use super::find::secrets;

/// The secrets in a script, in order. Takes linear time: the literals of a value are looked at once, however many secret
/// names are among them.
pub(super) fn secrets_of_script(text: &[u8]) -> Vec<Range<usize>> {
    let literals = literals(text);
    let (mut found, mut until) = (Vec::new(), 0);
    for place in secrets(text, false) {
        let rest = &literals[literals.partition_point(|literal| literal.end <= place.start)..];
        let around = rest.first().filter(|literal| literal.start <= place.start);
        if let Some(Literal { inner, .. }) = around.filter(|literal| literal.inner.start < place.start) {
            // A name and its value in one literal: `"user=ada&password=…"`.
            found.push(place.start..place.end.min(inner.end));
            continue;
        }
        let start = around.map_or(place.start, |literal| literal.start);
        if start < until {
            continue;
        }
        until = statement_end(text, rest, start);
        let of_value = rest.iter().take_while(|literal| literal.start < until);
        let values = of_value.filter(|literal| !is_argument(&text[start..literal.start]));
        found.extend(values.map(|literal| literal.inner.clone()));
    }
    found.retain(|value| !value.is_empty());
    found.sort_by_key(|value| value.start);
    found.dedup();
    found
}

/// Where the value that begins here ends: with its line, or with the braces that are open then.
fn statement_end(text: &[u8], literals: &[Literal], start: usize) -> usize {
    let (mut at, mut depth, mut literals) = (start, 0, literals.iter().peekable());
    while at < text.len() {
        if let Some(literal) = literals.next_if(|literal| literal.start <= at) {
            at = literal.end;
            continue;
        }
        match text[at] {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b'\n' if depth <= 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Functions whose arguments are patterns and names, and no secrets.
const TAKES_NAMES: [&[u8]; 6] = [b"match", b"gmatch", b"find", b"gsub", b"getenv", b"require"];

/// How far before a literal the function is searched for whose argument it is, in bytes.
const BEFORE_MAX: usize = 256;

/// Whether a literal after this code is a key in brackets, or an argument of such a function.
fn is_argument(code: &[u8]) -> bool {
    let code = &code[code.len().saturating_sub(BEFORE_MAX)..];
    let mut depth = 0;
    for (at, byte) in code.iter().enumerate().rev() {
        match byte {
            b')' | b']' => depth += 1,
            b'(' | b'[' if depth > 0 => depth -= 1,
            b'[' => return true,
            b'(' => {
                let before = code[..at].trim_ascii_end();
                return TAKES_NAMES.iter().any(|name| before.ends_with(name));
            }
            _ => {}
        }
    }
    false
}

/// A string literal, delimiters included.
struct Literal {
    start: usize,
    end: usize,
    /// The text between the delimiters, escaped as it is written.
    inner: Range<usize>,
}

/// The string literals of a script.
fn literals(text: &[u8]) -> Vec<Literal> {
    let (mut literals, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let is_comment = text[at..].starts_with(b"--");
        if let Some(long) = long_bracket(text, if is_comment { at + 2 } else { at }) {
            at = long.end;
            literals.extend((!is_comment).then_some(long));
        } else if is_comment {
            at = end_of_line(text, at);
        } else if b"\"'".contains(&text[at]) {
            let end = closing_quote(text, at);
            literals.push(Literal { start: at, end: end + 1, inner: at + 1..end });
            at = end + 1;
        } else {
            at += 1;
        }
    }
    literals
}

/// The text in long brackets that begins here: `[[ … ]]`, or with equals signs between each two.
fn long_bracket(text: &[u8], start: usize) -> Option<Literal> {
    let level = text.get(start..)?.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
    let inside = start + level + 2;
    (text.get(inside - 1) == Some(&b'[')).then_some(())?;
    let closing = [b"]", &vec![b'='; level][..], b"]"].concat();
    let end = memchr::memmem::find(&text[inside..], &closing).map_or(text.len(), |length| inside + length);
    Some(Literal { start, end: (end + closing.len()).min(text.len()), inner: inside..end })
}

/// Where the text in quotes that begins here ends: at the next quote of its kind that is not escaped, or with the line.
fn closing_quote(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' => return at,
            byte if *byte == text[start] => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn end_of_line(text: &[u8], start: usize) -> usize {
    memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_literals_of_a_script_hold_secrets() {
        for (script, expected) in [
            ("wrk.headers['X-Api-Key'] = 'in-a-script'", vec!["in-a-script"]),
            ("wrk.headers[\"X-Auth\"] = token\nlocal password = user", vec![]),
            ("-- password = \"in a comment\"\nlocal password = [==[long ]] one]==]", vec!["long ]] one"]),
            ("--[[ password = 'x' ]] token = 'a\\'b' .. token", vec!["a\\'b"]),
            ("wrk.body = \"user=ada&password=hunter2\"", vec!["hunter2"]),
            ("local token = os.getenv(\"API_TOKEN\")", vec![]),
            ("local token = os.getenv(\"T\") or \"t0ken\" -- \"none\"", vec!["t0ken"]),
            ("password = (\"hunter2\")\nother = (\"not this\")", vec!["hunter2"]),
            ("cookie = name .. \"=abc\" .. rest", vec!["=abc"]),
            ("headers['Authorization'] = 'Bearer ' .. 'abc'", vec!["Bearer ", "abc"]),
            (
                "tokens = {\n  'one', -- 'not this'\n  ['two'] = encode('three'),\n}\nlocal other = 'four'",
                vec!["one", "three"],
            ),
            ("local token = body:match('\"access_token\":\"(.-)\"') or 'none'", vec!["none"]),
            ("local password = --[[x]] 'S'", vec!["S"]),
            ("local t = a[b[1]] - c -- it's\nlocal password = 'after'", vec!["after"]),
            ("password = 'no end\nlocal a = 1", vec!["no end"]),
            ("password = [[no end", vec!["no end"]),
            ("password = '", vec![]),
            ("password = 'x\\", vec!["x\\"]),
        ] {
            let text = script.as_bytes();
            let found: Vec<String> =
                secrets_of_script(text).into_iter().map(|place| String::from_utf8_lossy(&text[place]).into()).collect();
            assert_eq!(found, expected, "{script}");
        }
    }

    #[test]
    fn a_script_of_any_shape_takes_linear_time() {
        for piece in
            ["token = ", "token={", "token='a',", "tokens = { 'a', ", "password = \"", "token = [[", "token = (", "'"]
        {
            let text = piece.repeat((1 << 20) / piece.len());
            let started = std::time::Instant::now();
            secrets_of_script(text.as_bytes());
            assert!(started.elapsed().as_secs() < 20, "{piece} took {:?}", started.elapsed());
        }
    }
}
