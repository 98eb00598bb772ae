//! Something that one holds and another one waits for.

use crate::fleet::patiently;
use docent::locks::MutexGuard;
use docent::{Client, Election, Fence, Leadership, Mutex};
use docent_tests::soon;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Guard of an exclusive recipe, as the tests need it.
pub(crate) trait Guard: Debug + Send + Sync + 'static {
    fn is_held(&self) -> bool;
    fn fence(&self) -> Fence;
    fn lost(&self) -> impl Future<Output = ()> + Send;
    fn release(self) -> impl Future<Output = ()> + Send;
    /// As `release`, but it may be lost by now, or the outcome unknown.
    fn give_back(self) -> impl Future<Output = ()> + Send;
}

impl Guard for MutexGuard {
    fn is_held(&self) -> bool {
        MutexGuard::is_held(self)
    }

    fn fence(&self) -> Fence {
        MutexGuard::fence(self)
    }

    async fn lost(&self) {
        MutexGuard::lost(self).await;
    }

    async fn release(self) {
        MutexGuard::release(self).await.unwrap();
    }

    async fn give_back(self) {
        let _ = MutexGuard::release(self).await;
    }
}

impl Guard for Leadership {
    fn is_held(&self) -> bool {
        Leadership::is_held(self)
    }

    fn fence(&self) -> Fence {
        Leadership::fence(self)
    }

    async fn lost(&self) {
        Leadership::lost(self).await;
    }

    async fn release(self) {
        self.resign().await.unwrap();
    }

    async fn give_back(self) {
        let _ = self.resign().await;
    }
}

/// One holds, another one waits.
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

impl<G: Guard> Pair<G> {
    /// `next` is the waiting contender. At the moment it gets its guard, nobody else may hold one.
    fn new(holder: G, next: impl Future<Output = G> + Send + 'static) -> Self {
        let (fence, holder) = (holder.fence(), Arc::new(holder));
        // Weak, because a released holder is dropped.
        let before = Arc::downgrade(&holder);
        let waiting = tokio::spawn(async move {
            let next = next.await;
            assert!(!before.upgrade().is_some_and(|before| before.is_held()), "two hold it");
            assert!(next.fence() > fence, "fence {:?} came after {fence:?}", next.fence());
            next
        });
        Self { holder, waiting }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.holder.is_held() && !self.waiting.is_finished()
    }

    /// Waits until the holder knows that it holds no more.
    pub(crate) async fn is_lost(&self) {
        soon(self.holder.lost()).await;
        assert!(!self.holder.is_held());
    }

    /// Waits until the other contender holds it.
    pub(crate) async fn taken_over(self) {
        let next = patiently(self.waiting).await.unwrap();
        assert!(next.is_held());
        soon(next.release()).await;
    }

    /// Hands over the guard, which was held all the time.
    pub(crate) async fn handed_over(self) {
        assert!(self.is_held(), "it was lost");
        let Self { holder, waiting } = self;
        soon(Arc::into_inner(holder).unwrap().release()).await;
        let next = soon(waiting).await.unwrap();
        assert!(next.is_held());
        soon(next.release()).await;
    }
}
