use docent_core::Client;
use docent_core::recipe::server_time;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Time for which one look at the servers' clock is counted on.
const FRESH: Duration = Duration::from_secs(60);

/// Time that a look at the servers' clock may take. Reports do without it then.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clock of the servers, by nodes of our own.
#[derive(Debug)]
pub(super) struct Clock {
    /// False when nothing may be written.
    own_node: bool,
    /// The last look, and when it was.
    looked: Mutex<Option<(SystemTime, Instant)>>,
}

impl Clock {
    pub(super) fn new(own_node: bool) -> Self {
        Self { own_node, looked: Mutex::default() }
    }

    /// The time by the servers' clock; `None` where no node may or can be made for it.
    pub(super) async fn now(&self, client: &Client) -> Option<SystemTime> {
        if !self.own_node {
            return None;
        }
        if let Some(now) = self.counted() {
            return Some(now);
        }
        let client = client.with_operation_timeout(PATIENCE);
        let time = server_time(&client).await.ok()?;
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, Instant::now()));
        Some(time)
    }

    /// The time of a fresh look, counted on.
    fn counted(&self) -> Option<SystemTime> {
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, at) = looked?;
        let since = at.elapsed();
        (since < FRESH).then(|| time + since)
    }
}
