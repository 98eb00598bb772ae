//! What the guards of one owner share.

use crate::AcquireError;
use crate::acquire::release;
use crate::shared_mutex::Turn;
use docent_core::recipe::Hold;
use docent_core::{Error, Released};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

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

    pub(crate) fn downgrade(&self) -> WeakLockHold {
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
pub(crate) enum WeakLockHold {
    Own(Weak<Hold>),
    Turn(Weak<Turn>),
}

impl WeakLockHold {
    pub(crate) fn upgrade(&self) -> Option<LockHold> {
        match self {
            Self::Own(hold) => hold.upgrade().map(LockHold::Own),
            Self::Turn(turn) => turn.upgrade().map(LockHold::Turn),
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::Own(hold) => hold.strong_count() > 0,
            Self::Turn(turn) => turn.strong_count() > 0,
        }
    }
}
