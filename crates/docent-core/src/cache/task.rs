//! The task of a cache of children or of a tree: follows the session, sends reads, and publishes.
//!
//! A *sync* reads everything; it is how the cache begins and what it does after each lost link. In between,
//! watches report what to read.

mod asked;
mod node_watch;
mod persistent;
mod requests;

use super::attachment::{Attachment, News};
use super::children_event::ChildrenEvent;
use super::children_store::ChildrenStore;
use super::keys::Keys;
use super::let_go::let_go;
use super::nodes::Nodes;
use super::reads::Look;
use super::subtree_watch::SubtreeWatch;
use super::sync_pace::SyncPace;
use super::tree_options::TreeOptions;
use crate::node::Stat;
use crate::operation::Shared;
use crate::session::{Fired, Outcome, PersistentNews};
use crate::time::Backoff;
use crate::watch::patience;
use asked::{Ask, Asked};
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use node_watch::NodeWatch;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keeps nodes on a [`ChildrenStore`].
pub(super) struct CacheTask {
    shared: Arc<Shared>,
    /// Path of the cache's own node, as the user wrote it.
    path: String,
    options: TreeOptions,
    store: Arc<ChildrenStore>,
    abandoned: CancellationToken,
    attachment: Attachment,
    /// True while the link is up and the session takes requests.
    up: bool,
    /// True on a new link before its sync: nothing is asked until then.
    held: bool,
    /// Reports changes of every node, in place of watches on each.
    persistent: SubtreeWatch,
    nodes: Nodes,
    asked: Asked,
    watches: FuturesUnordered<NodeWatch>,
    /// Stat of the cache's own node, in a cache of children.
    folder: Option<Stat>,
    /// Reads to send again, because they were refused.
    refused: Vec<(Arc<str>, Look)>,
    /// Changes found and not published yet.
    events: Vec<ChildrenEvent>,
    /// Maximum number of nodes in one read.
    batch: usize,
    /// Set when a read of several nodes was lost with its link.
    lost_batch: bool,
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
    Reported(PersistentNews),
    Answered(Ask, Outcome),
    Fired(Arc<str>, Look, Fired),
    Alarm,
    /// The last handle and the last subscriber were dropped.
    Abandoned,
    Closed,
}

impl CacheTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: String,
        keys: Keys,
        options: TreeOptions,
        store: Arc<ChildrenStore>,
        abandoned: CancellationToken,
    ) -> Self {
        Self {
            attachment: Attachment::new(&shared),
            batch: shared.most_in_a_read(),
            shared,
            path,
            nodes: Nodes::new(keys, options.max_depth),
            options,
            store,
            abandoned,
            up: false,
            held: true,
            persistent: SubtreeWatch::default(),
            asked: Asked::default(),
            watches: FuturesUnordered::new(),
            folder: None,
            refused: Vec::new(),
            events: Vec::new(),
            lost_batch: false,
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
                Step::Reported(news) => self.reported(news),
                Step::Answered(ask, outcome) => self.answered_in_order(ask, outcome),
                Step::Fired(key, look, fired) => self.fired(&key, look, fired),
                Step::Alarm => self.alarm(Instant::now()),
                Step::Abandoned => return self.let_go().await,
                Step::Closed => return,
            }
            self.take_the_rest();
            self.publish();
        }
    }

    /// Waits for the next step. Cancel safe.
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
            Some(news) = self.persistent.next() => Step::Reported(news),
            Some((ask, outcome)) = self.asked.next() => Step::Answered(ask, outcome),
            Some((key, look, fired)) = self.watches.next() => Step::Fired(key, look, fired),
            () = alarm => Step::Alarm,
        }
    }

    /// Takes the answers and events that have arrived already, so that they are published together.
    fn take_the_rest(&mut self) {
        while let Some(Some((ask, outcome))) = self.asked.next().now_or_never() {
            self.answered_in_order(ask, outcome);
        }
        self.take_reported();
        while let Some(Some((key, look, fired))) = self.watches.next().now_or_never() {
            self.fired(&key, look, fired);
        }
    }

    fn news(&mut self, News { session, lost, up }: News) {
        if lost {
            // Answers from before the link was lost count.
            self.take_the_rest();
            self.asked = Asked::default();
            if std::mem::take(&mut self.lost_batch) {
                self.smaller_batches();
            }
            // Requests from before the sync would leave watches that its persistent one replaces.
            (self.held, self.syncing) = (true, false);
            (self.sync_at, self.busy_until) = (None, None);
            self.store.stale();
        }
        if session {
            self.persistent.end();
            self.watches = FuturesUnordered::new();
            if !planted!(NoReadOnReconnect) {
                self.nodes.forget_watches();
            }
        }
        self.up = up;
        if up && self.loaded && planted!(NoReadOnReconnect) {
            (self.held, self.syncing) = (false, true);
            let root = Arc::clone(self.nodes.keys().root());
            self.nodes.want(&root, self.nodes.root_look());
        } else if up && self.loaded && self.persistent.is_set() && planted!(GapTakenForTold) {
            (self.held, self.syncing) = (false, true);
        } else if up && self.held {
            self.sync_at = Some(Instant::now() + self.pace.pause(self.nodes.len()));
        }
    }

    fn sync(&mut self) {
        self.asked = Asked::default();
        (self.held, self.syncing) = (false, true);
        // The sync reads these, too.
        self.refused.clear();
        self.mend_at = None;
        self.pace.begun();
        self.choose_watches();
        self.nodes.begin_sync();
    }

    fn alarm(&mut self, now: Instant) {
        let due = |alarm: &mut Option<Instant>| alarm.take_if(|at| *at <= now).is_some();
        // `run` asks again at the top of its loop.
        due(&mut self.busy_until);
        if due(&mut self.sync_at) {
            self.sync();
        }
        if due(&mut self.mend_at) {
            for (key, look) in std::mem::take(&mut self.refused) {
                if key == *self.nodes.keys().root() {
                    // Everything is below it, and may be read for the first time then.
                    self.nodes.want_for_sync(&key, look);
                } else {
                    self.nodes.want(&key, look);
                }
            }
        }
    }

    fn fired(&mut self, key: &Arc<str>, look: Look, fired: Fired) {
        // The end of a session comes as `News`.
        if let Fired::Event(_) = fired {
            self.nodes.fired(key, look);
        }
    }

    fn publish(&mut self) {
        let synced = self.syncing && self.nodes.is_synced() && !self.nodes.is_root_refused();
        // Before the first sync is done, a part of the nodes would be shown as if it were all.
        if !self.loaded && !synced {
            return;
        }
        self.store.publish(self.folder, &std::mem::take(&mut self.events));
        if synced {
            self.syncing = false;
            self.loaded = true;
            self.batch = (2 * self.batch).min(self.shared.most_in_a_read());
            self.store.caught_up();
        }
    }

    /// Removes the watches, a few at a time.
    async fn let_go(mut self) {
        self.asked = Asked::default();
        self.persistent.end();
        let watches = std::mem::take(&mut self.watches).into_iter();
        let full = self.nodes.keys().full_root();
        let_go(&self.shared, &mut self.attachment, self.up, full, watches).await;
    }
}

/// Ends the waits for the task, also if it panicked or was dropped.
impl Drop for CacheTask {
    fn drop(&mut self) {
        self.store.close();
    }
}
