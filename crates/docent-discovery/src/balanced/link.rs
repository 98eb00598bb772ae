use crate::Instance;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Reason why a connection could not be opened.
pub(super) type Cause = Arc<dyn Error + Send + Sync>;

/// Opens a connection; `None` skips the instance.
pub(super) type Make<P, S> =
    Arc<dyn Fn(Arc<Instance<P>>) -> BoxFuture<'static, Result<Option<S>, Cause>> + Send + Sync>;

/// Connection to one instance. It is opened when it is first needed, once for all requests that wait for it.
pub(super) struct Link<P, S> {
    pub(super) instance: Arc<Instance<P>>,
    /// `None` inside if the instance is skipped. The lock makes the link `Sync`.
    connection: OnceCell<Option<Mutex<S>>>,
}

/// State of a link.
pub(super) enum LinkState<S, E> {
    /// The connection accepts a request.
    Ready(S),
    /// The instance is skipped.
    Skipped,
    /// No connection can be opened.
    NotConnected(Cause),
    /// A new connection accepts no requests.
    Refused(E),
}

impl<P, S> Link<P, S> {
    pub(super) fn new(instance: Arc<Instance<P>>) -> Self {
        Self { instance, connection: OnceCell::new() }
    }

    /// Returns true if the instance is skipped.
    pub(super) fn is_skipped(&self) -> bool {
        matches!(self.connection.get(), Some(None))
    }

    /// Waits until the connection accepts a request. Returns `None` if the connection was opened earlier and
    /// is broken: a new one may work. If this future is dropped while it opens the connection, the next
    /// waiter opens it.
    pub(super) async fn ready<R>(&self, make: &Make<P, S>) -> Option<LinkState<S, S::Error>>
    where
        S: tower::Service<R> + Clone,
    {
        let was_connected = self.connection.initialized();
        let connect = || async { Ok(make(Arc::clone(&self.instance)).await?.map(Mutex::new)) };
        let mut service = match self.connection.get_or_try_init(connect).await {
            Ok(Some(connection)) => connection.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Ok(None) => return Some(LinkState::Skipped),
            Err(cause) => return Some(LinkState::NotConnected(cause)),
        };
        match poll_fn(|cx| service.poll_ready(cx)).await {
            Ok(()) => Some(LinkState::Ready(service)),
            Err(_) if was_connected => None,
            Err(error) => Some(LinkState::Refused(error)),
        }
    }
}

impl<P, S> fmt::Debug for Link<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("instance", &self.instance.id).finish_non_exhaustive()
    }
}
