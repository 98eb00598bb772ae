use crate::cache::reads::ReadKind;
use crate::session::{Fired, Watch};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Watch on a node, with its key. There may be one for each node, so it is stored inline and not on the heap.
pub(super) struct NodeWatch {
    key: Arc<str>,
    kind: ReadKind,
    watch: Watch,
}

impl NodeWatch {
    pub(super) fn new(key: &Arc<str>, kind: ReadKind, watch: Watch) -> Self {
        Self { key: Arc::clone(key), kind, watch }
    }
}

impl Future for NodeWatch {
    type Output = (Arc<str>, ReadKind, Fired);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fired = Pin::new(&mut self.watch).poll(cx);
        fired.map(|fired| (Arc::clone(&self.key), self.kind, fired))
    }
}
