//! The grammar of `--sockets=FILTER`, the same as that of `ss`.
//!
//! ```text
//! filter  = [states] list                            ; leading states apply to the whole list
//! list    = term *(["and" / "or"] term)              ; from left to right; without a word between them: and
//! term    = "(" filter ")" / "not" term / states
//!         / ("sport" / "dport") [comparison] port
//!         / ("src" / "dst") ["=" / "!="] place
//! states  = 1*("state" name) / 1*("exclude" name)    ; any of them
//! place   = [address ["/" bits]] [":" port]          ; IPv6 in brackets where a port follows; * is any
//! ```
//!
//! Words may be written as signs: `and` `&` `&&`, `or` `|` `||`, `not` `!`, `eq` `=` `==`, `ne` `neq` `!=`, `gt` `>`,
//! `lt` `<`, `ge` `geq` `>=`, `le` `leq` `<=`.

use std::net::IpAddr;

use onrush_plan::condition::ComparisonOperator;
use onrush_plan::filter::{AddressRange, ConnectionEnd, SocketFilter, States};

use super::flaw::{Flaw, nearest_word};

/// Maximum nesting of parentheses and negations.
const DEPTH_MAX: usize = 32;

/// Words that can start a term.
const TERMS: [&str; 8] = ["state", "exclude", "sport", "dport", "src", "dst", "not", "("];

const COMPARISONS: [(&str, ComparisonOperator); 16] = [
    ("=", ComparisonOperator::Equal),
    ("==", ComparisonOperator::Equal),
    ("eq", ComparisonOperator::Equal),
    ("!=", ComparisonOperator::Unequal),
    ("ne", ComparisonOperator::Unequal),
    ("neq", ComparisonOperator::Unequal),
    (">", ComparisonOperator::More),
    ("gt", ComparisonOperator::More),
    ("<", ComparisonOperator::Less),
    ("lt", ComparisonOperator::Less),
    (">=", ComparisonOperator::AtLeast),
    ("ge", ComparisonOperator::AtLeast),
    ("geq", ComparisonOperator::AtLeast),
    ("<=", ComparisonOperator::AtMost),
    ("le", ComparisonOperator::AtMost),
    ("leq", ComparisonOperator::AtMost),
];

/// Parses a filter. If it names no states, it selects the usual ones.
pub(super) fn filter(text: &str) -> Result<SocketFilter, Flaw> {
    let mut parser = Parser { words: split_words(text), next: 0, end: text.chars().count(), depth: 0 };
    let filter = parser.filter()?;
    if let Some(word) = parser.words.get(parser.next) {
        return Err(Flaw { at: word.at, reason: "this closes nothing; leave it out".to_owned() });
    }
    Ok(match filter.names_states() {
        true => filter,
        false => SocketFilter::All(vec![SocketFilter::States(States::USUAL), filter]),
    })
}

/// A word and its position in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FilterWord {
    at: usize,
    text: String,
}

/// Splits a text at blanks and around parentheses and signs.
fn split_words(text: &str) -> Vec<FilterWord> {
    let is_sign = |character: char| "<>=!&|".contains(character);
    let mut words: Vec<FilterWord> = Vec::new();
    let mut previous = ' ';
    for (at, character) in text.chars().enumerate() {
        let is_alone = "()".contains(character) || "()".contains(previous);
        let goes_on = !previous.is_whitespace() && !is_alone && is_sign(previous) == is_sign(character);
        match words.last_mut().filter(|_| goes_on) {
            _ if character.is_whitespace() => {}
            Some(word) => word.text.push(character),
            None => words.push(FilterWord { at, text: character.to_string() }),
        }
        previous = character;
    }
    words
}

struct Parser {
    words: Vec<FilterWord>,
    next: usize,
    end: usize,
    depth: usize,
}

impl Parser {
    fn filter(&mut self) -> Result<SocketFilter, Flaw> {
        let first = self.parse_term()?;
        let goes_on = self.peek().is_some_and(|next| next != ")" && !is_and(next) && !is_or(next));
        if matches!(first, SocketFilter::States(_)) && goes_on {
            return Ok(SocketFilter::All(vec![first, self.filter()?]));
        }
        let mut list = first;
        while let Some(next) = self.peek().filter(|next| *next != ")") {
            let is_or = is_or(next);
            self.next += usize::from(is_or || is_and(next));
            let term = self.parse_term()?;
            list = if is_or {
                append_term(SocketFilter::Any, list, term)
            } else {
                append_term(SocketFilter::All, list, term)
            };
        }
        Ok(list)
    }

    fn parse_term(&mut self) -> Result<SocketFilter, Flaw> {
        let FilterWord { at, text } = self.next_word("a filter is missing here; try sport = :80")?;
        if self.depth == DEPTH_MAX {
            return Err(Flaw { at, reason: format!("nested more than {DEPTH_MAX} levels deep") });
        }
        self.depth += 1;
        let term = match text.as_str() {
            "(" => self.parse_group(at)?,
            "not" | "!" => SocketFilter::Not(Box::new(self.parse_term()?)),
            "state" => self.parse_states("state")?,
            "exclude" | "excl" => match self.parse_states(&text)? {
                SocketFilter::States(States(states)) => SocketFilter::States(States(States::ALL.0 & !states)),
                other => other,
            },
            "sport" => self.parse_port(ConnectionEnd::Local)?,
            "dport" => self.parse_port(ConnectionEnd::Peer)?,
            "src" => self.parse_address(ConnectionEnd::Local)?,
            "dst" => self.parse_address(ConnectionEnd::Peer)?,
            other => return Err(Flaw { at, reason: explain_unknown_word(other) }),
        };
        self.depth -= 1;
        Ok(term)
    }

    fn parse_group(&mut self, at: usize) -> Result<SocketFilter, Flaw> {
        let filter = self.filter()?;
        match self.peek() {
            Some(")") => {
                self.next += 1;
                Ok(filter)
            }
            _ => Err(Flaw { at, reason: "this is never closed; add a )".to_owned() }),
        }
    }

    /// Parses one or several states, each after `word`.
    fn parse_states(&mut self, word: &str) -> Result<SocketFilter, Flaw> {
        let mut states = 0;
        loop {
            let FilterWord { at, text } = self.next_word("a state is missing here; try state established")?;
            let lower = text.to_ascii_lowercase();
            let known = States::NAMED.iter().find(|(name, _)| *name == lower);
            let reason = || match nearest_word(&lower, States::NAMED.iter().map(|(name, _)| *name)) {
                Some(known) => format!("unknown state {text:?}; did you mean {known}?"),
                None => format!("unknown state {text:?}; try established, time-wait, connected or all"),
            };
            states |= known.ok_or_else(|| Flaw { at, reason: reason() })?.1.0;
            if self.peek() != Some(word) {
                return Ok(SocketFilter::States(States(states)));
            }
            self.next += 1;
        }
    }

    fn parse_port(&mut self, end: ConnectionEnd) -> Result<SocketFilter, Flaw> {
        let comparison = self.parse_comparison();
        let FilterWord { at, text } = self.next_word("a port is missing here; try :80")?;
        let digits = text.strip_prefix("*:").or_else(|| text.strip_prefix(':')).unwrap_or(&text);
        let port = parse_integer(digits).ok_or_else(|| Flaw { at, reason: explain_bad_port(&text) })?;
        Ok(SocketFilter::Port(end, comparison, port))
    }

    fn parse_address(&mut self, end: ConnectionEnd) -> Result<SocketFilter, Flaw> {
        let at = self.words.get(self.next).map_or(self.end, |word| word.at);
        let comparison = self.parse_comparison();
        let address = SocketFilter::Address(end, self.range()?);
        match comparison {
            ComparisonOperator::Equal => Ok(address),
            ComparisonOperator::Unequal => Ok(SocketFilter::Not(Box::new(address))),
            _ => Err(Flaw { at, reason: "addresses can only be compared with = and !=".to_owned() }),
        }
    }

    fn range(&mut self) -> Result<AddressRange, Flaw> {
        let FilterWord { at, text } = self.next_word("an address is missing here; try 10.0.0.0/8")?;
        parse_address_range(&text).ok_or_else(|| {
            let example = "10.0.0.5, 10.0.0.0/8, [::1]:80 or :80";
            Flaw { at, reason: format!("{text:?} is not an address or port; try {example}") }
        })
    }

    /// Parses the next comparison; without one, equality.
    fn parse_comparison(&mut self) -> ComparisonOperator {
        let named = |word: &str| COMPARISONS.iter().find(|(name, _)| *name == word);
        let found = self.peek().and_then(named).map(|(_, comparison)| *comparison);
        self.next += usize::from(found.is_some());
        found.unwrap_or(ComparisonOperator::Equal)
    }

    fn peek(&self) -> Option<&str> {
        self.words.get(self.next).map(|word| word.text.as_str())
    }

    fn next_word(&mut self, missing: &str) -> Result<FilterWord, Flaw> {
        let word = self.words.get(self.next).cloned();
        self.next += 1;
        word.ok_or_else(|| Flaw { at: self.end, reason: missing.to_owned() })
    }
}

/// Appends a term to a list. A list of the same kind grows; any other becomes the first term of a new list.
fn append_term(of: fn(Vec<SocketFilter>) -> SocketFilter, list: SocketFilter, term: SocketFilter) -> SocketFilter {
    match (list, of(Vec::new())) {
        (SocketFilter::All(mut terms), SocketFilter::All(_)) | (SocketFilter::Any(mut terms), SocketFilter::Any(_)) => {
            terms.push(term);
            of(terms)
        }
        (list, _) => of(vec![list, term]),
    }
}

fn is_and(word: &str) -> bool {
    ["and", "&", "&&"].contains(&word)
}

fn is_or(word: &str) -> bool {
    ["or", "|", "||"].contains(&word)
}

fn explain_unknown_word(word: &str) -> String {
    match nearest_word(word, TERMS.into_iter()) {
        _ if is_and(word) || is_or(word) => {
            format!("a filter is missing before {word:?}; try sport = :80")
        }
        Some(known) if word != ")" => format!("unknown word {word:?}; did you mean {known}?"),
        _ => format!("expected a filter here, not {word:?}; it begins with state, sport, dport, src, dst or not"),
    }
}

fn explain_bad_port(text: &str) -> String {
    match parse_integer::<u16>(text.rsplit(':').next().unwrap_or_default()) {
        Some(_) => format!("{text:?} has an address; write src or dst before it"),
        None => format!("{text:?} is not a port from 0 to 65535; try :80"),
    }
}

fn parse_integer<T: std::str::FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Parses an address, a port, or both; either may be `*`.
fn parse_address_range(text: &str) -> Option<AddressRange> {
    let is_address = text.starts_with('[') || text.matches(':').count() < 2;
    let inside = text.rfind(']').map_or(0, |end| end + 1);
    let (address, port) = match text[inside..].rfind(':').filter(|_| is_address) {
        Some(colon) => (&text[..inside + colon], Some(&text[inside + colon + 1..])),
        None => (text, None),
    };
    let port = match port {
        None | Some("*") => None,
        Some(digits) => Some(parse_integer(digits)?),
    };
    Some(AddressRange { prefix: if ["", "*"].contains(&address) { None } else { Some(parse_prefix(address)?) }, port })
}

/// Parses an address and its prefix length; without one, the full length.
fn parse_prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    // The prefix length may be inside or after the brackets.
    let ip: IpAddr = address.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    let width = if ip.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| parse_integer(bits.trim_end_matches(']')))?;
    (bits <= width).then_some((ip, bits))
}

#[cfg(test)]
mod tests;
