//! Requests without a complete response, by what is known of their latency.

/// Numbers of requests without a complete response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncompleteRequests {
    /// Completed after the end of the run, which went on to learn their latency.
    pub later: u64,
    /// In flight or unsent when the run stopped.
    pub open: u64,
    /// Abandoned or dropped.
    pub given_up: u64,
    /// Failed requests, which are in no figure.
    pub failed: u64,
}

impl IncompleteRequests {
    /// Splits `censored` requests into `open` ones and those given up.
    pub fn new(censored: u64, open: u64, failed: u64) -> Self {
        let open = open.min(censored);
        Self { later: 0, open, given_up: censored - open, failed }
    }

    /// Number of requests with a latency or an age.
    pub fn timed_count(self) -> u64 {
        self.later + self.open + self.given_up
    }

    /// One line per kind present, for a histogram of HdrHistogram.
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
