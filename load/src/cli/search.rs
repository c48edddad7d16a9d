//! The options of a search, as typed.

use std::ffi::OsStr;

use onrush_plan::Condition;
use onrush_plan::search::SearchVariable;

use super::flags::{Flag, Id};
use super::refusal::{PlanRefusal, wrong};
use super::values::parse_gate;

/// The options of a search, as typed.
#[derive(Debug, Default)]
pub struct TypedSearch {
    /// The condition of `--find-max`; `None` if no search is requested.
    pub objective: Option<Condition>,
    /// The quantity to vary (`--over`); `None` for the default.
    pub over: Option<SearchVariable>,
}

impl TypedSearch {
    /// Applies one option. A second `--find-max` is rejected; of several `--over`, the last one wins.
    pub fn apply_option(&mut self, flag: &Flag, value: &OsStr) -> Result<(), PlanRefusal> {
        if flag.id == Id::FindMax {
            let objective = parse_gate(flag, value)?;
            if let Some(earlier) = self.objective.replace(objective) {
                let line = format!("--find-max is given twice; write one list: --find-max '{earlier},…'");
                return Err(PlanRefusal::Misused(line));
            }
            return Ok(());
        }
        let over = SearchVariable::ALL.into_iter().find(|(_, name)| value.to_str() == Some(name));
        let (over, _) = over.ok_or_else(|| wrong(flag, value, "unknown; write rate, connections or threads"))?;
        self.over = Some(over);
        Ok(())
    }
}
