use crate::AcquireError;
use crate::acquire::release;
use crate::shared_mutex::Turn;
use docent_core::recipe::{Hold, LineKey};
use docent_core::{Error, Released};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Identity that may re-enter a lock.
///
/// A task is not a thread. Two branches of one `join!` run on the same thread and in the same task, so both
/// could "re-enter" a lock that is meant to keep them apart. Therefore the identity is explicit. Without an
/// owner, every acquire is independent, and two acquires always exclude each other: a nested acquire waits
/// forever, because its own task holds the lock.
///
/// Inside a [`scope`](Self::scope) all branches have the same owner, including branches that run
/// concurrently. A scope does not cross `spawn`: pass [`Owner::current`] to the spawned task and use
/// [`within`](Self::within).
///
/// Cheap to clone; clones are the same owner.
#[derive(Clone)]
pub struct Owner(Arc<Holds>);

tokio::task_local! {
    static AMBIENT: Owner;
}

impl Owner {
    /// Creates a new identity, different from all others.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns the ambient owner, or `None` outside a scope.
    pub fn current() -> Option<Self> {
        AMBIENT.try_with(Self::clone).ok()
    }

    /// Runs `future` with an ambient owner, which every `acquire()` inside the future uses. The ambient owner
    /// is that of the enclosing scope, or a new owner if there is no enclosing scope.
    ///
    /// # Cancel safety
    /// This method is cancel safe if `future` is.
    pub async fn scope<F: Future>(future: F) -> F::Output {
        match Self::current() {
            Some(owner) => owner.within(future).await,
            None => Self::new().within(future).await,
        }
    }

    /// Runs `future` with this owner as the ambient owner.
    ///
    /// # Cancel safety
    /// This method is cancel safe if `future` is.
    pub async fn within<F: Future>(self, future: F) -> F::Output {
        AMBIENT.scope(self, future).await
    }

    /// Returns this owner's state in a line: its hold, or its acquire in progress. Otherwise starts `acquire`
    /// and passes it the owner's hold on the other side, if there is one. Both sides are checked under one
    /// lock, so no other task of the owner can interfere.
    ///
    /// # Errors
    /// `WouldDeadlock` or `Lost` if the owner's hold on the other side would make it wait for itself.
    pub(crate) fn enter(
        &self,
        key: &LineKey,
        other: Option<&OtherSide>,
        acquire: impl FnOnce(Option<LockHold>) -> BoxFuture<'static, Result<LockHold, AcquireError>>,
    ) -> Result<Access, AcquireError> {
        let mut holds = self.0.lock();
        if let Some(access) = access_to(&holds, key) {
            return Ok(access);
        }
        let other_hold = match other {
            None => None,
            Some(OtherSide::Deadlocks(other)) => match access_to(&holds, other) {
                None => None,
                Some(access) => return Err(would_deadlock(access)),
            },
            Some(OtherSide::Admits(other)) => match access_to(&holds, other) {
                None => None,
                Some(Access::Held(hold)) => Some(hold),
                Some(Access::Joined(acquiring) | Access::Started(acquiring) | Access::After(acquiring)) => {
                    return Ok(Access::After(acquiring));
                }
            },
        };
        Ok(Access::Started(self.start(&mut holds, key.clone(), acquire(other_hold))))
    }

    /// Exchanges `hold`, if it is not shared, for a hold of the line `key`, unless the owner already has one
    /// there. Other tasks of the owner meanwhile find the exchange as an acquire in progress.
    ///
    /// # Errors
    /// The hold, if it is shared.
    pub(crate) fn exchange(
        &self,
        key: LineKey,
        hold: Arc<Hold>,
        exchange: impl FnOnce(Hold) -> BoxFuture<'static, Result<LockHold, AcquireError>>,
    ) -> Result<Exchange, Arc<Hold>> {
        let mut holds = self.0.lock();
        let hold = Arc::try_unwrap(hold)?;
        Ok(match access_to(&holds, &key) {
            Some(Access::Held(LockHold::Own(other_hold))) if other_hold.is_held() => {
                Exchange::AlreadyHeld(hold, other_hold)
            }
            _ => Exchange::Started(self.start(&mut holds, key, exchange(hold))),
        })
    }

    fn start(
        &self,
        holds: &mut HashMap<LineKey, Slot>,
        key: LineKey,
        acquire: BoxFuture<'static, Result<LockHold, AcquireError>>,
    ) -> Acquiring {
        if holds.len() == holds.capacity() {
            // Forgets ended holds before the table would grow.
            holds.retain(|_, slot| slot.is_live());
        }
        let acquiring = record(Arc::downgrade(&self.0), key.clone(), acquire).boxed().shared();
        holds.entry(key).or_default().acquiring = acquiring.downgrade();
        acquiring
    }
}

impl Default for Owner {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:p})", Arc::as_ptr(&self.0))
    }
}

/// Hold that the guards of one owner share. It ends with the last guard.
#[derive(Clone)]
pub(crate) enum LockHold {
    Own(Arc<Hold>),
    /// Turn with a ticket that several tasks share.
    Turn(Arc<Turn>),
}

impl LockHold {
    /// Returns the hold, for guards that rely on its node.
    ///
    /// # Errors
    /// `WouldDeadlock` for a turn, because the next turn has the same node.
    pub(crate) fn own(self) -> Result<Arc<Hold>, AcquireError> {
        match self {
            Self::Own(hold) => Ok(hold),
            Self::Turn(_) => Err(AcquireError::WouldDeadlock),
        }
    }

    fn downgrade(&self) -> WeakLockHold {
        match self {
            Self::Own(hold) => WeakLockHold::Own(Arc::downgrade(hold)),
            Self::Turn(turn) => WeakLockHold::Turn(Arc::downgrade(turn)),
        }
    }

    /// Gives up one share. The last share waits until the node is deleted, unless another task has the next
    /// turn.
    pub(crate) async fn release(self) -> Result<Released, Error> {
        let still_held = self.check_for("release");
        match self {
            Self::Own(hold) => release(hold).await,
            Self::Turn(turn) => match Arc::into_inner(turn) {
                Some(turn) => turn.release().await,
                None => still_held.map(|()| Released::Done),
            },
        }
    }
}

impl fmt::Debug for LockHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hold::fmt(self, f)
    }
}

impl From<Turn> for LockHold {
    fn from(turn: Turn) -> Self {
        Self::Turn(Arc::new(turn))
    }
}

impl From<Hold> for LockHold {
    fn from(hold: Hold) -> Self {
        Self::Own(Arc::new(hold))
    }
}

impl Deref for LockHold {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        match self {
            Self::Own(hold) => hold,
            Self::Turn(turn) => turn,
        }
    }
}

/// Weak reference to a [`LockHold`], which does not keep the hold alive.
enum WeakLockHold {
    Own(Weak<Hold>),
    Turn(Weak<Turn>),
}

impl WeakLockHold {
    fn upgrade(&self) -> Option<LockHold> {
        match self {
            Self::Own(hold) => hold.upgrade().map(LockHold::Own),
            Self::Turn(turn) => turn.upgrade().map(LockHold::Turn),
        }
    }

    fn is_live(&self) -> bool {
        match self {
            Self::Own(hold) => hold.strong_count() > 0,
            Self::Turn(turn) => turn.strong_count() > 0,
        }
    }
}

/// Acquire that several calls of one owner wait for. It continues while at least one of them waits.
pub(crate) type Acquiring = Shared<Acquire>;

type Acquire = BoxFuture<'static, Result<LockHold, AcquireError>>;

/// Way in which an owner gets a hold of a line.
pub(crate) enum Access {
    Held(LockHold),
    Joined(Acquiring),
    Started(Acquiring),
    /// After this acquire of the other side has ended.
    After(Acquiring),
}

/// Way in which an owner exchanges a hold on one side of a line for a hold on the other side.
pub(crate) enum Exchange {
    Started(Acquiring),
    /// The hold, and the hold that its owner already has on the other side.
    AlreadyHeld(Hold, Arc<Hold>),
}

/// Relation of a line's other side to the side that is being entered.
#[derive(Clone)]
pub(crate) enum OtherSide {
    /// An owner that holds the other side may also hold this side.
    Admits(LineKey),
    /// An owner that holds the other side would wait for itself.
    Deadlocks(LineKey),
}

/// Holds and acquires in progress of an owner, by line.
#[derive(Default)]
struct Holds(Mutex<HashMap<LineKey, Slot>>);

#[derive(Default)]
struct Slot {
    hold: Option<WeakLockHold>,
    acquiring: Option<WeakShared<Acquire>>,
}

impl Slot {
    fn is_live(&self) -> bool {
        self.hold.as_ref().is_some_and(WeakLockHold::is_live)
            || self.acquiring.as_ref().is_some_and(|a| a.upgrade().is_some())
    }
}

impl Holds {
    fn lock(&self) -> MutexGuard<'_, HashMap<LineKey, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the hold of a line, or the acquire in progress that has not failed.
fn access_to(holds: &HashMap<LineKey, Slot>, key: &LineKey) -> Option<Access> {
    let slot = holds.get(key)?;
    if let Some(hold) = slot.hold.as_ref().and_then(WeakLockHold::upgrade) {
        return Some(Access::Held(hold));
    }
    let acquiring = slot.acquiring.as_ref().and_then(WeakShared::upgrade)?;
    (!matches!(acquiring.peek(), Some(Err(_)))).then_some(Access::Joined(acquiring))
}

/// Returns the error for an owner that would wait for its own hold on the other side.
fn would_deadlock(other: Access) -> AcquireError {
    match other {
        Access::Held(hold) => hold.check().map_or_else(AcquireError::Lost, |()| AcquireError::WouldDeadlock),
        Access::Joined(_) | Access::Started(_) | Access::After(_) => AcquireError::WouldDeadlock,
    }
}

/// Records the acquired hold for its owner.
async fn record(
    holds: Weak<Holds>,
    key: LineKey,
    acquire: BoxFuture<'static, Result<LockHold, AcquireError>>,
) -> Result<LockHold, AcquireError> {
    let hold = acquire.await?;
    if let Some(holds) = holds.upgrade() {
        let mut holds = holds.lock();
        holds.entry(key).or_default().hold = Some(hold.downgrade());
    }
    Ok(hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_scope_inside_a_scope_keeps_the_owner() {
        Owner::scope(async {
            let outer = Owner::current().unwrap();
            Owner::scope(async { assert_eq!(Owner::current().unwrap(), outer) }).await;
            assert_ne!(Owner::new(), outer);
        })
        .await;
        assert_eq!(Owner::current(), None);
    }

    #[tokio::test]
    async fn a_scope_does_not_cross_spawn_unless_it_is_passed_on() {
        Owner::scope(async {
            let owner = Owner::current().unwrap();
            assert_eq!(tokio::spawn(async { Owner::current() }).await.unwrap(), None);
            let passed = tokio::spawn(owner.clone().within(async { Owner::current() })).await.unwrap();
            assert_eq!(passed, Some(owner));
        })
        .await;
    }
}
