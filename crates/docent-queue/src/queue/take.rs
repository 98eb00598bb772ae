//! The consumer's side of a queue.

use super::{Deliveries, Delivery, Queue};
use crate::consumer::{LATE, Request, is_passing, leave, ordered};
use crate::layout::DeadReason;
use crate::store::{ClaimedItem, ItemEnd, MOST, Store};
use docent_core::recipe::{Line, in_time};
use docent_core::{Error, planted};
use futures_util::future::join_all;
use std::future::Future;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// Before an operation is tried again that failed in an outage.
const PAUSE: Duration = Duration::from_millis(200);

impl<T: 'static> Queue<T> {
    /// Takes the next item, and waits for one, however long that is: also through lost links and sessions.
    ///
    /// # Errors
    /// Errors that only people can mend: `NoAuth`, also because of the next item alone, `AuthFailed`,
    /// `ShortLease`, `EnsembleRolledBack`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but you lose your place in the line. An item that was claimed on the way
    /// is for the next call of this process, and goes back after two seconds without one; it does not count
    /// as handed out. A call that is not polled for two seconds gets another item.
    pub fn take(&self) -> impl Future<Output = Result<Delivery<T>, Error>> + use<T> {
        let queue = self.clone();
        async move {
            loop {
                if let Some(delivery) = queue.wait_for(1, 0).await?.pop() {
                    return Ok(delivery);
                }
            }
        }
    }

    /// Takes the next item if there is one that is free.
    ///
    /// # Errors
    /// `NoAuth`, `ShortLease`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub fn try_take(&self) -> impl Future<Output = Result<Option<Delivery<T>>, Error>> + use<T> {
        let queue = self.clone();
        async move {
            let Store { client, path, .. } = &*queue.store;
            in_time(client, "take", path, queue.try_once()).await
        }
    }

    /// Takes the next item, and waits for one at most for `timeout`; `None` when there was none. Only the
    /// waiting is under the limit: a first look at the queue, or a claim, that is under way by then is waited
    /// for, at most for a second longer.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub fn take_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Delivery<T>>, Error>> + use<T> {
        let queue = self.clone();
        async move { queue.take_within(timeout).await }
    }

    /// Takes the next items, at most `count` of them, in one write; waits for one, as [`take`](Self::take)
    /// does, and not for more. [`Delivery::ack_all`] acknowledges several in one write. In `ordered` mode it
    /// is one.
    ///
    /// # Errors
    /// As [`take`](Self::take); `InvalidInput` for a count that is not from 1 to 1,000.
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub fn take_batch(&self, count: usize) -> impl Future<Output = Result<Vec<Delivery<T>>, Error>> + use<T> {
        let queue = self.clone();
        async move {
            if !(1..=MOST).contains(&count) {
                let rule = format!("a batch of {count} must be from 1 to {MOST}");
                return Err(Error::invalid_input("take", rule));
            }
            queue.wait_for(count, 0).await
        }
    }

    /// The items as a stream, each to be acknowledged. It survives lost links and sessions, and ends when the
    /// client is closed or [shut down](docent_core::Client::shutdown). An error such as `NoAuth` is emitted,
    /// and it goes on trying when it is polled again, after a pause that grows from 200 ms to 5 s.
    ///
    /// With a [prefetch](crate::QueueBuilder::prefetch) of more than 1, up to that many items are claimed in
    /// one write, and kept for the next polls, of this stream or of another call of this process. They are in
    /// order here; others work on later items meanwhile. Another write hands them out and counts them: the
    /// first item alone, then two together, four, and so on, as long as calls keep asking. Items that no call
    /// asked for within two seconds go back, and are not counted. If the process exits before that, those
    /// that were handed out together are counted.
    ///
    /// # On drop
    /// Items that were claimed and not handed out go back within two seconds.
    pub fn deliveries(&self) -> Deliveries<T>
    where
        T: Send + 'static,
    {
        Deliveries::new(self.clone(), self.store.limits.prefetch)
    }

    /// Takes free items, and `ahead` more for the next calls; waits for one.
    pub(super) async fn wait_for(&self, count: usize, ahead: usize) -> Result<Vec<Delivery<T>>, Error> {
        loop {
            let batch = match &self.store.lock {
                // On the heap, because the mode is rare.
                Some(lock) => Box::pin(self.wait_for_lock(lock)).await?.into_iter().collect(),
                None => Request::new(&self.store, count, ahead, true).answer().await?,
            };
            let batch = self.accept(batch).await;
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// The first item, once this consumer has the lock; `None` when the call was not polled for too long.
    async fn wait_for_lock(&self, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
        loop {
            match ordered::take_locked(&self.store, lock).await {
                Err(error) if is_passing(&error) => {
                    tracing::debug!(path = %self.store.path, %error, "taking goes on");
                    lock.pause(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// An item that is free now, if there is one.
    async fn try_once(&self) -> Result<Option<Delivery<T>>, Error> {
        loop {
            let taken = match &self.store.lock {
                Some(lock) => {
                    Box::pin(ordered::try_take_locked(&self.store, lock)).await?.into_iter().collect()
                }
                None => Request::new(&self.store, 1, 0, false).answer().await?,
            };
            if taken.is_empty() {
                return Ok(None);
            }
            if let Some(delivery) = self.accept(taken).await.pop() {
                return Ok(Some(delivery));
            }
        }
    }

    async fn take_within(&self, limit: Duration) -> Result<Option<Delivery<T>>, Error> {
        if let Some(lock) = &self.store.lock {
            return match timeout(limit, Box::pin(self.take_one_locked(lock))).await {
                Ok(taken) => taken.map(Some),
                Err(_) => Ok(None),
            };
        }
        let began = Instant::now();
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let taken = Request::new(&self.store, 1, 0, true).answer_within(left).await?;
            // Those that are handed to nobody are ended in the background.
            let left = limit.saturating_sub(began.elapsed()).saturating_add(LATE);
            let accepted = timeout(left, self.accept(taken)).await.unwrap_or_default();
            if let Some(delivery) = accepted.into_iter().next() {
                return Ok(Some(delivery));
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
        }
    }

    async fn take_one_locked(&self, lock: &Line) -> Result<Delivery<T>, Error> {
        loop {
            let taken = self.wait_for_lock(lock).await?;
            if let Some(delivery) = self.accept(taken.into_iter().collect()).await.pop() {
                return Ok(delivery);
            }
        }
    }

    /// The claimed items as deliveries, without those that are handed to nobody. Where that is all of them,
    /// it waits until their claims have ended.
    async fn accept(&self, claimed: Vec<ClaimedItem>) -> Vec<Delivery<T>> {
        let (mut batch, mut ended) = (Vec::new(), Vec::new());
        for item in claimed {
            match self.accept_one(item) {
                Ok(delivery) => batch.push(delivery),
                Err(one) => ended.push(one),
            }
        }
        if batch.is_empty() {
            join_all(ended).await;
        }
        batch
    }

    fn accept_one(&self, item: ClaimedItem) -> Result<Delivery<T>, oneshot::Receiver<()>> {
        let store = &self.store;
        if let (Some(deliveries), Some(most)) = (item.deliveries(&store.paths), store.limits.max_deliveries)
            && deliveries > most
        {
            let detail = format!("it was handed out {most} times and not acknowledged");
            return Err(leave(store, item, ItemEnd::Bury(DeadReason::TooManyDeliveries, detail)));
        }
        match self.decode(&item.node.data) {
            Ok(decoded) => {
                if planted!(DeleteBeforeProcessing) {
                    delete_early(store, &item);
                }
                Ok(Delivery::new(decoded, store, item))
            }
            Err(detail) => {
                let end = match self.is_undecodable(&item, &detail) {
                    true => ItemEnd::Bury(DeadReason::Undecodable, detail),
                    false => ItemEnd::Unclaim,
                };
                Err(leave(store, item, end))
            }
        }
    }

    /// True for an item that cannot be decoded here, and that no other consumer took for long enough.
    fn is_undecodable(&self, item: &ClaimedItem, detail: &str) -> bool {
        let patience = self.store.limits.undecodable_after;
        if patience.is_zero() {
            return true;
        }
        let handed_out = item.handed_out_before(&self.store.paths);
        let left_for = self.store.aside.leave(&item.name, &item.node.stat, handed_out, patience);
        if left_for.is_some_and(|left_for| left_for >= patience) {
            return true;
        }
        let (path, name) = (&self.store.path, &item.name);
        tracing::warn!(%path, item = %name, detail, "cannot decode the item; leaving it for other consumers");
        false
    }
}

/// The defect [`DeleteBeforeProcessing`](docent_core::planted::Planted::DeleteBeforeProcessing).
fn delete_early(store: &std::sync::Arc<Store>, item: &ClaimedItem) {
    let (store, claim, item) = (std::sync::Arc::clone(store), item.hold.path(), store.paths.item(&item.name));
    let client = store.client.clone();
    let delete = async move {
        let _ = client.delete(&claim, None).await;
        let _ = client.delete_all(&item).await;
    };
    docent_core::recipe::spawn(&store.client, delete);
}
