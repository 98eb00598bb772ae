use super::{PutOptions, Queue};
use crate::consumer::{bury, look_ahead};
use crate::error::AckError;
use crate::layout::{DeadReason, Head};
use crate::store::{ClaimedItem, OwnClaim, Store};
use crate::telemetry::delivery_span;
use docent_core::recipe::{AsHold, Hold, HoldRef};
use docent_core::{Error, Fence, Lost, LostReason, Node, Transaction, planted};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Span;

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
/// The item goes back to its place after a delay, as with [`nack`](Self::nack): in the background, tried
/// until it is done. It never blocks or panics, also outside a runtime.
#[must_use = "an item goes back to the queue when its delivery is dropped"]
pub struct Delivery<T> {
    item: T,
    held: HeldItem,
}

/// An item that was handed out, without regard to what it is.
struct HeldItem {
    // Dropped in this order: once the item is not held any more it may be claimed again.
    hold: Hold,
    store: GivenBack,
    name: String,
    node: Node,
    deliveries: Option<u32>,
}

/// The store of an item that comes back when this is dropped, unless the item was ended before.
struct GivenBack {
    store: Arc<Store>,
    /// True when it does not come back, or not at once. Not so while it is being ended: that may fail.
    ended: bool,
    /// Span of the delivery, which ends with this.
    span: Span,
    _own: Option<OwnClaim>,
}

impl GivenBack {
    /// Notes in the span how the delivery ended.
    fn note(&self, end: &'static str) {
        self.span.record("docent.end", end);
    }
}

impl Deref for GivenBack {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Drop for GivenBack {
    fn drop(&mut self) {
        if !self.ended {
            self.desk.look_again();
        }
    }
}

impl HeldItem {
    fn path(&self) -> String {
        self.store.paths.item(&self.name)
    }

    /// Ends the claim, deletes the item and applies `transaction`, in one step.
    async fn end(mut self, transaction: Transaction) -> Result<(), AckError> {
        let path = self.path();
        if planted!(ClaimLeftBehind) {
            let end = transaction.delete(&path, None).commit_exactly().await;
            std::mem::forget(self.hold);
            return Ok(end.map(drop)?);
        }
        look_ahead(&self.store.store);
        self.store.ended = false;
        self.hold.end_with("ack", &[path], transaction).await?;
        self.store.note("acknowledged");
        self.store.ended = true;
        Ok(())
    }

    /// Its claim, the path of its item, and the store that it may come back to.
    fn into_hold(self) -> (Hold, (String, GivenBack)) {
        let path = self.path();
        (self.hold, (path, self.store))
    }

    fn nothing_else(&self) -> Transaction {
        self.store.client.transaction()
    }
}

impl<T> Delivery<T> {
    pub(crate) fn new(item: T, store: &Arc<Store>, claimed: ClaimedItem) -> Self {
        let deliveries = claimed.deliveries(&store.paths);
        let ClaimedItem { mut hold, name, node, own, .. } = claimed;
        let delay = store.limits.delay(deliveries);
        if !delay.is_zero() {
            hold.delay_on_drop(delay);
        }
        let span = delivery_span(store.client.label(), &store.path, &name, hold.fence(), deliveries);
        let store = GivenBack { store: Arc::clone(store), ended: !delay.is_zero(), span, _own: own };
        Self { item, held: HeldItem { hold, store, name, node, deliveries } }
    }

    /// The item.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// The name of the item's node, which no other item of this queue has or had, until a
    /// [`reset`](crate::Queue::reset). For logs, and to recognise an item that is handed out again.
    pub fn name(&self) -> &str {
        &self.held.name
    }

    /// Number of times the item was handed out, this one included: 1 for the first. A claim that nobody got
    /// is taken back, and does not count; one whose process dies between the claim and the hand-out does.
    /// `None` where it is not counted, which is in Curator's layout.
    pub fn deliveries(&self) -> Option<u32> {
        self.held.deliveries
    }

    /// The fencing token: higher than the fence of every earlier delivery of this item.
    pub fn fence(&self) -> Fence {
        self.held.hold.fence()
    }

    /// Span of this delivery, for the code that works on the item: it begins with the hand-out and ends with
    /// the delivery. It is none where nobody listens.
    pub fn span(&self) -> &Span {
        &self.held.store.span
    }

    /// The path of the node by which it is held.
    pub fn path(&self) -> String {
        self.held.hold.path()
    }

    /// True while it is certain that nobody else has the item. No I/O: compares clock and session, and is
    /// right even after the process was frozen. Once false it stays false.
    pub fn is_held(&self) -> bool {
        self.held.hold.is_held()
    }

    /// Resolves with the reason when the delivery is lost.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.held.hold.lost().await
    }

    /// Cancelled when the delivery is lost. Cancelling it changes nothing about the delivery.
    pub fn token(&self) -> CancellationToken {
        self.held.hold.token()
    }

    /// Runs `future` for as long as the delivery is held. The clock is looked at before every poll.
    ///
    /// # Errors
    /// [`Lost`] as soon as it is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.held.hold.run(future).await
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
        self.held.hold.verify().await
    }

    /// Prepares writes to ZooKeeper that are applied, all together, only while the delivery is held. For
    /// writes that go together with the acknowledgement there is [`ack_with`](Self::ack_with).
    pub fn transaction(&self) -> Transaction {
        self.held.hold.transaction()
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
        self.into_item().await.map(drop)
    }

    /// As [`ack`](Self::ack), and returns the item.
    ///
    /// # Errors
    /// As [`ack`](Self::ack).
    ///
    /// # Cancel safety
    /// As [`ack`](Self::ack).
    pub async fn into_item(self) -> Result<T, AckError> {
        let Self { item, held } = self;
        let nothing_else = held.nothing_else();
        held.end(nothing_else).await?;
        Ok(item)
    }

    /// Parts the item from its delivery, which is acknowledged or given back without it.
    pub fn into_parts(self) -> (T, Delivery<()>) {
        let Self { item, held } = self;
        (item, Delivery { item: (), held })
    }

    /// As [`ack`](Self::ack), and applies `transaction` in the same step, after the item was deleted: all of
    /// it or nothing. Effects in ZooKeeper happen exactly once for each item this way. Prepare it with
    /// [`Client::transaction`](docent_core::Client::transaction), or with the transaction of a guard of the
    /// same client: then all is done only while that is held, too.
    ///
    /// # Errors
    /// As [`ack`](Self::ack), and the error of the operation that failed, with its path: then nothing was
    /// applied, and the item is back in its place. So it is with [`AckError::Lost`] when the guard of the
    /// transaction does not hold any more. `InvalidInput` for a transaction of another client.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, the item goes back to its
    /// place.
    pub async fn ack_with(self, transaction: Transaction) -> Result<(), AckError> {
        self.held.end(transaction).await
    }

    /// As [`ack`](Self::ack), and puts `item` into another queue in the same step: an item goes through
    /// several queues and is in exactly one of them.
    ///
    /// # Errors
    /// As [`ack`](Self::ack); [`AckError::Put`] when it does not fit into the other queue, and then the item
    /// is back in its place. `InvalidInput` for a queue of another client.
    ///
    /// # Cancel safety
    /// As [`ack`](Self::ack).
    pub async fn ack_and_put<U: 'static>(self, queue: &Queue<U>, item: &U) -> Result<(), AckError> {
        if !self.held.store.idle.shares_client(&queue.store.idle) {
            let rule = "what ends in one step must be of one client";
            return Err(Error::invalid_input("ack", rule).into());
        }
        let put = queue.prepare_put(self.held.nothing_else(), item).await.map_err(AckError::Put)?;
        self.held.end(put).await
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
        let nothing_else = first.held.nothing_else();
        let (holds, held): (Vec<_>, Vec<_>) =
            deliveries.into_iter().map(|Self { held, .. }| held.into_hold()).unzip();
        let (items, mut stores): (Vec<_>, Vec<GivenBack>) = held.into_iter().unzip();
        if let Some(first) = stores.first() {
            look_ahead(&first.store);
        }
        stores.iter_mut().for_each(|store| store.ended = false);
        Hold::end_all("ack", holds, &items, nothing_else).await?;
        for store in &mut stores {
            store.note("acknowledged");
            store.ended = true;
        }
        Ok(())
    }

    /// Gives the item back after a delay that doubles with each time it was handed out
    /// ([`redelivery_delay`](crate::QueueBuilder::redelivery_delay)): so that a consumer whose own servers
    /// are down does not use up the item's deliveries within a moment. Nobody gets it before; when this
    /// client is closed, or its session ends, it is back at once. Then it is before all items that were put
    /// later; others overtake it meanwhile. In `ordered` mode nothing is handed out meanwhile.
    ///
    /// # Errors
    /// [`AckError::Lost`] when the delivery was lost before.
    pub fn nack(self) -> Result<(), AckError> {
        let delay = self.held.store.limits.delay(self.held.deliveries);
        self.nack_after(delay)
    }

    /// As [`nack`](Self::nack), with a `delay` of your own.
    ///
    /// # Errors
    /// As [`nack`](Self::nack).
    pub fn nack_after(self, delay: Duration) -> Result<(), AckError> {
        self.held.store.note("given back");
        Ok(self.held.hold.release_after(delay)?)
    }

    /// Gives the item back at once, and waits until it is in its place: before all items that were put later.
    ///
    /// # Errors
    /// [`AckError::Lost`] when the delivery was lost before. `Timeout` when no server could be reached in
    /// time, `Closed`: it goes back in the background then, or with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once it was polled, giving it back goes on in the background.
    pub async fn nack_now(self) -> Result<(), AckError> {
        let HeldItem { store, hold, .. } = self.held;
        Ok(give_back(store, hold).await?)
    }

    /// Moves the item to the [dead letters](crate::Queue::dead_letters) now, with the reason, of which 500
    /// bytes are kept.
    ///
    /// # Errors
    /// As [`ack`](Self::ack).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be moved. If it is not, it goes back to its place.
    pub async fn reject(self, reason: &str) -> Result<(), AckError> {
        let HeldItem { mut store, hold, name, node, deliveries } = self.held;
        store.note("rejected");
        let head = Head::new(DeadReason::Rejected, reason, deliveries, &name);
        store.ended = false;
        bury(&store, hold, &node.data, &head).await?;
        store.ended = true;
        Ok(())
    }

    /// Puts the item back at another place, in one step: at the end of those with its new priority, and with
    /// its new delay, which is kept by the servers. The number of deliveries stays with it.
    ///
    /// # Errors
    /// As [`ack`](Self::ack). `InvalidInput` for options in Curator's layout, and for an ephemeral item,
    /// which goes with its producer's session.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be moved. If it is not, it goes back to its place.
    pub async fn put_back(self, options: PutOptions) -> Result<(), AckError> {
        if self.held.node.stat.owner.is_some() {
            let rule = "an ephemeral item must stay where it is: it goes with its producer's session";
            return Err(Error::invalid_input("put back", rule).into());
        }
        let HeldItem { mut store, hold, name, node, deliveries } = self.held;
        let place = options.place_in(&store.paths)?;
        // It comes back also where it could not be moved.
        store.ended = false;
        store.items.move_to("put back", hold, &name, &node.data, deliveries, place).await?;
        Ok(())
    }
}

impl<T: Send + Sync> AsHold for Delivery<T> {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(&self.held.hold)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        let HeldItem { store, hold, .. } = self.held;
        give_back(store, hold)
    }
}

/// Gives an item back at once.
async fn give_back(mut store: GivenBack, hold: Hold) -> Result<(), Error> {
    store.note("given back");
    store.ended = false;
    // Others here may try for it from now on, and again once it is back.
    store.desk.look_again();
    hold.release().await
}

// The data of the queue is not printed.
impl<T> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("name", &self.held.name)
            .field("deliveries", &self.held.deliveries)
            .field("guard", &self.held.hold)
            .finish_non_exhaustive()
    }
}
