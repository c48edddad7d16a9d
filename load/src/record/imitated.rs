//! The latencies as an imitated tool has them.

use std::borrow::Cow;
use std::time::Duration;

use onrush_plan::Dialect;
use onrush_stats::{Corrupt, Distribution};
use serde::{Deserialize, Serialize};

use super::hdr::Hdr;
use super::{Document, Latency};
use crate::figures::correct::{self, CorrectedLatencies};
use crate::figures::latency;

/// The latencies with a schedule as wrk2 records them, each a histogram of whole microseconds: an HdrHistogram, V2
/// compressed, base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "testing"), derive(schemars::JsonSchema))]
pub struct Wrk2 {
    /// From when requests were due.
    pub scheduled_us_hdr: Hdr,
    /// From when requests were sent; only where the text shows it (`-U`), and in sums of such runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(any(test, feature = "testing"), schemars(with = "Option<String>"))]
    pub service_us_hdr: Option<Hdr>,
}

impl Wrk2 {
    /// What was recorded of a run, whose text may show the service latency.
    pub fn of(recorded: &onrush_stats::Wrk2<u64>, shows_service: bool) -> Self {
        Self {
            scheduled_us_hdr: Hdr::of(&recorded.recorded),
            service_us_hdr: shows_service.then(|| Hdr::of(&recorded.uncorrected)),
        }
    }

    /// All these together; `None`: some runs have none, so that it would not be of all requests.
    ///
    /// # Errors
    ///
    /// When a histogram cannot be read.
    pub(super) fn sum(documents: &[&Document]) -> Result<Option<Self>, Corrupt> {
        let (mut sum, mut has_service, mut is_one) = (onrush_stats::Wrk2::default(), true, false);
        for document in documents {
            let Some(wrk2) = &document.latency.wrk2 else {
                if document.requests.completed == 0 {
                    continue;
                }
                return Ok(None);
            };
            is_one = true;
            sum.recorded += &wrk2.scheduled_us_hdr.values()?;
            match &wrk2.service_us_hdr {
                Some(hdr) => sum.uncorrected += &hdr.values()?,
                None => has_service = false,
            }
        }
        Ok(is_one.then(|| Self::of(&sum, has_service)))
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
            return Ok(latency::ShownLatency::Wrk2(Cow::Owned(wrk2.scheduled_us_hdr.values()?)));
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
