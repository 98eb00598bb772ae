use super::{SharedTreeFeed, TreeSnapshot};
use crate::subscription::{StateWait, or_error};
use crate::{Rejection, Snapshot};
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Follows a folder of configurations. Made by [`ConfigTree::subscribe`](crate::ConfigTree::subscribe). As a
/// `Stream` it yields each [`TreeChange`] after the values it began with, and ends with the client.
///
/// # Guarantees
/// For each key the guarantees of [`Subscription`](crate::Subscription), except that a deleted key is gone. A
/// slow reader gets the differences from the state that it saw last. After servers were restored from an
/// older copy keys may have older values: it does not say so.
///
/// # On drop
/// With the last subscription of a [`ConfigTree`](crate::ConfigTree) its cache goes, and the watches at the
/// server.
#[must_use = "what changes is not seen unless somebody looks"]
pub struct TreeSubscription<T> {
    feed: Arc<SharedTreeFeed<T>>,
    state: watch::Receiver<Option<Arc<TreeSnapshot<T>>>>,
    told: Arc<TreeSnapshot<T>>,
    next: VecDeque<TreeChange<T>>,
    waiting: StateWait,
    errors: SyncStream<Error>,
}

/// Change of a key that a [`TreeSubscription`] tells.
#[non_exhaustive]
pub enum TreeChange<T> {
    /// A key is there, or has a new value.
    Value(Arc<str>, Arc<Snapshot<T>>),
    /// A key is gone.
    Deleted(Arc<str>),
    /// A key's value is not good. Its last good one stays in use.
    Refused(Arc<str>, Rejection),
}

impl<T: Send + Sync + 'static> TreeSubscription<T> {
    pub(crate) fn new(feed: Arc<SharedTreeFeed<T>>) -> Self {
        let state = feed.state.clone();
        let told = state.borrow().clone().unwrap_or_default();
        // Values that are refused already have not been told yet.
        let refused =
            told.refused.iter().map(|(key, refusal)| TreeChange::Refused(Arc::clone(key), refusal.clone()));
        let next = refused.collect();
        let errors = feed.cache.errors();
        Self { feed, state, told, next, waiting: StateWait::default(), errors }
    }

    /// The last good values of all keys. Neither I/O nor a lock.
    pub fn current(&self) -> Arc<TreeSnapshot<T>> {
        self.feed.current.load_full()
    }

    /// Waits for the next change after the one this saw last; `None` once the client is closed.
    ///
    /// # Errors
    /// That with which the servers refuse to let the folder be listed, as `NoAuth`: told once, and tried
    /// again all the time.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Result<TreeChange<T>, Error>> {
        poll_fn(|cx| self.poll_changed(cx)).await
    }

    /// True when what is known may be out of date: from a lost link until everything was read again, while
    /// the folder cannot be listed, while the codec or the validation of newer values takes longer than a
    /// second, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.feed.cache.is_stale() || self.feed.lag.is_behind()
    }

    /// Time for which it has been [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.feed.cache.stale_for().or_else(|| self.feed.lag.behind_for())
    }

    /// Error with which the servers refuse to let the folder be listed; `None` when they do not. It is tried
    /// again all the time.
    pub fn last_error(&self) -> Option<Error> {
        self.feed.cache.last_error()
    }

    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<TreeChange<T>, Error>>> {
        let found = self.waiting.poll_found(cx, &mut self.state, |state| {
            if self.next.is_empty() {
                let now = state.borrow_and_update().clone()?;
                self.next.extend(now.since(&self.told));
                self.told = now;
            }
            self.next.pop_front().map(Ok)
        });
        or_error(found, &mut self.errors, cx)
    }
}

impl<T: Send + Sync + 'static> Stream for TreeSubscription<T> {
    type Item = Result<TreeChange<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_changed(cx)
    }
}

/// Follows on its own from here.
impl<T> Clone for TreeSubscription<T> {
    fn clone(&self) -> Self {
        Self {
            feed: Arc::clone(&self.feed),
            state: self.state.clone(),
            told: Arc::clone(&self.told),
            next: self.next.clone(),
            waiting: StateWait::default(),
            errors: self.feed.cache.errors(),
        }
    }
}

impl<T> fmt::Debug for TreeSubscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSubscription")
            .field("path", &self.feed.cache.path())
            .field("keys", &self.told.len())
            .field("stale", &self.feed.cache.is_stale())
            .finish_non_exhaustive()
    }
}

impl<T> Clone for TreeChange<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Value(key, snapshot) => Self::Value(Arc::clone(key), Arc::clone(snapshot)),
            Self::Deleted(key) => Self::Deleted(Arc::clone(key)),
            Self::Refused(key, refusal) => Self::Refused(Arc::clone(key), refusal.clone()),
        }
    }
}

// The value may hold secrets.
impl<T> fmt::Debug for TreeChange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(key, snapshot) => f.debug_tuple("Value").field(key).field(snapshot).finish(),
            Self::Deleted(key) => f.debug_tuple("Deleted").field(key).finish(),
            Self::Refused(key, refusal) => f.debug_tuple("Refused").field(key).field(refusal).finish(),
        }
    }
}
