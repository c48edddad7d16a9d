//! Sums the samples of a run.

use std::collections::HashMap;

use onrush_stats::SocketSamples;

use super::SocketSample;

/// Running sums of a run's samples.
#[derive(Debug, Default)]
pub struct SampleSums {
    sampled: SocketSamples,
    /// Sockets of the last sample by cookie, with the retransmitted segments of each.
    last: HashMap<u64, Option<u64>>,
}

impl SampleSums {
    /// Adds a sample. Samples in the warm-up are not counted, but the last of them is the baseline for retransmits.
    pub fn add_sample(&mut self, sample: &SocketSample) {
        let last = std::mem::take(&mut self.last);
        let counts = sample.at_s >= 0.0;
        if counts {
            self.sampled.samples += 1;
            self.sampled.failed += u64::from(sample.failure.is_some());
            self.sampled.left_out += sample.left_out;
        }
        for reading in &sample.readings {
            let (cookie, retransmits) = (reading.cookie(), reading.retransmits());
            let before = last.get(&cookie);
            self.last.insert(cookie, retransmits);
            if !counts {
                continue;
            }
            let sampled = &mut self.sampled;
            sampled.readings += 1;
            let since = retransmits.zip(before.copied().flatten()).map(|(now, before)| now.saturating_sub(before));
            sampled.retransmits += since.unwrap_or(0);
            sampled.sockets += u64::from(before.is_none() || sampled.samples == 1);
            reading.rtt_us().into_iter().for_each(|rtt_us| sampled.rtt_us.record(rtt_us));
            reading.cwnd().into_iter().for_each(|cwnd| sampled.cwnd.record(cwnd));
            reading.delivery_bps().into_iter().for_each(|rate| sampled.delivery_bps.record(rate));
            if let Some([receive, send]) = reading.buffer_use() {
                sampled.rcvbuf_use.record(SocketSamples::ppm(receive));
                sampled.sndbuf_use.record(SocketSamples::ppm(send));
            }
        }
    }

    /// The sums over all samples added.
    pub fn into_sums(self) -> SocketSamples {
        self.sampled
    }
}
