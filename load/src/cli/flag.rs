//! An option of a run: its spelling, its description, the options that it excludes or needs, and its effect on the
//! draft of a plan. Help, manual page, completions, hints and `docs/command-line.md` follow from this definition.

use std::ffi::OsStr;
use std::fmt::Display;

use onrush_plan::{Dialect, secrets};

use super::described::Described;
use super::draft::PlanDraft;
use super::refusal::{PlanRefusal, is_url};
use super::spelling::Spelling;
use super::values::Value;

/// An option of a run.
#[derive(Debug)]
pub struct Flag {
    /// Spelling, help and choices. The usage of the compat dialects prints only the first line of the help, which must
    /// be true in every dialect.
    pub described: Described,
    /// Paragraphs for `docs/command-line.md`, in Markdown. Only tables and fenced blocks have line breaks.
    pub reference: &'static str,
    /// An example for the same page; empty if the paragraphs have one.
    pub example: &'static str,
    /// The tool that introduced the option.
    pub origin: Origin,
    /// True if `--help` lists the option; otherwise only `--help all` does.
    pub is_common: bool,
    /// True if several values add up; otherwise the last one wins, or a second one is refused.
    pub is_repeatable: bool,
    /// The option as typed for a sweep, if `onrush sweep` takes a list of its values.
    pub swept_as: Option<&'static str>,
    /// Why experiments refuse the option.
    pub single_run_only: Option<&'static str>,
    /// Why the imitated tools refuse the option; follows the name of the tool.
    pub native_only: Option<&'static str>,
    /// How the value is shown in recorded command lines.
    pub secrecy: Secrecy,
    /// Names of options that cannot be combined with this one, each with the reason.
    pub excludes: &'static [(&'static str, &'static str)],
    /// Conditions, each with the message if it is not met.
    pub needs: &'static [Need],
    /// Changes the draft; a switch changes nothing, as [`PlanDraft::has`] knows it.
    pub set: fn(&mut PlanDraft, Value<'_>) -> Result<(), PlanRefusal>,
}

/// A condition, and the message if it is not met.
pub type Need = (fn(&PlanDraft) -> bool, &'static str);

/// The secrets in the value of an option.
#[derive(Clone, Copy, Debug)]
pub enum Secrecy {
    /// Secrets within the value, searched for as in any text.
    OfText,
    /// The whole value.
    Whole,
    /// The function replaces them; `None` for those of any text.
    Replaced(fn(&str) -> Option<String>),
}

/// The tool that introduced an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// wrk, and therefore also its forks.
    Wrk,
    /// Only wrk-cmm, the centminmod fork.
    WrkCmm,
    /// Only wrk2, the constant-rate fork.
    Wrk2,
    /// onrush itself.
    Ours,
}

/// An option that onrush introduced, with this spelling and effect.
pub const fn flag(spelling: &'static str, set: fn(&mut PlanDraft, Value<'_>) -> Result<(), PlanRefusal>) -> Flag {
    Flag {
        described: Described { spelling: Spelling::parse(spelling), help: "", choices: &[] },
        reference: "",
        example: "",
        origin: Origin::Ours,
        is_common: false,
        is_repeatable: false,
        swept_as: None,
        single_run_only: None,
        native_only: None,
        secrecy: Secrecy::OfText,
        excludes: &[],
        needs: &[],
        set,
    }
}

/// An option without a value, of which only the presence matters.
pub const fn switch(spelling: &'static str) -> Flag {
    flag(spelling, |_, _| Ok(()))
}

/// Stores a parsed value in the draft.
pub(super) fn put<T, P: From<T>>(place: &mut P, parsed: Result<T, PlanRefusal>) -> Result<(), PlanRefusal> {
    *place = P::from(parsed?);
    Ok(())
}

impl Flag {
    /// Sets the help text.
    pub const fn help(self, help: &'static str) -> Self {
        Self { described: Described { help, ..self.described }, ..self }
    }

    /// Sets the paragraphs for `docs/command-line.md`, and an example.
    pub const fn reference(self, reference: &'static str, example: &'static str) -> Self {
        Self { reference, example, ..self }
    }

    /// Sets the values that completions and help suggest; most options accept no others.
    pub const fn one_of(self, choices: &'static [&'static str]) -> Self {
        Self { described: Described { choices, ..self.described }, ..self }
    }

    /// Lists the option in `--help`, not only in `--help all`.
    pub const fn common(self) -> Self {
        Self { is_common: true, ..self }
    }

    /// Lets several values add up.
    pub const fn repeatable(self) -> Self {
        Self { is_repeatable: true, ..self }
    }

    /// Sets the tool that introduced the option.
    pub const fn from(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Lets `onrush sweep` vary the option, typed like this.
    pub const fn swept_as(self, typed: &'static str) -> Self {
        Self { swept_as: Some(typed), ..self }
    }

    /// Refuses the option in experiments, for this reason.
    pub const fn single_run_only(self, reason: &'static str) -> Self {
        Self { single_run_only: Some(reason), ..self }
    }

    /// Refuses the option where a tool is imitated. The reason follows the name of the tool.
    pub const fn native_only(self, reason: &'static str) -> Self {
        Self { native_only: Some(reason), ..self }
    }

    /// Sets what is secret in the value.
    pub const fn hiding(self, secrecy: Secrecy) -> Self {
        Self { secrecy, ..self }
    }

    /// Refuses these other options beside this one, each for a reason.
    pub const fn excludes(self, excludes: &'static [(&'static str, &'static str)]) -> Self {
        Self { excludes, ..self }
    }

    /// Refuses the option unless all conditions are met.
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }

    /// The option's name without its dashes.
    pub fn name(&self) -> &'static str {
        self.described.spelling.long
    }

    /// True if the help of the imitated tool lists the option; natively, that of wrk does. Only these options may be
    /// abbreviated.
    pub fn is_listed_by(&self, dialect: Dialect) -> bool {
        match self.origin {
            Origin::Wrk => true,
            Origin::WrkCmm => dialect == Dialect::WrkCmm,
            Origin::Wrk2 => dialect == Dialect::Wrk2,
            Origin::Ours => false,
        }
    }

    /// True if the value may be a URL other than the target's.
    pub fn takes_url(&self) -> bool {
        self.described.spelling.value == Some("URL")
    }

    /// Rejects an invalid value. The message has the option, the value without its secrets, and the reason or right
    /// form.
    pub fn wrong(&self, value: impl AsRef<OsStr>, reason: impl Display) -> PlanRefusal {
        const SHOWN_MAX: usize = 80;
        let text = value.as_ref().to_string_lossy();
        let text = if is_url(value.as_ref()) { secrets::misspelt_url(&text) } else { secrets::redact_text(&text) };
        let shown: String = text.chars().take(SHOWN_MAX).collect();
        let dots = if shown.len() < text.len() { "…" } else { "" };
        PlanRefusal::Misused(format!("--{} {shown:?}{dots}: {reason}", self.name()))
    }
}
