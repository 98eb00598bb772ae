use docent_core::Client;
use docent_core::recipe::server_time;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Time for which one reading of the servers' clock is used.
const FRESH: Duration = Duration::from_secs(60);

/// Time limit for reading the servers' clock. If it is exceeded, reports do without the clock.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clock of the servers, read by means of the client's own nodes.
#[derive(Debug)]
pub(super) struct Clock {
    /// False if nothing may be written.
    own_node: bool,
    /// The last reading, and when it was taken.
    last_read: Mutex<Option<(SystemTime, Instant)>>,
}

impl Clock {
    pub(super) fn new(own_node: bool) -> Self {
        Self { own_node, last_read: Mutex::default() }
    }

    /// Returns the time by the servers' clock, or `None` if no node may or can be created for it.
    pub(super) async fn now(&self, client: &Client) -> Option<SystemTime> {
        if !self.own_node {
            return None;
        }
        if let Some(now) = self.counted() {
            return Some(now);
        }
        let client = client.with_operation_timeout(PATIENCE);
        let time = server_time(&client).await.ok()?;
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, Instant::now()));
        Some(time)
    }

    /// Returns the time extrapolated from a fresh reading.
    fn counted(&self) -> Option<SystemTime> {
        let last_read = *self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, at) = last_read?;
        let since = at.elapsed();
        (since < FRESH).then(|| time + since)
    }
}
