use super::link::{Link, LinkState, Make};
use crate::balance::Picked;
use crate::service::{Follower, Instances, Service};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Links by the names of the instances' nodes.
type Known<P, S> = BTreeMap<Arc<str>, Arc<Link<P, S>>>;

/// Connections to the instances of a service, one for each, by the names of their nodes.
///
/// A connection is opened when a request first needs it, and kept while the view shows the instance as
/// available with the same data. Then it is dropped; requests in flight have their own clones.
pub(super) struct Links<P, S> {
    make: Make<P, S>,
    links: Mutex<Known<P, S>>,
    /// True if any instance is skipped.
    skips: AtomicBool,
}

impl<P, S> Links<P, S> {
    pub(super) fn new(make: Make<P, S>) -> Self {
        Self { make, links: Mutex::default(), skips: AtomicBool::new(false) }
    }

    // Callers drop connections only after releasing this lock, because the drop runs user code.
    fn lock(&self) -> MutexGuard<'_, Known<P, S>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection to the picked instance that accepts a request. A connection that broke since
    /// its last request says nothing about the instance, and is reopened.
    pub(super) async fn ready<R>(&self, service: &Service<P>, picked: &Picked<P>) -> Ready<P, S, R>
    where
        S: tower::Service<R> + Clone,
    {
        loop {
            let link = self.of(service, picked);
            let Some(state) = link.ready(&self.make).await else {
                self.forget(picked.key(), &link);
                continue;
            };
            if matches!(state, LinkState::Skipped) {
                self.skips.store(true, Ordering::Relaxed);
            }
            return (link, state);
        }
    }

    fn of(&self, service: &Service<P>, picked: &Picked<P>) -> Arc<Link<P, S>> {
        let (key, instance) = (picked.key(), picked.instance());
        let mut links = self.lock();
        if let Some(link) = links.get(key).filter(|link| Arc::ptr_eq(&link.instance, instance)) {
            return Arc::clone(link);
        }
        let link = Arc::new(Link::new(Arc::clone(instance)));
        let before = links.insert(Arc::clone(key), Arc::clone(&link));
        drop(links);
        drop(before);
        // The instance may have left since it was picked. Then no one else would drop the connection.
        if !service.instances().shows(key, instance) {
            self.forget(key, &link);
        }
        link
    }

    /// Makes the next request open another connection than `link`.
    pub(super) fn forget(&self, key: &Arc<str>, link: &Arc<Link<P, S>>) {
        let mut links = self.lock();
        let is_known = links.get(key).is_some_and(|known| Arc::ptr_eq(known, link));
        let removed = is_known.then(|| links.remove(key));
        drop(links);
        drop(removed);
    }

    /// Returns true if the instance at `key` is skipped.
    pub(super) fn skips(&self, key: &Arc<str>) -> bool {
        self.skips_any() && self.lock().get(key).is_some_and(|link| link.is_skipped())
    }

    pub(super) fn skips_any(&self) -> bool {
        self.skips.load(Ordering::Relaxed)
    }
}

/// A link with its state.
pub(super) type Ready<P, S, R> = (Arc<Link<P, S>>, LinkState<S, <S as tower::Service<R>>::Error>);

impl<P: Send + Sync, S: Send> Follower<P> for Links<P, S> {
    fn follow(&self, before: &Instances<P>, shown: &Instances<P>) {
        let mut removed = Vec::new();
        let mut links = self.lock();
        before.each_removed(shown, |key| removed.extend(links.remove(key)));
        drop(links);
        drop(removed);
    }
}
