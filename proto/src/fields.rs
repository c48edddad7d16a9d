//! The fields of a response head.

/// The fields of a head, in the order in which they came; names are as the server wrote them.
#[derive(Clone, Debug, Default)]
pub struct Fields<'a> {
    /// Lines `name: value` with their line ends.
    lines: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Those in these lines; a line without a colon, such as the status line, is none.
    pub(crate) fn in_lines(lines: &'a [u8]) -> Self {
        Self { lines }
    }

    /// The value of the first field with this name, in whatever case.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.clone().find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.lines.is_empty() {
            let end = memchr::memchr(b'\n', self.lines).map_or(self.lines.len(), |lf| lf + 1);
            let (line, rest) = self.lines.split_at(end);
            self.lines = rest;
            if let Some(colon) = memchr::memchr(b':', line) {
                return Some((&line[..colon], line[colon + 1..].trim_ascii()));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_names_and_values_in_order() {
        let head = b"HTTP/1.1 302 Found\r\nA: b\r\nLocation:http://there:80/\nEmpty:\r\n\r\n";
        let fields: Vec<(&[u8], &[u8])> = Fields::in_lines(head).collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"A", b"b"), (b"Location", b"http://there:80/"), (b"Empty", b"")];
        assert_eq!(fields, expected);
        assert_eq!(Fields::in_lines(head).value(b"location"), Some(&b"http://there:80/"[..]));
        assert_eq!(Fields::in_lines(head).value(b"http/1.1"), None);
    }
}
