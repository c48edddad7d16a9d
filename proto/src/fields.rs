//! The fields of a head or of trailers.

use std::slice;

/// Names and values, in the order received. An iterator.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    source: FieldSource<'a>,
}

#[derive(Clone, Debug)]
enum FieldSource<'a> {
    /// HTTP/1: lines `name: value`; other lines are skipped.
    Lines(&'a [u8]),
    /// HTTP/2: all bytes, and for each field the ends of its name and value in them.
    List { bytes: &'a [u8], ends: slice::Iter<'a, (u32, u32)>, start: usize },
}

impl<'a> Fields<'a> {
    pub(crate) fn from_lines(lines: &'a [u8]) -> Self {
        Self { source: FieldSource::Lines(lines) }
    }

    /// The fields of a list, consecutive in `bytes`.
    pub(crate) fn from_list(bytes: &'a [u8], ends: &'a [(u32, u32)]) -> Self {
        Self { source: FieldSource::List { bytes, ends: ends.iter(), start: 0 } }
    }

    /// The value of the first field with this name, whose case does not matter.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.clone().find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }
}

impl Default for Fields<'_> {
    fn default() -> Self {
        Self::from_lines(b"")
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            FieldSource::Lines(lines) => loop {
                let length = memchr::memchr(b'\n', lines).map_or(lines.len(), |lf| lf + 1);
                let (line, rest) = lines.split_at(length);
                if line.is_empty() {
                    return None;
                }
                *lines = rest;
                if let Some(colon) = memchr::memchr(b':', line) {
                    return Some((&line[..colon], line[colon + 1..].trim_ascii()));
                }
            },
            FieldSource::List { bytes, ends, start } => {
                let &(name_end, value_end) = ends.next()?;
                let name = &bytes[*start..name_end as usize];
                *start = value_end as usize;
                Some((name, &bytes[name_end as usize..*start]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_alike_from_lines_and_lists() {
        let expected: [(&[u8], &[u8]); 2] = [(b"a", b"b: c"), (b"de", b"")];
        assert_eq!(Fields::from_lines(b"HTTP/1.1 200 OK\r\na: b: c\r\nde:\n\r\n").collect::<Vec<_>>(), expected);
        assert_eq!(Fields::from_list(b"ab: cde", &[(1, 5), (7, 7)]).collect::<Vec<_>>(), expected);
        assert_eq!(Fields::default().next(), None);
        assert_eq!(Fields::from_lines(b"A: b\nLocation:/there\r\n").value(b"location"), Some(&b"/there"[..]));
    }
}
