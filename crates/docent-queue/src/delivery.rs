use crate::error::AckError;
use crate::store::LocalClaim;
use docent_core::recipe::{AsHold, Hold, HoldRef};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An item of a [`Queue`](crate::Queue) that was handed to this consumer, to be acknowledged.
///
/// Nobody else gets it while this is held. As other guards it knows by the clock until when that is certain:
/// past it, or when its claim or its session is gone, the delivery is *lost*, which [`lost`](Self::lost)
/// tells, and the item is somebody else's.
///
/// # Guarantees
/// [`ack`](Self::ack) succeeds only for the claim that this delivery is. An item is handed out again only
/// after a [`nack`](Self::nack), a drop, or a loss.
///
/// # On drop
/// The item goes back to its place, as with [`nack`](Self::nack): in the background, submitted at once and
/// tried until it is done. It never blocks or panics, also outside a runtime.
#[must_use = "an item goes back to the queue when its delivery is dropped"]
pub struct Delivery<T> {
    item: T,
    // Dropped in this order: once the item is not held any more it may be claimed again.
    guard: Hold,
    mine: LocalClaim,
    deliveries: Option<u32>,
}

impl<T> Delivery<T> {
    pub(crate) fn new(item: T, guard: Hold, mine: LocalClaim, deliveries: Option<u32>) -> Self {
        Self { item, guard, mine, deliveries }
    }

    /// The item.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// The name of the item's node, which no other item of this queue has or had, until a
    /// [`reset`](crate::Queue::reset). For logs, and to recognise an item that is handed out again.
    pub fn name(&self) -> &str {
        &self.mine.name
    }

    /// Number of times the item was handed out, this one included: 1 for the first. Every claim counts, also
    /// one whose consumer died or never looked at the item. `None` where it is not counted, which is in
    /// Curator's layout.
    pub fn deliveries(&self) -> Option<u32> {
        self.deliveries
    }

    /// The fencing token: higher than the fence of every earlier delivery of this item.
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// The path of the node by which it is held.
    pub fn path(&self) -> String {
        self.guard.path()
    }

    /// True while it is certain that nobody else has the item. No I/O: compares clock and session, and is
    /// right even after the process was frozen. Once false it stays false.
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// Resolves with the reason when the delivery is lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.guard.lost().await
    }

    /// Cancelled when the delivery is lost. Cancelling it changes nothing about the delivery.
    pub fn token(&self) -> CancellationToken {
        self.guard.token()
    }

    /// Runs `future` for as long as the delivery is held. The clock is looked at before every poll.
    ///
    /// # Errors
    /// [`Lost`] as soon as it is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.guard.run(future).await
    }

    /// Asks the servers whether the delivery is held: a linearizable check. It was held at one moment between
    /// call and return.
    ///
    /// # Errors
    /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        self.guard.verify().await
    }

    /// Prepares writes to ZooKeeper that are applied, all together, only while the delivery is held. For
    /// writes that go together with the acknowledgement there is [`ack_with`](Self::ack_with).
    pub fn transaction(&self) -> Transaction {
        self.guard.transaction()
    }

    /// Acknowledges the item: it is deleted, and nobody gets it again. Exactly once, also when the reply is
    /// lost on the way.
    ///
    /// # Errors
    /// [`AckError::Lost`] when the delivery was lost before: the item is handed out again. `OutcomeUnknown`
    /// when the session ended before it could be found out whether it was acknowledged. After any other error
    /// it was not: the item is back in its place.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be acknowledged. If it is not, it goes back to its
    /// place.
    pub async fn ack(self) -> Result<(), AckError> {
        let nothing_else = self.mine.store.client.transaction();
        self.ack_with(nothing_else).await
    }

    /// As [`ack`](Self::ack), and applies `transaction` in the same step, after the item was deleted: all of
    /// it or nothing. Effects in ZooKeeper happen exactly once for each item this way. Prepare it with
    /// [`Client::transaction`](docent_core::Client::transaction).
    ///
    /// # Errors
    /// As [`ack`](Self::ack), and the error of the operation that failed, with its path: then nothing was
    /// applied, and the item is back in its place. `InvalidInput` for a transaction of another client.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, the item goes back to its
    /// place.
    pub async fn ack_with(self, transaction: Transaction) -> Result<(), AckError> {
        let Self { guard, mine, .. } = self;
        guard.end_with(&[mine.item()], transaction).await?;
        mine.done();
        Ok(())
    }

    /// Acknowledges several items in one step: all or none. In `ordered` mode there is one at a time.
    ///
    /// # Errors
    /// As [`ack`](Self::ack): when one of them was lost none is acknowledged, and the others go back to their
    /// places. `InvalidInput` for none, and when they are not of one client: then all go back.
    ///
    /// # Cancel safety
    /// As [`ack`](Self::ack).
    pub async fn ack_all(deliveries: Vec<Self>) -> Result<(), AckError> {
        let Some(first) = deliveries.first() else {
            return Err(Error::invalid_input("ack", "a batch of 0 must be at least 1").into());
        };
        let nothing_else = first.mine.store.client.transaction();
        let (guards, held): (Vec<_>, Vec<_>) =
            deliveries.into_iter().map(|Self { guard, mine, .. }| (guard, mine)).unzip();
        let items: Vec<_> = held.iter().map(LocalClaim::item).collect();
        Hold::end_all(guards, &items, nothing_else).await?;
        held.into_iter().for_each(LocalClaim::done);
        Ok(())
    }

    /// Gives the item back, and waits until it is in its place: before all items that were put later.
    ///
    /// # Errors
    /// `Lost` when the delivery was lost before. `Timeout` when no server could be reached in time, `Closed`:
    /// it goes back in the background then, or with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once it was polled, giving it back goes on in the background.
    pub async fn nack(self) -> Result<(), Error> {
        let Self { guard, mine, .. } = self;
        let store = Arc::clone(&mine.store);
        // Others here may try for it from now on: who gives it back may be slow to hear that it is back.
        drop(mine);
        let done = guard.release().await;
        store.local.look_again();
        done
    }

    /// Gives the item back after `delay`: nobody gets it before. The delay is kept by this client; when that
    /// is closed, or its session ends, the item is back at once. Others overtake it meanwhile; in `ordered`
    /// mode nothing is handed out meanwhile.
    ///
    /// # Errors
    /// [`Lost`] when the delivery was lost before.
    pub fn nack_after(self, delay: Duration) -> Result<(), Lost> {
        let Self { guard, mine: _mine, .. } = self;
        guard.release_after(delay)
    }
}

impl<T: Send + Sync> AsHold for Delivery<T> {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(&self.guard)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        self.nack()
    }
}

// The data of the queue is not printed.
impl<T> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("name", &self.mine.name)
            .field("deliveries", &self.deliveries)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}
