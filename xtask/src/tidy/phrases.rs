//! Finds phrases that read as if translated, in code and in documents, and says what to write instead.
//!
//! Lines are searched one by one for whole words in upper or lower case, so that `Nobody` is found and a name such as
//! `nobody_waits` is not. A single word is only listed if it is no name in the code.

use super::Finding;

/// The phrases, in lower case, and what to say instead.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "again"),
    ("anybody", "any user, process or client"),
    ("as it stands", "as it is"),
    ("at least so long", "at least as long, or the lower bound"),
    ("behind an answer", "after an answer"),
    ("behind every", "after every"),
    ("behind the answer", "after the answer"),
    ("behind the plan", "after the plan"),
    ("behind the url", "after the URL"),
    ("cannot be so", "is impossible"),
    ("chance alone", "random variation alone"),
    ("collects chance", "seeds the random generator"),
    ("comes of", "results from"),
    ("everybody", "all users, or the noun that is meant"),
    ("has to stand", "has to be"),
    ("hears", "handles, or receives"),
    ("in so far", "as far"),
    ("in vain", "needlessly, or without a response"),
    ("kernel's word", "what the kernel reports"),
    ("last words", "the close_notify, or the last lines"),
    ("lasted so long", "lasted, and the name of the time"),
    ("lest", "so that it does not"),
    ("lies behind", "follows"),
    ("nobody", "no user, no process, or the passive"),
    ("one behind the other", "one after the other"),
    ("so many", "the number, by its name"),
    ("so much", "the amount, by its name"),
    ("somebody", "the user, another process or a client"),
    ("stand below", "be below"),
    ("stand beside", "be beside"),
    ("stand between", "be between"),
    ("stand in the", "be in the"),
    ("stand still", "be stalled, or not advance"),
    ("stand-still", "a stall"),
    ("standing still", "a stall"),
    ("stands above", "is above"),
    ("stands at", "is at"),
    ("stands behind", "follows"),
    ("stands below", "is below"),
    ("stands beside", "is beside"),
    ("stands between", "is between"),
    ("stands in", "is in"),
    ("stands on", "is on"),
    ("stands still", "is stalled, or does not advance"),
    ("standstill", "a stall"),
    ("stood still", "was stalled"),
    ("the other way round", "the reverse"),
    ("to be had", "available"),
    ("waits sleep", "the loop sleeps while it waits"),
    ("what stands", "what is"),
    ("whatever it does", "no matter what it does"),
    ("whatever reads", "every reader"),
    ("where it stands", "where it is"),
    ("wherever it stands", "wherever it is"),
    ("whoever", "the user, process or caller that"),
    ("whomever", "any user, process or peer"),
];

/// Finds the phrases in a file.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.to_lowercase();
        let found = PHRASES.iter().filter(|(phrase, _)| has(&line, phrase));
        findings.extend(found.map(|(phrase, instead)| Finding {
            path: path.to_owned(),
            line: index + 1,
            text: format!("\"{phrase}\": say \"{instead}\""),
        }));
    }
    findings
}

/// Whether a phrase is in a line as whole words.
fn has(line: &str, phrase: &str) -> bool {
    let is_inside = |next: Option<char>| next.is_some_and(|next| next.is_alphanumeric() || next == '_');
    line.match_indices(phrase).any(|(at, _)| {
        !is_inside(line[..at].chars().next_back()) && !is_inside(line[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_is_found_in_comments_strings_and_documents_and_no_advice_has_one() {
        for (phrase, instead) in PHRASES {
            assert_eq!(*phrase, phrase.to_lowercase());
            for line in
                [format!("// {}.", phrase.to_uppercase()), format!("(\"{phrase}\")"), format!("the {phrase} it")]
            {
                let lines: Vec<usize> =
                    check("docs/a.md", &format!("One.\n{line}\n")).iter().map(|at| at.line).collect();
                assert!(!lines.is_empty() && lines.iter().all(|at| *at == 2), "{line}: {lines:?}");
            }
            assert_eq!(check("src/a.rs", instead), []);
        }
    }

    #[test]
    fn a_finding_says_what_to_say_instead() {
        let shown: Vec<String> = check("src/a.rs", "/// It stands below.\n").iter().map(Finding::to_string).collect();
        assert_eq!(shown, ["src/a.rs:1: \"stands below\": say \"is below\""]);
    }

    #[test]
    fn longer_words_are_others() {
        assert_eq!(check("src/a.rs", "fn what_stands_in() { \"it understands in time\" }"), []);
    }
}
