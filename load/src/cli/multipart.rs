//! multipart/form-data (RFC 7578), with parts as described to and encoded by curl's `--form`. Crates for this format
//! belong to HTTP clients; calling one takes more lines than this file.

use onrush_plan::file_contents::sha256_hex;

use super::request::read_contents;
use crate::input::InputFiles;
use crate::requests::escaped;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FormPart {
    name: String,
    file_name: Option<String>,
    content_type: Option<String>,
    content: Vec<u8>,
}

/// curl's content types by file-name extension. Other files are sent as plain bytes.
const TYPES: [(&str, &str); 10] = [
    (".gif", "image/gif"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain"),
    (".htm", "text/html"),
    (".html", "text/html"),
    (".pdf", "application/pdf"),
    (".xml", "application/xml"),
];

impl FormPart {
    /// Parses `NAME=CONTENT`, `NAME=@FILE` (which also sends the file's name) or `NAME=<FILE`, each optionally followed
    /// by `;type=TYPE` and `;filename=NAME`. Files are read at once and sent unchanged; everything else may contain
    /// placeholders.
    pub fn read(field: &[u8], has_templates: bool, files: &InputFiles) -> Result<Self, String> {
        let text = std::str::from_utf8(field).map_err(|_| "not UTF-8; put the content into a file".to_owned())?;
        let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=CONTENT")?;
        let (kind, value) = match value.as_bytes() {
            [kind @ (b'@' | b'<'), ..] => (*kind, &value[1..]),
            _ => (0, value),
        };
        let (value, mut rest) = split_word(value)?;
        let mut part = Self { name: name.to_owned(), ..Self::default() };
        while let Some(parameter) = rest.strip_prefix(';') {
            rest = if let Some(file_name) = parameter.strip_prefix("filename=") {
                let (file_name, rest) = split_word(file_name)?;
                part.file_name = Some(file_name);
                rest
            } else if let Some(content_type) = parameter.strip_prefix("type=") {
                // A type may have parameters of its own.
                let (content_type, rest) =
                    content_type.split_at(content_type.find(";filename=").unwrap_or(content_type.len()));
                part.content_type = Some(content_type.to_owned());
                rest
            } else {
                let content = "write the content in quotation marks if the ; is a part of it";
                return Err(format!("{rest:?}: only ;type= and ;filename= may follow; {content}"));
            };
        }
        if !rest.is_empty() {
            return Err(format!(
                "{rest:?} after the quotation marks; write \\\" for one that is a part of the content"
            ));
        }
        if kind == b'@' {
            let base = value.rsplit('/').next().unwrap_or_default().to_owned();
            let known = TYPES.iter().find(|(ending, _)| base.to_ascii_lowercase().ends_with(ending));
            let usual = known.map_or("application/octet-stream", |(_, name)| name);
            part.content_type.get_or_insert_with(|| usual.to_owned());
            part.file_name.get_or_insert(base);
        }
        part.content = match kind {
            0 => value.into_bytes(),
            _ if has_templates => escaped(&read_contents(value.as_bytes(), files)?),
            _ => read_contents(value.as_bytes(), files)?,
        };
        Ok(part)
    }

    /// The encoded part, from its headers to the end of its content.
    fn encoded(&self) -> Vec<u8> {
        let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quote_name(&self.name));
        if let Some(name) = &self.file_name {
            head += &format!("; filename=\"{}\"", quote_name(name));
        }
        if let Some(content_type) = &self.content_type {
            head += &format!("\r\nContent-Type: {content_type}");
        }
        [head.as_bytes(), b"\r\n\r\n", &self.content, b"\r\n"].concat()
    }
}

/// Splits off a text that ends at a semicolon, or is in quotation marks, inside which a backslash escapes.
fn split_word(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        return Ok((word.to_owned(), rest));
    };
    let mut word = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next().ok_or("a quotation mark is not closed")? {
            '"' => return Ok((word, characters.as_str())),
            '\\' if characters.as_str().starts_with(['"', '\\']) => word.extend(characters.next()),
            character => word.push(character),
        }
    }
}

/// The body of a form, and its `Content-Type`. The boundary is derived from the parts, so that no part contains it and
/// it is the same in every run.
pub(super) fn encode_multipart(parts: &[FormPart]) -> (Vec<u8>, String) {
    let parts: Vec<Vec<u8>> = parts.iter().map(FormPart::encoded).collect();
    let boundary = format!("------------------------{}", &sha256_hex(&parts.concat())[..22]);
    let delimiter = format!("--{boundary}\r\n");
    let mut body: Vec<u8> = parts.iter().flat_map(|part| [delimiter.as_bytes(), part]).flatten().copied().collect();
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (body, format!("multipart/form-data; boundary={boundary}"))
}

/// Quotes a name as the HTML standard requires.
fn quote_name(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(field: &str) -> Result<String, String> {
        FormPart::read(field.as_bytes(), false, &InputFiles::default())
            .map(|part| String::from_utf8(part.encoded()).unwrap())
    }

    #[test]
    fn form_parts_match_curl() {
        const NAMED: &str = "Content-Disposition: form-data; name=\"n\"";
        for (field, expected) in [
            ("n=a=b", "\r\n\r\na=b\r\n"),
            ("n=", "\r\n\r\n\r\n"),
            ("n=x;type=text/css", "\r\nContent-Type: text/css\r\n\r\nx\r\n"),
            ("n=\"a;b\\\"c\"", "\r\n\r\na;b\"c\r\n"),
            ("n=x;filename=a b.png", "; filename=\"a b.png\"\r\n\r\nx\r\n"),
            (
                "n=<Cargo.toml;type=a/b;charset=c;filename=q\"z",
                "; filename=\"q%22z\"\r\nContent-Type: a/b;charset=c\r\n\r\n[package",
            ),
            (
                "n=@/proc/sys/kernel/ostype",
                "; filename=\"ostype\"\r\nContent-Type: application/octet-stream\r\n\r\nLinux\n\r\n",
            ),
            (
                "n=@../examples/body.json;filename=\"x;y\"",
                "; filename=\"x;y\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            ),
            ("n=@../examples/urls.txt", "; filename=\"urls.txt\"\r\nContent-Type: text/plain\r\n\r\n# A path"),
        ] {
            let encoded = encoded(field).unwrap();
            assert!(encoded.starts_with(&format!("{NAMED}{expected}")), "{field}: {encoded}");
        }
    }

    #[test]
    fn bad_form_parts_are_explained() {
        for (field, words) in [
            ("n", "write NAME=CONTENT"),
            ("=x", "write NAME=CONTENT"),
            ("n=@/nonexistent", "No such file or directory"),
            ("n=@", "no file after the @ or <"),
            ("n=a;b", "\";b\": only ;type= and ;filename= may follow"),
            ("n=\"a", "a quotation mark is not closed"),
            ("n=\"a\"b", "\"b\" after the quotation marks"),
        ] {
            let encoded = encoded(field);
            assert!(encoded.as_ref().is_err_and(|error| error.contains(words)), "{field}: {encoded:?}");
        }
    }

    #[test]
    fn form_parts_are_separated_by_a_boundary() {
        let part = |content: &str| FormPart { name: "n".to_owned(), content: content.into(), ..FormPart::default() };
        let (body, content_type) = encode_multipart(&[part("a"), part("b")]);
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let one =
            |content: &str| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n{content}\r\n");
        assert_eq!(String::from_utf8(body).unwrap(), format!("{}{}--{boundary}--\r\n", one("a"), one("b")));
        assert_ne!(encode_multipart(&[part("a")]).1, content_type);
    }
}
