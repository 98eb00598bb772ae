use super::feed::{LayersState, SharedLayersFeed};
use crate::updates::Updates;
use crate::{Rejection, Revision};
use docent_codec::internals::is_same_key;
use docent_core::Error;
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Follows a layered configuration. Created by [`LayeredConfig::subscribe`](crate::LayeredConfig::subscribe).
/// As a `Stream`, it yields each [`LayeredChange`] after the initial value, and ends when the client is
/// closed. The guarantees are those of [`LayeredConfig`](crate::LayeredConfig).
///
/// # On drop
/// The last subscription of a [`LayeredConfig`](crate::LayeredConfig) removes the caches of its layers and
/// the watches at the server.
#[must_use = "a subscription reports changes only when it is polled"]
pub struct LayeredSubscription<T> {
    feed: Arc<SharedLayersFeed<T>>,
    updates: Updates<LayersState<T>>,
    reported: Reported,
}

/// Change of a value, as reported by a [`LayeredSubscription`].
#[non_exhaustive]
pub enum LayeredChange<T> {
    /// There is a new value: the strongest text of at least one key changed, was added or was deleted.
    Value(Arc<LayeredSnapshot<T>>),
    /// The layers do not form a valid value. The last valid value stays in use.
    Refused(Rejection),
}

/// Changes reported so far, by the numbers of `LayersState`.
#[derive(Clone, Copy)]
struct Reported {
    good: u64,
    refused: u64,
}

impl<T: Send + Sync + 'static> LayeredSubscription<T> {
    pub(super) fn new(feed: Arc<SharedLayersFeed<T>>) -> Self {
        let reported = {
            let state = feed.state.borrow();
            // A current rejection has not been reported yet.
            let unreported = u64::from(state.rejection.is_some());
            Reported { good: state.good_number, refused: state.refused_number - unreported }
        };
        Self { updates: Updates::new(&feed.state, feed.errors()), feed, reported }
    }

    /// Returns the last valid value. This method does no I/O and takes no lock.
    pub fn current(&self) -> Arc<LayeredSnapshot<T>> {
        self.feed.current.load_full().expect("a subscription is created only once there is a value")
    }

    /// Waits for the next change since the last one returned. Returns `None` once the client is closed. A
    /// slow reader misses the values in between: it gets the last valid value, and then the rejection of a
    /// later one, if there is one.
    ///
    /// # Errors
    /// The error with which the servers refuse to read or list a layer, such as `NoAuth`. It is reported
    /// once, and the client retries continuously.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Result<LayeredChange<T>, Error>> {
        self.next().await
    }

    /// Returns true if the value may be out of date:
    ///
    /// - from a lost connection until all layers were read again,
    /// - while a layer cannot be listed,
    /// - while decoding or validating a newer value takes longer than a second,
    /// - once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.feed.is_stale()
    }

    /// Returns for how long the subscription has been [stale](Self::is_stale), or `None` if it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        self.feed.stale_for()
    }

    /// Returns the error with which the servers refuse to list the weakest of the layers that cannot be
    /// listed, or `None` if there is none. The listing is retried continuously.
    pub fn last_error(&self) -> Option<Error> {
        self.feed.last_error()
    }

    /// Returns why the latest value is invalid, or `None` if it is valid.
    pub fn rejection(&self) -> Option<Rejection> {
        self.feed.state.borrow().rejection.clone()
    }
}

impl Reported {
    /// Returns the next change to report.
    fn next<T>(&mut self, state: &LayersState<T>) -> Option<LayeredChange<T>> {
        if self.good < state.good_number {
            self.good = state.good_number;
            return state.good.clone().map(LayeredChange::Value);
        }
        if self.refused < state.refused_number {
            self.refused = state.refused_number;
            return state.rejection.clone().map(LayeredChange::Refused);
        }
        None
    }
}

impl<T: Send + Sync + 'static> Stream for LayeredSubscription<T> {
    type Item = Result<LayeredChange<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { updates, reported, .. } = &mut *self;
        updates.poll_next(cx, |state| reported.next(&state.borrow_and_update()))
    }
}

/// The clone starts with the same changes reported, and from then on reports changes independently.
impl<T: Send + Sync + 'static> Clone for LayeredSubscription<T> {
    fn clone(&self) -> Self {
        Self {
            feed: Arc::clone(&self.feed),
            updates: Updates::new(&self.feed.state, self.feed.errors()),
            reported: self.reported,
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for LayeredSubscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredSubscription")
            .field("current", &self.current())
            .field("rejection", &self.rejection())
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}

impl<T> Clone for LayeredChange<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Value(snapshot) => Self::Value(Arc::clone(snapshot)),
            Self::Refused(rejection) => Self::Refused(rejection.clone()),
        }
    }
}

// The value may hold secrets, so `Debug` prints only the origins of its keys.
impl<T> fmt::Debug for LayeredChange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(snapshot) => f.debug_tuple("Value").field(snapshot).finish(),
            Self::Refused(rejection) => f.debug_tuple("Refused").field(rejection).finish(),
        }
    }
}

/// The value of a [`LayeredConfig`](crate::LayeredConfig) with the origin of each key. It dereferences to the
/// value: `snapshot.server.port`. A snapshot never changes.
#[derive(Clone)]
pub struct LayeredSnapshot<T> {
    value: T,
    origins: BTreeMap<Arc<str>, KeyOrigin>,
}

/// Node whose text a key has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyOrigin {
    /// Path of the node.
    pub path: Arc<str>,
    /// Revision of the text.
    pub revision: Revision,
    /// Number of the layer in [`LayeredConfig::layers`](crate::LayeredConfig::layers): 0 is the weakest.
    pub layer: usize,
}

impl<T> LayeredSnapshot<T> {
    pub(super) fn new(value: T, origins: BTreeMap<Arc<str>, KeyOrigin>) -> Self {
        Self { value, origins }
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// Returns the origin of a key's text, or `None` if no layer has the key. The key may be written in any
    /// style, such as `server.max-threads` or `server.maxThreads`.
    pub fn origin(&self, key: &str) -> Option<&KeyOrigin> {
        let of_key = self.origins.iter().filter(|(known, _)| is_same_key(known, key));
        let strongest = of_key.max_by_key(|(known, origin)| (origin.layer, ***known == *key));
        strongest.map(|(_, origin)| origin)
    }

    /// Returns all keys with the origins of their texts, in the order of keys. This includes keys that the
    /// type ignores.
    pub fn origins(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &KeyOrigin)> + DoubleEndedIterator {
        self.origins.iter()
    }
}

impl<T> Deref for LayeredSnapshot<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for LayeredSnapshot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredSnapshot").field("origins", &self.origins).finish_non_exhaustive()
    }
}
