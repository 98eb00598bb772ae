//! The task of a cache of a tree: follows the session, asks, and publishes.

mod persistent;
mod requests;

use super::attachment::{Attachment, News};
use super::children_event::ChildrenEvent;
use super::children_store::ChildrenStore;
use super::let_go::let_go;
use super::subtree_watch::SubtreeWatch;
use super::sync_pace::SyncPace;
use super::tree_nodes::{Look, TreeNodes};
use super::tree_options::TreeOptions;
use crate::operation::Shared;
use crate::session::{Fired, Outcome, PersistentNews};
use crate::time::Backoff;
use crate::watch::patience;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, FuturesUnordered, StreamExt};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A request of the cache.
enum Ask {
    Look(Arc<str>, Look),
    /// Waits for the node at the cache's path to be created.
    Root,
}

type Answer = BoxFuture<'static, (Ask, Outcome)>;

/// Keeps a tree on a [`ChildrenStore`].
pub(super) struct TreeTask {
    shared: Arc<Shared>,
    root: Arc<str>,
    options: TreeOptions,
    store: Arc<ChildrenStore>,
    abandoned: CancellationToken,
    attachment: Attachment,
    /// True while the link is up and the session takes requests.
    up: bool,
    /// True until the sync that a new link begins with.
    held: bool,
    /// Tells of every node, in place of two watches for each.
    persistent: SubtreeWatch,
    nodes: TreeNodes,
    /// Requests under way. They are answered in the order they were sent, so that the answer told last is the
    /// newest.
    asked: FuturesOrdered<Answer>,
    watches: FuturesUnordered<BoxFuture<'static, (Arc<str>, Look, Fired)>>,
    /// Reads to send again, because they were refused.
    refused: Vec<(Arc<str>, Look)>,
    /// Changes found and not published yet.
    events: Vec<ChildrenEvent>,
    loaded: bool,
    syncing: bool,
    sync_at: Option<Instant>,
    /// Time to send refused reads again.
    mend_at: Option<Instant>,
    /// Time before which nothing is asked.
    busy_until: Option<Instant>,
    pace: SyncPace,
    /// Pauses while the session takes no more requests.
    patience: Backoff,
    /// Pauses between attempts at nodes that cannot be read.
    mending: Backoff,
}

enum Step {
    News(News),
    Told(PersistentNews),
    Answered(Ask, Outcome),
    Fired(Arc<str>, Look, Fired),
    Alarm,
    /// Nobody is interested any more.
    Abandoned,
    Closed,
}

impl TreeTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        root: &str,
        options: TreeOptions,
        store: Arc<ChildrenStore>,
        abandoned: CancellationToken,
    ) -> Self {
        let root: Arc<str> = Arc::from(root);
        Self {
            attachment: Attachment::new(&shared),
            shared,
            nodes: TreeNodes::new(Arc::clone(&root), options.max_depth),
            root,
            options,
            store,
            abandoned,
            up: false,
            held: true,
            persistent: SubtreeWatch::default(),
            asked: FuturesOrdered::new(),
            watches: FuturesUnordered::new(),
            refused: Vec::new(),
            events: Vec::new(),
            loaded: false,
            syncing: false,
            sync_at: None,
            mend_at: None,
            busy_until: None,
            pace: SyncPace::new(),
            patience: patience(),
            mending: patience(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.ask();
            match self.step().await {
                Step::News(news) => self.news(news),
                Step::Told(news) => self.told(news),
                Step::Answered(ask, outcome) => self.answered_in_order(ask, outcome),
                Step::Fired(path, look, fired) => self.fired(&path, look, fired),
                Step::Alarm => self.alarm(Instant::now()),
                Step::Abandoned => return self.let_go().await,
                Step::Closed => return,
            }
            self.take_the_rest();
            self.publish();
        }
    }

    /// Waits for what happens next. Cancel safe.
    async fn step(&mut self) -> Step {
        let alarm = [self.sync_at, self.mend_at, self.busy_until].into_iter().flatten().min();
        let alarm = async {
            match alarm {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => Step::Closed,
            () = self.abandoned.cancelled() => Step::Abandoned,
            news = self.attachment.news() => Step::News(news),
            Some(news) = self.persistent.next() => Step::Told(news),
            Some((ask, outcome)) = self.asked.next() => Step::Answered(ask, outcome),
            Some((path, look, fired)) = self.watches.next() => Step::Fired(path, look, fired),
            () = alarm => Step::Alarm,
        }
    }

    /// Takes the answers and events that are there already, so that they are published together.
    fn take_the_rest(&mut self) {
        while let Some(Some((ask, outcome))) = self.asked.next().now_or_never() {
            self.answered_in_order(ask, outcome);
        }
        self.take_told();
        while let Some(Some((path, look, fired))) = self.watches.next().now_or_never() {
            self.fired(&path, look, fired);
        }
    }

    fn news(&mut self, News { session, lost, up }: News) {
        if lost {
            // Answers from before the link was lost count.
            self.take_the_rest();
            self.asked = FuturesOrdered::new();
            (self.held, self.syncing) = (true, false);
            (self.sync_at, self.busy_until) = (None, None);
            self.store.stale();
        }
        if session {
            self.persistent.end();
            self.watches = FuturesUnordered::new();
            self.nodes.forget_watches();
        }
        self.up = up;
        if up && self.loaded && self.persistent.is_set() && planted!(GapTakenForTold) {
            (self.held, self.syncing) = (false, true);
        } else if up && self.held {
            self.sync_at = Some(Instant::now() + self.pace.pause(self.nodes.len()));
        }
    }

    fn alarm(&mut self, now: Instant) {
        let due = |alarm: &mut Option<Instant>| alarm.take_if(|at| *at <= now).is_some();
        // `run` asks again at the top of its loop.
        due(&mut self.busy_until);
        if due(&mut self.sync_at) {
            self.asked = FuturesOrdered::new();
            (self.held, self.syncing) = (false, true);
            self.pace.begun();
            self.choose_watches();
            self.nodes.begin_sync();
        }
        if due(&mut self.mend_at) {
            for (path, look) in std::mem::take(&mut self.refused) {
                self.nodes.want(&path, look);
            }
        }
    }

    fn fired(&mut self, path: &Arc<str>, look: Look, fired: Fired) {
        // The end of a session comes as `News`.
        if let Fired::Event(_) = fired {
            self.nodes.fired(path, look);
        }
    }

    fn publish(&mut self) {
        let synced = self.syncing && self.nodes.is_synced() && !self.nodes.is_root_refused();
        // Before the first sync is done, a part of the tree would be shown as if it were all.
        if !self.loaded && !synced {
            return;
        }
        self.store.publish(None, &std::mem::take(&mut self.events));
        if synced {
            self.syncing = false;
            self.loaded = true;
            self.store.caught_up();
        }
    }

    /// Removes the watches, a few at a time.
    async fn let_go(mut self) {
        self.asked = FuturesOrdered::new();
        self.persistent.end();
        let full = self.shared.namespace.join(&self.root);
        let watches = std::mem::take(&mut self.watches).into_iter();
        let_go(&self.shared, &mut self.attachment, self.up, &full, watches).await;
    }
}

/// Ends the waits for the task, also where it panicked or was dropped.
impl Drop for TreeTask {
    fn drop(&mut self) {
        self.store.close();
    }
}
