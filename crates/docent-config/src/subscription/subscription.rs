use super::SharedFeed;
use super::newest_filter::{Latest, ValueState};
use crate::file::LocalFile;
use crate::updates::Updates;
use crate::{Rejection, Snapshot};
use docent_core::Error;
use futures_core::Stream;
use futures_util::StreamExt;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Follows a value. Created by [`Config::subscribe`](crate::Config::subscribe). As a `Stream`, it yields each
/// [`Change`] after the initial value, or the reason why the value cannot be read, and ends when the client
/// is closed. A subscription can be kept in shared state, such as that of a web service, because
/// [`current`](Self::current) takes `&self`.
///
/// # Guarantees
/// - A subscription converges to the value on the servers, through lost connections and new sessions. Values
///   in between may be skipped; the last one never is.
/// - Values arrive in the order in which they were published, and never one older than a value seen before,
///   even across sessions. The only exception is announced by [`Change::RolledBack`].
/// - A value that cannot be decoded, or that validation rejects, is reported and counted but not used: the
///   last valid value stays.
/// - While the servers are unreachable or have no value, the last valid value stays, and
///   [`is_stale`](Self::is_stale) or [`is_missing`](Self::is_missing) returns true.
///
/// # Assumptions
/// The application keeps the client open: a subscription does not.
///
/// # On drop
/// The last subscription of a client to a path removes its cache and the watch at the server.
#[must_use = "a subscription reports changes only when it is polled"]
pub struct Subscription<T> {
    feed: Arc<SharedFeed<T>>,
    updates: Updates<ValueState<T>>,
    reported: Reported,
}

/// Change of a value, as reported by a [`Subscription`].
#[non_exhaustive]
pub enum Change<T> {
    /// There is a new value.
    Value(Arc<Snapshot<T>>),
    /// Nothing is published, and nothing is known to have been published before. The default stays in use.
    Missing,
    /// The value was deleted. The last valid value stays in use.
    Deleted,
    /// An invalid value arrived. The last valid value stays in use.
    Refused(Rejection),
    /// The ensemble was restored from an older snapshot, and the client [starts
    /// afresh](docent_core::RollbackPolicy): the next value may be older than the last one.
    RolledBack,
}

/// Changes reported so far, by the numbers of `ValueState`.
#[derive(Debug, Clone, Copy)]
struct Reported {
    good: u64,
    latest: u64,
    rollbacks: u64,
}

impl<T: Send + Sync + 'static> Subscription<T> {
    pub(crate) fn new(feed: Arc<SharedFeed<T>>) -> Self {
        let reported = {
            let state = feed.state.borrow();
            let latest = match state.latest {
                Latest::Unknown | Latest::Good => state.latest_number,
                // The rejection or deletion has not been reported yet.
                Latest::Missing | Latest::Refused(_) => state.latest_number.saturating_sub(1),
            };
            Reported { good: state.good_number, latest, rollbacks: state.rollbacks }
        };
        let updates = Updates::new(&feed.state, feed.cache().errors());
        Self { feed, updates, reported }
    }

    /// Returns the last valid value. This method does no I/O and takes no lock, so it can be called for every
    /// request of a service.
    pub fn current(&self) -> Arc<Snapshot<T>> {
        self.feed.current.load_full().expect("a subscription is created only once there is a value")
    }

    /// Waits for the next change since the last one returned. Returns `None` once the client is closed. A
    /// slow reader misses the values in between: it gets the last valid value, and then the rejection of a
    /// later one, if there is one.
    ///
    /// # Errors
    /// The error with which the servers refuse to read the value, such as `NoAuth`. It is reported once, and
    /// the read is retried continuously.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Result<Change<T>, Error>> {
        self.next().await
    }

    /// Returns true if the value may be out of date:
    ///
    /// - before the servers answered,
    /// - from a lost connection until the servers answer again,
    /// - while the value cannot be read,
    /// - while decoding or validating a newer value takes longer than a second,
    /// - once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.feed.cache().is_stale() || self.feed.lag.is_behind()
    }

    /// Returns for how long the subscription has been [stale](Self::is_stale), or `None` if it is not.
    /// [`Snapshot::age`] is the age of the value itself.
    pub fn stale_for(&self) -> Option<Duration> {
        self.feed.cache().stale_for().max(self.feed.lag.behind_for())
    }

    /// Returns the error with which the servers refuse to read the value, such as `NoAuth`, or `None` if
    /// there is none. The read is retried continuously.
    pub fn last_error(&self) -> Option<Error> {
        self.feed.cache().last_error()
    }

    /// Returns true if nothing is published, as far as the servers have reported.
    pub fn is_missing(&self) -> bool {
        matches!(self.feed.state.borrow().latest, Latest::Missing)
    }

    /// Returns the rejection of the currently published value, if it was rejected.
    pub fn rejection(&self) -> Option<Rejection> {
        match &self.feed.state.borrow().latest {
            Latest::Refused(refusal) => Some(refusal.clone()),
            _ => None,
        }
    }

    /// Returns the number of values rejected since the first subscription of this `Config`.
    pub fn refused(&self) -> u64 {
        self.feed.state.borrow().refused
    }
}

impl Reported {
    /// Returns the next change to report.
    fn next<T>(&mut self, state: &ValueState<T>) -> Option<Change<T>> {
        if self.rollbacks != state.rollbacks {
            self.rollbacks = state.rollbacks;
            return Some(Change::RolledBack);
        }
        if self.good < state.good_number {
            self.good = state.good_number;
            return state.good.clone().map(Change::Value);
        }
        if self.latest < state.latest_number {
            self.latest = state.latest_number;
            return match &state.latest {
                Latest::Missing if state.existed => Some(Change::Deleted),
                Latest::Missing => Some(Change::Missing),
                Latest::Refused(refusal) => Some(Change::Refused(refusal.clone())),
                Latest::Unknown | Latest::Good => None,
            };
        }
        None
    }
}

impl<T: Send + Sync + 'static> Stream for Subscription<T> {
    type Item = Result<Change<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { updates, reported, .. } = &mut *self;
        updates.poll_next(cx, |state| reported.next(&state.borrow_and_update()))
    }
}

/// The clone starts with the same changes reported, and from then on reports changes independently.
impl<T> Clone for Subscription<T> {
    fn clone(&self) -> Self {
        Self {
            feed: Arc::clone(&self.feed),
            updates: Updates::new(&self.feed.state, self.feed.cache().errors()),
            reported: self.reported,
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("path", &self.feed.cache().path())
            .field("current", &self.current())
            .field("latest", &self.feed.state.borrow().latest)
            .field("stale", &self.is_stale())
            .finish_non_exhaustive()
    }
}

// The value may hold secrets, so `Debug` does not print it.
impl<T> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(snapshot) => f.debug_tuple("Value").field(snapshot).finish(),
            Self::Missing => f.write_str("Missing"),
            Self::Deleted => f.write_str("Deleted"),
            Self::Refused(refusal) => f.debug_tuple("Refused").field(refusal).finish(),
            Self::RolledBack => f.write_str("RolledBack"),
        }
    }
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Value(snapshot) => Self::Value(Arc::clone(snapshot)),
            Self::Missing => Self::Missing,
            Self::Deleted => Self::Deleted,
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            Self::RolledBack => Self::RolledBack,
        }
    }
}

/// Sources of a value until the servers have answered.
pub(crate) struct Fallback<T> {
    pub(crate) default: Option<Arc<Snapshot<T>>>,
    pub(crate) file: Option<LocalFile>,
    /// How long to wait for the servers first.
    pub(crate) after: Duration,
}
