use super::Store;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An item that this process holds, for as long as this lives.
pub(crate) struct LocalClaim {
    pub(crate) store: Arc<Store>,
    /// The name of its node.
    pub(crate) name: String,
    number: u64,
    /// True when it is gone, and does not come back.
    done: bool,
}

impl LocalClaim {
    /// Notes that this process holds the item `name`, until `lost` is cancelled.
    pub(crate) fn new(store: &Arc<Store>, name: String, lost: CancellationToken) -> Self {
        let number = store.local.hold(&name, lost);
        Self { store: Arc::clone(store), name, number, done: false }
    }

    /// Notes that the item was acknowledged.
    pub(crate) fn done(mut self) {
        self.done = true;
    }

    pub(crate) fn item(&self) -> String {
        self.store.paths.item(&self.name)
    }
}

impl Drop for LocalClaim {
    fn drop(&mut self) {
        self.store.local.let_go(&self.name, self.number, self.done);
    }
}

impl fmt::Debug for LocalClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
