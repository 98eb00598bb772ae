use crate::store::Store;
use docent_core::recipe::Hold;
use std::fmt;
use std::sync::Arc;

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
    pub(crate) fn new(store: &Arc<Store>, name: String, guard: &Hold) -> Self {
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
    pub(crate) guard: Hold,
    pub(crate) mine: Mine,
    /// As it is in the node.
    pub(crate) node: bytes::Bytes,
    /// Number of times it was handed out, this one included, where that is counted.
    pub(crate) deliveries: Option<u32>,
}
