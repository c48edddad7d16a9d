//! Latency percentiles of a report: selection and form.

use onrush_plan::Percent;

use super::spectrum::{self, Spectrum};
use super::table::{self, TableLayout};

/// Default percentiles of a native report.
const UNASKED: [f64; 5] = [50.0, 75.0, 90.0, 99.0, 99.9];

/// Which latency percentiles a report shows, and how.
#[derive(Clone, Copy, Debug)]
pub struct Percentiles<'a> {
    /// The tool whose table the percentiles follow.
    pub layout: TableLayout,
    /// True if no tool is imitated.
    pub is_native: bool,
    /// True if percentiles were requested (`-L`). A native report always has some.
    pub are_asked_for: bool,
    /// True if a detailed spectrum follows.
    pub has_spectrum: bool,
    /// True if percentiles of the service latency follow (`-U`).
    pub has_service: bool,
    /// Requested percentiles (`--percentiles`); `None` for the default ones.
    pub asked: Option<&'a [Percent]>,
}

impl Percentiles<'_> {
    /// Renders the displayed latency, and the service latency where the form shows it. `has_rate`: the displayed
    /// latency counts from when requests were due.
    pub fn render(&self, has_rate: bool, recorded: &Spectrum, service: Option<&Spectrum>) -> String {
        let is_wrk2s = self.has_spectrum || self.has_service || self.is_native && self.asked.is_none();
        match self.asked {
            _ if !self.is_native && !self.are_asked_for => String::new(),
            _ if has_rate && self.are_asked_for && is_wrk2s => self.render_wrk2_blocks(recorded, service),
            None if self.is_native => self.render_natively(recorded),
            asked => {
                let oldest = if self.is_native { recorded.oldest_line() } else { String::new() };
                self.layout.percentiles(asked, |label, percent| recorded.line(label, percent)) + &oldest
            }
        }
    }

    /// wrk2's blocks, or only their lists if there is no spectrum.
    fn render_wrk2_blocks(&self, recorded: &Spectrum, service: Option<&Spectrum>) -> String {
        let block = |spectrum: &Spectrum, name| {
            let list = spectrum.format_list(name, self.asked, self.is_native);
            if self.has_spectrum { list + &spectrum.format_detail() } else { list }
        };
        let service = service.map_or(String::new(), |it| format!("\n{}", block(it, spectrum::UNCORRECTED)));
        block(recorded, spectrum::RECORDED) + &service
    }

    /// The percentiles with enough values beyond them, and the maximum.
    fn render_natively(&self, recorded: &Spectrum) -> String {
        let usual: Vec<f64> = Percent::asked_or_usual(None).into_iter().map(Percent::value).collect();
        let percents = if self.are_asked_for { &usual[..] } else { &UNASKED };
        let mut text = table::DISTRIBUTION.to_owned();
        for &percent in percents.iter().filter(|&&percent| recorded.has_enough_beyond(percent)) {
            text += &recorded.line(&format!("{percent:>7}%"), percent);
        }
        text += &recorded.max_lines();
        if self.has_spectrum { text + &recorded.format_detail() } else { text }
    }
}
