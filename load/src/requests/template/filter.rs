//! Encoding of a value before it is sent, by its position.

/// Encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueFilter {
    /// No encoding.
    Raw,
    /// Escapes the value for the inside of a JSON string, without the quotation marks.
    Json,
    /// Percent-encodes all but the unreserved characters of RFC 3986.
    Url,
}

/// Part of a request that contains a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestPart {
    /// The path and the query.
    Target,
    /// The value of a header field.
    Header,
    /// The body.
    Body,
}

impl ValueFilter {
    /// All filters that a placeholder can name.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Json, Self::Url];

    /// The name by which a placeholder asks for the filter.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Json => "json",
            Self::Url => "url",
        }
    }

    /// Encodes a value.
    pub fn apply(self, value: &str) -> String {
        match self {
            Self::Raw => value.to_owned(),
            Self::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            Self::Url => percent_encoded(value.as_bytes()),
        }
    }
}

impl RequestPart {
    /// The filter that applies to a placeholder in this part if it names none.
    pub fn usual(self) -> ValueFilter {
        match self {
            Self::Target => ValueFilter::Url,
            Self::Header | Self::Body => ValueFilter::Raw,
        }
    }

    /// Why an encoded value cannot be sent in this part, with the remedy; `None` if it can.
    pub fn reason_not_sendable(self, value: &str) -> Option<&'static str> {
        match self {
            Self::Target if value.bytes().any(|byte| !byte.is_ascii_graphic()) => {
                Some("a blank, control or non-ASCII character cannot be in a path; leave out | raw, or add | url")
            }
            Self::Header if value.contains(['\r', '\n', '\0']) => {
                Some("a line break or NUL cannot be in a header; remove it from the file, or add | url")
            }
            Self::Header if value.contains(|character: char| character.is_ascii_control() && character != '\t') => {
                Some("a control character cannot be in a header; remove it from the file, or add | url")
            }
            _ => None,
        }
    }
}

/// Percent-encodes all bytes except the unreserved characters of RFC 3986.
pub fn percent_encoded(text: &[u8]) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = String::with_capacity(text.len());
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.extend(['%', HEX[usize::from(byte >> 4)].into(), HEX[usize::from(byte & 15)].into()]);
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_for_their_position() {
        let value = "a \"b\"\\/é\n&~";
        assert_eq!(ValueFilter::Raw.apply(value), value);
        assert_eq!(ValueFilter::Json.apply(value), "a \\\"b\\\"\\\\/é\\n&~");
        assert_eq!(ValueFilter::Url.apply(value), "a%20%22b%22%5C%2F%C3%A9%0A%26~");
    }

    #[test]
    fn values_that_break_heads_are_refused() {
        for (value, target, header) in [
            ("a/b?c", true, true),
            ("a b", false, true),
            ("é", false, true),
            ("a\nb", false, false),
            ("\0", false, false),
        ] {
            assert_eq!(
                (
                    RequestPart::Target.reason_not_sendable(value).is_none(),
                    RequestPart::Header.reason_not_sendable(value).is_none()
                ),
                (target, header)
            );
            assert_eq!(RequestPart::Body.reason_not_sendable(value), None);
        }
    }
}
