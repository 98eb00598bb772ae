use super::{is_passing, start};
use crate::store::{ClaimedItem, Offer, Store};
use docent_core::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longest time that a call whose time is over waits for what is under way for it.
pub(crate) const LATE: Duration = Duration::from_secs(1);

/// Call that takes items, while it waits for them.
///
/// # On drop
/// It is forgotten. Items that were claimed for it are for the next call.
pub(crate) struct Request {
    store: Arc<Store>,
    id: u64,
    answer: oneshot::Receiver<Result<Offer, Error>>,
}

impl Request {
    /// Asks for at most `most` items, and for `ahead` more to be claimed for the next calls.
    pub(crate) fn new(store: &Arc<Store>, most: usize, ahead: usize, waits: bool) -> Self {
        let (id, answer) = store.desk.register(most, ahead, waits);
        let request = Self { store: Arc::clone(store), id, answer };
        start(store);
        request
    }

    /// The items; none where the call does not wait.
    pub(crate) async fn answer(&mut self) -> Result<Vec<ClaimedItem>, Error> {
        match (&mut self.answer).await {
            Ok(answer) => answer.map(Offer::take),
            // The task that claims ended with the client, or with its runtime.
            Err(_) => Err(Error::closed("take", &self.store.path)),
        }
    }

    /// The items, if they come within `limit`; an attempt that is under way by then is waited for a little
    /// longer.
    pub(crate) async fn answer_within(&mut self, limit: Duration) -> Result<Vec<ClaimedItem>, Error> {
        if let Ok(answer) = timeout(limit, self.answer()).await {
            return answer;
        }
        if !self.store.desk.stop_waiting(self.id) {
            return Ok(Vec::new());
        }
        match timeout(LATE, self.answer()).await {
            // None came in time, because of what a call that waits is not told either.
            Ok(Err(error)) if is_passing(&error) => Ok(Vec::new()),
            Ok(answer) => answer,
            Err(_) => Ok(Vec::new()),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // First, so that the desk does not take this call for one that waits.
        self.answer.close();
        self.store.desk.withdraw(self.id);
    }
}
