use crate::term::{Share, Term};
use bytes::Bytes;
use docent_core::recipe::InOperation;
use docent_core::{Error, Fence, Guard, Held, Released};
use std::future::Future;
use std::ops::Deref;
use tokio_util::sync::CancellationToken;

/// Guard of the leadership of an [`Election`](crate::Election), for one term.
///
/// Dereferences to [`Held`], which reports whether this candidate still leads, runs work only while it leads,
/// and writes to ZooKeeper only while it leads. [`Held::lost`] also resolves when the candidate resigns or
/// the run ends the term, with [`LostReason::Released`](docent_core::LostReason::Released).
///
/// [`Held::revoked`] resolves when the leader is asked to resign: by the client's
/// [shutdown](docent_core::Client::shutdown), or by an operator who revokes the leader's node, for example
/// with `docent revoke`. Under [`Election::run`](crate::Election::run), a shutdown also cancels the
/// [token](Self::token) and stops the work.
///
/// # On drop
/// A leadership from [`campaign`](crate::Election::campaign) resigns in the background: the delete of its
/// node is submitted immediately and retried until it succeeds. The drop never blocks or panics, even outside
/// a runtime. Call [`resign`](Self::resign) to wait until the node is deleted. A
/// [takeover delay](crate::ElectionBuilder::takeover_delay) applies after a drop, but not after `resign`.
///
/// The drop of a leadership that [`run`](crate::Election::run) passes to the work does nothing: that term
/// ends when the work does.
#[derive(Debug)]
#[must_use = "a leader resigns when its leadership is dropped"]
pub struct Leadership {
    share: Share,
    /// Term that ends with this guard; `None` if the run ends the term.
    term: Option<Term>,
}

impl Leadership {
    /// Creates a leadership that ends its term when it is dropped.
    pub(crate) fn owning(term: Term) -> Self {
        Self { share: term.share().clone(), term: Some(term) }
    }

    /// Creates a leadership whose term is ended by the run.
    pub(crate) fn within(term: &Term) -> Self {
        Self { share: term.share().clone(), term: None }
    }

    /// Returns the fencing token, which is higher than the fence of every earlier leader of this election. It
    /// also identifies the term.
    pub fn fence(&self) -> Fence {
        self.share.hold.fence()
    }

    /// Returns the span of this term, for work that is done in other tasks. Under
    /// [`Election::run`](crate::Election::run) the work already runs in this span. Returns a disabled span if
    /// no subscriber is interested.
    pub fn span(&self) -> &tracing::Span {
        self.share.span()
    }

    /// Returns the path of the leader's node.
    pub fn path(&self) -> String {
        self.share.hold.path()
    }

    /// Returns a token that is cancelled when the term ends for any reason. Under
    /// [`Election::run`](crate::Election::run) the token is also cancelled when the work is asked to stop.
    /// Use it for tasks that the work started, and for work with a [grace](crate::ElectionBuilder::grace).
    /// Cancelling the returned token does not affect the leadership.
    pub fn token(&self) -> CancellationToken {
        self.share.stop_token.child_token()
    }

    /// Publishes new data about the leader, such as its address or its progress. The data replaces the
    /// [id](crate::ElectionBuilder::id) or [data](crate::ElectionBuilder::data) with which the candidate
    /// campaigned. Observers receive the latest data. The next term of this candidate begins with the
    /// original data again.
    ///
    /// The data is written by an exact write that checks the leadership: it is applied once or not at all,
    /// and never after the term. If several calls run at the same time, any of them may be applied last.
    ///
    /// # Errors
    /// `Lost` if this candidate no longer leads, `TooLarge`, `NoAuth`, `Timeout`, `Closed`; `OutcomeUnknown`
    /// if the timeout or the session ended before the client could find out whether the write was applied.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the data may have been published.
    pub fn proclaim<D: Into<Bytes>>(
        &self,
        data: D,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<D> {
        let (hold, data) = (&self.share.hold, data.into());
        let transaction = hold.transaction().set(&hold.path(), data, None);
        async move { transaction.commit_exactly().await.map(drop).in_operation("proclaim") }
    }

    /// Gives up the leadership and waits until the leader's node is deleted, so that the next candidate
    /// leads, at most for the operation timeout and until the end of the lease. Returns
    /// [`Released::Pending`] if that takes longer, as in an outage: the node is then deleted in the
    /// background or with its session. Work that resigns under [`Election::run`](crate::Election::run)
    /// continues to its end without the leadership.
    ///
    /// # Errors
    /// `Lost` if the leadership was lost before this call. `NoAuth` and other refusals of the servers.
    /// `Closed` if the client was closed: the node is then deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once the future has been polled, the resignation continues in the
    /// background.
    pub async fn resign(self) -> Result<Released, Error> {
        self.term.unwrap_or_else(|| Term::of(self.share)).resign().await
    }
}

impl Deref for Leadership {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.share.hold
    }
}

impl Guard for Leadership {
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send {
        self.resign()
    }
}
