//! Samples of responses for users to look at: the first ones with each status, the first ones that fail each check, and
//! the first failed gRPC calls with each `grpc-status`.
//!
//! A response that may become a sample is kept while it arrives. The quota is shared by all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onrush_proto::{Fields, GRPC_STATUS_MAX};
use onrush_stats::Cause;

use super::kept::{Budget, KeptResponse, KeptResponsePool};

/// Number of body bytes in a sample.
pub const SAMPLE_BYTES: usize = 64 * 1024;
/// Largest number of samples: a server may send any status.
const SAMPLES_MAX: u32 = 1000;
/// Statuses have three digits. A failure of a check is a separate kind for each of the checks.
const STATUSES: usize = 1000;
const CHECKS: usize = 32;
/// Kinds of gRPC failures: one for each `grpc-status`, and one for all unknown ones.
const CALLS: usize = GRPC_STATUS_MAX as usize + 2;

/// Kinds of responses that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOf {
    /// Responses with this status.
    Status(u16),
    /// Responses that failed the check with this number, from 0.
    Check(u8),
    /// gRPC calls that failed with this `grpc-status`.
    Call(u8),
}

/// A sampled response, as received: secrets in it are not hidden yet.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The kind of which this is a sample.
    pub of: SampleOf,
    /// The sample's number within its kind, from 1.
    pub number: u32,
    /// The status line and the header fields as text.
    pub head: Vec<u8>,
    /// The body as received, without its framing, up to 64 KiB.
    pub body: Vec<u8>,
    /// The trailer fields as text.
    pub trailers: Vec<u8>,
}

/// Takes a sample. Called by all workers, so it must never block.
pub type KeepSample = Arc<dyn Fn(Sample) + Send + Sync>;

/// Number of samples of each kind, shared by all workers.
#[derive(Debug)]
pub struct Quota {
    /// Largest number of samples of each kind.
    each: u32,
    of_kind: Box<[AtomicU32]>,
    all: AtomicU32,
}

impl Quota {
    /// A quota of `each` samples per kind, and 1,000 in all.
    pub fn new(each: u32) -> Self {
        Self {
            each,
            of_kind: (0..STATUSES + CHECKS + CALLS).map(|_| AtomicU32::new(0)).collect(),
            all: AtomicU32::new(0),
        }
    }

    fn place(of: SampleOf) -> usize {
        match of {
            SampleOf::Status(status) => usize::from(status).min(STATUSES - 1),
            SampleOf::Check(number) => STATUSES + usize::from(number).min(CHECKS - 1),
            SampleOf::Call(status) => STATUSES + CHECKS + usize::from(status).min(CALLS - 1),
        }
    }

    /// True if there may be another sample of this kind.
    fn is_open(&self, of: SampleOf) -> bool {
        let [kind, all] = [&self.of_kind[Self::place(of)], &self.all].map(|count| count.load(Ordering::Relaxed));
        kind < self.each && all < SAMPLES_MAX
    }

    /// Takes the number of the next sample of this kind; `None`: there are enough, of this kind or in all.
    fn take_number(&self, of: SampleOf) -> Option<u32> {
        let next = |most: u32| move |count: u32| (count < most).then_some(count + 1);
        let (relaxed, kind) = (Ordering::Relaxed, &self.of_kind[Self::place(of)]);
        let before = kind.fetch_update(relaxed, relaxed, next(self.each)).ok()?;
        self.all.fetch_update(relaxed, relaxed, next(SAMPLES_MAX)).ok().map(|_| before + 1)
    }
}

/// One worker's access to the samples, and memory for responses that may become samples.
pub struct Samples {
    quota: Arc<Quota>,
    keep: KeepSample,
    checks: u8,
    pool: KeptResponsePool,
}

impl Samples {
    /// A worker's samples. `keep` gets each one; `checks`: number of the plan's checks.
    pub fn new(quota: Arc<Quota>, keep: KeepSample, checks: u8, budget: &Arc<Budget>) -> Self {
        Self { quota, keep, checks, pool: KeptResponsePool::new(budget) }
    }

    /// True if a response with this status and these fields may become a sample.
    pub(super) fn may_sample(&self, status: u16, fields: &Fields<'_>) -> bool {
        let is_call = || fields.value(b"content-type").is_some_and(|value| value.starts_with(b"application/grpc"));
        let is_open = |of| self.quota.is_open(of);
        is_open(SampleOf::Status(status))
            || (0..self.checks).map(SampleOf::Check).any(is_open)
            || (is_call() && (1..CALLS as u8).map(SampleOf::Call).any(is_open))
    }

    /// Memory for responses.
    pub(super) fn pool(&mut self) -> &mut KeptResponsePool {
        &mut self.pool
    }

    /// Keeps a complete response as a sample of its status and of its failure, if there are not enough yet. A response
    /// too large for the memory is not sampled.
    pub(super) fn keep_if_wanted(&mut self, status: Option<u16>, failed: Option<Cause>, response: &KeptResponse) {
        if response.was_truncated() {
            return;
        }
        let failure = failed.and_then(|cause| match cause {
            Cause::Check(number) => Some(SampleOf::Check(number)),
            Cause::GrpcStatus(status) => Some(SampleOf::Call(status)),
            _ => None,
        });
        for of in [status.map(SampleOf::Status), failure].into_iter().flatten().filter(|of| self.quota.is_open(*of)) {
            if let Some(number) = self.quota.take_number(of) {
                let [head, body, trailers] =
                    [&response.head, &response.body, &response.trailers].map(|part| part.bytes().to_vec());
                (self.keep)(Sample { of, number, head, body, trailers });
            }
        }
    }

    /// Takes back the memory of a response.
    pub(super) fn recycle_memory(&mut self, response: Box<KeptResponse>) {
        self.pool.recycle_memory(response);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_quotas_limit_kinds_and_total() {
        let quota = Quota::new(2);
        let taken = |of| (0..4).filter_map(|_| quota.take_number(of)).collect::<Vec<_>>();
        assert_eq!(taken(SampleOf::Status(200)), [1, 2]);
        assert!(!quota.is_open(SampleOf::Status(200)) && quota.is_open(SampleOf::Check(0)));
        assert_eq!((taken(SampleOf::Check(0)), taken(SampleOf::Check(31))), (vec![1, 2], vec![1, 2]));
        assert_eq!((taken(SampleOf::Call(1)), taken(SampleOf::Call(17))), (vec![1, 2], vec![1, 2]));
        let many = Quota::new(1);
        assert_eq!((0..2000).filter_map(|status| many.take_number(SampleOf::Status(status))).count(), 1000);
        let few = Quota::new(10);
        let all = (0..500).map(|status| (0..10).filter_map(|_| few.take_number(SampleOf::Status(status))).count());
        assert_eq!(all.sum::<usize>() as u32, SAMPLES_MAX);
    }
}
