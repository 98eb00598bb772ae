use super::value_state::{Latest, ValueState};
use super::{SharedFeed, StateWait, or_error};
use crate::{Rejection, Snapshot};
use docent_core::Error;
use docent_core::recipe::SyncStream;
use futures_core::Stream;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Follows a value. Made by [`Config::subscribe`](crate::Config::subscribe). As a `Stream` it yields each
/// [`Change`] after the value it began with, or why it cannot be read, and ends with the client. In shared
/// state, such as that of a web service, it serves [`current`](Self::current) to all requests.
///
/// # Guarantees
/// - It comes to what the servers have, through lost links and new sessions. Values in between may be left
///   out, the last one never is.
/// - Values follow each other as they were published. None is older than one that was seen before, also from
///   one session to the next; [`Change::RolledBack`] says so before the only exception.
/// - A value that cannot be read, or that validation refuses, is told, counted and not used: the last good
///   one stays.
/// - While the servers are away, or have no value, the last good one stays, and [`is_stale`](Self::is_stale)
///   or [`is_missing`](Self::is_missing) says so.
///
/// # Assumptions
/// The client is kept open by somebody else: a subscription does not.
///
/// # On drop
/// With the last subscription of a client to a path its cache goes, and the watch at the server.
#[must_use = "what changes is not seen unless somebody looks"]
pub struct Subscription<T> {
    feed: Arc<SharedFeed<T>>,
    state: watch::Receiver<ValueState<T>>,
    told: Told,
    waiting: StateWait,
    errors: SyncStream<Error>,
}

/// Change of a value that a [`Subscription`] tells.
#[non_exhaustive]
pub enum Change<T> {
    /// There is a new value.
    Value(Arc<Snapshot<T>>),
    /// Nothing is published, and nothing was, as far as is known. The default stays in use.
    Missing,
    /// The value was deleted. The last good one stays in use.
    Deleted,
    /// A value arrived that is not good. The last good one stays in use.
    Refused(Rejection),
    /// The servers were restored from an older copy, and the client [starts
    /// afresh](docent_core::RollbackPolicy): the value that follows may be older than the last one.
    RolledBack,
}

/// Changes told so far, by the numbers of `ValueState`.
#[derive(Debug, Clone, Copy)]
struct Told {
    good: u64,
    latest: u64,
    rollbacks: u64,
}

impl<T: Send + Sync + 'static> Subscription<T> {
    pub(crate) fn new(feed: Arc<SharedFeed<T>>) -> Self {
        let state = feed.state.clone();
        let told = {
            let state = state.borrow();
            let latest = match state.latest {
                Latest::Unknown | Latest::Good => state.latest_number,
                // The fault or deletion has not been told yet.
                Latest::Missing | Latest::Refused(_) => state.latest_number.saturating_sub(1),
            };
            Told { good: state.good_number, latest, rollbacks: state.rollbacks }
        };
        let errors = feed.cache().errors();
        Self { feed, state, told, waiting: StateWait::default(), errors }
    }

    /// The last good value. Neither I/O nor a lock: it can be called for every request of a service.
    pub fn current(&self) -> Arc<Snapshot<T>> {
        self.feed.current.load_full().expect("a subscription is made once there is a value")
    }

    /// Waits for the next change after the one this saw last; `None` once the client is closed. A slow reader
    /// misses the values in between, and gets the last good one, then the fault of what came after it.
    ///
    /// # Errors
    /// That with which the servers refuse to let the value be read, as `NoAuth`: told once, and tried again
    /// all the time.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Result<Change<T>, Error>> {
        poll_fn(|cx| self.poll_changed(cx)).await
    }

    /// True when what is known may be out of date: before the servers told anything, from a lost link until
    /// they told again, while the value cannot be read, while the codec or the validation of a newer one
    /// takes longer than a second, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.feed.cache().is_stale() || self.feed.lag.is_behind()
    }

    /// Time for which it has been [stale](Self::is_stale); `None` when it is not. The age of the value itself
    /// is [`Snapshot::age`].
    pub fn stale_for(&self) -> Option<Duration> {
        self.feed.cache().stale_for().or_else(|| self.feed.lag.behind_for())
    }

    /// Error with which the servers refuse to let the value be read, as `NoAuth`; `None` when they do not. It
    /// is tried again all the time.
    pub fn last_error(&self) -> Option<Error> {
        self.feed.cache().last_error()
    }

    /// True when nothing is published, as far as the servers told.
    pub fn is_missing(&self) -> bool {
        matches!(self.feed.state.borrow().latest, Latest::Missing)
    }

    /// The fault of the value that is published now, if it was refused.
    pub fn rejection(&self) -> Option<Rejection> {
        match &self.feed.state.borrow().latest {
            Latest::Refused(refusal) => Some(refusal.clone()),
            _ => None,
        }
    }

    /// Number of values refused since the first subscription of this `Config`.
    pub fn refused(&self) -> u64 {
        self.feed.state.borrow().refused
    }

    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Change<T>, Error>>> {
        let next = |state: &mut watch::Receiver<_>| self.told.next(&state.borrow_and_update()).map(Ok);
        let found = self.waiting.poll_found(cx, &mut self.state, next);
        or_error(found, &mut self.errors, cx)
    }
}

impl Told {
    /// The next change to tell.
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
        self.poll_changed(cx)
    }
}

/// Follows on its own from here.
impl<T> Clone for Subscription<T> {
    fn clone(&self) -> Self {
        Self {
            feed: Arc::clone(&self.feed),
            state: self.state.clone(),
            told: self.told,
            waiting: StateWait::default(),
            errors: self.feed.cache().errors(),
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

// The value may hold secrets.
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
