use super::SharedTreeFeed;
use crate::updates::Updates;
use crate::{Rejection, Snapshot};
use docent_core::Error;
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Follows a folder of configurations. Created by [`ConfigTree::subscribe`](crate::ConfigTree::subscribe). As
/// a `Stream`, it yields each [`TreeChange`] after the initial values, and ends when the client is closed.
///
/// # Guarantees
/// Each key has the guarantees of [`Subscription`](crate::Subscription), except that a deleted key is
/// removed. A key that becomes a folder without data is reported as deleted. A slow reader gets the
/// differences from the state that it saw last. After a restore of the ensemble from an older snapshot, keys
/// may have older values; this is not announced.
///
/// # On drop
/// The last subscription of a [`ConfigTree`](crate::ConfigTree) removes its cache and the watches at the
/// server.
#[must_use = "a subscription reports changes only when it is polled"]
pub struct TreeSubscription<T> {
    feed: Arc<SharedTreeFeed<T>>,
    updates: Updates<Option<Arc<TreeSnapshot<T>>>>,
    reported: Arc<TreeSnapshot<T>>,
    pending: VecDeque<TreeChange<T>>,
}

/// Change of a key, as reported by a [`TreeSubscription`].
#[non_exhaustive]
pub enum TreeChange<T> {
    /// A key was added, or has a new value.
    Value(Arc<str>, Arc<Snapshot<T>>),
    /// A key was deleted.
    Deleted(Arc<str>),
    /// A key's value is invalid. Its last valid value stays in use.
    Refused(Arc<str>, Rejection),
}

impl<T: Send + Sync + 'static> TreeSubscription<T> {
    pub(crate) fn new(feed: Arc<SharedTreeFeed<T>>) -> Self {
        let reported = feed.state.borrow().clone().unwrap_or_default();
        // Values that are already rejected have not been reported yet.
        let refused = reported
            .refused
            .iter()
            .map(|(key, refusal)| TreeChange::Refused(Arc::clone(key), refusal.clone()));
        let pending = refused.collect();
        let updates = Updates::new(&feed.state, feed.cache.errors());
        Self { feed, updates, reported, pending }
    }

    /// Returns the last valid values of all keys. This method does no I/O and takes no lock.
    pub fn current(&self) -> Arc<TreeSnapshot<T>> {
        self.feed.current.load_full()
    }

    /// Waits for the next change since the last one returned. Returns `None` once the client is closed.
    ///
    /// # Errors
    /// The error with which the servers refuse to read or list the folder, such as `NoAuth`. It is reported
    /// once, and the client retries continuously.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Result<TreeChange<T>, Error>> {
        self.next().await
    }

    /// Returns true if the values may be out of date:
    ///
    /// - from a lost connection until everything was read again,
    /// - while the folder cannot be listed,
    /// - while decoding or validating newer values takes longer than a second,
    /// - once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.feed.cache.is_stale() || self.feed.lag.is_behind()
    }

    /// Returns for how long the subscription has been [stale](Self::is_stale), or `None` if it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.feed.cache.stale_for().max(self.feed.lag.behind_for())
    }

    /// Returns the error with which the servers refuse to list the folder, or `None` if there is none. The
    /// listing is retried continuously.
    pub fn last_error(&self) -> Option<Error> {
        self.feed.cache.last_error()
    }
}

impl<T: Send + Sync + 'static> Stream for TreeSubscription<T> {
    type Item = Result<TreeChange<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { updates, reported, pending, .. } = &mut *self;
        updates.poll_next(cx, |state| {
            if pending.is_empty() {
                let now = state.borrow_and_update().clone()?;
                pending.extend(now.since(reported));
                *reported = now;
            }
            pending.pop_front()
        })
    }
}

/// The clone starts with the same changes reported, and from then on reports changes independently.
impl<T> Clone for TreeSubscription<T> {
    fn clone(&self) -> Self {
        Self {
            feed: Arc::clone(&self.feed),
            updates: Updates::new(&self.feed.state, self.feed.cache.errors()),
            reported: Arc::clone(&self.reported),
            pending: self.pending.clone(),
        }
    }
}

impl<T> fmt::Debug for TreeSubscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSubscription")
            .field("path", &self.feed.cache.path())
            .field("keys", &self.reported.len())
            .field("stale", &(self.feed.cache.is_stale() || self.feed.lag.is_behind()))
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

// The value may hold secrets, so `Debug` prints only the snapshot's metadata.
impl<T> fmt::Debug for TreeChange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(key, snapshot) => f.debug_tuple("Value").field(key).field(snapshot).finish(),
            Self::Deleted(key) => f.debug_tuple("Deleted").field(key).finish(),
            Self::Refused(key, refusal) => f.debug_tuple("Refused").field(key).field(refusal).finish(),
        }
    }
}

/// The values of a [`ConfigTree`](crate::ConfigTree) at one time. A snapshot never changes.
pub struct TreeSnapshot<T> {
    pub(super) values: BTreeMap<Arc<str>, Arc<Snapshot<T>>>,
    pub(super) refused: BTreeMap<Arc<str>, Rejection>,
}

impl<T> TreeSnapshot<T> {
    /// Returns the last valid value of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<Snapshot<T>>> {
        self.values.get(key)
    }

    /// Returns the keys with their last valid values, in the order of keys.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Snapshot<T>>)> + DoubleEndedIterator {
        self.values.iter()
    }

    /// Returns the keys whose current value is invalid, with the reason. If there was a valid value before,
    /// it is among the values.
    pub fn refused(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Rejection)> {
        self.refused.iter()
    }

    /// Returns the number of keys with a valid value.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if no key has a valid value.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the changes since `earlier`, by key.
    pub(super) fn since(&self, earlier: &Self) -> Vec<TreeChange<T>> {
        let deleted = earlier.values.keys().filter(|key| !self.values.contains_key(*key));
        let mut changes: Vec<_> = deleted.map(|key| TreeChange::Deleted(Arc::clone(key))).collect();
        for (key, value) in &self.values {
            if !earlier.get(key).is_some_and(|known| known.revision() == value.revision()) {
                changes.push(TreeChange::Value(Arc::clone(key), Arc::clone(value)));
            }
        }
        for (key, refusal) in &self.refused {
            let known = earlier.refused.get(key);
            if !known.is_some_and(|known| known.revision() == refusal.revision()) {
                changes.push(TreeChange::Refused(Arc::clone(key), refusal.clone()));
            }
        }
        changes
    }
}

impl<T> Default for TreeSnapshot<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), refused: BTreeMap::new() }
    }
}

impl<T> Clone for TreeSnapshot<T> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone(), refused: self.refused.clone() }
    }
}

impl<T> fmt::Debug for TreeSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeSnapshot").field("values", &self.values).field("refused", &self.refused).finish()
    }
}
