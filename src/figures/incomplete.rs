//! How many requests have no complete response, by what is known of their latency.

/// The numbers of requests without a complete response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incomplete {
    /// Merely in flight at the end: in the percentiles with their age.
    pub in_flight: u64,
    /// The others that did not fail: likewise, but their age is a lower bound only.
    pub unbounded: u64,
    /// Failed: in no figure.
    pub failed: u64,
}

impl Incomplete {
    /// Of these `censored` requests, so many were merely in flight.
    pub fn of(censored: u64, in_flight: u64, failed: u64) -> Self {
        let in_flight = in_flight.min(censored);
        Self { in_flight, unbounded: censored - in_flight, failed }
    }

    /// How many of them the percentiles count with their age.
    pub fn with_age(self) -> u64 {
        self.in_flight + self.unbounded
    }

    /// A line for each kind that there is, as in a histogram of HdrHistogram.
    pub fn lines(self) -> String {
        let line = |name: &str, count: u64, what: &str| match count {
            0 => String::new(),
            _ => format!("#[{name:<8}= {count:12} {what}]\n"),
        };
        let in_flight = line("InFlight", self.in_flight, "in flight at the end, counted with their age");
        let censored = "without a response, counted as if answered at the end of the run";
        in_flight
            + &line("Censored", self.unbounded, censored)
            + &line("Failed", self.failed, "without a response, left out")
    }
}
