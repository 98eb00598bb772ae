use super::held::Part;
use super::{Guard, Held, Role, await_deletion};
use crate::cleanup::Deletion;
use crate::client::{Client, Transaction, TransactionResult};
use crate::error::Error;
use crate::guard::{Fence, HoldState, Lost, LostReason, Released};
use crate::telemetry::Series;
use crate::time::{Timestamp, sleep_until};
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// A hold on a node of this client: a ticket whose turn has come, or a [claim](crate::recipe::claim_all). The
/// guards of recipes are built from holds.
///
/// # On drop
/// The hold is given up and its node deleted. The delete is submitted in order with other calls, and retried
/// until it succeeds or the session has ended. Dropping never blocks or panics, even outside a runtime.
///
/// # Examples
/// A guard for a custom recipe:
/// ```
/// use docent_core::recipe::Hold;
/// use docent_core::{Error, Guard, Held, Released};
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
///     fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
///         self.0.release()
///     }
/// }
/// ```
///
/// Ending the hold together with a write, both or neither:
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
    /// True if the end of the hold does not end the node: the hold is lent, or cleanup deletes the node
    /// later.
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

    /// The fencing token. A [lent](Self::lend) hold has the token of the hold that lent it.
    pub fn fence(&self) -> Fence {
        self.state().fence
    }

    /// The path of the hold's node.
    pub fn path(&self) -> String {
        self.client().shared().namespace.relative(self.state().path())
    }

    /// Sets `gauge` to 1 from now until the hold is lost or released, and then to 0. Each hold has one gauge.
    pub fn show_in(&self, gauge: Series) {
        self.state().show_in(gauge);
    }

    /// Builds the error of an operation that needs this hold, after the hold is lost.
    pub(crate) fn lost_error(&self, operation: &'static str, reason: LostReason) -> Error {
        self.part().lost_error(operation, reason)
    }

    /// Same as [`Held::run`], but continues to poll `future` for `grace` after the end of the lease, at most
    /// for the lease's margin, so that `future` can stop gracefully. The grace starts at the end of the
    /// lease, even if the process was suspended in between. There is no grace if the hold was lost for
    /// another reason, because another client may already hold in its place.
    ///
    /// # Errors
    /// [`Lost`] if the hold was lost before `future` completed; `future` is then dropped.
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

    /// Polls `future` until the session is known to have ended, at most until `end`.
    async fn poll_until<F: Future>(&self, end: Timestamp, mut future: Pin<&mut F>) {
        let generation = &self.state().generation;
        let mut timer = pin!(sleep_until(generation.clock.as_ref(), end));
        poll_fn(|cx| {
            let has_ended = generation.clock.now() >= end || generation.ended().is_some();
            if has_ended || timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            future.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// Lends this hold. The lent hold shares this hold's node, fence, lease and revocation, and has a
    /// separate end and loss token. The lent hold is lost if this hold is lost, and given up if this hold
    /// ends. Releasing or dropping the lent hold leaves the node to this hold. For a lent hold,
    /// [`Held::fence`] returns `None`.
    ///
    /// The tasks of a process can therefore hold a place one after another without requests in between.
    /// Before you lend again, end the lent hold, then call [`may_be_lent_again`](Self::may_be_lent_again).
    /// The next `lend` gives up a lent hold that you did not end. After the first `lend`, metrics and log
    /// report the lent holds instead of this hold. Each later lent hold counts as an acquisition that took
    /// `waited`.
    pub fn lend(&self, waited: Duration) -> Self {
        let held = Held::one(Part { state: self.state().lend(waited), ..self.part().clone() });
        Self { held, keeps_node: true }
    }

    /// Returns whether this hold was created by [`lend`](Self::lend).
    pub fn is_lent(&self) -> bool {
        self.state().is_lent()
    }

    /// Returns whether this hold can be lent again, after the lent hold has ended. This requires that the
    /// hold is held, that no client asked for its place, that the client is not shutting down, and that the
    /// outcome of every transaction bound to the hold's node is known.
    pub fn may_be_lent_again(&self) -> bool {
        let (state, shared) = (self.state(), self.client().shared());
        (planted!(TurnAfterLoss) || self.is_held())
            && !state.revoked().is_cancelled()
            && !shared.refuses(state.recipe().kind.stage)
            && state.node.is_settled()
    }

    /// Gives up the hold and waits until its node is deleted, at most for the operation timeout and until the
    /// end of the lease. Returns [`Released::Pending`] if that takes longer: the deletion continues in the
    /// background.
    ///
    /// # Errors
    /// `Lost` if the hold was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the node is then deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        let Part { client, subject, state, .. } = self.part();
        let was_held = state.check().and_then(|()| state.hand_over());
        let deletion =
            await_deletion("release", subject, client.deadline(), was_held, state, self.begin_deletion());
        // Boxed, like all futures that end a hold, because guards await it in their own futures.
        Box::pin(deletion).await
    }

    /// Gives up the hold after `delay`, or when the client is closed; no other client can hold in its place
    /// before. A lent hold ends immediately.
    ///
    /// # Errors
    /// [`Lost`] if the hold was lost before.
    pub fn release_after(mut self, delay: Duration) -> Result<(), Lost> {
        self.state().hand_over().map_err(|reason| Lost { reason })?;
        if self.is_lent() {
            return Ok(());
        }
        self.state().generation.cleanup.delete_later(&self.state().node, delay);
        // The drop of this hold would delete the node immediately.
        self.keeps_node = true;
        Ok(())
    }

    /// Gives up the hold, deletes `nodes` and applies `transaction`, all or nothing and exactly once. Returns
    /// `None` if the transaction was applied but the reply with the results was lost. Errors name
    /// `operation`.
    ///
    /// # Errors
    /// Same as [`end_all`](Self::end_all).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the transaction may have been applied. If it was not, the hold is
    /// given up.
    pub async fn end_with(
        self,
        operation: &'static str,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        Self::end_all(operation, vec![self], nodes, transaction).await
    }

    /// Gives up `holds`, deletes `nodes` and applies `transaction`, in this order, all or nothing and exactly
    /// once, in the session of the holds. Returns `None` if the transaction was applied but the reply with
    /// the results was lost. Errors name `operation`, the method that the user called.
    ///
    /// # Errors
    /// - `InvalidInput` if the holds and the transaction do not belong to one client, or if a hold is lent.
    /// - `Lost` if a hold was lost before the transaction was sent, if one of the nodes does not exist, or if
    ///   a guard that the transaction is bound to is no longer held. Also the error of an operation that
    ///   failed, with its path. Nothing was applied in these cases, and the holds are given up.
    /// - `OutcomeUnknown` if a lease or the session ended, or the deadline passed, before the outcome was
    ///   known.
    /// - `Timeout`, `TooLarge`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the transaction may have been applied. If it was not, the holds are
    /// given up.
    pub async fn end_all(
        operation: &'static str,
        holds: Vec<Self>,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        let Some(first) = holds.first() else {
            return Err(Error::invalid_input(operation, "batch size 0 must be at least 1"));
        };
        // A client with another namespace would end other nodes at the same paths.
        let is_same_client = |hold: &Self| Arc::ptr_eq(hold.client().shared(), first.client().shared());
        if !holds.iter().all(is_same_client) || !transaction.is_of(first.client()) {
            return Err(Error::invalid_input(operation, "holds and transaction must belong to one client"));
        }
        if let Some(lent) = holds.iter().find(|hold| hold.is_lent()) {
            let detail = format!("the hold of {:?} must not be lent", lent.path());
            return Err(Error::invalid_input(operation, detail));
        }
        let (generation, stage) = (Arc::clone(&first.state().generation), first.state().recipe().kind.stage);
        for hold in &holds {
            hold.check_for(operation)?;
            if hold.state().generation.number != generation.number {
                // The transaction is sent in the session of its holds or not at all (decision 8). Holds of
                // the older session are lost, or about to be.
                return Err(hold.lost_error(operation, LostReason::SessionAbandoned));
            }
        }
        // The client's shutdown waits for the write, although the holds end before it.
        let _under_way = generation.held.begin_write(stage);
        for hold in &holds {
            // From here on our own delete may end the hold, which its watch reports: this is not a loss.
            hold.state().hand_over().map_err(|reason| hold.lost_error(operation, reason))?;
        }
        let states: Vec<_> = holds.iter().map(|hold| Arc::clone(hold.state())).collect();
        let done = Box::pin(transaction.commit_ending(operation, &states, nodes)).await;
        if done.is_ok() {
            // The nodes were deleted with the transaction.
            for hold in &holds {
                hold.state().node.begin_deletion();
            }
        }
        done
    }

    /// Gives up the hold for all its users, who learn of it from [`Held::lost`] and [`Held::token`]. When
    /// this method returns, the hold is given up and the delete of its node submitted. The returned future
    /// waits until the node is deleted. Never blocks or panics, even outside a runtime.
    ///
    /// # Errors
    /// Same as [`release`](Self::release); `Lost` also if the hold was given up before.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the deletion continues in the background.
    pub fn give_up(&self) -> impl Future<Output = Result<Released, Error>> + Send + use<> {
        let Part { client, subject, state, .. } = self.part().clone();
        let was_held = state.check();
        state.give_up();
        let deletion = self.begin_deletion();
        Box::pin(async move {
            await_deletion("release", &subject, client.deadline(), was_held, &state, deletion).await
        })
    }

    /// Submits the delete of the node. Returns `None` if another call did so before, or if there is nothing
    /// to delete.
    pub(super) fn begin_deletion(&self) -> Option<Deletion> {
        if self.keeps_node {
            return None;
        }
        let node = &self.state().node;
        node.begin_deletion().then(|| Deletion::new(Arc::clone(node)))
    }
}

impl Deref for Hold {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl Guard for Hold {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        Self::release(self)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Marked as released before the node is deleted, so that the deletion is not a loss.
        self.state().release();
        drop(self.begin_deletion());
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}
