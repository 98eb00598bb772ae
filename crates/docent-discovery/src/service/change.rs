use super::{Instances, Service, Unreadable};
use crate::Instance;
use crate::balance::Candidate;
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use futures_util::stream;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Change of a [`Service`](super::Service)'s available instances, which are enabled and pass its filter.
#[non_exhaustive]
pub enum ServiceChange<P> {
    /// An instance became available.
    Added(Arc<Instance<P>>),
    /// The data of an instance changed.
    Updated(Arc<Instance<P>>),
    /// An instance was deregistered, was disabled, no longer passes the filter, or lost its node because its
    /// session expired. This is its last data.
    Removed(Arc<Instance<P>>),
    /// A node cannot be read as an instance. If the instance was shown before, it is also reported as
    /// removed, unless the client only lost the permission to read its node.
    Unreadable(Unreadable),
    /// From here on the view may be out of date, until [`Current`](Self::Current).
    Stale,
    /// The changes up to here match the servers' state.
    Current,
}

impl<P> Clone for ServiceChange<P> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(instance) => Self::Added(Arc::clone(instance)),
            Self::Updated(instance) => Self::Updated(Arc::clone(instance)),
            Self::Removed(instance) => Self::Removed(Arc::clone(instance)),
            Self::Unreadable(unreadable) => Self::Unreadable(unreadable.clone()),
            Self::Stale => Self::Stale,
            Self::Current => Self::Current,
        }
    }
}

impl<P> fmt::Debug for ServiceChange<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(instance) => write!(f, "Added({:?})", instance.id),
            Self::Updated(instance) => write!(f, "Updated({:?})", instance.id),
            Self::Removed(instance) => write!(f, "Removed({:?})", instance.id),
            Self::Unreadable(unreadable) => write!(f, "Unreadable({unreadable})"),
            Self::Stale => f.write_str("Stale"),
            Self::Current => f.write_str("Current"),
        }
    }
}

/// Stream of the changes of a [`Service`](super::Service). Created by
/// [`Service::changes`](super::Service::changes).
///
/// A slow reader misses changes in between, but never the final state. An error, such as `NoAuth`, means that
/// the instances cannot be listed; it is reported once, and the listing is retried continuously. The stream
/// ends when the client is closed.
#[must_use = "a stream does nothing unless it is polled"]
pub struct ServiceChanges<P> {
    keyed: KeyedChanges<P>,
    errors: SyncStream<Error>,
}

impl<P: Send + Sync + 'static> Stream for ServiceChanges<P> {
    type Item = Result<ServiceChange<P>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.keyed).poll_next(cx);
        if next.is_pending()
            && let Poll::Ready(Some(error)) = Pin::new(&mut self.errors).poll_next(cx)
        {
            return Poll::Ready(Some(Err(error)));
        }
        next.map(|next| next.map(|(_, change)| Ok(change)))
    }
}

impl<P> fmt::Debug for ServiceChanges<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceChanges").finish_non_exhaustive()
    }
}

#[cfg(feature = "tower")]
impl<P> ServiceChanges<P> {
    pub(crate) fn into_keyed(self) -> KeyedChanges<P> {
        self.keyed
    }
}

/// Ids of nodes, with the change at each.
pub(crate) type KeyedChanges<P> = SyncStream<(Arc<str>, ServiceChange<P>)>;

impl<P: Send + Sync + 'static> ServiceChanges<P> {
    pub(super) fn new(
        service: Service<P>,
        shown: watch::Receiver<Arc<Instances<P>>>,
        errors: SyncStream<Error>,
    ) -> Self {
        let cursor = ChangeCursor {
            _service: service,
            shown,
            known: Arc::new(Instances::none()),
            changes: VecDeque::new(),
            is_new: true,
        };
        let keyed = stream::unfold(cursor, |mut cursor| async move {
            let change = cursor.next().await?;
            Some((change, cursor))
        });
        Self { keyed: SyncStream::new(keyed), errors }
    }
}

/// Reports how each state of a view differs from the last reported one.
struct ChangeCursor<P> {
    /// Keeps the view alive.
    _service: Service<P>,
    shown: watch::Receiver<Arc<Instances<P>>>,
    known: Arc<Instances<P>>,
    changes: VecDeque<(Arc<str>, ServiceChange<P>)>,
    is_new: bool,
}

impl<P> ChangeCursor<P> {
    async fn next(&mut self) -> Option<(Arc<str>, ServiceChange<P>)> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Some(change);
            }
            if !std::mem::take(&mut self.is_new) {
                self.until_changed().await?;
            }
            let shown = Arc::clone(&self.shown.borrow_and_update());
            let known = std::mem::replace(&mut self.known, shown);
            self.compare(&known);
        }
    }

    /// Waits until another state is shown; returns `None` if there will be none. Each poll also checks the
    /// shown state directly, because the view's task wakes this future a moment later.
    async fn until_changed(&mut self) -> Option<()> {
        let shown = self.shown.clone();
        let mut changed = pin!(self.shown.changed());
        poll_fn(|cx| match changed.as_mut().poll(cx) {
            Poll::Pending if matches!(shown.has_changed(), Ok(true)) => Poll::Ready(Some(())),
            polled => polled.map(Result::ok),
        })
        .await
    }

    fn compare(&mut self, before: &Instances<P>) {
        let after = Arc::clone(&self.known);
        let mut push = |key: &Arc<str>, change| self.changes.push_back((Arc::clone(key), change));
        if after.is_stale && !before.is_stale {
            push(&"".into(), ServiceChange::Stale);
        }
        let is_same = |one: &Candidate<P>, other: &Candidate<P>| Arc::ptr_eq(&one.instance, &other.instance);
        before.available.differences(&after.available, is_same, |key, before, after| {
            let change = match (before, after) {
                (Some(removed), None) => ServiceChange::Removed(Arc::clone(&removed.instance)),
                (None, Some(new)) => ServiceChange::Added(Arc::clone(&new.instance)),
                (_, Some(after)) => ServiceChange::Updated(Arc::clone(&after.instance)),
                (None, None) => return,
            };
            push(key, change);
        });
        before.unreadable.differences(&after.unreadable, PartialEq::eq, |key, _, unreadable| {
            if let Some(unreadable) = unreadable {
                push(key, ServiceChange::Unreadable(unreadable.clone()));
            }
        });
        if before.is_stale && !after.is_stale {
            push(&"".into(), ServiceChange::Current);
        }
    }
}
