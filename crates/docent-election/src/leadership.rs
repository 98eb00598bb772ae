use crate::term::{Share, Term};
use bytes::Bytes;
use docent_core::recipe::{AsHold, HoldRef};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::future::Future;
use tokio_util::sync::CancellationToken;

/// Leads an [`Election`](crate::Election) for one term.
///
/// It knows by the clock until when it is certain to lead. When that time passes without a server having
/// acknowledged a write, or its node or session is gone, the leadership is *lost*: [`is_held`](Self::is_held)
/// is false from then on, [`lost`](Self::lost) resolves and [`token`](Self::token) is cancelled. Unless
/// somebody ends the session or deletes the node from outside, that is before anybody else can lead.
///
/// # On drop
/// A leadership from [`campaign`](crate::Election::campaign) resigns in the background: the delete of its
/// node is submitted at once, and tried until it is done. It never blocks or panics, also outside a runtime.
/// [`resign`](Self::resign) says when it is done.
///
/// A leadership that [`run`](crate::Election::run) hands to the work does nothing: that term ends when the
/// work does.
#[derive(Debug)]
#[must_use = "a leader resigns when its leadership is dropped"]
pub struct Leadership {
    share: Share,
    /// The term that ends with this, unless somebody else sees to that.
    term: Option<Term>,
}

impl Leadership {
    /// A leadership that ends its term when it is dropped.
    pub(crate) fn owning(term: Term) -> Self {
        Self { share: term.share().clone(), term: Some(term) }
    }

    /// A leadership whose term ends elsewhere.
    pub(crate) fn within(term: &Term) -> Self {
        Self { share: term.share().clone(), term: None }
    }

    /// The fencing token, which also numbers the term: higher than the fence of every earlier leader of this
    /// election.
    pub fn fence(&self) -> Fence {
        self.share.hold.fence()
    }

    /// True when the servers were found to be restored from an older copy since the client was built: then
    /// the fence may be lower than the fences of earlier leaders. See
    /// [`RollbackPolicy`](docent_core::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.share.hold.fence_may_have_regressed()
    }

    /// Span of this term, for work that is done elsewhere: under [`Election::run`](crate::Election::run) the
    /// work is in it already. It is none where nobody listens.
    pub fn span(&self) -> &tracing::Span {
        self.share.span()
    }

    /// The path of the leader's node.
    pub fn path(&self) -> String {
        self.share.hold.path()
    }

    /// True while it is certain that nobody else leads. No I/O: compares clock and session, and is right even
    /// after the process was frozen. Once false it stays false.
    ///
    /// It may become false right after it was true. Work that is started because of it belongs into
    /// [`run`](Self::run).
    pub fn is_held(&self) -> bool {
        self.share.hold.is_held()
    }

    /// Resolves with the reason when the leadership is lost; with [`LostReason::Released`] when its term
    /// ended elsewhere.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        self.share.hold.lost().await
    }

    /// Cancelled when the term ends, in whatever way, and under [`Election::run`](crate::Election::run) also
    /// when the work is asked to stop. For tasks that the work started, and for work that has a
    /// [grace](crate::ElectionBuilder::grace). Cancelling it changes nothing about the leadership.
    pub fn token(&self) -> CancellationToken {
        self.share.told.child_token()
    }

    /// Resolves when the leader is asked to resign: by the client's
    /// [shutdown](docent_core::Client::shutdown), or by an operator who revokes the leader's node, as
    /// `docent revoke` does. It still leads. Finish the work and [resign](Self::resign); a shutdown takes the
    /// leadership away once the time for that is over.
    ///
    /// Under [`Election::run`](crate::Election::run) a shutdown also cancels the [token](Self::token), and
    /// stops the work.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        self.share.hold.revoked().await;
    }

    /// Runs `future` for as long as the leadership is held. The clock is looked at before every poll, so that
    /// work which was paused does not go on after the leadership was lost. A future that blocks its thread
    /// cannot be stopped.
    ///
    /// # Errors
    /// [`Lost`] as soon as the leadership is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        self.share.hold.run(future).await
    }

    /// Asks the servers whether the leadership is held: a linearizable check. It was held at one moment
    /// between call and return; [`is_held`](Self::is_held) says whether it may still be.
    ///
    /// # Errors
    /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        self.share.hold.verify().await
    }

    /// Publishes other data about the leader, in place of the [id](crate::ElectionBuilder::id) or
    /// [data](crate::ElectionBuilder::data) that it stood with: such as its address, or how far it has come.
    /// Observers see it, each the last one. The next term of this candidate begins with its own data again.
    ///
    /// It is an exact write under a check of the leadership: applied once or not at all, and never after the
    /// term. Of several at the same time any may be the last.
    ///
    /// # Errors
    /// `Lost` when it does not lead any more, `TooLarge`, `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown`
    /// when the time or the session ended before it could be found out what became of it.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been published.
    pub fn proclaim<D: Into<Bytes>>(
        &self,
        data: D,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<D> {
        let (hold, data) = (&self.share.hold, data.into());
        let transaction = hold.transaction().set(&hold.path(), data, None);
        async move { transaction.commit_exactly().await.map(drop) }
    }

    /// Prepares writes to ZooKeeper that are applied, all together, only while the leadership is held.
    pub fn transaction(&self) -> Transaction {
        self.share.hold.transaction()
    }

    /// Gives up the leadership and waits until its node is deleted: the next candidate leads. Work that
    /// resigns under [`Election::run`](crate::Election::run) goes on to its end without the leadership.
    ///
    /// # Errors
    /// `Lost` when the leadership was lost before the servers answered. `Timeout` when no server could be
    /// reached in time, `Closed` when the client was closed meanwhile: it resigns in the background then, or
    /// with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once it was polled, resigning goes on in the background.
    pub async fn resign(self) -> Result<(), Error> {
        self.term.unwrap_or_else(|| Term::of(self.share)).resign().await
    }
}

impl AsHold for Leadership {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(&self.share.hold)
    }

    fn hold_token(&self) -> CancellationToken {
        self.token()
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        self.resign()
    }
}
