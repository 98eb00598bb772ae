use super::line::Ticket;
use super::sides::Role;
use crate::error::{Error, ErrorKind};
use crate::guard::{Fence, Held, Lost, LostReason, gone, run_while, verify};
use crate::operation::{Transaction, TransactionResult};
use crate::time::{Timestamp, sleep_until};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Hold that a ticket becomes when its turn comes. The guards of recipes are made of it.
///
/// # On drop
/// The node is deleted, as with [`Ticket`].
#[must_use = "dropping a hold gives it up"]
pub struct Hold {
    // Fields are dropped in this order: the guard is marked released before the ticket deletes its node.
    held: ReleaseOnDrop,
    ticket: Ticket,
}

impl Hold {
    pub(super) fn new(ticket: Ticket, held: Arc<Held>) -> Self {
        Self { held: ReleaseOnDrop(held), ticket }
    }

    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    pub(super) fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The fencing token.
    pub fn fence(&self) -> Fence {
        self.held.fence
    }

    /// The fence of an exclusive hold: its own, or the one it had before it stepped down. `None` for a hold
    /// that was never more than shared.
    pub fn exclusive_fence(&self) -> Option<Fence> {
        let stepped_down = self.fence() != self.ticket.fence();
        (stepped_down || self.ticket.line.role() == Role::Exclusive).then(|| self.fence())
    }

    /// True when the servers were found to be restored from an older copy since the client was built: then
    /// the fence may be lower than those of earlier holders.
    pub fn fence_may_have_regressed(&self) -> bool {
        self.ticket.line.client().state().current().rollbacks > 0
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        self.ticket.path()
    }

    /// True while it is certain that nobody else holds it: compares clock and session, without I/O. Right
    /// even after the process was frozen. Once false it never becomes true again.
    pub fn is_held(&self) -> bool {
        self.held.check().is_ok()
    }

    /// As [`is_held`](Self::is_held), with the reason.
    ///
    /// # Errors
    /// [`Lost`] with the first reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.held.check().map_err(|reason| Lost { reason })
    }

    /// As [`check`](Self::check), as the error of an operation.
    ///
    /// # Errors
    /// `Lost` with the first reason.
    pub fn check_for(&self, operation: &'static str) -> Result<(), Error> {
        let lost = |reason| Error::new(ErrorKind::Lost(reason), operation).at(self.ticket.line.path());
        self.held.check().map_err(lost)
    }

    /// Resolves when it is lost: also when the client's task is gone, and at the end of the lease when its
    /// threads are blocked.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.held.lost().await
    }

    /// Cancelled when it is lost or [given up](Self::give_up); not when it is released. Cancelling it changes
    /// nothing about the hold.
    pub fn token(&self) -> CancellationToken {
        self.held.token().child_token()
    }

    /// Resolves when somebody asked for it with [`Line::revoke`](super::Line::revoke). It is held on; give it
    /// up when it suits.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.held.revoked().cancelled().await;
    }

    /// Polls `future` for as long as it is held: the clock is looked at before every poll.
    ///
    /// # Errors
    /// [`Lost`] as soon as it is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.run_with_grace(Duration::ZERO, future).await
    }

    /// As [`run`](Self::run); but when the lease ran out, `future` is polled for `grace` longer, at most for
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
        let done = run_while(|| self.check(), self.held.lost(), future.as_mut()).await;
        if done.is_err()
            && let Some(end) = self.held.grace_end(grace)
        {
            self.poll_until(end, future).await;
        }
        done
    }

    /// Polls `future` while the session is not known to have ended, and at most until `end`.
    async fn poll_until<F: Future>(&self, end: Timestamp, mut future: Pin<&mut F>) {
        let generation = &self.held.generation;
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

    /// Asks a quorum whether it is held. It was, at one moment between call and return;
    /// [`is_held`](Self::is_held) says whether it may still be.
    ///
    /// # Errors
    /// `Lost`, `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        verify(self.ticket.line.client(), self.ticket.line.path(), &self.held).await
    }

    /// Prepares writes that are applied, all together, only while it is held.
    pub fn transaction(&self) -> Transaction {
        Transaction::held(self.ticket.line.client().clone(), [Arc::clone(&self.held)])
    }

    /// Gives it up and waits until its node is deleted.
    ///
    /// # Errors
    /// `Lost` when it had been lost before. `Timeout` when no server could be reached in time, `Closed`: the
    /// node is deleted in the background then, or goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        let was_held = self.held.check();
        self.held.release();
        let line = &self.ticket.line;
        gone("release", line.path(), line.client().deadline(), was_held, self.ticket.leave()).await
    }

    /// Gives it up after `delay`, or when the client is closed: nobody else gets it before.
    ///
    /// # Errors
    /// [`Lost`] when it had been lost before.
    pub fn release_after(self, delay: Duration) -> Result<(), Lost> {
        self.held.hand_over().map_err(|reason| Lost { reason })?;
        let Ticket { generation, path, left, .. } = &self.ticket;
        generation.cleanup.delete_later(generation, path.clone(), delay);
        left.store(true, Ordering::Release);
        Ok(())
    }

    /// Gives it up, deletes `nodes` and applies `transaction`, all or nothing and exactly once. `None` when
    /// it was applied but the reply with the results was lost.
    ///
    /// # Errors
    /// As [`Claim::end_with`](crate::recipe::Claim::end_with).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been applied. If it was not, it is given up.
    pub async fn end_with(
        self,
        nodes: &[String],
        transaction: Transaction,
    ) -> Result<Option<Vec<TransactionResult>>, Error> {
        if !transaction.is_of(self.ticket.line.client()) {
            return Err(Error::invalid_input("end", "what ends in one step must be of one client"));
        }
        self.held
            .hand_over()
            .map_err(|reason| Error::new(ErrorKind::Lost(reason), "end").at(self.ticket.line.path()))?;
        let (held, own) = (Arc::clone(&self.held), vec![self.held.path.clone()]);
        let done = transaction.commit_ending(&held.generation, std::slice::from_ref(&held), own, nodes).await;
        if done.is_ok() {
            self.ticket.left.store(true, Ordering::Release);
        }
        done
    }

    /// Gives it up for all who share it: [`lost`](Self::lost) and [`token`](Self::token) tell them. That is
    /// done, and the delete of its node submitted, when this returns; the returned future waits until the
    /// node is deleted. Never blocks or panics, also outside a runtime.
    ///
    /// # Errors
    /// As [`release`](Self::release); `Lost` also when it had been given up before.
    ///
    /// # Cancel safety
    /// This method is cancel safe: giving up goes on in the background.
    pub fn give_up(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let was_held = self.held.check();
        self.held.give_up();
        let (line, leaving) = (self.ticket.line.clone(), self.ticket.leave());
        async move { gone("release", line.path(), line.client().deadline(), was_held, leaving).await }
    }
}

/// Marks the guard as over before the ticket's drop deletes the node: that is no loss.
struct ReleaseOnDrop(Arc<Held>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl std::ops::Deref for ReleaseOnDrop {
    type Target = Arc<Held>;

    fn deref(&self) -> &Arc<Held> {
        &self.0
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.fmt(f)
    }
}
