use std::time::Duration;

/// Limits of the attempts that are made for one request of a [`Balanced`](crate::Balanced) service or of a
/// channel.
///
/// They bound each attempt, not the request: a limit for all of it is the caller's, as by
/// `tokio::time::timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptPolicy {
    /// Most attempts for one request, each at another instance; 0 counts as 1. Default: 3.
    pub limit: u32,
    /// How long one attempt takes at most: until the connection is made, it takes requests, and the response
    /// has begun. An instance that is slower fails. `Duration::MAX` for as long as it takes: then requests to
    /// an instance that stands still wait for ever. Take less than
    /// [`OutlierPolicy::period`](crate::OutlierPolicy::period): it is over on time also where a trial of the
    /// instance has no end yet. Default: 10 s.
    pub timeout: Duration,
    /// How long a request waits for an instance where there is none. Default: not at all.
    pub wait: Duration,
}

impl Default for AttemptPolicy {
    fn default() -> Self {
        Self { limit: 3, timeout: Duration::from_secs(10), wait: Duration::ZERO }
    }
}

impl AttemptPolicy {
    /// Sets [`limit`](Self::limit).
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets [`timeout`](Self::timeout).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets [`wait`](Self::wait).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}
