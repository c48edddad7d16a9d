//! A request with placeholders to fill in.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onrush_proto::RequestParts;
use onrush_proto::http1::{Outline, ResponseKind, Wire, needs_length};

use super::filter::RequestPart;
use super::placeholder::{Placeholder, PlaceholderKind};
use super::tokens::{TemplateToken, Tokens};
use super::values::{ValueColumn, Values};
use crate::requests::mix_seed;

/// A request with placeholders to fill in.
#[derive(Debug)]
pub struct Template {
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// True if the head ends with the length of the body.
    has_length: bool,
    response: ResponseKind,
}

/// A part of a request.
#[derive(Debug)]
enum Piece {
    Text(Vec<u8>),
    Seq,
    /// A random number from `from` on, with this many possible values.
    Rand {
        from: i64,
        count: u128,
        seed: u64,
    },
    Uuid {
        seeds: [u64; 2],
    },
    Now,
    Value(Arc<ValueColumn>),
}

/// Buffers for filling in requests, which are reused to save allocations.
#[derive(Debug, Default)]
pub struct TemplateBuffers {
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Template {
    /// Compiles a request with placeholders. Random values depend on the seed and the number of the request.
    ///
    /// # Errors
    ///
    /// The fault in a placeholder, or in its values.
    pub fn from_parts(parts: &RequestParts, values: &mut Values, seed: u64) -> Result<Self, String> {
        let mut pieces = TemplatePieces { pieces: Vec::new(), values, seed };
        pieces.text(parts.method.as_bytes());
        pieces.text(b" ");
        pieces.add(parts.target.as_bytes(), RequestPart::Target)?;
        pieces.text(b" HTTP/1.1\r\n");
        for (name, value) in &parts.headers {
            pieces.text(name.as_bytes());
            pieces.text(b": ");
            pieces.add(value.as_bytes(), RequestPart::Header)?;
            pieces.text(b"\r\n");
        }
        let has_length = needs_length(parts);
        if has_length {
            pieces.text(b"Content-Length: ");
        }
        let head = std::mem::take(&mut pieces.pieces);
        pieces.add(&parts.body, RequestPart::Body)?;
        Ok(Self { head, body: pieces.pieces, has_length, response: ResponseKind::of_method(&parts.method) })
    }

    /// True if the request has nothing to fill in, so that every request is the same.
    pub fn is_constant(&self) -> bool {
        self.head.iter().chain(&self.body).all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// Number of bytes of the fixed pieces, without any values.
    pub fn text_bytes(&self) -> usize {
        let length = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
        self.head.iter().chain(&self.body).map(length).sum()
    }

    /// Fills in the request with number `k` in the run, from 0. The same `k` gives the same request, except for the
    /// time.
    pub fn fill(&self, k: u64, TemplateBuffers { request, body }: &mut TemplateBuffers) -> Wire {
        request.clear();
        self.head.iter().for_each(|piece| piece.write(k, request));
        let body_start = if self.has_length {
            body.clear();
            self.body.iter().for_each(|piece| piece.write(k, body));
            push_number(body.len(), request);
            request.extend_from_slice(b"\r\n\r\n");
            request.extend_from_slice(body);
            request.len() - body.len()
        } else {
            request.extend_from_slice(b"\r\n");
            let start = request.len();
            self.body.iter().for_each(|piece| piece.write(k, request));
            start
        };
        let (range, body_length) = (0..request.len(), request.len() - body_start);
        Wire::from_outline(&request[..].into(), Outline { range, body_length, response: self.response })
    }
}

impl Piece {
    fn write(&self, k: u64, bytes: &mut Vec<u8>) {
        match self {
            Self::Text(text) => bytes.extend_from_slice(text),
            Self::Seq => push_number(k + 1, bytes),
            Self::Rand { from, count, seed } => {
                let drawn = (u128::from(mix_seed(*seed, k)) * count) >> 64;
                push_number((i128::from(*from) + drawn as i128) as i64, bytes);
            }
            Self::Uuid { seeds } => push_uuid(seeds.map(|seed| mix_seed(seed, k)), bytes),
            Self::Now => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                push_number(now.as_millis() as u64, bytes);
            }
            Self::Value(column) => bytes.extend_from_slice(column.value(k)),
        }
    }
}

/// Compiled pieces of a request so far.
struct TemplatePieces<'a> {
    pieces: Vec<Piece>,
    values: &'a mut Values,
    /// Seed of the next random value.
    seed: u64,
}

impl TemplatePieces<'_> {
    /// Adds bytes verbatim.
    fn text(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Text(before)) => before.extend_from_slice(text),
            _ => self.pieces.push(Piece::Text(text.to_vec())),
        }
    }

    /// Adds bytes with placeholders.
    fn add(&mut self, text: &[u8], place: RequestPart) -> Result<(), String> {
        for token in Tokens::new(text) {
            match token? {
                TemplateToken::Text(text) => self.text(text),
                TemplateToken::Placeholder(text) => {
                    let piece = self.compile_placeholder(Placeholder::read(text)?, place)?;
                    self.pieces.push(piece);
                }
            }
        }
        Ok(())
    }

    fn compile_placeholder(
        &mut self,
        Placeholder { what, filters }: Placeholder,
        place: RequestPart,
    ) -> Result<Piece, String> {
        Ok(match what {
            PlaceholderKind::Seq => Piece::Seq,
            PlaceholderKind::Now => Piece::Now,
            PlaceholderKind::Rand(from, to) => {
                Piece::Rand { from, count: (i128::from(to) - i128::from(from) + 1) as u128, seed: self.next_seed() }
            }
            PlaceholderKind::Uuid => Piece::Uuid { seeds: [self.next_seed(), self.next_seed()] },
            PlaceholderKind::Value(source) => Piece::Value(self.values.column(&source, &filters, place)?),
        })
    }

    /// A separate seed for each position: no two have equal values.
    fn next_seed(&mut self) -> u64 {
        self.seed = mix_seed(self.seed, 1);
        self.seed
    }
}

/// Appends a number in decimal.
fn push_number(number: impl itoa::Integer, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends a UUID of version 4 (RFC 9562) made of random bits.
fn push_uuid([high, low]: [u64; 2], bytes: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    for (index, byte) in high.to_be_bytes().into_iter().chain(low.to_be_bytes()).enumerate() {
        if [4, 6, 8, 10].contains(&index) {
            bytes.push(b'-');
        }
        bytes.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onrush_plan::FileContents;

    use super::*;

    fn parts(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> RequestParts {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        RequestParts { method: method.into(), target: target.into(), headers, body: body.as_bytes().into() }
    }

    fn files() -> Values {
        let users = "id,name\n7,\"Ada, \"\"A\"\"\"\n8,Bob & Co\n";
        let files = [("users.csv", users), ("words.txt", "a b\nc/d\ne\n"), ("breaks.csv", "v\nok\n\"a\nb\"\n")];
        Values::from_files(&files.map(|(name, text)| FileContents::from_bytes(name, text.into()))).unwrap()
    }

    fn filled(parts: &RequestParts, k: u64) -> String {
        let wire = Template::from_parts(parts, &mut files(), 1).unwrap().fill(k, &mut TemplateBuffers::default());
        String::from_utf8(wire.bytes().to_vec()).unwrap()
    }

    #[test]
    fn templates_without_placeholders_change_nothing() {
        for parts in [
            parts("GET", "/a?b={c}}", &[("Host", "h"), ("A", "")], ""),
            parts("POST", "/", &[("Host", "h")], ""),
            parts("PUT", "/", &[("Host", "h")], "{\"a\":{\"b\":1}}"),
            parts("PUT", "/", &[("content-length", "9")], "abc"),
        ] {
            let template = Template::from_parts(&parts, &mut Values::default(), 1).unwrap();
            assert!(template.is_constant());
            let (wire, plain) = (template.fill(3, &mut TemplateBuffers::default()), Wire::from_parts(&parts));
            assert_eq!((wire.bytes(), wire.body()), (plain.bytes(), plain.body()));
        }
    }

    #[test]
    fn escapes_follow_position_and_rows_stay_together() {
        let parts = parts(
            "POST",
            "/{{csv users.csv id}}/{{line words.txt}}?n={{csv users.csv name}}",
            &[("X", "{{csv users.csv name}} {{{{seq}}")],
            "{\"n\":\"{{csv users.csv name | json}}\",\"s\":{{seq}}}",
        );
        let expected = "POST /7/a%20b?n=Ada%2C%20%22A%22 HTTP/1.1\r\nX: Ada, \"A\" {{seq}}\r\nContent-Length: 24\r\n\r\n\
                        {\"n\":\"Ada, \\\"A\\\"\",\"s\":1}";
        assert_eq!(filled(&parts, 0), expected);
        assert!(filled(&parts, 4).starts_with("POST /7/c%2Fd?n=Ada"), "rows begin again at the end of their file");
        assert!(filled(&parts, 9).ends_with("Content-Length: 23\r\n\r\n{\"n\":\"Bob & Co\",\"s\":10}"));
    }

    #[test]
    fn random_values_follow_seed_and_request_number() {
        let parts = parts("GET", "/{{rand -2 2}}/{{rand 1 6}}/{{uuid}}", &[], "");
        let path = |k| filled(&parts, k).split(' ').nth(1).unwrap().to_owned();
        assert_eq!(path(5), path(5));
        let (mut seen, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for k in 0..1_000 {
            let path = path(k);
            let mut words = path.split('/').skip(1);
            let numbers: [i64; 2] = [(); 2].map(|()| words.next().unwrap().parse().unwrap());
            seen.insert(numbers);
            let uuid = words.next().unwrap().to_owned();
            assert!(uuid.len() == 36 && &uuid[14..15] == "4" && "89ab".contains(&uuid[19..20]), "{uuid}");
            uuids.insert(uuid);
        }
        assert_eq!((seen.len(), uuids.len()), (5 * 6, 1_000), "places are drawn independently");
        assert!(seen.iter().all(|[a, b]| (-2..=2).contains(a) && (1..=6).contains(b)));
        let all = self::parts("GET", &format!("/{{{{rand {} {}}}}}", i64::MIN, i64::MAX), &[], "");
        assert_ne!(filled(&all, 1), filled(&all, 2));
    }

    #[test]
    fn header_breaking_values_are_refused_by_line() {
        let refused = |target: &str, headers: &[(&str, &str)]| {
            Template::from_parts(&parts("GET", target, headers, ""), &mut files(), 1).map(drop)
        };
        let error = refused("/", &[("X", "{{csv breaks.csv v}}")]).unwrap_err();
        assert!(error.starts_with("\"breaks.csv\": line 3: a line break or NUL cannot be in a header"), "{error}");
        assert_eq!(refused("/{{csv breaks.csv v}}", &[("X", "{{csv breaks.csv v | json}}")]), Ok(()));
        let error = refused("/{{line words.txt | raw}}", &[]).unwrap_err();
        assert!(error.starts_with("\"words.txt\": line 1: a blank, control or non-ASCII character"), "{error}");
        assert!(refused("/{{line other.txt}}", &[]).is_err());
    }
}
