//! Something exclusive with one holder and one waiter.

use crate::fleet::patiently;
use docent::guard::Guard;
use docent::locks::MutexGuard;
use docent::{Client, Election, Leadership, Mutex};
use docent_tests::soon;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// One holder and one waiter.
#[derive(Debug)]
pub(crate) struct Pair<G> {
    holder: Arc<G>,
    waiting: JoinHandle<G>,
}

pub(crate) async fn mutex(holder: &Client, waiter: &Client) -> Pair<MutexGuard> {
    let lock = |client| Mutex::new(client, "/lock").unwrap();
    let guard = soon(lock(holder).acquire()).await.unwrap();
    let next = lock(waiter);
    Pair::new(guard, async move { next.acquire().await.unwrap() })
}

pub(crate) async fn election(leader: &Client, candidate: &Client) -> Pair<Leadership> {
    let election = |client| Election::new(client, "/election").unwrap();
    let leadership = soon(election(leader).campaign()).await.unwrap();
    let campaign = election(candidate).campaign();
    Pair::new(leadership, async move { campaign.await.unwrap() })
}

impl<G: Guard + Debug + 'static> Pair<G> {
    /// `next` is the waiting contender. When it receives its guard, no other contender may hold.
    fn new(holder: G, next: impl Future<Output = G> + Send + 'static) -> Self {
        let (fence, holder) = (holder.fence(), Arc::new(holder));
        assert!(fence.is_some(), "exclusive guards have a fence");
        // A weak reference, because a released holder is dropped.
        let before = Arc::downgrade(&holder);
        let waiting = tokio::spawn(async move {
            let next = next.await;
            assert!(!before.upgrade().is_some_and(|before| before.is_held()), "two contenders hold");
            assert!(next.fence() > fence, "fence {:?} followed {fence:?}", next.fence());
            next
        });
        Self { holder, waiting }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.holder.is_held() && !self.waiting.is_finished()
    }

    /// Waits until the holder knows that its guard is lost.
    pub(crate) async fn is_lost(&self) {
        soon(self.holder.lost()).await;
        assert!(!self.holder.is_held());
    }

    /// Waits until the other contender holds.
    pub(crate) async fn taken_over(self) {
        let next = patiently(self.waiting).await.unwrap();
        assert!(next.is_held());
        soon(next.release()).await.unwrap();
    }

    /// Releases the guard, which must still be held.
    pub(crate) async fn handed_over(self) {
        assert!(self.is_held(), "the guard was lost");
        let Self { holder, waiting } = self;
        soon(Arc::into_inner(holder).unwrap().release()).await.unwrap();
        let next = soon(waiting).await.unwrap();
        assert!(next.is_held());
        soon(next.release()).await.unwrap();
    }
}
