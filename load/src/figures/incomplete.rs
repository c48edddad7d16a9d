//! Requests without a complete response, by what is known of their latency.

/// Numbers of due requests without a complete response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncompleteRequests {
    /// Completed after the end of the run, which continued in order to learn their latency.
    pub later: u64,
    /// In flight or still unsent when the run stopped.
    pub open: u64,
    /// Abandoned after a time limit, or dropped.
    pub given_up: u64,
    /// Failed requests, which no figure includes.
    pub failed: u64,
}

impl IncompleteRequests {
    /// Splits `censored` requests into the `open` ones and those given up.
    pub fn new(censored: u64, open: u64, failed: u64) -> Self {
        let open = open.min(censored);
        Self { later: 0, open, given_up: censored - open, failed }
    }

    /// Number of requests whose latency or age is known: all except the failed ones.
    pub fn timed_count(self) -> u64 {
        self.later + self.open + self.given_up
    }

    /// One comment line for each kind that occurred, for a histogram in HdrHistogram's format.
    pub fn histogram_comments(self) -> String {
        let line = |name: &str, count: u64, what: &str| match count {
            0 => String::new(),
            _ => format!("#[{name:<8}= {count:12} {what}]\n"),
        };
        line("Later", self.later, "with a response after the end, in the percentiles and the maximum")
            + &line("Open", self.open, "still open at the end, counted like others of their age")
            + &line("GivenUp", self.given_up, "abandoned or dropped, counted like others of their age")
            + &line("Failed", self.failed, "without a response, left out")
    }
}
