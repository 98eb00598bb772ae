use crate::AcquireError;
use crate::lock_hold::{LockHold, WeakLockHold};
use docent_core::recipe::{Hold, LineKey};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The identity that may re-enter a lock.
///
/// A task is not a thread: two branches of one `join!` run on the same thread and in the same task, and would
/// both "re-enter" a lock that is meant to keep them apart. So the identity is explicit here. Without an
/// owner each acquire is its own, and two of them exclude each other wherever they run.
///
/// Inside a [`scope`](Self::scope) all branches are one owner, also those that run at the same time. A scope
/// does not cross `spawn`: pass [`Owner::current`] on and use [`within`](Self::within).
///
/// Cheap to clone; clones are the same owner.
#[derive(Clone)]
pub struct Owner(Arc<Holds>);

tokio::task_local! {
    static AMBIENT: Owner;
}

impl Owner {
    /// A new identity, different from all others.
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// The ambient owner, inside a scope.
    pub fn current() -> Option<Self> {
        AMBIENT.try_with(Self::clone).ok()
    }

    /// Runs `future` with an ambient owner, which every `acquire()` called in it uses: the owner of the scope
    /// around this one if there is one, a new one otherwise.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn scope<F: Future>(future: F) -> F::Output {
        match Self::current() {
            Some(owner) => owner.within(future).await,
            None => Self::new().within(future).await,
        }
    }

    /// Runs `future` with this as the ambient owner.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn within<F: Future>(self, future: F) -> F::Output {
        AMBIENT.scope(self, future).await
    }

    /// This owner's part in a line: its hold, or the acquire that is under way; else starts `acquire`, with
    /// its hold on the other side where it has one. That side is seen in the same step, so that no task of
    /// the owner comes in between.
    ///
    /// # Errors
    /// `WouldDeadlock`, or `Lost`, when its hold on the other side would make it wait for itself.
    pub(crate) fn enter(
        &self,
        key: &LineKey,
        other: Option<&OtherSide>,
        acquire: impl FnOnce(Option<LockHold>) -> BoxFuture<'static, Result<LockHold, AcquireError>>,
    ) -> Result<Access, AcquireError> {
        let mut holds = self.0.lock();
        if let Some(access) = found(&holds, key) {
            return Ok(access);
        }
        let beside = match other {
            None => None,
            Some(OtherSide::Deadlocks(other)) => match found(&holds, other) {
                None => None,
                Some(access) => return Err(would_deadlock(access)),
            },
            Some(OtherSide::Admits(other)) => match found(&holds, other) {
                None => None,
                Some(Access::Held(hold)) => Some(hold),
                Some(Access::Joined(acquiring) | Access::Started(acquiring) | Access::After(acquiring)) => {
                    return Ok(Access::After(acquiring));
                }
            },
        };
        Ok(Access::Started(self.start(&mut holds, key.clone(), acquire(beside))))
    }

    /// Makes `hold`, if nobody shares it, into one of the line `key`, unless there is one beside it already.
    /// Tasks of the owner that come meanwhile find that under way.
    ///
    /// # Errors
    /// The hold, when it is shared.
    pub(crate) fn exchange(
        &self,
        key: LineKey,
        hold: Arc<Hold>,
        exchange: impl FnOnce(Hold) -> BoxFuture<'static, Result<LockHold, AcquireError>>,
    ) -> Result<Exchange, Arc<Hold>> {
        let mut holds = self.0.lock();
        let hold = Arc::try_unwrap(hold)?;
        Ok(match found(&holds, &key) {
            Some(Access::Held(LockHold::Own(beside))) if beside.is_held() => Exchange::Beside(hold, beside),
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
            // Ended holds are forgotten before the table would grow.
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

/// An acquire that several calls of one owner wait for. It goes on while one of them does.
pub(crate) type Acquiring = Shared<Acquire>;

type Acquire = BoxFuture<'static, Result<LockHold, AcquireError>>;

/// Way of an owner to a hold of a line.
pub(crate) enum Access {
    Held(LockHold),
    Joined(Acquiring),
    Started(Acquiring),
    /// Once this acquire of the other side has ended.
    After(Acquiring),
}

/// Way of an owner from a hold on one side of a line to one on the other.
pub(crate) enum Exchange {
    Started(Acquiring),
    /// The hold, and the one that its owner has beside it.
    Beside(Hold, Arc<Hold>),
}

/// Relation of a line's other side to the side that is entered.
#[derive(Clone)]
pub(crate) enum OtherSide {
    /// An owner of that side may have this one beside it.
    Admits(LineKey),
    /// An owner of that side would wait for itself.
    Deadlocks(LineKey),
}

/// Holds of an owner, and its acquires under way, by line.
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

/// The hold of a line, or the acquire that is under way and has not failed.
fn found(holds: &HashMap<LineKey, Slot>, key: &LineKey) -> Option<Access> {
    let slot = holds.get(key)?;
    if let Some(hold) = slot.hold.as_ref().and_then(WeakLockHold::upgrade) {
        return Some(Access::Held(hold));
    }
    let acquiring = slot.acquiring.as_ref().and_then(WeakShared::upgrade)?;
    (!matches!(acquiring.peek(), Some(Err(_)))).then_some(Access::Joined(acquiring))
}

/// Error of an owner that would wait for what it has on the other side.
fn would_deadlock(other: Access) -> AcquireError {
    match other {
        Access::Held(hold) => hold.check().map_or_else(AcquireError::Lost, |()| AcquireError::WouldDeadlock),
        Access::Joined(_) | Access::Started(_) | Access::After(_) => AcquireError::WouldDeadlock,
    }
}

/// Keeps the acquired hold for its owner.
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
