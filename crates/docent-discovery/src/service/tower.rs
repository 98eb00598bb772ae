use super::{KeyedChanges, ServiceChange};
use crate::Instance;
use docent_core::recipe::call_hook;
use futures_core::Stream;
use futures_util::StreamExt;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::discover::Change as Discovery;

/// The instances of a service as tower's `Discover`, keyed by the ids of their nodes. Created by
/// [`Service::discover`](super::Service::discover).
///
/// This stream never fails, and ends when the client is closed.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Discovered<P, M> {
    changes: KeyedChanges<P>,
    make: M,
}

impl<P, M> Discovered<P, M> {
    pub(super) fn new(changes: KeyedChanges<P>, make: M) -> Self {
        Self { changes, make }
    }
}

impl<P, M, S> Discovered<P, M>
where
    M: FnMut(&Arc<Instance<P>>) -> Option<S>,
{
    /// Creates the service for an instance. An instance at which this panics is skipped, because a panic
    /// would end the balancer.
    fn make(&mut self, instance: &Arc<Instance<P>>) -> Option<S> {
        call_hook("maker of services", &instance.id, || (self.make)(instance)).unwrap_or(None)
    }
}

// No field is structurally pinned.
impl<P, M> Unpin for Discovered<P, M> {}

impl<P, M, S> Stream for Discovered<P, M>
where
    M: FnMut(&Arc<Instance<P>>) -> Option<S>,
{
    type Item = Result<Discovery<Arc<str>, S>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let change = match self.changes.poll_next_unpin(cx) {
                Poll::Ready(Some(change)) => change,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let discovery = match change {
                (key, ServiceChange::Added(instance)) => match self.make(&instance) {
                    Some(made) => Discovery::Insert(key, made),
                    None => continue,
                },
                (key, ServiceChange::Updated(instance)) => match self.make(&instance) {
                    Some(made) => Discovery::Insert(key, made),
                    None => Discovery::Remove(key),
                },
                (key, ServiceChange::Removed(_)) => Discovery::Remove(key),
                _ => continue,
            };
            return Poll::Ready(Some(Ok(discovery)));
        }
    }
}

impl<P, M> fmt::Debug for Discovered<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovered").finish_non_exhaustive()
    }
}
