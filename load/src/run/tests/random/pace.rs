//! The schedule of a random run, as options.

use onrush_plan::schedule::Arrivals;

/// A schedule of requests. Rates are per minute, times in milliseconds.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The rate, unless there are stages.
    pub per_minute: u64,
    pub stages: Vec<PaceStage>,
    pub arrivals: Arrivals,
    /// Factor by which late requests are made up for faster than the rate, in tenths.
    pub catch_up_tenths: Option<u64>,
    pub max_late_ms: Option<u64>,
    pub send_slice_us: Option<u64>,
}

/// A stage of the rate, or of the number of connections.
#[derive(Clone, Copy, Debug)]
pub struct PaceStage {
    pub length_ms: u64,
    pub from: u64,
    pub to: u64,
}

impl Pace {
    /// The options and their values. wrk2 has only one of them, and no rate per minute.
    pub fn arguments(&self, as_wrk: bool) -> Vec<(&'static str, String)> {
        if as_wrk {
            return vec![("-R", self.per_minute.div_ceil(60).to_string())];
        }
        let stage = |stage: &PaceStage| format!("{}ms:{}/m..{}/m", stage.length_ms, stage.from, stage.to);
        let stages: Vec<String> = self.stages.iter().map(stage).collect();
        let mut words = vec![match stages.is_empty() {
            true => ("-R", format!("{}/m", self.per_minute)),
            false => ("--stages", stages.join(",")),
        }];
        words.extend(match self.arrivals {
            Arrivals::Uniform => None,
            Arrivals::Poisson => Some(("--arrivals", "poisson".to_owned())),
            Arrivals::Burst(size) => Some(("--arrivals", format!("burst:{size}"))),
        });
        words.extend(self.catch_up_tenths.map(|tenths| ("--catch-up", format!("{}.{}", tenths / 10, tenths % 10))));
        words.extend(self.send_slice_us.map(|slice_us| ("--send-slice", format!("{slice_us}us"))));
        words.extend(self.max_late_ms.map(|late_ms| ("--max-late", format!("{late_ms}ms"))));
        words
    }
}
