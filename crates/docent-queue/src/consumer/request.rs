use super::{is_passing, start};
use crate::store::{ClaimedItem, Offer, Store};
use docent_core::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum time for which a call waits for work in progress after its timeout.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// Call that takes items, while it waits for them.
///
/// # On drop
/// The call is withdrawn. Items that were claimed for it are kept for the next call.
pub(crate) struct Request {
    store: Arc<Store>,
    id: u64,
    answer: oneshot::Receiver<Result<Offer, Error>>,
}

impl Request {
    /// Asks for at most `most` items, and for `ahead` more to be claimed for the next calls.
    pub(crate) fn new(store: &Arc<Store>, most: usize, ahead: usize, waits: bool) -> Self {
        let (id, answer) = store.dispatcher.register(most, ahead, waits);
        let request = Self { store: Arc::clone(store), id, answer };
        start(store);
        request
    }

    /// Returns the items; no items if the call does not wait and none is free.
    pub(crate) async fn answer(&mut self) -> Result<Vec<ClaimedItem>, Error> {
        match (&mut self.answer).await {
            Ok(answer) => answer.map(Offer::take),
            // The claiming task ended with the client or with its runtime.
            Err(_) => Err(Error::closed("take", &self.store.path)),
        }
    }

    /// Returns the items if they arrive within `limit`. An attempt in progress at that time is awaited for a
    /// little longer.
    pub(crate) async fn answer_within(&mut self, limit: Duration) -> Result<Vec<ClaimedItem>, Error> {
        if let Ok(answer) = timeout(limit, self.answer()).await {
            return answer;
        }
        if !self.store.dispatcher.stop_waiting(self.id) {
            return Ok(Vec::new());
        }
        match timeout(LATE, self.answer()).await {
            // Nothing arrived in time. A waiting call would not report this error either, because it is
            // transient.
            Ok(Err(error)) if is_passing(&error) => Ok(Vec::new()),
            Ok(answer) => answer,
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // Closed first, so that the dispatcher does not treat this call as waiting.
        self.answer.close();
        self.store.dispatcher.withdraw(self.id);
    }
}
