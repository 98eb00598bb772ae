use crate::store::Store;
use docent_core::recipe::{Claim, Hold};
use docent_core::{Error, Fence, Lost, LostReason, Transaction};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Guard that holds an item: its claim, or the lock of all consumers.
#[derive(Debug)]
pub(crate) enum Guard {
    Claim(Claim),
    Lock(Hold),
}

/// Does the same with either.
macro_rules! either {
    ($guard:expr, $held:ident => $do:expr) => {
        match $guard {
            Guard::Claim($held) => $do,
            Guard::Lock($held) => $do,
        }
    };
}

impl Guard {
    pub(crate) fn fence(&self) -> Fence {
        either!(self, held => held.fence())
    }

    pub(crate) fn path(&self) -> String {
        match self {
            Self::Claim(claim) => claim.path().to_owned(),
            Self::Lock(hold) => hold.path(),
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        either!(self, held => held.is_held())
    }

    pub(crate) async fn lost(&self) -> LostReason {
        either!(self, held => held.lost().await)
    }

    pub(crate) fn token(&self) -> CancellationToken {
        either!(self, held => held.token())
    }

    pub(crate) async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        either!(self, held => held.run(future).await)
    }

    pub(crate) async fn verify(&self) -> Result<(), Error> {
        either!(self, held => held.verify().await)
    }

    pub(crate) fn transaction(&self) -> Transaction {
        either!(self, held => held.transaction())
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        either!(self, held => held.release().await)
    }

    pub(crate) fn release_after(self, delay: Duration) -> Result<(), Lost> {
        either!(self, held => held.release_after(delay))
    }

    /// Ends it together with its item, and applies `transaction` in the same step.
    pub(crate) async fn end_with(self, item: String, transaction: Transaction) -> Result<(), Error> {
        match self {
            Self::Claim(claim) => Claim::end_with(vec![claim], &[item], transaction).await.map(drop),
            Self::Lock(hold) => hold.end_with(&[item], transaction).await.map(drop),
        }
    }
}

/// An item that this process holds, for as long as this lives.
pub(crate) struct Mine {
    pub(crate) store: Arc<Store>,
    /// The name of its node.
    pub(crate) name: String,
    number: u64,
    /// True when it is gone, and does not come back.
    done: bool,
}

impl Mine {
    pub(crate) fn new(store: &Arc<Store>, name: String, guard: &Guard) -> Self {
        let number = store.hold(&name, guard.token());
        Self { store: Arc::clone(store), name, number, done: false }
    }

    /// Notes that the item was acknowledged.
    pub(crate) fn done(mut self) {
        self.done = true;
    }

    pub(crate) fn item(&self) -> String {
        self.store.places.item(&self.name)
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        self.store.let_go(&self.name, self.number, self.done);
    }
}

impl fmt::Debug for Mine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// An item that was taken and not looked into yet.
#[derive(Debug)]
pub(crate) struct Taken {
    // Dropped in this order: once the item is not held any more it may be claimed again.
    pub(crate) guard: Guard,
    pub(crate) mine: Mine,
    /// As it is in the node.
    pub(crate) node: bytes::Bytes,
    /// Number of times it was handed out, this one included, where that is counted.
    pub(crate) deliveries: Option<u32>,
}
