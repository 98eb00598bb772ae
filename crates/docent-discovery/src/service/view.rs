#[cfg(feature = "tower")]
use super::{Discovered, Follower, follower::Followers};
use super::{Instances, ServiceChanges};
use crate::Instance;
use crate::balance::{Balance, OutlierPolicy, PickError, PickPolicy, Picked};
use docent_core::recipe::ViewLag;
use docent_core::{ChildrenCache, Error};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
#[cfg(feature = "tower")]
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

/// The instances of a service, live: read and picked without I/O, brought up to date in the background.
///
/// # Expected flow
/// [`pick`](Self::pick) an instance for each piece of work, hold the [`Picked`] while the work goes on, and
/// say how it went. With the feature `tower`, `balanced` does that for each request, and with `tonic`
/// `channel`. A user that keeps connections follows [`changes`](Self::changes).
///
/// # Guarantees
/// - The view of an instance is never older than what it showed before, and comes to the servers' state.
/// - Without a link, and in a new session until everything was read again, it goes on to show its last
///   instances, and says [how old](Self::stale_for) they are. An instance that never left is never shown as
///   gone.
/// - A node that cannot be read as an instance, or at which the filter or the decoder of its payload panics,
///   is [reported](Instances::unreadable) and harms no other.
/// - Only instances that it shows as available at that time are picked.
///
/// # Assumptions
/// All instances fit in memory. An instance whose process was killed is shown until its session expires: some
/// picks fail until then.
///
/// # What happens
/// - *Link down, session over:* see above.
/// - *Client closed:* it goes on to show what it knew last, as stale; streams end.
///
/// # On drop
/// When the last clone and stream are dropped its watches are removed. It does not keep the client open.
///
/// Cheap to clone; clones are one view, with one task.
pub struct Service<P>(Arc<Inner<P>>);

struct Inner<P> {
    followed: FollowedService<P>,
    balance: Arc<Balance>,
    _task: DropGuard,
}

/// Service that a view's task follows, as the view sees it.
pub(super) struct FollowedService<P> {
    pub(super) name: String,
    pub(super) cache: ChildrenCache,
    pub(super) lag: ViewLag,
    pub(super) shown: watch::Receiver<Arc<Instances<P>>>,
    #[cfg(feature = "tower")]
    pub(super) followers: Followers<P>,
}

impl<P> Service<P> {
    pub(super) fn new(
        followed: FollowedService<P>,
        policy: PickPolicy,
        outlier_policy: OutlierPolicy,
        task: DropGuard,
    ) -> Self {
        let balance = Arc::new(Balance::new(policy, outlier_policy));
        Self(Arc::new(Inner { followed, balance, _task: task }))
    }

    /// The service's name.
    pub fn name(&self) -> &str {
        &self.0.followed.name
    }

    /// The instances as they are known now, without I/O.
    pub fn instances(&self) -> Arc<Instances<P>> {
        Arc::clone(&self.0.followed.shown.borrow())
    }

    /// Picks an instance by the view's policy, without I/O, among the instances that are enabled, pass the
    /// filter and were not set aside; if all were set aside, among them all.
    ///
    /// # Errors
    /// `NoInstance` when there is none.
    pub fn pick(&self) -> Result<Picked<P>, PickError> {
        let picked = self.0.balance.pick(&self.instances().available);
        picked.ok_or_else(|| self.no_instance())
    }

    /// As [`pick`](Self::pick), among those for which `filter` is true. Round robin takes turns among these
    /// alone: picks with other filters do not change whose turn it is.
    ///
    /// # Errors
    /// `NoInstance` when there is none.
    pub fn pick_where(&self, filter: impl Fn(&Instance<P>) -> bool) -> Result<Picked<P>, PickError> {
        let instances = self.instances();
        let candidates = instances.available.iter().map(|(_, candidate)| candidate);
        let candidates: Vec<_> =
            candidates.filter(|candidate| filter(&candidate.instance)).cloned().collect();
        self.0.balance.pick_some(&candidates).ok_or_else(|| self.no_instance())
    }

    /// As [`pick`](Self::pick), without those whose node's name `is_left_out`.
    #[cfg(feature = "tower")]
    pub(crate) fn pick_unless(&self, is_left_out: impl Fn(&Arc<str>) -> bool) -> Option<Picked<P>> {
        let instances = self.instances();
        let candidates = instances.available.iter().filter(|(key, _)| !is_left_out(key));
        let candidates: Vec<_> = candidates.map(|(_, candidate)| candidate.clone()).collect();
        self.0.balance.pick_some(&candidates)
    }

    /// Waits until there is an available instance whose node's name passes. `None` when the client is closed:
    /// nobody comes any more.
    #[cfg(feature = "tower")]
    pub(crate) async fn until_some(&self, passes: impl Fn(&Arc<str>) -> bool) -> Option<()> {
        let mut shown = self.0.followed.shown.clone();
        let is_there = |shown: &Arc<Instances<P>>| shown.available.iter().any(|(key, _)| passes(key));
        shown.wait_for(is_there).await.is_ok().then_some(())
    }

    /// Tells `follower` each state that is shown from now on, until it is dropped.
    #[cfg(feature = "tower")]
    pub(crate) fn follow_with<F: Follower<P> + 'static>(&self, follower: &Arc<F>) {
        let follower: Weak<F> = Arc::downgrade(follower);
        self.0.followed.followers.add(follower);
    }

    fn no_instance(&self) -> PickError {
        PickError::NoInstance { service: self.0.followed.name.clone() }
    }

    /// Changes from now on, after an [`Added`](super::ServiceChange::Added) for each instance there is.
    pub fn changes(&self) -> ServiceChanges<P>
    where
        P: Send + Sync + 'static,
    {
        let FollowedService { cache, shown, .. } = &self.0.followed;
        ServiceChanges::new(self.clone(), shown.clone(), cache.errors())
    }

    /// True when the view may be out of date: before it was ready, from a lost link until everything was read
    /// again, while the instances cannot be listed, while the filter or the decoder of payloads takes longer
    /// than a second, and once the client is closed.
    pub fn is_stale(&self) -> bool {
        self.0.followed.cache.is_stale() || self.0.followed.lag.is_behind()
    }

    /// Time for which it has been [stale](Self::is_stale); `None` when it is not.
    pub fn stale_for(&self) -> Option<Duration> {
        let FollowedService { cache, lag, .. } = &self.0.followed;
        cache.stale_for().or_else(|| lag.behind_for())
    }

    /// Error for which the instances cannot be listed at present; `None` when they can. It is tried again all
    /// the time.
    pub fn last_error(&self) -> Option<Error> {
        self.0.followed.cache.last_error()
    }

    /// Waits until the instances were read once, at most for the operation timeout.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`. The view goes on to try.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn ready(&self) -> impl Future<Output = Result<(), Error>> + Send + use<P>
    where
        P: Send + Sync + 'static,
    {
        let FollowedService { cache, shown, .. } = &self.0.followed;
        let (cache, mut shown) = (cache.clone(), shown.clone());
        async move {
            cache.ready().await?;
            // Instances that the cache has already are shown at once, unless a hook takes its time.
            match shown.wait_for(|instances| instances.is_loaded).await {
                Ok(_) => Ok(()),
                // The view's task has ended, mostly with the client.
                Err(_) => Err(Error::closed("open", cache.path())),
            }
        }
    }
}

#[cfg(feature = "tower")]
impl<P: Send + Sync + 'static> Service<P> {
    /// The service's available instances as tower's [`Discover`](tower::discover::Discover), for
    /// `tower::balance` and other users of one. `make` makes a service of each instance, anew when the
    /// instance changes, in the task that polls this; `None` leaves it out, and so does a panic.
    ///
    /// It is for those who bring a balance of their own; for all others there is
    /// [`balanced`](Self::balanced). What it lacks: requests that tower sends are not counted as in flight
    /// here, and their failures set nobody aside. `tower::balance` knows of no failures, and an instance that
    /// was killed answers fastest of all, with errors: it is asked until its session expires. Nothing is sent
    /// to another instance, and no attempt has a timeout, but by layers of the caller's.
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
