use super::held::Part;
use super::{Guard, Held, gone};
use crate::cleanup::Deletion;
use crate::client::{Client, Transaction, TransactionResult};
use crate::error::Error;
use crate::guard::{Fence, HoldState, Lost, LostReason, Role};
use crate::telemetry::Series;
use crate::time::{Timestamp, sleep_until};
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Hold on a node of ours: of a ticket whose turn came, or of a claim. The guards of recipes are made of it.
///
/// # On drop
/// It is given up and its node deleted, which is tried until it is done or the session has ended. The delete
/// is submitted in order with other calls. Never blocks or panics, also outside a runtime.
///
/// # Examples
/// A guard of a recipe of your own:
/// ```
/// use docent_core::recipe::Hold;
/// use docent_core::{Error, Guard, Held};
/// use std::ops::Deref;
///
/// pub struct ImportGuard(Hold);
///
/// impl Deref for ImportGuard {
///     type Target = Held;
///
///     fn deref(&self) -> &Held {
///         &self.0
///     }
/// }
///
/// impl Guard for ImportGuard {
///     fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
///         self.0.release()
///     }
/// }
/// ```
///
/// The end of the hold together with a write, both or neither:
/// ```no_run
/// # use docent_core::recipe::Hold;
/// # use docent_core::Error;
/// # async fn example(hold: Hold) -> Result<(), Error> {
/// let record = hold.client().transaction().set("/imports/last", "done", None);
/// hold.end_with("run", &[], record).await?;
/// # Ok(()) }
/// ```
#[must_use = "dropping a hold gives it up"]
pub struct Hold {
    held: Held,
    /// True if its end is not that of the node: it is lent, or cleanup deletes the node later.
    keeps_node: bool,
}

impl Hold {
    pub(crate) fn new(client: Client, subject: String, role: Role, state: Arc<HoldState>) -> Self {
        let held = Held::one(Part { client, subject, role, state });
        Self { held, keeps_node: false }
    }

    pub(super) fn part(&self) -> &Part {
        self.held.first()
    }

    pub(crate) fn state(&self) -> &Arc<HoldState> {
        &self.part().state
    }

    /// The fencing token. A [lent](Self::lend) hold has that of the hold that lent it.
    pub fn fence(&self) -> Fence {
        self.state().fence
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.client().shared().namespace.relative(self.state().path())
    }

    /// Sets `gauge` to 1 from now until the hold is lost or released, and then to 0. One gauge for each hold.
    pub fn show_in(&self, gauge: Series) {
        self.state().show_in(gauge);
    }

    /// Error of an operation that needs it, once it is lost.
    pub(crate) fn lost_in(&self, operation: &'static str, reason: LostReason) -> Error {
        self.part().lost_in(operation, reason)
    }

    /// As [`Held::run`]; but when the lease ran out, `future` is polled for `grace` longer, at most for
    /// the lease's margin, so that it can stop in its own way. The time runs from the end of the lease, also
    /// in a process that was paused meanwhile. There is no grace when it was lost in another way: somebody
    /// else may have its place already.
    ///
    /// # Errors
    /// [`Lost`] when it was lost before `future` was done; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run_with_grace<F: Future>(&self, grace: Duration, future: F) -> Result<F::Output, Lost> {
        let mut future = pin!(future);
        let grace = if planted!(GraceIsMargin) { Duration::MAX } else { grace };
        let done = self.held.run(future.as_mut()).await;
        if done.is_err()
            && let Some(end) = self.state().grace_end(grace)
        {
            self.poll_until(end, future).await;
        }
        done
    }

    /// Polls `future` while the session is not known to have ended, and at most until `end`.
    async fn poll_until<F: Future>(&self, end: Timestamp, mut future: Pin<&mut F>) {
        let generation = &self.state().generation;
        let mut over = pin!(sleep_until(generation.clock.as_ref(), end));
        poll_fn(|cx| {
            let is_over = generation.clock.now() >= end || generation.ended().is_some();
            if is_over || over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            future.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// Lends it: the lent hold shares this hold's node, fence, lease and revocation, and has its own end and
    /// loss token. It is lost if this one is lost, and given up if this one ends. Its own release or drop
    /// leaves the node to this one. [`Held::fence`] returns `None` for it.
    ///
    /// So the tasks of a process can hold a place one after the other without a request in between. Before
    /// you lend again, end the lent hold, then call [`may_be_lent_again`](Self::may_be_lent_again). A lent
    /// hold that you did not end is given up. After the first `lend`, metrics and log report the lent holds
    /// instead of this one. Each later one counts as an acquisition that took `waited`.
    pub fn lend(&self, waited: Duration) -> Self {
        let held = Held::one(Part { state: self.state().lend(waited), ..self.part().clone() });
        Self { held, keeps_node: true }
    }

    /// Returns whether this hold was made by [`lend`](Self::lend).
    pub fn is_lent(&self) -> bool {
        self.state().is_lent()
    }

    /// Returns whether this hold can be lent again, once the lent hold has ended: it is held, nobody asked
    /// for its place, the client is not shutting down, and the outcome of every transaction that is bound to
    /// its node is known.
    pub fn may_be_lent_again(&self) -> bool {
        let (state, shared) = (self.state(), self.client().shared());
        (planted!(TurnAfterLoss) || self.is_held())
            && !state.revoked().is_cancelled()
            && !shared.refuses(state.recipe().stage())
            && state.node.is_settled()
    }

    /// Gives it up and waits until its node is deleted.
    ///
    /// # Errors
    /// `Lost` when it was lost before the servers answered. `Timeout` when no server could be reached in
    /// time, `Closed`: the node is deleted in the background then, or goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        let Part { client, subject, state, .. } = self.part();
        let was_held = state.check().and_then(|()| state.hand_over());
        let gone = gone("release", subject, client.deadline(), was_held, state, self.leave());
        // On the heap, as with all that ends a hold: guards await it in futures of their own.
        Box::pin(gone).await
    }

    /// Gives it up after `delay`, or when the client is closed: nobody else gets it before. A lent hold ends
    /// at once.
    ///
    /// # Errors
    /// [`Lost`] when it had been lost before.
    pub fn release_after(mut self, delay: Duration) -> Result<(), Lost> {
        self.state().hand_over().map_err(|reason| Lost { reason })?;
        if self.is_lent() {
            return Ok(());
        }
        self.state().generation.cleanup.delete_later(&self.state().node, delay);
        // The drop of this hold would delete the node at once.
        self.keeps_node = true;
        Ok(())
    }

    /// Gives it up, deletes `nodes` and applies `transaction`, all or nothing and exactly once. `None` when
    /// it was applied but the reply with the results was lost. Errors name `operation`.
    ///
    /// # Errors
    /// As [`end_all`](Self::end_all).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, it is given up.
    pub async fn end_with(
        self,
        operation: &'static str,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        Self::end_all(operation, vec![self], nodes, transaction).await
    }

    /// Gives up `holds`, deletes `nodes` and applies `transaction`, all or nothing and exactly once, in the
    /// session of the holds. It happens in this order. `None` when it was applied but the reply with the
    /// results was lost. Errors name `operation`, the method that a user called.
    ///
    /// # Errors
    /// `InvalidInput` when holds and transaction are not of one client, or one of the holds is lent. `Lost`
    /// when one was lost before the transaction was sent, one of the nodes is gone, or a guard that the
    /// transaction is bound to does not hold any more; that of the operation that failed, with its path.
    /// Nothing was applied then, and the holds are given up. `OutcomeUnknown` when a lease or the session
    /// ended, or the deadline passed, before the outcome was known; `Timeout`, `TooLarge`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, the holds are given up.
    pub async fn end_all(
        operation: &'static str,
        holds: Vec<Self>,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        let Some(first) = holds.first() else {
            return Err(Error::invalid_input(operation, "a batch of 0 must be at least 1"));
        };
        // A client of another namespace would end other nodes at the same paths.
        let is_ours = |hold: &Self| Arc::ptr_eq(hold.client().shared(), first.client().shared());
        if !holds.iter().all(is_ours) || !transaction.is_of(first.client()) {
            return Err(Error::invalid_input(operation, "what ends in one step must be of one client"));
        }
        if let Some(lent) = holds.iter().find(|hold| hold.is_lent()) {
            let detail = format!("the hold of {:?} must not be lent", lent.path());
            return Err(Error::invalid_input(operation, detail));
        }
        let (generation, stage) = (Arc::clone(&first.state().generation), first.state().recipe().stage());
        for hold in &holds {
            hold.check_for(operation)?;
            if hold.state().generation.number != generation.number {
                // It is sent in the session of its holds or not at all (decision 8). Holds of the older
                // session are lost, or about to be.
                return Err(hold.lost_in(operation, LostReason::SessionAbandoned));
            }
        }
        // The client's shutdown waits for the write, though the holds are over before it.
        let _under_way = generation.held.begin_write(stage);
        for hold in &holds {
            // From here on our own delete may end the hold, of which its watch tells: that is no loss.
            hold.state().hand_over().map_err(|reason| hold.lost_in(operation, reason))?;
        }
        let states: Vec<_> = holds.iter().map(|hold| Arc::clone(hold.state())).collect();
        let done = Box::pin(transaction.commit_ending(operation, &states, nodes)).await;
        if done.is_ok() {
            // The nodes were deleted with the transaction.
            for hold in &holds {
                hold.state().node.leave();
            }
        }
        done
    }

    /// Gives it up for all who share it: [`Held::lost`] and [`Held::token`] tell them. That is
    /// done, and the delete of its node submitted, when this returns; the returned future waits until the
    /// node is deleted. Never blocks or panics, also outside a runtime.
    ///
    /// # Errors
    /// As [`release`](Self::release); `Lost` also when it had been given up before.
    ///
    /// # Cancel safety
    /// This method is cancel safe: giving up goes on in the background.
    pub fn give_up(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let Part { client, subject, state, .. } = self.part().clone();
        let was_held = state.check();
        state.give_up();
        let deletion = self.leave();
        Box::pin(
            async move { gone("release", &subject, client.deadline(), was_held, &state, deletion).await },
        )
    }

    /// Submits the delete of the node; `None` when another call did so before, or there is nothing to delete.
    pub(super) fn leave(&self) -> Option<Deletion> {
        if self.keeps_node {
            return None;
        }
        let node = &self.state().node;
        node.leave().then(|| Deletion::new(Arc::clone(node)))
    }
}

impl Deref for Hold {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl Guard for Hold {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // It is marked released before its node is deleted: that is no loss.
        self.state().release();
        drop(self.leave());
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}
