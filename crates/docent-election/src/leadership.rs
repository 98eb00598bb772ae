use crate::term::{Share, Term};
use bytes::Bytes;
use docent_core::{Error, Fence, Guard, Held};
use std::future::Future;
use std::ops::Deref;
use tokio_util::sync::CancellationToken;

/// Leads an [`Election`](crate::Election) for one term.
///
/// It dereferences to [`Held`], which says whether it still leads, runs work for as long as it does, and
/// writes to ZooKeeper only while it does. [`Held::lost`] also resolves, with
/// [`LostReason::Released`](docent_core::LostReason::Released), when the term was ended elsewhere.
///
/// [`Held::revoked`] resolves when the leader is asked to resign: by the client's
/// [shutdown](docent_core::Client::shutdown), or by an operator who revokes the leader's node, as
/// `docent revoke` does. Under [`Election::run`](crate::Election::run) a shutdown also cancels the
/// [token](Self::token), and stops the work.
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

    /// Span of this term, for work that is done elsewhere: under [`Election::run`](crate::Election::run) the
    /// work is in it already. It is none where nobody listens.
    pub fn span(&self) -> &tracing::Span {
        self.share.span()
    }

    /// The path of the leader's node.
    pub fn path(&self) -> String {
        self.share.hold.path()
    }

    /// Cancelled when the term ends, in whatever way, and under [`Election::run`](crate::Election::run) also
    /// when the work is asked to stop. For tasks that the work started, and for work that has a
    /// [grace](crate::ElectionBuilder::grace). Cancelling it changes nothing about the leadership.
    pub fn token(&self) -> CancellationToken {
        self.share.told.child_token()
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

impl Deref for Leadership {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.share.hold
    }
}

impl Guard for Leadership {
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        self.resign()
    }
}
