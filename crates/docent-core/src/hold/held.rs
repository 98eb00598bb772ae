use crate::cleanup::{DeleteOutcome, Deletion};
use crate::client::{Client, Transaction, while_held};
use crate::error::{Error, ErrorKind};
use crate::guard::{Fence, HoldState, Lost, LostReason, Released};
use crate::operation::{Attempts, Idempotency};
use crate::session::Lane;
use docent_proto::{Code, MultiResult, Request, Response};
use futures_util::future::{join_all, select_all};
use serde::Serialize;
use std::future::{Future, pending, poll_fn};
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use std::{fmt, slice};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Role of a place in a line: whether it can be held together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Excludes every other holder.
    Exclusive,
    /// Can be held together with other shared places.
    Shared,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        })
    }
}

/// A guard of a lock, permit, leadership or delivery.
///
/// This is the bound of functions that release any guard. Functions that only use a guard take a
/// [`&Held`](Held). Implement `Guard` for the guard type of your own recipe.
///
/// ```
/// use docent_core::{Error, Guard};
///
/// async fn finish(guard: impl Guard) -> Result<(), Error> {
///     if guard.run(async { /* the work */ }).await.is_ok() {
///         guard.release().await?;
///     }
///     Ok(())
/// }
/// ```
pub trait Guard: Deref<Target = Held> + Send + Sync {
    /// Releases the guard and waits until its node is deleted, at most for the operation timeout and until
    /// the end of the lease. A leader resigns; a delivery returns to its queue. Returns
    /// [`Released::Pending`] if the deletion takes longer, as in an outage: the guard is released, and the
    /// client keeps deleting its node in the background.
    ///
    /// # Errors
    /// `Lost` if the guard was lost before this call. `NoAuth` and other refusals of the servers. `Closed` if
    /// the client was closed: the node is then deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    fn release(self) -> impl Future<Output = Result<Released, Error>> + Send
    where
        Self: Sized;
}

/// State shared by all guards: whether the guard is held, and for how long that is certain.
///
/// The guards of locks, semaphores, elections and queues dereference to `Held`, so each guard has these
/// methods. A function that works with any guard takes a `&Held`.
///
/// A guard has a lease: the time until which it is certainly held. Each write that the servers acknowledge
/// extends the lease. The guard is *lost* if the lease ends, if its node is deleted, or if its session ends.
/// A lost guard stays lost. A guard is lost before another client can hold in its place, unless a third party
/// deletes its node or ends its session.
///
/// ```
/// use docent_core::{Error, Held, Lost};
///
/// async fn import(guard: &Held) -> Result<(), Lost> {
///     guard.run(async { /* stops when the guard is lost */ }).await
/// }
///
/// async fn report(guards: &[&Held]) -> Result<(), Error> {
///     for guard in guards {
///         guard.verify().await?;
///         println!("held with the fence {:?}", guard.fence());
///     }
///     Ok(())
/// }
/// ```
pub struct Held(Parts);

enum Parts {
    One(Part),
    /// At least one. The token is cancelled when one is lost.
    All(Vec<Part>, CancellationToken),
}

/// One node that is held.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) client: Client,
    /// Path that errors name: of the line or the claim, as the user wrote it.
    pub(super) subject: String,
    pub(super) role: Role,
    pub(super) state: Arc<HoldState>,
}

impl Part {
    fn check_for(&self, operation: &'static str) -> Result<(), Error> {
        self.state.check().map_err(|reason| self.lost_error(operation, reason))
    }

    pub(super) fn lost_error(&self, operation: &'static str, reason: LostReason) -> Error {
        Error::new(ErrorKind::Lost(reason), operation).at(&self.subject)
    }

    fn fence(&self) -> Option<Fence> {
        if self.state.is_lent() {
            return None;
        }
        let stepped_down = self.state.fence != Fence::from_czxid(self.state.node.czxid);
        (stepped_down || self.role == Role::Exclusive).then_some(self.state.fence)
    }
}

impl Held {
    pub(super) fn one(part: Part) -> Self {
        Self(Parts::One(part))
    }

    pub(super) fn all(parts: Vec<Part>, token: CancellationToken) -> Self {
        Self(Parts::All(parts, token))
    }

    fn parts(&self) -> &[Part] {
        match &self.0 {
            Parts::One(part) => slice::from_ref(part),
            Parts::All(parts, _) => parts,
        }
    }

    /// The only part, or the first of several.
    pub(super) fn first(&self) -> &Part {
        &self.parts()[0]
    }

    /// The client that the guard belongs to.
    pub fn client(&self) -> &Client {
        &self.first().client
    }

    /// The fencing token, which is higher than that of every earlier exclusive holder of the path. A reader
    /// that was downgraded from a writer keeps the writer's fence.
    ///
    /// `None` for:
    /// - a guard that was never exclusive, such as a reader's or a permit;
    /// - a set of locks: each lock has a fence;
    /// - a [lent](crate::recipe::Hold::lend) hold: other holds lent by the same hold have the same fence.
    pub fn fence(&self) -> Option<Fence> {
        match &self.0 {
            Parts::One(part) => part.fence(),
            Parts::All(..) => None,
        }
    }

    /// Returns true if the ensemble was restored from an older snapshot since the client was built. The fence
    /// may then be lower than that of an earlier holder. See [`RollbackPolicy`](crate::RollbackPolicy).
    pub fn fence_may_have_regressed(&self) -> bool {
        self.client().state().current().rollbacks > 0
    }

    /// The paths of the guard's nodes, in the order of acquisition.
    pub fn paths(&self) -> Vec<String> {
        let relative = |part: &Part| part.client.shared().namespace.relative(part.state.path());
        self.parts().iter().map(relative).collect()
    }

    /// Returns whether the guard is certainly held. This does no I/O: it checks the clock and the session, so
    /// the answer is correct even after the process was suspended. Once false, it stays false.
    ///
    /// The guard may be lost right after this returns true. Run work under the guard with
    /// [`run`](Self::run).
    pub fn is_held(&self) -> bool {
        self.check().is_ok()
    }

    /// Returns the reason if the guard is lost. Does no I/O.
    ///
    /// # Errors
    /// [`Lost`] with the first reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.parts().iter().try_for_each(|part| part.state.check()).map_err(|reason| Lost { reason })
    }

    /// Like [`check`](Self::check), with an error that names `operation` and the path.
    ///
    /// # Errors
    /// `Lost` with the first reason.
    pub fn check_for(&self, operation: &'static str) -> Result<(), Error> {
        self.parts().iter().try_for_each(|part| part.check_for(operation))
    }

    /// The time left on the lease; zero once the guard is lost or released. Each acknowledged heartbeat
    /// extends it. Does no I/O.
    ///
    /// If the work needs time to stop, as a child process does, begin to stop it when the lease has less than
    /// that time left. On a healthy connection the value stays above the full lease minus a third of the
    /// session timeout.
    pub fn lease_left(&self) -> Duration {
        self.parts().iter().map(|part| part.state.lease_left()).min().unwrap_or_default()
    }

    /// Waits until the guard is lost, and returns the reason. It returns at the end of the lease even if the
    /// client's threads are blocked. It never returns after a release. Exception: a
    /// [`Hold`](crate::recipe::Hold) that was [given up](crate::recipe::Hold::give_up) for all its users.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&self) -> LostReason {
        match self.parts() {
            [part] => part.state.lost().await,
            parts => select_all(parts.iter().map(|part| Box::pin(part.state.lost()))).await.0,
        }
    }

    /// Returns a token that is cancelled when the guard is lost, as [`lost`](Self::lost) reports. Cancelling
    /// the token does not affect the guard.
    pub fn token(&self) -> CancellationToken {
        match &self.0 {
            Parts::One(part) => part.state.token().child_token(),
            Parts::All(_, token) => token.child_token(),
        }
    }

    /// Waits until the holder is asked to release the guard, by a [shutdown](Client::shutdown) of the client
    /// or by another participant. The guard is still held: finish the work and release it. A guard that is
    /// still held when the time of its shutdown stage ends is lost with `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn revoked(&self) {
        match self.parts() {
            [part] => part.state.revoked().cancelled().await,
            parts => {
                select_all(parts.iter().map(|part| Box::pin(part.state.revoked().cancelled()))).await;
            }
        }
    }

    /// Runs `future` while the guard is held. The clock is checked before every poll, so work does not resume
    /// after a pause that outlasted the lease. A future that blocks its thread cannot be stopped.
    ///
    /// # Errors
    /// [`Lost`] if the guard is lost first; `future` is then dropped.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        run_while(|| self.check(), self.lost(), future).await
    }

    /// Verifies with the servers that the guard is held: a linearizable check. The guard was held at some
    /// moment during the call; [`is_held`](Self::is_held) returns whether it still is.
    ///
    /// # Errors
    /// `Lost` if the guard is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn verify(&self) -> Result<(), Error> {
        match self.parts() {
            [part] => verify(&part.client, &part.subject, &part.state).await,
            parts => Box::pin(verify_all(parts)).await,
        }
    }

    /// Starts a transaction that is applied, all or nothing, only if the guard is held at that moment. To
    /// know the outcome even if a reply is lost, commit it with
    /// [`commit_exactly`](Transaction::commit_exactly).
    pub fn transaction(&self) -> Transaction {
        let states = self.parts().iter().map(|part| Arc::clone(&part.state));
        Transaction::held(self.client().clone(), states)
    }
}

async fn verify_all(parts: &[Part]) -> Result<(), Error> {
    let states: Vec<_> = parts.iter().map(|part| Arc::clone(&part.state)).collect();
    // One request with all checks would suffice, but would not show which hold is lost.
    let verify = join_all(parts.iter().map(|part| verify(&part.client, &part.subject, &part.state)));
    let answers = while_held(&states, verify).await;
    answers.into_iter().flatten().collect::<Result<(), Error>>()?;
    // A hold may have been lost since its answer arrived, while other answers were awaited.
    parts.iter().try_for_each(|part| part.check_for("verify"))
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            [part] => part.state.fmt(f),
            parts => f.debug_list().entries(parts.iter().map(|part| &part.state)).finish(),
        }
    }
}

/// Checks through a quorum that the node is held.
pub(super) fn verify(
    client: &Client,
    path: &str,
    held: &Arc<HoldState>,
) -> impl Future<Output = Result<(), Error>> + Send {
    // Boxed because callers await it in their own futures.
    Box::pin(async move {
        let mut attempts = client.attempts("verify", path, Idempotency::Idempotent);
        match while_held(slice::from_ref(held), check_node(&mut attempts, held)).await {
            Ok(answer) => answer,
            Err(reason) => Err(attempts.error(ErrorKind::Lost(reason))),
        }
    })
}

async fn check_node(attempts: &mut Attempts<'_>, held: &HoldState) -> Result<(), Error> {
    loop {
        held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason)))?;
        let request = Request::Multi(held.node.checks().collect());
        let outcome = held.generation.session.submit(request, Lane::Call).by(attempts.deadline).await;
        return match attempts.next(&held.generation, outcome).await? {
            None => continue,
            Some(Ok(Response::Multi(results))) => match MultiResult::first_failure(&results) {
                None => held.check().map_err(|reason| attempts.error(ErrorKind::Lost(reason))),
                Some((_, Code::NO_NODE | Code::BAD_VERSION)) => {
                    let reason = held.mark_lost(LostReason::NodeDeleted);
                    Err(attempts.error(ErrorKind::Lost(reason)))
                }
                Some((_, code)) => Err(attempts.code(code)),
            },
            Some(Ok(_)) => Err(attempts.error(ErrorKind::Server(0))),
            Some(Err(code)) => Err(attempts.code(code)),
        };
    }
}

/// Polls `future` until it completes or a guard is lost; checks the clock before every poll.
pub(super) async fn run_while<F: Future>(
    check: impl Fn() -> Result<(), Lost>,
    lost: impl Future<Output = LostReason>,
    future: F,
) -> Result<F::Output, Lost> {
    let (mut future, mut lost) = (pin!(future), pin!(lost));
    poll_fn(|cx| {
        check()?;
        if let Poll::Ready(reason) = lost.as_mut().poll(cx) {
            return Poll::Ready(Err(Lost { reason }));
        }
        future.as_mut().poll(cx).map(Ok)
    })
    .await
}

/// Waits until the node of `held` is deleted, at most until `deadline` or the end of its lease. A deletion
/// that takes longer continues in the background. `was_held` is the state of the guard at its release: a loss
/// after that is no error.
pub(crate) async fn await_deletion(
    operation: &'static str,
    path: &str,
    deadline: Instant,
    was_held: Result<(), LostReason>,
    held: &HoldState,
    deletion: Option<Deletion>,
) -> Result<Released, Error> {
    let error = |kind| Error::new(kind, operation).at(path);
    was_held.map_err(|reason| error(ErrorKind::Lost(reason)))?;
    let Some(deletion) = deletion.filter(|_| !planted!(ReleaseNotAwaited)) else {
        return Ok(Released::Done);
    };
    tokio::select! {
        // A reply that has already arrived counts.
        biased;
        outcome = deletion.by(deadline) => match outcome {
            DeleteOutcome::Deleted => Ok(Released::Done),
            DeleteOutcome::Refused(code) => {
                Err(Error::from_code(code, operation).at(path).needing("DELETE"))
            }
            DeleteOutcome::Closed => Err(error(ErrorKind::Closed)),
            DeleteOutcome::Timeout => Ok(Released::Pending),
        },
        () = lease_lapsed(held) => Ok(Released::Pending),
    }
}

/// Waits for the end of the lease. Never resolves if the client is closed, because a closing client completes
/// pending deletes.
async fn lease_lapsed(held: &HoldState) {
    if held.lease_lapsed().await == LostReason::Closed {
        pending::<()>().await;
    }
}
