//! The consumer's side of a queue.

use super::consume::consume;
use super::{Consume, Deliveries, Delivery, Queue};
use crate::consumer::{LATE, Request, is_passing, leave, ordered};
use crate::layout::DeadReason;
use crate::store::{ClaimedItem, ItemEnd, MOST, Store};
use docent_core::recipe::{InOperation, Line, full_error, full_path, in_time};
use docent_core::{Error, ErrorKind, planted};
use futures_util::future::join_all;
use std::fmt;
use std::future::Future;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// Pause before an operation that failed in an outage is retried.
const PAUSE: Duration = Duration::from_millis(200);

impl<T: 'static> Queue<T> {
    /// Takes the next item, waiting as long as necessary, even across lost connections and sessions.
    ///
    /// # Errors
    /// Errors that need an operator: `NoAuth`, which may concern only the next item, `AuthFailed`,
    /// `ShortLease`, `EnsembleRolledBack`; and `Closed`. `InvalidData` if ten items in a row, which are not
    /// moved to the dead letters, have another format than the items of this [layout](crate::QueueLayout), so
    /// that another program may have put them. They are left alone as an item is that [only others can
    /// decode](crate::QueueBuilder::undecodable_after), and the next call continues behind them.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses the call's place among the waiting consumers. No
    /// item is lost: an item that was claimed meanwhile is kept for the next call of this process. Without
    /// such a call within two seconds, or immediately in `ordered` mode, the item returns to its place in the
    /// queue. It does not count as handed out. If a call is not polled for two seconds, its item returns, and
    /// the call gets another one.
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

    /// Takes the next item if there is a free one.
    ///
    /// # Errors
    /// `NoAuth`, `ShortLease`, `Timeout`, `Closed`; `InvalidData` as for [`take`](Self::take).
    ///
    /// # Cancel safety
    /// This method is cancel safe. See [`take`](Self::take) for an item that was claimed meanwhile.
    pub fn try_take(&self) -> impl Future<Output = Result<Option<Delivery<T>>, Error>> + use<T> {
        let queue = self.clone();
        async move {
            let Store { client, path, .. } = &*queue.store;
            in_time(client, "take", path, queue.take_free()).await
        }
    }

    /// Takes the next item, waiting for at most `timeout`. Returns `None` if there was no item in time. The
    /// timeout limits only the wait: a first listing or a claim that is in progress when it expires is
    /// awaited for up to one more second.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses the call's place among the waiting consumers. See
    /// [`take`](Self::take) for items that were claimed meanwhile.
    pub fn take_timeout(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Delivery<T>>, Error>> + use<T> {
        let queue = self.clone();
        async move { queue.take_within(timeout).await }
    }

    /// Takes the next items, at most `count`, in one write. Waits for one item, like [`take`](Self::take),
    /// but not for more. [`Delivery::ack_all`] acknowledges several items in one write. In `ordered` mode the
    /// batch has one item.
    ///
    /// # Errors
    /// Those of [`take`](Self::take); `InvalidInput` if `count` is not from 1 to 1,000.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but cancelling it loses the call's place among the waiting consumers. See
    /// [`take`](Self::take) for items that were claimed meanwhile.
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

    /// Returns a stream of the items, each of which has to be acknowledged. The stream survives lost
    /// connections and sessions. It ends when the client is closed or [shut
    /// down](docent_core::Client::shutdown). An error such as `NoAuth` is yielded; when polled again, the
    /// stream retries after a pause that grows from 200 ms to 5 s.
    ///
    /// With a [prefetch](crate::QueueBuilder::prefetch) above 1, up to that many items are claimed in one
    /// write and kept for the next polls of this stream or for other calls of this process. This process
    /// hands them out in order; other processes meanwhile work on later items.
    ///
    /// Another write hands items out and counts the deliveries: first one item, then two together, four, and
    /// so on, as long as calls keep asking. Items for which no call asks within two seconds return and are
    /// not counted. If the process exits before that, the deliveries of all items in the same write stay
    /// counted.
    ///
    /// # On drop
    /// Items that were claimed and not handed out return within two seconds.
    pub fn deliveries(&self) -> Deliveries<T>
    where
        T: Send + 'static,
    {
        Deliveries::new(self.clone())
    }

    /// Takes items and does `work` on each of them, one after the other or
    /// [concurrently](Consume::concurrency), until it is [stopped](Consume::until). Use it instead of a loop
    /// over [`deliveries`](Self::deliveries) if each item is either done or to be repeated.
    ///
    /// - *The work returns `Ok`:* the item is acknowledged. In an outage this is retried for as long as the
    ///   claim of the item is held. If the claim is lost first, the item is delivered again, even though its
    ///   work completed.
    /// - *The work returns `Err`:* the error is logged, and the item is given back with the delay of
    ///   [`Delivery::nack`]. It is moved to the [dead letters](Self::dead_letters) when it has used up its
    ///   [deliveries](crate::QueueBuilder::max_deliveries).
    /// - *The claim is lost during the work:* the work is dropped, and another consumer gets the item.
    /// - *The work panics:* all items in work are given back, and the panic propagates to the caller.
    /// - *No server is reachable:* the consumer waits, for as long as the outage lasts.
    /// - *The client is [shut down](docent_core::Client::shutdown):* the consumer takes no more items. It
    ///   finishes and acknowledges the items in work, as far as the time of the shutdown allows, and then
    ///   returns `Ok`.
    ///
    /// To spawn the consumer as a task, write the work as `async move |item: &Item| …` with clones of what it
    /// needs: the compiler does not accept borrows of local variables there.
    ///
    /// Items are delivered at least once: the work must tolerate an item that it has seen before. An effect
    /// in ZooKeeper that must happen exactly once needs [`Delivery::ack_with`], and therefore `deliveries`.
    ///
    /// # Errors
    /// Errors that repeating cannot mend, after the items in work are finished: `NoAuth`, `AuthFailed`,
    /// `ShortLease`, `EnsembleRolledBack`; `InvalidData` as for [`take`](Self::take); `SessionChanged` if the
    /// client is bound to one session; `Closed` if the client was closed, or was already shutting down.
    ///
    /// # Cancel safety
    /// This method is cancel safe: if the future is dropped, the work is dropped, and the items in work
    /// return to the queue. An item whose acknowledgement was in progress may have been acknowledged.
    ///
    /// # Examples
    /// ```no_run
    /// # use docent_core::{Client, Error};
    /// # use docent_queue::Queue;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)] struct Job { id: u64 }
    /// # async fn send(_: &Job) -> Result<(), std::io::Error> { Ok(()) }
    /// # async fn example(client: Client, stop: tokio_util::sync::CancellationToken) -> Result<(), Error> {
    /// let jobs = Queue::<Job>::new(&client, "/queues/jobs")?;
    /// jobs.consume(async |job: &Job| send(job).await)
    ///     .concurrency(8)
    ///     .until(stop.cancelled())
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn consume<W, E>(&self, work: W) -> Consume<impl Future<Output = Result<(), Error>> + use<T, W, E>>
    where
        T: Send,
        W: AsyncFn(&T) -> Result<(), E>,
        E: fmt::Display,
    {
        Consume::new(|control| consume(self.clone(), work, control))
    }

    /// Takes free items, and `ahead` more for the next calls. Waits until there is at least one.
    pub(super) async fn wait_for(&self, count: usize, ahead: usize) -> Result<Vec<Delivery<T>>, Error> {
        loop {
            let batch = match &self.store.lock {
                // Boxed, because the mode is rare.
                Some(lock) => {
                    Box::pin(self.wait_for_lock(lock)).await.in_operation("take")?.into_iter().collect()
                }
                None => Request::new(&self.store, count, ahead, true).answer().await.in_operation("take")?,
            };
            let batch = self.accept(batch).await?;
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// Returns the first item, once this consumer has the lock. Returns `None` if the call was not polled for
    /// too long.
    async fn wait_for_lock(&self, lock: &Line) -> Result<Option<ClaimedItem>, Error> {
        loop {
            match ordered::take_locked(&self.store, lock).await {
                Err(error) if is_passing(&error) => {
                    // Event: A consumer cannot take the next item in order; the field `error` has the reason,
                    // such as an outage. It retries until it succeeds.
                    tracing::debug!(target: "docent::queue", client = %self.store.client.label(), path = %full_path(&self.store.client, &self.store.path), error = %full_error(&self.store.client, &error), "cannot take the next item; retrying");
                    lock.pause(PAUSE).await;
                }
                result => return result,
            }
        }
    }

    /// Returns an item that is free now, if there is one.
    async fn take_free(&self) -> Result<Option<Delivery<T>>, Error> {
        loop {
            let taken = match &self.store.lock {
                Some(lock) => {
                    let taken = Box::pin(ordered::try_take_locked(&self.store, lock)).await;
                    taken.in_operation("take")?.into_iter().collect()
                }
                None => Request::new(&self.store, 1, 0, false).answer().await.in_operation("take")?,
            };
            if taken.is_empty() {
                return Ok(None);
            }
            if let Some(delivery) = self.accept(taken).await?.pop() {
                return Ok(Some(delivery));
            }
        }
    }

    async fn take_within(&self, limit: Duration) -> Result<Option<Delivery<T>>, Error> {
        if self.store.lock.is_some() {
            return match timeout(limit, Box::pin(self.wait_for(1, 0))).await {
                Ok(batch) => Ok(batch?.pop()),
                Err(_) => Ok(None),
            };
        }
        let began = Instant::now();
        loop {
            let remaining = limit.saturating_sub(began.elapsed());
            let taken = Request::new(&self.store, 1, 0, true).answer_within(remaining).await;
            let taken = taken.in_operation("take")?;
            // Items that are not handed to any call are ended in the background.
            let remaining = limit.saturating_sub(began.elapsed()).saturating_add(LATE);
            let accepted = timeout(remaining, self.accept(taken)).await.unwrap_or(Ok(Vec::new()))?;
            if let Some(delivery) = accepted.into_iter().next() {
                return Ok(Some(delivery));
            }
            if began.elapsed() >= limit {
                return Ok(None);
            }
        }
    }

    /// Turns the claimed items into deliveries, without the items that must not be handed out. If no item is
    /// left, waits until the claims have ended.
    ///
    /// # Errors
    /// `InvalidData` if the queue [contains items of another
    /// format](crate::store::SkippedItems::foreign_format).
    async fn accept(&self, claimed: Vec<ClaimedItem>) -> Result<Vec<Delivery<T>>, Error> {
        let (mut batch, mut ended) = (Vec::new(), Vec::new());
        for item in claimed {
            match self.accept_one(item) {
                Ok(delivery) => batch.push(delivery),
                Err(ending) => ended.push(ending),
            }
        }
        if batch.is_empty() {
            join_all(ended).await;
            let store = &self.store;
            if let Some(foreign) = store.skipped.foreign_format(&store.path) {
                return Err(Error::of_recipe(ErrorKind::InvalidData, "take", foreign).at(&store.path));
            }
        }
        Ok(batch)
    }

    fn accept_one(&self, item: ClaimedItem) -> Result<Delivery<T>, oneshot::Receiver<()>> {
        let store = &self.store;
        if let (Some(deliveries), Some(most)) = (item.deliveries(&store.paths), store.limits.max_deliveries)
            && deliveries > most
        {
            let detail = format!("handed out {most} times and never acknowledged");
            return Err(leave(store, item, ItemEnd::Bury(DeadReason::TooManyDeliveries, detail)));
        }
        match self.decode(&item.node.data) {
            Ok(decoded) => {
                store.skipped.end_foreign();
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

    /// Returns whether this process cannot decode the item and no other consumer took it for long enough.
    fn is_undecodable(&self, item: &ClaimedItem, detail: &str) -> bool {
        let patience = self.store.limits.undecodable_after;
        if patience.is_zero() {
            return true;
        }
        let handed_out = item.handed_out_before(&self.store.paths);
        let skipped_for = self.store.skipped.skip(&item.name, &item.node.stat, handed_out, patience);
        let must_stay = self.store.paths.is_foreign(&item.node.data)
            && self.store.skipped.note_foreign(&item.name, item.node.stat.czxid, detail);
        if skipped_for.is_some_and(|skipped_for| skipped_for >= patience) && !must_stay {
            return true;
        }
        let (path, name) = (&self.store.path, &item.name);
        // Event: This process cannot decode an item of a queue; the field `detail` has the reason. It leaves
        // the item to other consumers, and moves it to the dead letters if none takes it within the
        // configured time.
        // Action: Check whether producers and consumers of the queue use compatible versions of the item's
        // type.
        tracing::warn!(target: "docent::queue", client = %self.store.client.label(), path = %full_path(&self.store.client, path), item = %name, detail, "cannot decode the item; leaving it for other consumers");
        false
    }
}

/// Planted defect [`DeleteBeforeProcessing`](docent_core::planted::Planted::DeleteBeforeProcessing).
fn delete_early(store: &std::sync::Arc<Store>, item: &ClaimedItem) {
    let (store, claim, item) = (std::sync::Arc::clone(store), item.hold.path(), store.paths.item(&item.name));
    let client = store.client.clone();
    let delete = async move {
        let _ = client.delete(&claim, None).await;
        let _ = client.delete_all(&item).await;
    };
    docent_core::recipe::spawn(&store.client, delete);
}
