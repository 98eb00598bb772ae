use super::{PutOptions, Queue};
use crate::consumer::{bury, leave, look_ahead};
use crate::error::AckError;
use crate::layout::{DeadReason, Head};
use crate::store::{ClaimedItem, ItemEnd, OwnClaim, Store};
use crate::telemetry::delivery_span;
use docent_core::recipe::Hold;
use docent_core::{Error, Fence, Guard, Held, Lost, Node, Transaction, planted};
use futures_util::future::BoxFuture;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tracing::Span;

/// An item of a [`Queue`](crate::Queue) that was handed to this consumer, to be acknowledged.
///
/// No other consumer gets it while this is held. It dereferences to [`Held`], which says whether that is so.
/// Once it is [lost](Held::lost) another consumer may get the item. [`Held::revoked`] resolves when the
/// client's [shutdown](docent_core::Client::shutdown) asks for the item: finish it and acknowledge, or give
/// it back with [`nack_now`](Self::nack_now) so that another consumer starts on it immediately. For writes
/// that go together with the acknowledgement there is [`ack_with`](Self::ack_with).
///
/// # Guarantees
/// An item is handed out again only after a [`nack`](Self::nack), a drop, or a loss. Once another consumer
/// has the item, the servers refuse the acknowledgement and every write of this delivery, even if its process
/// was stalled and does not know of the loss.
///
/// # On drop
/// The item goes back to its place after a delay, as with [`nack`](Self::nack), in the background. Never
/// blocks or panics, also outside a runtime.
#[must_use = "an item goes back to the queue when its delivery is dropped"]
pub struct Delivery<T> {
    item: T,
    given: Given,
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

/// An item that was handed out.
///
/// # On drop
/// It is given back with the delay of [`Delivery::nack`], unless it was taken out before.
struct Given(Option<HeldItem>);

impl Given {
    fn take(mut self) -> HeldItem {
        self.0.take().expect("it is taken out once, by value")
    }
}

impl Deref for Given {
    type Target = HeldItem;

    fn deref(&self) -> &HeldItem {
        self.0.as_ref().expect("it is taken out by value")
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let Some(held) = self.0.take() {
            let delay = held.delay();
            // Of one that was lost nobody asks.
            let _ = held.give_back_after(delay);
        }
    }
}

/// The store of an item that comes back when this is dropped, unless the item was ended before.
struct GivenBack {
    store: Arc<Store>,
    /// True when it does not come back, or not at once. Not so while it is being ended: that may fail.
    ended: bool,
    /// Span of the delivery, which ends with this.
    span: Span,
    own: Option<OwnClaim>,
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

    /// Delay of an item that is given back.
    fn delay(&self) -> Duration {
        self.store.limits.delay(self.deliveries)
    }

    /// Gives the item back to its place, to be handed out after `delay`.
    fn give_back_after(mut self, delay: Duration) -> Result<(), Lost> {
        if delay.is_zero() {
            // The drop submits the release, and the item is looked for again.
            return self.hold.check();
        }
        if !self.store.has_delays() || planted!(ClaimKeptForLater) {
            // The claim stays for so long. Nothing is to be looked for before.
            self.store.ended = true;
            return self.hold.release_after(delay);
        }
        self.hold.check()?;
        self.store.ended = true;
        let Self { hold, mut store, name, node, deliveries } = self;
        let item =
            ClaimedItem { hold, name, node, handed_out: true, counted_since: 0, own: store.own.take() };
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let until = store.store.time_of_day().saturating_add(delay);
        leave(&store.store, item, ItemEnd::Delay { until, deliveries });
        Ok(())
    }

    /// Ends the claim, deletes the item and applies `transaction`, in one step.
    fn end(self, transaction: Transaction) -> BoxFuture<'static, Result<(), AckError>> {
        // On the heap: users await it in futures of their own.
        Box::pin(self.end_once(transaction))
    }

    async fn end_once(mut self, transaction: Transaction) -> Result<(), AckError> {
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
        let ClaimedItem { hold, name, node, own, .. } = claimed;
        let span = delivery_span(store.client.label(), &store.path, &name, hold.fence(), deliveries);
        let store = GivenBack { store: Arc::clone(store), ended: false, span, own };
        Self { item, given: Given(Some(HeldItem { hold, store, name, node, deliveries })) }
    }

    /// The item.
    pub fn item(&self) -> &T {
        &self.item
    }

    /// The name of the item's node, which no other item of this queue has or had, until a
    /// [`reset`](crate::Queue::reset). For logs. An item that is given back with a delay gets another name,
    /// which ends with the same ten digits.
    pub fn name(&self) -> &str {
        &self.given.name
    }

    /// Number of times the item was handed out, this one included: 1 for the first. A claim that nobody got
    /// is taken back, and does not count; one whose process dies between the claim and the hand-out does.
    /// `None` where it is not counted, which is in Curator's layout.
    pub fn deliveries(&self) -> Option<u32> {
        self.given.deliveries
    }

    /// The fencing token: higher than the fence of every earlier delivery of this item.
    pub fn fence(&self) -> Fence {
        self.given.hold.fence()
    }

    /// Span of this delivery, for the code that works on the item: it begins with the hand-out and ends with
    /// the delivery. It is none where nobody listens.
    pub fn span(&self) -> &Span {
        &self.given.store.span
    }

    /// The path of the node by which it is held.
    pub fn path(&self) -> String {
        self.given.hold.path()
    }

    /// Acknowledges the item: it is deleted, and nobody gets it again. Exactly once, also when the reply is
    /// lost on the way.
    ///
    /// # Errors
    /// [`AckError::Lost`] when the delivery was lost before the acknowledgement was sent: the item is handed
    /// out again. `OutcomeUnknown` when the delivery was lost, or the session ended, before the servers
    /// answered. After any other error the item was not acknowledged and is back in its place.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be acknowledged. If it is not, it goes back to its
    /// place.
    pub fn ack(self) -> impl Future<Output = Result<(), AckError>> + use<T> {
        let acknowledged = self.into_item();
        async move { acknowledged.await.map(drop) }
    }

    /// As [`ack`](Self::ack), and returns the item.
    ///
    /// # Errors
    /// As [`ack`](Self::ack).
    ///
    /// # Cancel safety
    /// As [`ack`](Self::ack).
    pub fn into_item(self) -> impl Future<Output = Result<T, AckError>> + use<T> {
        let Self { item, given } = self;
        let nothing_else = given.nothing_else();
        let end = given.take().end(nothing_else);
        async move {
            end.await?;
            Ok(item)
        }
    }

    /// Parts the item from its delivery, which is acknowledged or given back without it.
    pub fn into_parts(self) -> (T, Delivery<()>) {
        let Self { item, given } = self;
        (item, Delivery { item: (), given })
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
        self.given.take().end(transaction).await
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
        if !self.given.store.idle.shares_client(&queue.store.idle) {
            let rule = "what ends in one step must be of one client";
            return Err(Error::invalid_input("ack", rule).into());
        }
        let prepare = queue.prepare_put(self.given.nothing_else(), item);
        let put = Box::pin(self.given.hold.run(prepare)).await?.map_err(AckError::Put)?;
        self.given.take().end(put).await
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
        let nothing_else = first.given.nothing_else();
        let (holds, held): (Vec<_>, Vec<_>) =
            deliveries.into_iter().map(|Self { given, .. }| given.take().into_hold()).unzip();
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
    /// ([`redelivery_delay`](crate::QueueBuilder::redelivery_delay)), so that a consumer whose own
    /// dependencies are down does not use up the item's deliveries within a moment.
    ///
    /// No consumer gets the item before that, also after this client has closed. Then it is before all items
    /// that were put later; others overtake it meanwhile. The item's node is replaced by one that has the
    /// time in its name, in the background and in one step with the end of the claim. If that fails, the item
    /// is back at once.
    ///
    /// In Curator's layout and in `ordered` mode the claim, or the lock, is kept for the time of the delay
    /// instead, and ends with the session. In `ordered` mode nothing is handed out meanwhile.
    ///
    /// # Errors
    /// [`AckError::Lost`] when the delivery was lost before.
    pub fn nack(self) -> Result<(), AckError> {
        let delay = self.given.delay();
        self.nack_after(delay)
    }

    /// As [`nack`](Self::nack), with this `delay`. A delay of zero gives the item back at once.
    ///
    /// # Errors
    /// As [`nack`](Self::nack).
    pub fn nack_after(self, delay: Duration) -> Result<(), AckError> {
        self.given.store.note("given back");
        Ok(self.given.take().give_back_after(delay)?)
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
        let HeldItem { store, hold, .. } = self.given.take();
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
        let HeldItem { mut store, hold, name, node, deliveries } = self.given.take();
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
        if self.given.node.stat.owner.is_some() {
            let rule = "an ephemeral item must stay where it is: it goes with its producer's session";
            return Err(Error::invalid_input("put back", rule).into());
        }
        let HeldItem { mut store, hold, name, node, deliveries } = self.given.take();
        let place = options.place_in(&store.store)?;
        // It comes back also where it could not be moved.
        store.ended = false;
        store.items.move_to("put back", hold, &name, &node.data, deliveries, place).await?;
        Ok(())
    }
}

impl<T> Deref for Delivery<T> {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.given.hold
    }
}

impl<T: Send + Sync> Guard for Delivery<T> {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        let HeldItem { store, hold, .. } = self.given.take();
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
            .field("name", &self.given.name)
            .field("deliveries", &self.given.deliveries)
            .field("guard", &self.given.hold)
            .finish_non_exhaustive()
    }
}
