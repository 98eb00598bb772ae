use crate::session::{Fired, Watch};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Watch on a child, with its name. There is one for each child: it is kept in place, not on the heap.
pub(super) struct ChildWatch {
    name: Arc<str>,
    watch: Watch,
}

impl ChildWatch {
    pub(super) fn new(name: &Arc<str>, watch: Watch) -> Self {
        Self { name: Arc::clone(name), watch }
    }
}

impl Future for ChildWatch {
    type Output = (Arc<str>, Fired);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let fired = Pin::new(&mut self.watch).poll(cx);
        fired.map(|fired| (Arc::clone(&self.name), fired))
    }
}
