use super::run_while::poll_while;
use super::{Hold, HoldSet};
use crate::client::Transaction;
use crate::error::Error;
use crate::guard::{Fence, Lost, LostReason};
use futures_util::future::{BoxFuture, FutureExt};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A lock, a permit, a leadership or a delivery: any guard of a recipe.
///
/// A guard knows by the clock until when it is certain to hold. When that time passes without a server having
/// acknowledged a write, or its node or session is gone, it is *lost*, and that is for good. Guards have
/// these methods of their own, too; this trait is for functions over any of them, also as `&dyn Guard`.
///
/// The trait is sealed: a guard of a recipe of your own has it by [`AsHold`](crate::recipe::AsHold).
///
/// ```
/// use docent_core::{Error, Guard, Lost};
///
/// async fn import(guard: &impl Guard) -> Result<(), Lost> {
///     guard.run(async { /* stops when the guard is lost */ }).await
/// }
///
/// async fn report(guards: &[&dyn Guard]) -> Result<(), Error> {
///     for guard in guards {
///         guard.verify().await?;
///         println!("held with the fence {:?}", guard.fence());
///     }
///     Ok(())
/// }
/// ```
pub trait Guard: sealed::Sealed + Send + Sync {
    /// The fencing token: higher than the fence of every earlier exclusive holder of the path. `None` for one
    /// that was never more than shared, for several locks at once, each of which has a fence of its own, and
    /// for a turn with a ticket that tasks share, which has a [`TurnFence`](crate::TurnFence).
    fn fence(&self) -> Option<Fence>;

    /// True while it is certain that it is held. No I/O: compares clock and session, and is right even after
    /// the process was frozen. Once false it stays false.
    fn is_held(&self) -> bool;

    /// Time for which it is certain to be held, if no further write is acknowledged. No I/O. It grows again
    /// with each heartbeat that is acknowledged, and is zero once it is lost.
    ///
    /// For work that needs time to stop, such as another process: begin to stop it when this falls below that
    /// time. Under a healthy link it stays above the lease less a third of the session timeout.
    fn lease_left(&self) -> Duration;

    /// Resolves with the reason when it is lost; never, when it is released.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    fn lost(&self) -> BoxFuture<'_, LostReason>;

    /// Cancelled when it is lost; not when it is released. For work that stops by a token. Cancelling it
    /// changes nothing about the guard.
    fn token(&self) -> CancellationToken;

    /// Resolves when the holder is asked to give it up: by the client's
    /// [shutdown](crate::Client::shutdown), or by a participant of the same line that revokes it. It is still
    /// held. Finish the work and release it; a shutdown takes it away once the time for that is over.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    fn revoked(&self) -> BoxFuture<'_, ()>;

    /// Runs `future` for as long as it is held. The clock is looked at before every poll, so that work which
    /// was paused does not go on after the loss. A future that blocks its thread cannot be stopped.
    ///
    /// # Errors
    /// [`Lost`] as soon as it is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    fn run<F: Future>(&self, future: F) -> Run<'_, F>
    where
        Self: Sized;

    /// Asks the servers whether it is held: a linearizable check. It was held at one moment between call and
    /// return; [`is_held`](Self::is_held) says whether it may still be.
    ///
    /// # Errors
    /// `Lost` when it is not held any more; `Timeout`, `NoAuth`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    fn verify(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Prepares writes to ZooKeeper that are applied, all together, only while it is held.
    fn transaction(&self) -> Transaction;

    /// Gives it up and waits until its node is deleted: a leader resigns, a delivery goes back to its queue.
    ///
    /// # Errors
    /// `Lost` when it was lost before the servers answered. `Timeout` when no server could be reached in
    /// time, `Closed` when the client was closed meanwhile: it is given up in the background then, or with
    /// its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: once it was polled, the release goes on in the background.
    fn release(self) -> impl Future<Output = Result<(), Error>> + Send
    where
        Self: Sized;
}

mod sealed {
    /// Keeps others from implementing `Guard` other than by `AsHold`.
    pub trait Sealed {}
}

/// Value that is made of a hold, or of a set of holds. It is a [`Guard`] by that.
pub trait AsHold: Send + Sync {
    /// The hold, or the set of them.
    fn as_hold(&self) -> HoldRef<'_>;

    /// The guard's fence. By default that of one exclusive hold.
    fn hold_fence(&self) -> Option<Fence> {
        match self.as_hold() {
            HoldRef::One(hold) => hold.exclusive_fence(),
            HoldRef::Set(_) => None,
        }
    }

    /// The guard's token. By default that of its hold.
    fn hold_token(&self) -> CancellationToken {
        match self.as_hold() {
            HoldRef::One(hold) => hold.token(),
            HoldRef::Set(set) => set.token(),
        }
    }

    /// Gives the guard up, as [`Guard::release`] says.
    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send
    where
        Self: Sized;
}

/// Hold of a guard, or a set of holds.
#[derive(Debug, Clone, Copy)]
pub enum HoldRef<'a> {
    /// One hold.
    One(&'a Hold),
    /// Several as one.
    Set(&'a HoldSet),
}

impl<'a> HoldRef<'a> {
    fn check(self) -> Result<(), Lost> {
        match self {
            Self::One(hold) => hold.check(),
            Self::Set(set) => set.check(),
        }
    }

    fn lease_left(self) -> Duration {
        match self {
            Self::One(hold) => hold.lease_left(),
            Self::Set(set) => set.lease_left(),
        }
    }

    fn lost(self) -> BoxFuture<'a, LostReason> {
        match self {
            Self::One(hold) => hold.lost().boxed(),
            Self::Set(set) => set.lost().boxed(),
        }
    }

    fn revoked(self) -> BoxFuture<'a, ()> {
        match self {
            Self::One(hold) => hold.revoked().boxed(),
            Self::Set(set) => set.revoked().boxed(),
        }
    }
}

impl<T: AsHold> sealed::Sealed for T {}

impl<T: AsHold> Guard for T {
    fn fence(&self) -> Option<Fence> {
        self.hold_fence()
    }

    fn is_held(&self) -> bool {
        self.as_hold().check().is_ok()
    }

    fn lease_left(&self) -> Duration {
        self.as_hold().lease_left()
    }

    fn lost(&self) -> BoxFuture<'_, LostReason> {
        self.as_hold().lost()
    }

    fn token(&self) -> CancellationToken {
        self.hold_token()
    }

    fn revoked(&self) -> BoxFuture<'_, ()> {
        self.as_hold().revoked()
    }

    fn run<F: Future>(&self, future: F) -> Run<'_, F> {
        let hold = self.as_hold();
        Run { hold, lost: hold.lost(), future: Some(Box::pin(future)) }
    }

    fn verify(&self) -> BoxFuture<'_, Result<(), Error>> {
        match self.as_hold() {
            HoldRef::One(hold) => hold.verify().boxed(),
            HoldRef::Set(set) => set.verify().boxed(),
        }
    }

    fn transaction(&self) -> Transaction {
        match self.as_hold() {
            HoldRef::One(hold) => hold.transaction(),
            HoldRef::Set(set) => set.transaction(),
        }
    }

    fn release(self) -> impl Future<Output = Result<(), Error>> + Send {
        self.into_released()
    }
}

/// Future of [`Guard::run`].
///
/// # On drop
/// The future that it runs is dropped.
#[must_use = "a future does nothing unless it is polled"]
pub struct Run<'a, F> {
    hold: HoldRef<'a>,
    lost: BoxFuture<'a, LostReason>,
    /// `None` once it is done, or the guard is lost.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Run<'_, F> {
    type Output = Result<F::Output, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { hold, lost, future } = &mut *self;
        if future.is_none() {
            // It was lost, or is by now: it says so, however often it is polled.
            hold.check()?;
        }
        let polled = future.as_mut().expect("a future is not polled after it was ready");
        let done = ready!(poll_while(|| hold.check(), lost.as_mut(), polled.as_mut(), cx));
        // Dropped now, and not with this: locks and files of the work are free from here on.
        *future = None;
        Poll::Ready(done)
    }
}

impl<F> fmt::Debug for Run<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("hold", &self.hold).finish_non_exhaustive()
    }
}

impl AsHold for Hold {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::One(self)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}

impl AsHold for HoldSet {
    fn as_hold(&self) -> HoldRef<'_> {
        HoldRef::Set(self)
    }

    fn into_released(self) -> impl Future<Output = Result<(), Error>> + Send {
        Self::release(self)
    }
}
