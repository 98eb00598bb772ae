#[cfg(feature = "tower")]
use super::{Discovered, Follower, follower::Followers};
use super::{Instances, ServiceChanges};
use crate::Instance;
use crate::balance::{Balance, PickError, Picked};
use crate::rules::RuleSources;
use docent_core::recipe::ViewLag;
use docent_core::{ChildrenCache, Error};
use futures_util::future;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "tower")]
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

/// Live view of the instances of a service: read and picked without I/O, updated in the background.
///
/// # Expected flow
/// [`pick`](Self::pick) an instance for each piece of work, hold the [`Picked`] while the work runs, and
/// report the outcome. With the feature `tower`, `balanced` does that for each request; with `tonic`,
/// `channel` does. A user that keeps connections follows [`changes`](Self::changes).
///
/// # Guarantees
/// - The view of an instance is never older than what the view showed before, and converges to the servers'
///   state.
/// - While disconnected, and in a new session until everything was read again, the view still shows its last
///   instances, and reports [how old](Self::stale_for) they are. An instance that never left is never shown
///   as removed.
/// - A node that cannot be read as an instance, or at which the filter or the decoder of its payload panics,
///   is [reported](Instances::unreadable) and does not affect others.
/// - Only instances that the view shows as available at that time are picked.
///
/// # Assumptions
/// All instances fit in memory. An instance whose process was killed is shown until its session expires: some
/// picks fail until then.
///
/// # What happens
/// - *Connection lost, session expired:* see above.
/// - *Client closed:* the view still shows its last state, as stale; streams end.
///
/// # On drop
/// When the last clone and stream are dropped, the watches are removed. A view does not keep the client open.
///
/// Cheap to clone; all clones share one view with one task.
pub struct Service<P = ()>(Arc<Inner<P>>);

/// What all clones of a view share.
pub(super) struct Inner<P> {
    pub(super) name: String,
    pub(super) cache: ChildrenCache,
    pub(super) rules: Option<RuleSources>,
    pub(super) lag: ViewLag,
    pub(super) shown: watch::Receiver<Arc<Instances<P>>>,
    #[cfg(feature = "tower")]
    pub(super) followers: Followers<P>,
    pub(super) balance: Arc<Balance>,
    /// Ends the task when it is dropped.
    pub(super) _task: DropGuard,
}

impl<P> Service<P> {
    pub(super) fn new(inner: Inner<P>) -> Self {
        Self(Arc::new(inner))
    }

    /// Returns the name of the service.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the current instances, without I/O.
    pub fn instances(&self) -> Arc<Instances<P>> {
        Arc::clone(&self.0.shown.borrow())
    }

    /// Picks an instance by the view's policy, without I/O, among the instances that are enabled, pass the
    /// filter and are not set aside. If all are set aside, picks among all of them.
    ///
    /// # Errors
    /// `NoInstance` if there is none.
    pub fn pick(&self) -> Result<Picked<P>, PickError> {
        let picked = self.0.balance.pick(&self.instances().available);
        picked.ok_or_else(|| self.no_instance())
    }

    /// Like [`pick`](Self::pick), among the instances for which `filter` returns true. Round robin takes
    /// turns among these alone: picks with other filters do not affect whose turn it is.
    ///
    /// # Errors
    /// `NoInstance` if there is none.
    pub fn pick_where(&self, filter: impl Fn(&Instance<P>) -> bool) -> Result<Picked<P>, PickError> {
        let instances = self.instances();
        let candidates = instances.available.iter().map(|(_, candidate)| candidate);
        let candidates: Vec<_> =
            candidates.filter(|candidate| filter(&candidate.instance)).cloned().collect();
        self.0.balance.pick_some(&candidates).ok_or_else(|| self.no_instance())
    }

    /// Like [`pick`](Self::pick), without those whose node's name `is_skipped`.
    #[cfg(feature = "tower")]
    pub(crate) fn pick_unless(&self, is_skipped: impl Fn(&Arc<str>) -> bool) -> Option<Picked<P>> {
        let instances = self.instances();
        let candidates = instances.available.iter().filter(|(key, _)| !is_skipped(key));
        let candidates: Vec<_> = candidates.map(|(_, candidate)| candidate.clone()).collect();
        self.0.balance.pick_some(&candidates)
    }

    /// Waits for an available instance whose node's name passes. Returns `None` if the client is closed,
    /// because no further instance can appear.
    #[cfg(feature = "tower")]
    pub(crate) async fn until_some(&self, passes: impl Fn(&Arc<str>) -> bool) -> Option<()> {
        let mut shown = self.0.shown.clone();
        let is_there = |shown: &Arc<Instances<P>>| shown.available.iter().any(|(key, _)| passes(key));
        shown.wait_for(is_there).await.is_ok().then_some(())
    }

    /// Notifies `follower` of each state shown from now on, until it is dropped.
    #[cfg(feature = "tower")]
    pub(crate) fn follow_with<F: Follower<P> + 'static>(&self, follower: &Arc<F>) {
        let follower: Weak<F> = Arc::downgrade(follower);
        self.0.followers.add(follower);
    }

    fn no_instance(&self) -> PickError {
        PickError::NoInstance { service: self.0.name.clone() }
    }

    /// Returns a stream of changes, starting with an [`Added`](super::ServiceChange::Added) for each current
    /// instance.
    pub fn changes(&self) -> ServiceChanges<P>
    where
        P: Send + Sync + 'static,
    {
        let Inner { cache, shown, .. } = &*self.0;
        ServiceChanges::new(self.clone(), shown.clone(), cache.errors())
    }

    /// Returns true if the view may be out of date:
    ///
    /// - before it is ready,
    /// - from a lost connection until everything was read again,
    /// - while the instances cannot be listed,
    /// - in Dubbo's layout, from a lost connection until the rules were read again,
    /// - while the filter or the decoder of payloads takes longer than a second,
    /// - once the client is closed.
    pub fn is_stale(&self) -> bool {
        let Inner { cache, rules, lag, .. } = &*self.0;
        cache.is_stale() || lag.is_behind() || rules.as_ref().is_some_and(|rules| rules.stale_for().is_some())
    }

    /// Returns for how long the view has been [stale](Self::is_stale), or `None` if it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        let Inner { cache, rules, lag, .. } = &*self.0;
        let rules = rules.as_ref().and_then(RuleSources::stale_for);
        cache.stale_for().max(rules).max(lag.behind_for())
    }

    /// Returns the error that currently prevents listing the instances, or `None` if there is none. The
    /// listing is retried continuously.
    pub fn last_error(&self) -> Option<Error> {
        self.0.cache.last_error()
    }

    /// Waits until the instances were read once, for at most the operation timeout, and then until each
    /// of them was decoded and filtered. The second part has no limit: a filter that never returns blocks it.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. The view keeps trying.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send + use<P>
    where
        P: Send + Sync + 'static,
    {
        let Inner { cache, rules, shown, .. } = &*self.0;
        let (cache, rules, mut shown) = (cache.clone(), rules.clone(), shown.clone());
        async move {
            match rules {
                None => cache.ready().await?,
                Some(rules) => {
                    // Boxed, so that the future stays small in layouts without rules.
                    let both = Box::pin(future::join(cache.ready(), rules.ready()));
                    let (instances, rules) = both.await;
                    instances.and(rules)?;
                }
            }
            // What the cache already has is shown immediately, unless the decoder or filter is slow.
            match shown.wait_for(|instances| instances.is_loaded).await {
                Ok(_) => Ok(()),
                // The view's task has ended, usually together with the client.
                Err(_) => Err(Error::closed("open", cache.path())),
            }
        }
    }
}

#[cfg(feature = "tower")]
impl<P: Send + Sync + 'static> Service<P> {
    /// Returns the service's available instances as tower's [`Discover`](tower::discover::Discover), for
    /// `tower::balance` and similar users. `make` creates a service for each instance, and again when the
    /// instance changes, in the task that polls the stream. `None` skips the instance, and so does a panic.
    ///
    /// Use this with a custom balancer; otherwise use [`balanced`](Self::balanced). Requests that tower sends
    /// are not counted as in flight in the view, and their failures do not set instances aside.
    /// `tower::balance` does not consider failures, and a killed instance answers fastest of all, with
    /// errors, so it gets requests until its session expires. Nothing is resent to another instance, and no
    /// attempt has a timeout, unless the caller adds layers for that.
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
        Discovered::new(self.changes().into_keyed(), make)
    }
}

impl<P> Clone for Service<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> fmt::Debug for Service<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("name", &self.name()).field("instances", &self.instances()).finish()
    }
}
