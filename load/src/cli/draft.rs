//! The draft of a plan: the options as typed, in the parts to which they belong. Values are parsed, but no default is
//! filled in and nothing is compared; [`super::decide`] does both.

use std::ffi::OsString;
use std::net::IpAddr;

use onrush_plan::{Breakout, Dialect, secrets};

use super::connect::ConnectDraft;
use super::flag::Flag;
use super::flags;
use super::http::HttpDraft;
use super::internals::InternalsDraft;
use super::lexer::{ArgLexer, Item, Misuse};
use super::load::LoadDraft;
use super::machines::MachinesDraft;
use super::output::OutputDraft;
use super::pace::PaceDraft;
use super::refusal::{Length, PlanRefusal, is_url, url_as_value_hint};
use super::request::RequestDraft;
use super::search::SearchDraft;
use super::timeouts::TimeoutsDraft;
use super::tls::TlsDraft;
use super::values::Value;
use super::{compat, hints};

/// Everything on a command line. Of a repeated option the last one counts, unless the values add up.
#[derive(Debug, Default)]
pub struct PlanDraft {
    /// Whose grammar the command line follows.
    pub dialect: Dialect,
    /// The URL, then arguments for a script.
    pub words: Vec<OsString>,
    /// Every option that was typed, once, in the order in which they were first typed.
    typed: Vec<&'static Flag>,
    /// The last option that took a URL as its value, and that URL.
    pub(super) taken_url: Option<(&'static Flag, OsString)>,
    /// How much load, and for how long.
    pub load: LoadDraft,
    /// When requests are sent.
    pub pace: PaceDraft,
    /// The search for the highest load.
    pub search: SearchDraft,
    pub(super) request: RequestDraft,
    pub(super) timeouts: TimeoutsDraft,
    pub(super) connect: ConnectDraft,
    pub(super) tls: TlsDraft,
    pub(super) http: HttpDraft,
    /// The machines that take part.
    pub machines: MachinesDraft,
    /// The output options.
    pub output: OutputDraft,
    pub(super) internals: InternalsDraft,
    /// Warnings to print before the run, one line each.
    pub warnings: Vec<String>,
}

impl PlanDraft {
    /// Nothing typed yet.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// True if the option with this name was typed.
    pub fn has(&self, name: &str) -> bool {
        debug_assert!(flags::by_name(name).is_some(), "--{name}");
        self.typed.iter().any(|flag| flag.name() == name)
    }

    /// True if the run sends a single request, which is shown.
    pub fn is_once(&self) -> bool {
        self.has("once")
    }

    /// The options that were typed, each once, in order.
    pub fn typed(&self) -> impl Iterator<Item = &'static Flag> {
        self.typed.iter().copied()
    }

    /// The subset of these options that was typed, in order.
    pub fn typed_of(&self, options: &'static [Flag]) -> impl Iterator<Item = &'static Flag> {
        self.typed().filter(|flag| options.iter().any(|option| option.name() == flag.name()))
    }

    /// Reads a whole command line up to the first mistake; what comes before it is kept.
    pub fn read(&mut self, lexer: &mut ArgLexer) -> Result<(), PlanRefusal> {
        loop {
            match lexer.next_item() {
                Ok(Some(Item::Flag(flag, _))) if flag.name() == "help" => {
                    let is_all = matches!(lexer.next_item(), Ok(Some(Item::Word(word))) if word == "all");
                    return Err(PlanRefusal::Help(if is_all { Length::All } else { Length::Common }));
                }
                Ok(Some(Item::Flag(flag, value))) => self.set_or_name_url(flag, value, lexer)?,
                Ok(Some(Item::Own(..))) => unreachable!("a run has no options but its own"),
                Ok(Some(Item::ShortHelp)) => return Err(PlanRefusal::Help(Length::Short)),
                Ok(Some(Item::Word(word))) => self.words.push(word),
                Ok(None) => {
                    self.check_values_are_attached()?;
                    return self.output.sampling.check_filter_is_attached(&self.words);
                }
                Err(misuse) if self.dialect.is_compat() => {
                    return Err(compat::getopt_message(&misuse).map_or(PlanRefusal::Usage, PlanRefusal::Misused));
                }
                Err(Misuse::Value(spelling)) if spelling.long == "help" => {
                    return Err(PlanRefusal::Help(Length::All));
                }
                Err(misuse) => return Err(PlanRefusal::Misused(hints::misuse_hint(&misuse))),
            }
        }
    }

    /// Natively refuses an optional value that was typed as a separate word, which would be taken for the URL.
    fn check_values_are_attached(&self) -> Result<(), PlanRefusal> {
        let Some(word) = self.words.first().and_then(|word| word.to_str()) else { return Ok(()) };
        let name = match word {
            _ if self.dialect.is_compat() => return Ok(()),
            "on" | "off" if self.output.notes == Some(true) => "notes",
            "all" if self.output.breakout == Breakout::WrkCmm => "breakout",
            _ if self.has("batch_latency") && self.words.len() > 1 && word.parse::<IpAddr>().is_ok() => {
                let line = format!("-B takes no value; onrush's option for the -B of ab is -b {word}");
                return Err(PlanRefusal::Misused(line));
            }
            _ => return Ok(()),
        };
        Err(PlanRefusal::Misused(format!("--{name}: attach the value with an equals sign: --{name}={word}")))
    }

    /// Applies an option. A wrong value that is a URL is reported as the run's URL, taken because the value is missing,
    /// if no word is left that could be the URL.
    fn set_or_name_url(
        &mut self,
        flag: &'static Flag,
        text: OsString,
        lexer: &mut ArgLexer,
    ) -> Result<(), PlanRefusal> {
        let value = Value::new(flag, &text, self.dialect);
        if !self.typed.iter().any(|typed| typed.name() == flag.name()) {
            self.typed.push(flag);
        }
        if flag.takes_url() || !is_url(&text) {
            return (flag.set)(self, value);
        }
        self.taken_url = Some((flag, text.clone()));
        match (flag.set)(self, value) {
            Err(PlanRefusal::Misused(_)) if self.words.is_empty() && !lexer.has_words() => {
                Err(PlanRefusal::Misused(url_as_value_hint(&flag.described.spelling, &text)))
            }
            // The reason may show a part of it.
            Err(PlanRefusal::Misused(line)) => Err(PlanRefusal::Misused(secrets::redact_text(&line))),
            done => done,
        }
    }
}
