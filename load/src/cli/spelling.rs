//! The spelling of an option, as in its help: `-c, --connections N`.

/// The parts of an option's spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The whole spelling, as in the help.
    pub whole: &'static str,
    /// The option's letter, if it has one.
    pub short: Option<char>,
    /// The option's name without its dashes.
    pub long: &'static str,
    /// Name of the value as in the help; `None` if the option takes no value. `[=…]` is an optional value, which must
    /// be attached with an equals sign. Two names stand for two words.
    pub value: Option<&'static str>,
}

impl Spelling {
    /// Splits `-c, --connections N` into its parts. Only the name with its two dashes is required.
    pub const fn parse(whole: &'static str) -> Self {
        let (short, long) = match whole.as_bytes() {
            [b'-', b'-', ..] => (None, whole.split_at(2).1),
            [b'-', letter, b',', b' ', b'-', b'-', ..] => (Some(*letter as char), whole.split_at(6).1),
            _ => panic!("an option is written --name or -n, --name"),
        };
        let mut end = 0;
        while end < long.len() && !matches!(long.as_bytes()[end], b' ' | b'[') {
            end += 1;
        }
        let (long, value) = long.split_at(end);
        let value = match value.as_bytes() {
            [] => None,
            [b' ', ..] => Some(value.split_at(1).1),
            _ => Some(value),
        };
        Self { whole, short, long, value }
    }

    /// True if a value must follow.
    pub fn takes_value(&self) -> bool {
        self.value.is_some() && !self.may_take_value()
    }

    /// Number of words in the value; zero if the option takes none.
    pub fn value_words(&self) -> usize {
        self.value.map_or(0, |value| value.split(' ').count())
    }

    /// True if a value may be attached with an equals sign.
    pub fn may_take_value(&self) -> bool {
        self.value.is_some_and(|value| value.starts_with("[="))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_have_name_letter_and_value() {
        for (whole, short, long, value) in [
            ("-c, --connections N", Some('c'), "connections", Some("N")),
            ("-4, --ipv4", Some('4'), "ipv4", None),
            ("--tls-min VERSION", None, "tls-min", Some("VERSION")),
            ("--sockets[=FILTER]", None, "sockets", Some("[=FILTER]")),
            ("--once", None, "once", None),
        ] {
            assert_eq!(Spelling::parse(whole), Spelling { whole, short, long, value });
        }
        assert!(Spelling::parse("--body DATA").takes_value() && !Spelling::parse("--body DATA").may_take_value());
        assert!(!Spelling::parse("--io[=X]").takes_value() && Spelling::parse("--io[=X]").may_take_value());
    }
}
