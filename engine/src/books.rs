//! Measurements of a worker: the measured window, its tally, and the samples taken ten times a second.

use onrush_proto::Nanos;
use onrush_stats::{Gap, silences};

use super::account::Account;
use super::mailbox::Mailbox;
use super::measured::Measured;
use super::rules::Scale;
use super::tally::Tally;

/// Largest number of long script times that are kept: the longest ones.
const IN_SCRIPT_MAX: usize = 4096;

/// Measurements of one worker.
pub(super) struct Books {
    pub tally: Tally,
    scale: Scale,
    /// Interval of rate samples and hand-overs, in nanoseconds.
    pub sample_ns: u64,
    /// Start of the measured window.
    pub start: Nanos,
    pub end_at: Nanos,
    /// Time of the last rate sample, and the number of responses by then.
    sampled_at: Nanos,
    sampled_completed: u64,
    /// Script time counted so far, in nanoseconds.
    pub script_noted_ns: u64,
    /// The kernel's account of the thread; `None` in virtual time.
    pub account: Option<Account>,
    /// Periods in which the worker was stalled.
    pub stalls: Vec<Gap>,
    /// Measurements up to the end of the run, once the run has ended and continues uncounted.
    pub measured: Option<Box<Measured>>,
    /// True if the worker stays after the end of the run.
    pub stays: bool,
    /// True once the worker knows how all requests due by the end of the run ended, and has reported that.
    pub is_settled: bool,
    /// Periods in which the script held up the worker.
    pub in_script: Vec<Gap>,
}

impl Books {
    /// Empty books with an empty tally.
    pub fn new(tally: Tally, scale: Scale, sample_ns: u64) -> Self {
        Self {
            tally,
            scale,
            sample_ns,
            start: Nanos::default(),
            end_at: Nanos::MAX,
            sampled_at: Nanos::default(),
            sampled_completed: 0,
            script_noted_ns: 0,
            account: Some(Account::default()),
            stalls: Vec::new(),
            measured: None,
            stays: false,
            is_settled: false,
            in_script: Vec::new(),
        }
    }

    /// Starts measuring at `start`, for `duration_ns`; `None`: the end is not known yet.
    pub fn begin_measuring(&mut self, start: Nanos, duration_ns: Option<u64>) {
        self.start = start;
        self.end_at = duration_ns.map_or(Nanos::MAX, |duration_ns| start + duration_ns);
        self.sampled_at = start;
        self.sampled_completed = self.tally.completed;
        self.tally.start(start);
        self.restart_account();
    }

    /// Starts counting the thread's time.
    pub fn restart_account(&mut self) {
        self.account.iter_mut().for_each(Account::restart_counting);
    }

    /// Counts the thread's time since the last call.
    pub fn settle_account(&mut self) {
        if let Some(account) = &mut self.account {
            self.tally.interval.activity += account.take_activity();
        }
    }

    /// Records the rate since the last sample. If idle time is left out, the sample waits until a response completes.
    pub fn sample_rate(&mut self, now: Nanos) {
        let Scale { rate_unit_ns: unit_ns, omits_idle, .. } = self.scale;
        let elapsed = now.since(self.sampled_at) / unit_ns;
        let completed = self.tally.completed - self.sampled_completed;
        if elapsed == 0 || (omits_idle && completed == 0) {
            return;
        }
        self.tally.interval.rates.record(completed * (1_000_000_000 / unit_ns) / elapsed);
        self.sampled_completed = self.tally.completed;
        self.sampled_at = now;
    }

    /// Records the rate, unless the last sample was so late that little time has passed since. The next sample covers
    /// that time.
    pub fn sample_rate_if_due(&mut self, now: Nanos) {
        if now.since(self.sampled_at) >= self.sample_ns / 2 {
            self.sample_rate(now);
        }
    }

    /// Records the rate at the end of the run. A run too short for a sample gets one here. The rest after the last
    /// sample counts if it is long enough to be meaningful, unless idle time is left out.
    pub fn sample_rate_at_end(&mut self, now: Nanos) {
        let is_long = now.since(self.sampled_at) >= self.sample_ns / 2 && !self.scale.omits_idle;
        if is_long || self.sampled_at == self.start {
            self.sample_rate(now);
        }
    }

    /// Counts the script time since the last call; `spent_ns` is the total so far.
    pub fn note_script_time(&mut self, spent_ns: u64) {
        // The total may be an estimate, and an earlier estimate may have been too high.
        self.tally.interval.activity.script_ns += spent_ns.saturating_sub(self.script_noted_ns);
        self.script_noted_ns = self.script_noted_ns.max(spent_ns);
    }

    /// Records a long script call; only the part within the measured window counts.
    pub fn record_script_delay(&mut self, from: Nanos, until: Nanos) {
        let gap = Gap { from_ns: from.since(self.start), until_ns: until.min(self.end_at).since(self.start) };
        if gap.length_ns() > 0 {
            self.tally.interval.activity.held_up_ns += gap.length_ns();
            silences::push_longest(&mut self.in_script, gap, IN_SCRIPT_MAX);
        }
    }

    /// Hands the interval since the last call to the supervisor, or keeps it for the next call if the supervisor is not
    /// ready. The interval ends at its due time, so that it falls into one row of the timeline. It includes the turn of
    /// the loop that hands it over.
    pub fn hand_over(&mut self, now: Nanos, mailbox: &Mailbox) {
        self.settle_account();
        let until_ns = now.since(self.start) / self.sample_ns * self.sample_ns;
        self.tally.interval.until_ns = until_ns;
        if mailbox.hand_over(&mut self.tally.interval) {
            self.tally.interval.from_ns = until_ns;
        }
    }

    /// Due time of the next sample: a whole multiple of the sampling interval, however late the last sample was.
    pub fn next_sample_at(&self, now: Nanos) -> Nanos {
        self.start + (now.since(self.start) / self.sample_ns + 1) * self.sample_ns
    }
}
