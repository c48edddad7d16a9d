//! A syntax error in a value with its own grammar, and its position.

use strsim::damerau_levenshtein;

/// A flaw of a text, and its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Position in characters from the start of the text.
    pub at: usize,
    /// The flaw, and the right form.
    pub reason: String,
}

impl Flaw {
    /// Formats the position and the fault.
    pub fn shown(&self, text: &str) -> String {
        let rest: String = text.chars().skip(self.at).collect();
        match rest.as_str() {
            "" => format!("at the end: {}", self.reason),
            rest if rest.len() == text.len() => self.reason.clone(),
            rest => format!("at {rest:?}: {}", self.reason),
        }
    }
}

/// The known word that is most similar to a mistyped one; `None` if none is similar enough.
pub(super) fn nearest_word<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known.map(|known| (damerau_levenshtein(typed, known), known)).min();
    nearest.filter(|(far, known)| *far <= known.len() / 2).map(|(_, known)| known)
}
