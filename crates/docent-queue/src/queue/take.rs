//! The consumer's side of a queue.

use super::builder::MOST;
use super::{Deliveries, Queue};
use crate::consumer::{ClaimedItem, Wakeups, claims, ordered};
use crate::dead_letters::{DeadReason, bury};
use crate::delivery::Delivery;
use crate::error::PeekError;
use crate::store::Store;
use docent_core::recipe::in_time;
use docent_core::{Error, ErrorKind, planted};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

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
    /// This method is cancel safe, but you lose your place in the line: an item that was claimed on the way
    /// goes back, and counts as handed out once more.
    pub async fn take(&self) -> Result<Delivery<T>, Error> {
        loop {
            if let Some(delivery) = self.take_batch(1).await?.pop() {
                return Ok(delivery);
            }
        }
    }

    /// Takes the next item if there is one that is free.
    ///
    /// # Errors
    /// `NoAuth`, `ShortLease`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe: an item that was claimed on the way goes back, and counts as handed out
    /// once more.
    pub async fn try_take(&self) -> Result<Option<Delivery<T>>, Error> {
        let Store { client, path, .. } = &*self.store;
        // Others of this process may be before it.
        let attempt = self.attempt(1, false);
        Ok(in_time(client, "take", path, attempt).await?.pop())
    }

    /// Takes the next item, and waits for one at most for `timeout` in all; `None` when there was none.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    ///
    /// # Cancel safety
    /// As [`take`](Self::take).
    pub async fn take_timeout(&self, timeout: Duration) -> Result<Option<Delivery<T>>, Error> {
        match tokio::time::timeout(timeout, self.take()).await {
            Ok(taken) => taken.map(Some),
            Err(_) => Ok(None),
        }
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
    pub async fn take_batch(&self, count: usize) -> Result<Vec<Delivery<T>>, Error> {
        if !(1..=MOST).contains(&count) {
            return Err(Error::invalid_input("take", format!("a batch of {count} must be from 1 to {MOST}")));
        }
        loop {
            match self.wait_for(count).await {
                Ok(batch) => return Ok(batch),
                Err(error) if is_passing(&error) => {
                    tracing::debug!(path = %self.store.path, %error, "taking goes on");
                    self.store.idle.pause(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The items as a stream, each to be acknowledged. It survives lost links and sessions, and ends when the
    /// client is closed. An error such as `NoAuth` is emitted, and it goes on trying when it is polled again.
    ///
    /// With a [prefetch](crate::QueueBuilder::prefetch) of more than 1 it claims up to that many in one write
    /// and hands them out one after the other. They are in order for this consumer; others work on later
    /// items meanwhile, while these wait. All count as handed out when they are claimed: when the consumer
    /// dies, items that it never saw count, too. Items whose claim was lost while they waited are left out.
    ///
    /// # Assumptions
    /// It is polled until it is dropped. A stream that is not polled keeps its place in the line of waiting
    /// consumers, and the consumers behind it wait for it; items that it claimed meanwhile are nobody else's.
    ///
    /// # On drop
    /// Items that were claimed and not handed out go back.
    pub fn deliveries(&self) -> Deliveries<T>
    where
        T: Send + 'static,
    {
        Deliveries::new(self.clone(), self.store.limits.prefetch)
    }

    /// The item that would be handed out next, which stays in the queue. Somebody else may take it at any
    /// time. In `ordered` mode it is the first, also while it is worked on.
    ///
    /// # Errors
    /// [`PeekError::Undecodable`] when it cannot be decoded; `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn peek(&self) -> Result<Option<T>, PeekError> {
        let Store { client, paths, .. } = &*self.store;
        for name in self.store.items.list().await? {
            let node = match client.get(&paths.item(&name)).await {
                Ok(node) => node,
                Err(error) if error.kind() == ErrorKind::NoNode => continue,
                Err(error) => return Err(error.into()),
            };
            let claimed = match paths.counts_claims() {
                true => node.stat.num_children > 0,
                false => client.exists(&paths.claim(&name)).await?.is_some(),
            };
            if !claimed {
                let decoded = self.decode(&node.data);
                return decoded.map(Some).map_err(|detail| PeekError::Undecodable { item: name, detail });
            }
        }
        Ok(None)
    }

    /// Takes free items, or waits in the line for one.
    async fn wait_for(&self, count: usize) -> Result<Vec<Delivery<T>>, Error> {
        if let Some(lock) = &self.store.lock {
            loop {
                let taken = ordered::take_locked(&self.store, lock).await?;
                if let Some(delivery) = self.accept(taken).await? {
                    return Ok(vec![delivery]);
                }
            }
        }
        let batch = self.attempt(count, false).await?;
        if !batch.is_empty() {
            return Ok(batch);
        }
        loop {
            let place = self.store.idle.acquire(None).await?;
            let mut wakeups = Wakeups::new(&self.store)?;
            loop {
                tokio::select! {
                    wakeup = wakeups.next() => {
                        if !wakeup? {
                            // The client is closed: the line says so.
                            break;
                        }
                    }
                    // Somebody else is first in the line, and watches now.
                    _ = place.lost() => break,
                }
                let batch = self.attempt(count, true).await?;
                if !batch.is_empty() {
                    return Ok(batch);
                }
                wakeups.watch_claims()?;
            }
        }
    }

    /// Takes items that are free now, if there are any.
    async fn attempt(&self, count: usize, look: bool) -> Result<Vec<Delivery<T>>, Error> {
        loop {
            let taken = match &self.store.lock {
                Some(lock) => ordered::try_take_locked(&self.store, lock).await?.into_iter().collect(),
                None => claims::claim_lowest(&self.store, count, look).await?,
            };
            if taken.is_empty() {
                return Ok(Vec::new());
            }
            let mut batch = Vec::with_capacity(taken.len());
            for taken in taken {
                batch.extend(self.accept(taken).await?);
            }
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
    }

    /// The taken item as a delivery; `None` when it went to the dead letters.
    async fn accept(&self, taken: ClaimedItem) -> Result<Option<Delivery<T>>, Error> {
        if let (Some(deliveries), Some(most)) = (taken.deliveries, self.store.limits.max_deliveries)
            && deliveries > most
        {
            let detail = format!("it was handed out {most} times and not acknowledged");
            bury(&self.store, taken, DeadReason::TooManyDeliveries, detail).await?;
            return Ok(None);
        }
        match self.decode(&taken.node) {
            Ok(item) => {
                let ClaimedItem { guard, mine, deliveries, .. } = taken;
                if planted!(DeleteBeforeProcessing) {
                    let delete = self.store.client.transaction().delete(&guard.path(), None);
                    let _ = delete.delete(&mine.item(), None).commit().await;
                }
                Ok(Some(Delivery::new(item, guard, mine, deliveries)))
            }
            Err(detail) => {
                bury(&self.store, taken, DeadReason::Undecodable, detail).await?;
                Ok(None)
            }
        }
    }

    fn decode(&self, node: &bytes::Bytes) -> Result<T, String> {
        let item = self.store.paths.unframe(node)?;
        // A decoder that panics at an item would do so again and again, and nobody got the ones behind it.
        match catch_unwind(AssertUnwindSafe(|| self.codec.decode(&item))) {
            // The item is kept, and what else the codec has to say may repeat parts of it.
            Ok(decoded) => decoded.map_err(|error| error.summary().to_owned()),
            Err(_) => Err("its decoder panicked".to_owned()),
        }
    }
}

/// True for errors that an outage causes and time mends.
///
/// Other errors than `Line::wait_out` waits out: the claim, or the lock of the ordered mode, may be lost on
/// the way, and a claim may be of unknown outcome. A missing folder of items is an empty queue, and no error.
fn is_passing(error: &Error) -> bool {
    match error.kind() {
        // The error of a client which is bound to a session that has ended.
        ErrorKind::SessionChanged => false,
        // A claim of unknown outcome goes with the session that it was sent in (decision 8).
        ErrorKind::OutcomeUnknown => true,
        _ => error.is_retryable() || error.is_lost(),
    }
}
