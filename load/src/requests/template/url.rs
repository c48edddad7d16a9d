//! Hides the placeholders of a URL from the URL grammar, which allows neither blanks nor braces.

use std::borrow::Cow;

use super::tokens::{TemplateToken, Tokens};

/// A URL in which each placeholder is replaced with letters of the same length.
#[derive(Debug)]
pub struct Masked<'a> {
    /// The URL as typed.
    url: &'a str,
    /// The URL with letters.
    text: String,
}

impl<'a> Masked<'a> {
    /// Replaces the placeholders of a URL.
    ///
    /// # Errors
    ///
    /// Fails if a placeholder is not closed.
    pub fn new(url: &'a str) -> Result<Self, &'static str> {
        let mut text = String::with_capacity(url.len());
        let mut at = 0;
        for token in Tokens::new(url.as_bytes()) {
            match token? {
                // Escaped braces are longer than the braces.
                TemplateToken::Text(part) if url.as_bytes()[at..].starts_with(b"{{{{") && part == b"{{" => {
                    text.push_str("{{{{");
                    at += 4;
                }
                TemplateToken::Text(part) => {
                    text.push_str(&url[at..at + part.len()]);
                    at += part.len();
                }
                TemplateToken::Placeholder(part) => {
                    text.extend(std::iter::repeat_n('x', part.len() + 4));
                    at += part.len() + 4;
                }
            }
        }
        Ok(Self { url, text })
    }

    /// The URL with letters instead of placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Puts the placeholders back into a path of [`Self::text`].
    ///
    /// # Errors
    ///
    /// Fails if a placeholder precedes the path.
    pub fn path(&self, path: &str) -> Result<Cow<'a, str>, &'static str> {
        let end = self.text.find('#').unwrap_or(self.text.len());
        // A slash may have been added to a URL without one.
        let own = path.len() - usize::from(!self.text[..end].ends_with(path));
        let start = end - own;
        if self.url[..start] != self.text[..start] {
            return Err(
                "a placeholder before the path; a run has one target, and only the path and the query can differ",
            );
        }
        let own = &self.url[start..end];
        Ok(if own.starts_with('/') { own.into() } else { format!("/{own}").into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_come_back_in_the_path() {
        for (url, masked, path, expected) in [
            ("http://h/{{seq}}", "http://h/xxxxxxx", "/xxxxxxx", Ok("/{{seq}}")),
            ("http://h/{{rand 1 2}}?a#b", "http://h/xxxxxxxxxxxx?a#b", "/xxxxxxxxxxxx?a", Ok("/{{rand 1 2}}?a")),
            ("http://h?{{line é#}}", "http://h?xxxxxxxxxxxx", "/?xxxxxxxxxxxx", Ok("/?{{line é#}}")),
            ("http://h", "http://h", "/", Ok("/")),
            ("/{{{{a{{{seq}}}", "/{{{{a{xxxxxxx}", "/{{{{a{xxxxxxx}", Ok("/{{{{a{{{seq}}}")),
            ("http://{{seq}}/a", "http://xxxxxxx/a", "/a", Err(())),
        ] {
            let found = Masked::new(url).unwrap();
            assert_eq!(found.text(), masked);
            assert_eq!(found.path(path).as_deref().map_err(|_| ()), expected, "{url}");
        }
        assert!(Masked::new("/{{seq").is_err());
    }
}
