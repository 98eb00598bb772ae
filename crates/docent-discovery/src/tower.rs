use crate::service::{KeyedChanges, ServiceChange};
use crate::{Instance, Service};
use futures_core::Stream;
use futures_util::StreamExt;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::discover::Change as Discovery;

impl<P: Send + Sync + 'static> Service<P> {
    /// The service's available instances as tower's [`Discover`](tower::discover::Discover), for
    /// `tower::balance` and other users of one. `make` makes a service of each instance, anew when the
    /// instance changes; `None` leaves it out.
    ///
    /// Requests that tower sends are not counted as in flight here, and their failures set nobody aside: it
    /// has a balance of its own.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: docent_discovery::Service<()>) {
    /// # fn connect(_uri: &str) -> u32 { 0 }
    /// let discover = orders.discover(|instance| Some(connect(&instance.uri().ok()?)));
    /// # let _ = discover;
    /// # }
    /// ```
    pub fn discover<S, M>(&self, make: M) -> Discovered<P, M>
    where
        M: FnMut(&Arc<Instance<P>>) -> Option<S>,
    {
        Discovered { changes: self.changes().into_keyed(), make }
    }
}

/// The instances of a service as tower's `Discover`, with the ids of their nodes for keys. Made by
/// [`Service::discover`].
///
/// It never fails, and ends when the client is closed.
#[must_use = "a stream does nothing unless it is polled"]
pub struct Discovered<P, M> {
    changes: KeyedChanges<P>,
    make: M,
}

// Nothing in it is pinned in place.
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
                (key, ServiceChange::Added(instance)) => match (self.make)(&instance) {
                    Some(made) => Discovery::Insert(key, made),
                    None => continue,
                },
                (key, ServiceChange::Updated(instance)) => match (self.make)(&instance) {
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
