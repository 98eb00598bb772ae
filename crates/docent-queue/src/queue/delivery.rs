use super::{PutOptions, Queue};
use crate::consumer::{bury, leave, list_ahead};
use crate::error::AckError;
use crate::layout::{DeadReason, Head};
use crate::store::{ClaimedItem, ItemEnd, OwnClaim, Store};
use crate::telemetry::delivery_span;
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Guard, Held, Lost, Released, Transaction, planted};
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// An item of a [`Queue`](crate::Queue) that was handed to this consumer and has to be acknowledged.
///
/// No other consumer gets the item while this delivery is held. Dereferences to [`Held`], which reports
/// whether the delivery is still held. Once it is [lost](Held::lost), another consumer may get the item.
///
/// [`Held::revoked`] resolves when the client's [shutdown](docent_core::Client::shutdown) asks for the item.
/// Either finish and acknowledge the item, or give it back with [`nack_now`](Self::nack_now), so that another
/// consumer can start immediately. Use [`ack_with`](Self::ack_with) for writes that have to be applied
/// together with the acknowledgement.
///
/// # Guarantees
/// An item is handed out again only after a [`nack`](Self::nack), a drop, or a loss. Once another consumer
/// has the item, the servers refuse the acknowledgement and every write of this delivery, even if its process
/// was stalled and does not know of the loss.
///
/// # On drop
/// The item returns to its place after a delay, as with [`nack`](Self::nack), in the background. The drop
/// never blocks or panics, even outside a runtime.
#[must_use = "an item goes back to the queue when its delivery is dropped"]
pub struct Delivery<T> {
    item: T,
    held: ReturnOnDrop,
}

/// An item that was handed out, in encoded form.
struct HeldItem {
    // Fields are dropped in this order: once the item is no longer held, it may be claimed again.
    claimed: ClaimedItem,
    store: ReturnNotice,
}

/// An item that was handed out.
///
/// # On drop
/// The item is given back with the delay of [`Delivery::nack`], unless it was taken out before.
struct ReturnOnDrop(Option<HeldItem>);

impl ReturnOnDrop {
    fn take(mut self) -> HeldItem {
        self.0.take().expect("the item is taken out only once, by a method that consumes the delivery")
    }
}

impl Deref for ReturnOnDrop {
    type Target = HeldItem;

    fn deref(&self) -> &HeldItem {
        self.0.as_ref().expect("the item is taken out only by a method that consumes the delivery")
    }
}

impl Drop for ReturnOnDrop {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            let delay = held.delay();
            // No caller can receive the error of a lost delivery.
            let _ = held.give_back_after(delay);
        }
    }
}

/// Store of an item that returns to the queue when this value is dropped, unless the item was ended before.
struct ReturnNotice {
    store: Arc<Store>,
    /// Whether the item does not return, or not immediately. False while the item is being ended, because
    /// that may fail.
    ended: bool,
    /// Span of the delivery, which ends with this value.
    span: Span,
    /// Record of the own claim, until the claim is released.
    own: Option<OwnClaim>,
}

impl ReturnNotice {
    /// Records in the span how the delivery ended.
    fn note(&self, end: &'static str) {
        self.span.record("docent.end", end);
    }
}

impl Deref for ReturnNotice {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Drop for ReturnNotice {
    fn drop(&mut self) {
        if !self.ended {
            self.dispatcher.request_listing();
        }
    }
}

impl HeldItem {
    fn deliveries(&self) -> Option<u32> {
        self.claimed.deliveries(&self.store.paths)
    }

    /// Returns the delay with which the item is given back.
    fn delay(&self) -> Duration {
        self.store.limits.delay(self.deliveries())
    }

    /// Gives the item back to its place, to be handed out after `delay`.
    fn give_back_after(mut self, delay: Duration) -> Result<(), Lost> {
        if delay.is_zero() {
            // The drop releases the claim, and the process checks for the item again.
            return self.claimed.hold.check();
        }
        if !self.store.has_delays() || planted!(ClaimKeptForLater) {
            // The claim stays for the length of the delay, so checking for the item earlier is useless.
            self.store.ended = true;
            return self.claimed.hold.release_after(delay);
        }
        self.claimed.hold.check()?;
        self.store.ended = true;
        let Self { mut store, mut claimed } = self;
        claimed.own = store.own.take();
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let until = store.time_of_day().saturating_add(delay);
        leave(&store.store, claimed, ItemEnd::Delay(until));
        Ok(())
    }

    /// Ends the claim, deletes the item and applies `transaction`, in one step.
    fn end(self, transaction: Transaction) -> BoxFuture<'static, Result<(), AckError>> {
        // Boxed, because callers await this future inside their own futures.
        Box::pin(async move {
            let Self { mut store, claimed } = self;
            let path = store.paths.item(&claimed.name);
            if planted!(ClaimLeftBehind) {
                let end = transaction.delete(&path, None).commit_exactly().await;
                std::mem::forget(claimed.hold);
                return Ok(end.map(drop)?);
            }
            list_ahead(&store.store);
            store.ended = false;
            claimed.hold.end_with("ack", &[path], transaction).await?;
            store.note("acknowledged");
            store.ended = true;
            Ok(())
        })
    }

    /// Returns the claim, the path of the item, and the store to which the item may return.
    fn into_hold(self) -> (Hold, (String, ReturnNotice)) {
        let path = self.store.paths.item(&self.claimed.name);
        (self.claimed.hold, (path, self.store))
    }

    fn empty_transaction(&self) -> Transaction {
        self.store.client.transaction()
    }
}

impl<T> Delivery<T> {
    pub(crate) fn new(item: T, store: &Arc<Store>, mut claimed: ClaimedItem) -> Self {
        let (fence, deliveries) = (claimed.hold.fence(), claimed.deliveries(&store.paths));
        let span = delivery_span(store.client.label(), &store.path, &claimed.name, fence, deliveries);
        let store = ReturnNotice { store: Arc::clone(store), ended: false, span, own: claimed.own.take() };
        Self { item, held: ReturnOnDrop(Some(HeldItem { claimed, store })) }
    }

    /// Returns the item.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// Returns the name of the item's node, for logs. The name is unique in this queue until a
    /// [`reset`](crate::Queue::reset). An item that is given back with a delay gets another name, which ends
    /// with the same ten digits.
    pub fn name(&self) -> &str {
        &self.held.claimed.name
    }

    /// Returns the number of deliveries of the item, including this one: 1 for the first delivery. A claim
    /// whose item was not handed to any call is not counted. If the process exits after the count is stored
    /// and before the call returns, the delivery stays counted. Returns `None` in Curator's layout, which
    /// does not count deliveries.
    pub fn deliveries(&self) -> Option<u32> {
        self.held.deliveries()
    }

    /// Returns the fencing token, which is higher than the fence of every earlier delivery of this item.
    pub fn fence(&self) -> Fence {
        self.held.claimed.hold.fence()
    }

    /// Returns the span of this delivery, for the code that works on the item. The span begins with the
    /// hand-out and ends with the delivery. Returns a disabled span if no subscriber is interested.
    pub fn span(&self) -> &Span {
        &self.held.store.span
    }

    /// Returns the path of the claim's node; in `ordered` mode, the path of the node in the lock's line.
    pub fn path(&self) -> String {
        self.held.claimed.hold.path()
    }

    /// Acknowledges the item: it is deleted and not handed out again. The acknowledgement is applied exactly
    /// once, even if the reply is lost.
    ///
    /// # Errors
    /// [`AckError::Lost`] if the delivery was lost before the acknowledgement was sent: the item is handed
    /// out again. `OutcomeUnknown` if the delivery was lost, or the session ended, before the servers
    /// answered. After any other error the item was not acknowledged and is back in its place.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been acknowledged. If it was not, it returns to
    /// its place.
    pub fn ack(self) -> impl Future<Output = Result<(), AckError>> + use<T> {
        let acknowledged = self.into_item();
        async move { acknowledged.await.map(drop) }
    }

    /// Acknowledges the item like [`ack`](Self::ack), and returns it.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been acknowledged. If it was not, it returns to
    /// its place.
    pub fn into_item(self) -> impl Future<Output = Result<T, AckError>> + use<T> {
        let Self { item, held } = self;
        let empty_transaction = held.empty_transaction();
        let end = held.take().end(empty_transaction);
        async move {
            end.await?;
            Ok(item)
        }
    }

    /// Separates the item from its delivery, which can then be acknowledged or given back without the item.
    pub fn into_parts(self) -> (T, Delivery<()>) {
        let Self { item, held } = self;
        (item, Delivery { item: (), held })
    }

    /// Acknowledges the item like [`ack`](Self::ack), and applies `transaction` in the same step, after the
    /// deletion of the item: both are applied or neither. Effects in ZooKeeper therefore happen exactly once
    /// for each item.
    ///
    /// Create the transaction with [`Client::transaction`](docent_core::Client::transaction), or with a guard
    /// of the same client. With a guard's transaction, everything is applied only while that guard is held as
    /// well.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack), and the error of the operation that failed, with its path: nothing was
    /// applied, and the item is back in its place. The same is true of [`AckError::Lost`] if the guard of the
    /// transaction is no longer held. `InvalidInput` for a transaction of another client.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the transaction may have been applied. If it was not, the item
    /// returns to its place.
    pub async fn ack_with(self, transaction: Transaction) -> Result<(), AckError> {
        self.held.take().end(transaction).await
    }

    /// Acknowledges the item like [`ack`](Self::ack), and puts `item` into another queue in the same step. An
    /// item that passes through several queues this way is always in exactly one of them.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack); [`AckError::Put`] if the item cannot be put into the other queue, in
    /// which case this delivery's item is back in its place. `InvalidInput` for a queue of another client.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the step may have been applied. If it was not, the item returns to
    /// its place.
    pub async fn ack_and_put<U: 'static>(self, queue: &Queue<U>, item: &U) -> Result<(), AckError> {
        if !self.held.store.idle.shares_client(&queue.store.idle) {
            let rule = "a delivery and the queue for its next item must belong to the same client";
            return Err(Error::invalid_input("ack", rule).into());
        }
        let prepare = queue.prepare_put(self.held.empty_transaction(), item);
        let put = Box::pin(self.held.claimed.hold.run(prepare)).await?.map_err(AckError::Put)?;
        self.held.take().end(put).await
    }

    /// Acknowledges several items in one step: all or none. In `ordered` mode there is only one delivery at a
    /// time.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack). If one delivery was lost, no item is acknowledged, and the other items
    /// return to their places. `InvalidInput` if there are no deliveries or they belong to different clients:
    /// all items return to their places.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the items may have been acknowledged. If they were not, they return
    /// to their places.
    pub async fn ack_all(deliveries: Vec<Self>) -> Result<(), AckError> {
        let Some(first) = deliveries.first() else {
            return Err(Error::invalid_input("ack", "a batch of 0 must be at least 1").into());
        };
        let empty_transaction = first.held.empty_transaction();
        let (holds, held): (Vec<_>, Vec<_>) =
            deliveries.into_iter().map(|Self { held, .. }| held.take().into_hold()).unzip();
        let (items, mut stores): (Vec<_>, Vec<ReturnNotice>) = held.into_iter().unzip();
        if let Some(first) = stores.first() {
            list_ahead(&first.store);
        }
        stores.iter_mut().for_each(|store| store.ended = false);
        Hold::end_all("ack", holds, &items, empty_transaction).await?;
        for store in &mut stores {
            store.note("acknowledged");
            store.ended = true;
        }
        Ok(())
    }

    /// Gives the item back after a delay that doubles with each delivery
    /// ([`redelivery_delay`](crate::QueueBuilder::redelivery_delay)). The delay keeps a consumer whose own
    /// dependencies are down from using up all deliveries of the item within a moment.
    ///
    /// No consumer gets the item before the delay has passed, even if this client is closed. After the delay
    /// the item precedes all items that were put later; until then, other items overtake it. In the
    /// background, and in one step with the end of the claim, the item's node is replaced by a node that has
    /// the time in its name. If that fails, the item is available again immediately.
    ///
    /// In Curator's layout and in `ordered` mode, the claim or the lock is kept for the duration of the delay
    /// instead. It is released earlier if the session ends. In `ordered` mode no item is handed out
    /// meanwhile.
    ///
    /// # Errors
    /// [`AckError::Lost`] if the delivery was already lost.
    pub fn nack(self) -> Result<(), AckError> {
        let delay = self.held.delay();
        self.nack_after(delay)
    }

    /// Gives the item back like [`nack`](Self::nack), after `delay`. With a delay of zero, the item is
    /// available immediately.
    ///
    /// # Errors
    /// Those of [`nack`](Self::nack).
    pub fn nack_after(self, delay: Duration) -> Result<(), AckError> {
        self.held.store.note("given back");
        Ok(self.held.take().give_back_after(delay)?)
    }

    /// Gives the item back immediately, and waits until it is in its place, before all items that were put
    /// later. Returns [`Released::Pending`] if that takes longer than the operation timeout or the lease: the
    /// item returns in the background, at the latest when the session ends.
    ///
    /// # Errors
    /// [`AckError::Lost`] if the delivery was already lost. `Closed` if the client is closed: the item
    /// returns when the session ends.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once the future has been polled, giving the item back continues in the
    /// background.
    pub async fn nack_now(self) -> Result<Released, AckError> {
        Ok(give_back(self.held.take()).await?)
    }

    /// Moves the item to the [dead letters](crate::Queue::dead_letters) immediately, with the first 500 bytes
    /// of the reason.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been moved. If it was not, it returns to its
    /// place.
    pub async fn reject(self, reason: &str) -> Result<(), AckError> {
        let deliveries = self.deliveries();
        let HeldItem { mut store, claimed: ClaimedItem { hold, name, node, .. } } = self.held.take();
        store.note("rejected");
        let head = Head::new(DeadReason::Rejected, reason, deliveries, &name);
        store.ended = false;
        bury(&store, hold, &node.data, &head).await?;
        store.ended = true;
        Ok(())
    }

    /// Puts the item back at another place, in one step: behind the items with its new priority, and with its
    /// new delay. The delay is stored at the servers, so it does not depend on this process. The item keeps
    /// its number of deliveries.
    ///
    /// # Errors
    /// Those of [`ack`](Self::ack). `InvalidInput` for options in Curator's layout, and for an ephemeral
    /// item, which is deleted with its producer's session.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may have been moved. If it was not, it returns to its
    /// place.
    pub async fn put_back(self, options: PutOptions) -> Result<(), AckError> {
        if self.held.claimed.node.stat.owner.is_some() {
            let rule =
                "an ephemeral item must keep its place, because it is deleted with its producer's session";
            return Err(Error::invalid_input("put back", rule).into());
        }
        let HeldItem { mut store, claimed } = self.held.take();
        let place = options.place_in(&store.store)?;
        // The item also returns if it could not be moved.
        store.ended = false;
        store.items.move_to("put back", claimed, place).await?;
        Ok(())
    }
}

impl<T> Deref for Delivery<T> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held.claimed.hold
    }
}

impl<T: Send + Sync> Guard for Delivery<T> {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        give_back(self.held.take())
    }
}

/// Gives an item back immediately.
async fn give_back(HeldItem { mut store, claimed }: HeldItem) -> Result<Released, Error> {
    store.note("given back");
    store.ended = false;
    // Other calls of this process may try to claim the item now, and again once it is back.
    store.dispatcher.request_listing();
    claimed.hold.release().await
}

// Does not print the data, which may be confidential.
impl<T> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("name", &self.name())
            .field("deliveries", &self.deliveries())
            .field("guard", &self.held.claimed.hold)
            .finish_non_exhaustive()
    }
}
