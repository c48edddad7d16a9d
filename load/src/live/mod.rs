//! Standard error during a run: the progress line on a terminal, and single lines.
//!
//! The progress line only shows snapshots; it neither decides nor measures anything. It has no colours, so that
//! `NO_COLOR` makes no difference. Its only escape sequence erases to the end of the screen. If the terminal cannot be
//! written to, the run continues.

mod lines;

pub use lines::{Messages, WaitingLine, verbose_line};

use std::io::{self, IsTerminal, Stderr, Write};

use onrush_plan::{Plan, Schedule, Stop};
use onrush_text::units::{format_duration_exact, format_thousands, format_us};

use crate::run::{Observer, RunProgress, Waiting};

/// Moves to the start of the line and erases the rest of the screen: a terminal that became narrower may have wrapped
/// the line.
const ERASE: &str = "\r\x1b[J";

/// Position of the cursor after drawing. A terminal that becomes narrower wraps the line and keeps the cursor at the
/// same character. At the first character, all rows of the line are below the cursor, where [`ERASE`] finds them.
const HOME: &str = "\r";

/// The assumed width of a terminal that does not report one.
const USUAL_WIDTH: usize = 80;

/// A line that is redrawn repeatedly and erased on drop.
#[derive(Debug)]
pub struct ProgressLine<W: Write = Stderr> {
    out: W,
    width: fn() -> usize,
    /// The words at the start of the line.
    words: String,
    stop: Stop,
    schedule: Option<Schedule>,
    drawn: bool,
}

impl ProgressLine {
    /// A progress line on standard error that starts with these words. `None` with `--quiet`, with a script, whose own
    /// output could break up the line, and if standard error is not a terminal.
    pub fn on_stderr(words: &str, plan: &Plan) -> Option<Self> {
        let Plan { stop, schedule, script, output, .. } = plan;
        let out = io::stderr();
        let is_shown = script.is_none() && !output.is_quiet && out.is_terminal();
        let (words, schedule) = (words.to_owned(), schedule.clone());
        is_shown.then_some(Self { out, width: stderr_width, words, stop: *stop, schedule, drawn: false })
    }
}

impl Observer for Option<ProgressLine> {
    fn on_progress(&mut self, progress: &RunProgress<'_>) {
        self.iter_mut().for_each(|line| line.draw(progress));
    }

    fn on_waiting(&mut self, _: &Waiting) {
        self.iter_mut().for_each(ProgressLine::clear);
    }
}

impl<W: Write> ProgressLine<W> {
    /// Draws the progress of the run over the previous line.
    fn draw(&mut self, progress: &RunProgress<'_>) {
        let line = format!("{}{}", self.words, progress_text(self.stop, self.schedule.as_ref(), progress));
        // After a character in the last column, some terminals start a new line.
        let room = (self.width)().saturating_sub(1);
        let cut = line.char_indices().nth(room).map_or(line.len(), |(index, _)| index);
        self.send(&format!("{ERASE}{}{HOME}", &line[..cut]));
        self.drawn = true;
    }

    /// Erases the line, to make room for other output.
    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.send(ERASE);
        }
    }

    fn send(&mut self, text: &str) {
        // Nothing depends on this line: a closed terminal is no reason to stop.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

impl<W: Write> Drop for ProgressLine<W> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The text of the line: the progress, the rate, the delay of sends, and the number of errors.
fn progress_text(stop: Stop, schedule: Option<&Schedule>, progress: &RunProgress<'_>) -> String {
    let rate = format_thousands(progress.requests_per_s.round() as u64);
    if let Some(warm_up) = progress.warm_up {
        let (elapsed, all) = (progress.elapsed.as_secs_f64(), warm_up.as_secs_f64());
        return format!("warming up {elapsed:.1} of {all} s, {rate} requests/s");
    }
    let elapsed = format!("{:.1}s", progress.elapsed.as_secs_f64());
    let elapsed =
        stop.duration.map_or(elapsed.clone(), |total| format!("{elapsed} of {}", format_duration_exact(total)));
    // The number of `-n` is counted from the end of the warm-up.
    let requests = format_thousands(progress.requests - progress.carried);
    let done =
        stop.requests.map_or(elapsed.clone(), |all| format!("{requests} of {} in {elapsed}", format_thousands(all)));
    let errors = format_thousands(progress.errors);
    let (from, until) = progress.rate_of;
    let asked = schedule.filter(|_| from < until).map_or(String::new(), |schedule| {
        format!(" of {}", format_thousands(schedule.per_second_between(from, until).round() as u64))
    });
    let late = progress.late_ns.map_or(String::new(), |late_ns| format!(", {} late", format_us(late_ns / 1e3)));
    format!("{done}, {rate}{asked} requests/s{late}, {errors} errors")
}

/// The width in columns of the terminal on standard error. It is read each time, because it may change.
fn stderr_width() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => USUAL_WIDTH,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::time::Duration;

    use onrush_plan::schedule::{Rate, Stage};
    use onrush_stats::Totals;

    use super::*;

    static NOTHING: LazyLock<Totals> = LazyLock::new(Totals::default);
    static PROGRESS: LazyLock<RunProgress<'_>> = LazyLock::new(|| RunProgress {
        elapsed: Duration::from_millis(3_210),
        warm_up: None,
        requests: 275_731,
        carried: 0,
        requests_per_s: 85_894.4,
        rate_of: (Duration::from_secs(2), Duration::from_secs(3)),
        errors: 1_029,
        late_ns: None,
        recent: &NOTHING,
    });

    fn stop(seconds: Option<u64>, requests: Option<u64>) -> Stop {
        Stop { duration: seconds.map(Duration::from_secs), requests }
    }

    #[test]
    fn progress_shows_time_rate_and_errors() {
        let table = [
            (stop(Some(10), None), "3.2s of 10s, 85,894 requests/s, 1,029 errors"),
            (stop(None, Some(500_000)), "275,731 of 500,000 in 3.2s, 85,894 requests/s, 1,029 errors"),
            (stop(Some(90), Some(500_000)), "275,731 of 500,000 in 3.2s of 90s, 85,894 requests/s, 1,029 errors"),
        ];
        for (stop, line) in table {
            assert_eq!(progress_text(stop, None, &PROGRESS), line);
        }
    }

    #[test]
    fn scheduled_progress_shows_target_and_lateness() {
        let mut schedule = crate::fixtures::schedule(90_000);
        let line =
            |late_ns| progress_text(stop(Some(10), None), Some(&schedule), &RunProgress { late_ns, ..*PROGRESS });
        assert_eq!(line(Some(12_300.0)), "3.2s of 10s, 85,894 of 90,000 requests/s, 12.30us late, 1,029 errors");
        assert_eq!(line(None), "3.2s of 10s, 85,894 of 90,000 requests/s, 1,029 errors");
        let Stage { to, .. } = schedule.stages[0];
        schedule.stages = vec![Stage { length: Some(Duration::from_secs(5)), from: Rate::default(), to }];
        let line = progress_text(stop(Some(10), None), Some(&schedule), &PROGRESS);
        assert_eq!(line, "3.2s of 10s, 85,894 of 45,000 requests/s, 1,029 errors");
        let first = RunProgress { rate_of: (Duration::ZERO, Duration::ZERO), ..*PROGRESS };
        let line = progress_text(stop(Some(10), None), Some(&schedule), &first);
        assert_eq!(line, "3.2s of 10s, 85,894 requests/s, 1,029 errors");
    }

    #[test]
    fn progress_distinguishes_warm_up_and_run() {
        let line = |elapsed_ms, warm_up_ms| {
            let (elapsed, warm_up) = (Duration::from_millis(elapsed_ms), Some(Duration::from_millis(warm_up_ms)));
            progress_text(stop(Some(10), None), None, &RunProgress { elapsed, warm_up, requests: 0, ..*PROGRESS })
        };
        assert_eq!(line(640, 1_000), "warming up 0.6 of 1 s, 85,894 requests/s");
        assert_eq!(line(200, 1_500), "warming up 0.2 of 1.5 s, 85,894 requests/s");
    }

    fn of_width(out: &mut Vec<u8>, width: fn() -> usize) -> ProgressLine<&mut Vec<u8>> {
        let words = "run 2: ".to_owned();
        ProgressLine { out, width, words, stop: stop(Some(10), None), schedule: None, drawn: false }
    }

    #[test]
    fn progress_fits_the_terminal_and_disappears() {
        let mut written = Vec::new();
        let mut line = of_width(&mut written, || 20);
        line.draw(&PROGRESS);
        drop(line);
        assert_eq!(String::from_utf8(written).unwrap(), "\r\x1b[Jrun 2: 3.2s of 10s,\r\r\x1b[J");
    }

    #[test]
    fn clearing_writes_only_what_is_needed() {
        let mut written = Vec::new();
        let mut line = of_width(&mut written, || 0);
        line.clear();
        line.draw(&PROGRESS);
        line.clear();
        line.clear();
        drop(line);
        assert_eq!(String::from_utf8(written).unwrap(), "\r\x1b[J\r\r\x1b[J");
    }
}
