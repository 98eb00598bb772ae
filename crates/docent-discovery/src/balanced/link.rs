use crate::Instance;
use futures_util::future::BoxFuture;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// Cause for which a connection could not be made.
pub(super) type Cause = Arc<dyn Error + Send + Sync>;

/// Maker of connections; `None` leaves an instance out.
pub(super) type Make<P, S> =
    Arc<dyn Fn(Arc<Instance<P>>) -> BoxFuture<'static, Result<Option<S>, Cause>> + Send + Sync>;

/// Connection to one instance, made when it is first needed, once for all that wait for it.
pub(super) struct Link<P, S> {
    pub(super) instance: Arc<Instance<P>>,
    /// `None` inside when the maker leaves the instance out. The lock makes it `Sync`.
    made: OnceCell<Option<Mutex<S>>>,
}

/// State in which a link is found.
pub(super) enum Found<S, E> {
    /// It takes a request.
    Ready(S),
    /// The instance is left out.
    LeftOut,
    /// No connection can be made.
    Unmade(Cause),
    /// A new connection takes no requests.
    Refused(E),
}

impl<P, S> Link<P, S> {
    pub(super) fn new(instance: Arc<Instance<P>>) -> Self {
        Self { instance, made: OnceCell::new() }
    }

    /// True when the maker left the instance out.
    pub(super) fn is_left_out(&self) -> bool {
        matches!(self.made.get(), Some(None))
    }

    /// Waits until it takes a request. `None` when the connection was made before, and is broken: another may
    /// do. Where this is dropped while it makes the connection, the next that waits makes it.
    pub(super) async fn ready<R>(&self, make: &Make<P, S>) -> Option<Found<S, S::Error>>
    where
        S: tower::Service<R> + Clone,
    {
        let was_made = self.made.initialized();
        let connect = || async { Ok(make(Arc::clone(&self.instance)).await?.map(Mutex::new)) };
        let mut service = match self.made.get_or_try_init(connect).await {
            Ok(Some(made)) => made.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Ok(None) => return Some(Found::LeftOut),
            Err(cause) => return Some(Found::Unmade(cause)),
        };
        match poll_fn(|cx| service.poll_ready(cx)).await {
            Ok(()) => Some(Found::Ready(service)),
            Err(_) if was_made => None,
            Err(error) => Some(Found::Refused(error)),
        }
    }
}

impl<P, S> fmt::Debug for Link<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("instance", &self.instance.id).finish_non_exhaustive()
    }
}
