use std::time::Duration;

/// Limits of the attempts for one request to a [`Balanced`](crate::Balanced) service or a channel.
///
/// They limit each attempt, not the request. To limit the whole request, use for example
/// `tokio::time::timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptPolicy {
    /// Maximum number of attempts for one request, each at another instance; 0 counts as 1. Default: 3.
    pub limit: u32,
    /// Maximum time of one attempt, until the connection is open, accepts requests, and the response has
    /// started. A slower instance counts as failed. With `Duration::MAX` there is no limit, and requests to a
    /// stalled instance wait forever. Use less than [`OutlierPolicy::period`](crate::OutlierPolicy::period);
    /// otherwise a probation may end before its trial request has an outcome. Default: 10 s.
    pub timeout: Duration,
    /// Time for which a request waits for an instance if there is none. Default: no wait.
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
