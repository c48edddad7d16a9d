//! The queue of `/capacity`: one server for all connections of the process, first come, first served.
//!
//! The queue only computes the end of a request's service; the caller delays the response until then. Nothing here
//! sleeps.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use onrush_plan::Random;

/// A queue shared by all threads.
#[derive(Debug)]
pub(super) struct Capacity(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    /// Time at which the last queued request will have been served.
    free_at: Instant,
    random: Random,
}

/// The distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QueueService {
    /// Mean service time, in seconds.
    pub mean_s: f64,
    /// Standard deviation as a share of the mean; zero means constant.
    pub spread: f64,
}

impl Default for Capacity {
    fn default() -> Self {
        Self(Mutex::new(Queue { free_at: Instant::now(), random: Random::new(1) }))
    }
}

impl Capacity {
    /// Appends a request to the queue. Returns the time from now until its service will have ended; the caller waits.
    pub(super) fn enter_queue(&self, service: QueueService) -> Duration {
        // The queue is always consistent, even if another thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).enter_at(Instant::now(), service)
    }
}

impl Queue {
    fn enter_at(&mut self, now: Instant, service: QueueService) -> Duration {
        self.free_at = self.free_at.max(now) + Duration::from_secs_f64(service.draw_service_s(&mut self.random));
        self.free_at - now
    }
}

impl QueueService {
    /// Draws a service time in seconds: log-normal with this mean and standard deviation.
    fn draw_service_s(self, random: &mut Random) -> f64 {
        if self.spread == 0.0 { self.mean_s } else { self.mean_s * random.log_normal(self.spread) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: QueueService = QueueService { mean_s: 0.002, spread: 0.0 };

    #[test]
    fn queued_requests_are_served_in_sequence() {
        let start = Instant::now();
        let mut queue = Queue { free_at: start, random: Random::new(1) };
        let ms = Duration::from_millis;
        let waits: Vec<Duration> = [0, 0, 1, 5, 90].map(|at| queue.enter_at(start + ms(at), EVEN)).into();
        assert_eq!(waits, [2, 4, 5, 3, 2].map(ms));
    }

    #[test]
    fn queue_service_times_have_the_requested_moments() {
        let (mut random, service) = (Random::new(7), QueueService { spread: 0.3, ..EVEN });
        let times: Vec<f64> = (0..100_000).map(|_| service.draw_service_s(&mut random) / service.mean_s).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
        assert!((mean - 1.0).abs() < 0.005 && (variance.sqrt() - 0.3).abs() < 0.005, "{mean} {}", variance.sqrt());
        assert!(times.iter().all(|time| *time > 0.0));
    }
}
