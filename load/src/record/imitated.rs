//! The latencies as an imitated tool has them.

use std::borrow::Cow;
use std::time::Duration;

use onrush_plan::Dialect;
use onrush_stats::{Corrupt, Distribution};

use super::bins::Bins;
use super::{Document, Latency};
use crate::figures::correct::{self, CorrectedLatencies};
use crate::figures::latency;

/// The latencies with a schedule as wrk2 records them, in whole microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrk2 {
    /// From when requests were due.
    pub scheduled_us: Bins,
    /// From when requests were sent; `None` unless the text shows it (`-U`).
    pub service_us: Option<Bins>,
}

impl Wrk2 {
    /// The latencies recorded, with those from when requests were sent if the text shows them.
    pub fn of(recorded: &onrush_stats::Wrk2<u64>, shows_service: bool) -> Self {
        Self {
            scheduled_us: Bins::of(&recorded.recorded),
            service_us: shows_service.then(|| Bins::of(&recorded.uncorrected)),
        }
    }
}

impl Document {
    /// Whether the run imitated this tool.
    pub fn imitates(&self, dialect: Dialect) -> bool {
        self.plan.dialect == dialect.name()
    }

    /// The latency that the text of the run shows.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be read, or contradicts another one.
    pub fn text_latency(&self) -> Result<latency::ShownLatency<'static>, Corrupt> {
        let Latency { service, batch, wrk, wrk_spacing_us, wrk2, .. } = &self.latency;
        if let Some(wrk2) = wrk2 {
            return Ok(latency::ShownLatency::Wrk2(Cow::Owned(wrk2.scheduled_us.values()?)));
        }
        if let (Some(wrk), Some(spacing_us)) = (wrk, *wrk_spacing_us) {
            let values: Distribution<u64> = batch.as_ref().unwrap_or(service).values()?;
            // A century exceeds any timeout and does not overflow durations.
            let timeout = self.plan.timeout_s.map(|seconds| Duration::from_secs_f64(seconds.clamp(0.0, 3e9)));
            if correct::rewritten_count(&values, timeout, spacing_us) != u128::from(wrk.count) {
                return Err(Corrupt::Count);
            }
            return Ok(latency::ShownLatency::Rewritten(CorrectedLatencies::new(&values, timeout, spacing_us)));
        }
        Ok(latency::ShownLatency::Measured(Cow::Owned(self.shown_latency().values()?)))
    }
}
