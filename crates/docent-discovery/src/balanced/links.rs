use super::link::{Found, Link, Make};
use crate::balance::Picked;
use crate::service::{Follower, Instances, Service};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Links by the names of the instances' nodes.
type Known<P, S> = BTreeMap<Arc<str>, Arc<Link<P, S>>>;

/// Connections to the instances of a service, one for each, by the names of their nodes.
///
/// One is made when a request first needs it, kept while the view shows the instance as available with the
/// same data, and dropped after that: requests under way have their own clone.
pub(super) struct Links<P, S> {
    make: Make<P, S>,
    links: Mutex<Known<P, S>>,
    /// True when the maker left somebody out.
    leaves_out: AtomicBool,
}

impl<P, S> Links<P, S> {
    pub(super) fn new(make: Make<P, S>) -> Self {
        Self { make, links: Mutex::default(), leaves_out: AtomicBool::new(false) }
    }

    // What the maker made is dropped by the callers once this lock is free: its drop is code of the user's.
    fn lock(&self) -> MutexGuard<'_, Known<P, S>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is a connection to the picked instance that takes a request. One that broke since
    /// its last request says nothing of the instance, and is made anew.
    pub(super) async fn ready<R>(&self, service: &Service<P>, picked: &Picked<P>) -> Ready<P, S, R>
    where
        S: tower::Service<R> + Clone,
    {
        loop {
            let link = self.of(service, picked);
            let Some(found) = link.ready(&self.make).await else {
                self.forget(picked.key(), &link);
                continue;
            };
            if matches!(found, Found::LeftOut) {
                self.leaves_out.store(true, Ordering::Relaxed);
            }
            return (link, found);
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
        // It may have left since it was picked: then nobody would drop the connection.
        if !service.instances().shows(key, instance) {
            self.forget(key, &link);
        }
        link
    }

    /// Has the next request make another connection than `link`.
    pub(super) fn forget(&self, key: &Arc<str>, link: &Arc<Link<P, S>>) {
        let mut links = self.lock();
        let is_known = links.get(key).is_some_and(|known| Arc::ptr_eq(known, link));
        let gone = is_known.then(|| links.remove(key));
        drop(links);
        drop(gone);
    }

    /// True when the maker left the instance at `key` out.
    pub(super) fn leaves_out(&self, key: &Arc<str>) -> bool {
        self.leaves_out_any() && self.lock().get(key).is_some_and(|link| link.is_left_out())
    }

    pub(super) fn leaves_out_any(&self) -> bool {
        self.leaves_out.load(Ordering::Relaxed)
    }
}

/// A link with its state.
pub(super) type Ready<P, S, R> = (Arc<Link<P, S>>, Found<S, <S as tower::Service<R>>::Error>);

impl<P: Send + Sync, S: Send> Follower<P> for Links<P, S> {
    fn follow(&self, before: &Instances<P>, shown: &Instances<P>) {
        let mut gone = Vec::new();
        let mut links = self.lock();
        before.each_left(shown, |key| gone.extend(links.remove(key)));
        drop(links);
        drop(gone);
    }
}
