//! The task of a cache of children or of a tree: follows the session, sends reads, and publishes.
//!
//! A *sync* reads everything. The cache starts with a sync, and runs one after each lost link. In between,
//! watches report what to read.

mod in_flight;
mod node_watch;
mod persistent;
mod requests;

use super::attachment::{Attachment, SessionChange};
use super::children::ChildrenEvent;
use super::children_store::ChildrenStore;
use super::keys::Keys;
use super::nodes::Nodes;
use super::reads::ReadKind;
use super::sync_pace::SyncPace;
use super::tree::TreeOptions;
use crate::node::Stat;
use crate::operation::Shared;
use crate::session::{Fired, Lane, PersistentSignal, PersistentWatch};
use crate::time::Backoff;
use docent_proto::Request;
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use in_flight::InFlight;
use node_watch::NodeWatch;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Task that updates the nodes of a [`ChildrenStore`].
pub(super) struct CacheTask {
    shared: Arc<Shared>,
    /// Path of the cache's own node, as the user wrote it.
    path: String,
    options: TreeOptions,
    store: Arc<ChildrenStore>,
    abandoned: CancellationToken,
    attachment: Attachment,
    /// True while the link is up and the session accepts requests.
    up: bool,
    /// True on a new link before its sync: nothing is requested until then.
    held: bool,
    /// Reports changes of every node, in place of watches on each.
    persistent: Option<PersistentWatch>,
    nodes: Nodes,
    in_flight: InFlight,
    watches: FuturesUnordered<NodeWatch>,
    /// Stat of the cache's own node, in a cache of children.
    folder: Option<Stat>,
    /// Reads to send again because the servers refused them.
    refused: Vec<(Arc<str>, ReadKind)>,
    /// Changes found but not published yet.
    events: Vec<ChildrenEvent>,
    /// Maximum number of nodes in one read.
    batch: usize,
    /// Set when a read of several nodes was lost with its link.
    lost_batch: bool,
    loaded: bool,
    syncing: bool,
    sync_at: Option<Instant>,
    /// Time at which refused reads are sent again.
    retry_at: Option<Instant>,
    /// Time before which nothing is requested.
    busy_until: Option<Instant>,
    pace: SyncPace,
    /// Pauses while the session accepts no more requests.
    busy_backoff: Backoff,
    /// Pauses between attempts to read nodes that cannot be read.
    read_backoff: Backoff,
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
            batch: shared.max_reads_per_request(),
            shared,
            path,
            nodes: Nodes::new(keys, options.max_depth),
            options,
            store,
            abandoned,
            up: false,
            held: true,
            persistent: None,
            in_flight: InFlight::default(),
            watches: FuturesUnordered::new(),
            folder: None,
            refused: Vec::new(),
            events: Vec::new(),
            lost_batch: false,
            loaded: false,
            syncing: false,
            sync_at: None,
            retry_at: None,
            busy_until: None,
            pace: SyncPace::new(),
            busy_backoff: Backoff::endless(),
            read_backoff: Backoff::endless(),
        }
    }

    /// Runs until the client is closed, or until the last handle and the last subscriber were dropped.
    pub(super) async fn run(mut self) {
        loop {
            self.send_requests();
            let alarm = [self.sync_at, self.retry_at, self.busy_until].into_iter().flatten().min();
            let alarm = async {
                match alarm {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.shared.closing.cancelled() => return,
                () = self.abandoned.cancelled() => return self.remove_watches().await,
                change = self.attachment.changed() => self.session_changed(change),
                Some(signal) = next_signal(&mut self.persistent) => self.reported(signal),
                Some((read, outcome)) = self.in_flight.next() => self.answered_in_order(read, outcome),
                Some((key, kind, fired)) = self.watches.next() => self.fired(&key, kind, fired),
                () = alarm => self.alarm(Instant::now()),
            }
            self.take_arrived();
            self.publish();
        }
    }

    /// Takes the answers and events that have already arrived, so that they are published together.
    fn take_arrived(&mut self) {
        while let Some(Some((read, outcome))) = self.in_flight.next().now_or_never() {
            self.answered_in_order(read, outcome);
        }
        self.take_reported();
        while let Some(Some((key, kind, fired))) = self.watches.next().now_or_never() {
            self.fired(&key, kind, fired);
        }
    }

    fn session_changed(&mut self, SessionChange { session, lost, up }: SessionChange) {
        if lost {
            // Answers that arrived before the link was lost still count.
            self.take_arrived();
            self.in_flight = InFlight::default();
            if std::mem::take(&mut self.lost_batch) {
                self.smaller_batches();
            }
            // Requests from before the sync would leave watches that its persistent watch replaces.
            (self.held, self.syncing) = (true, false);
            (self.sync_at, self.busy_until) = (None, None);
            self.store.stale();
        }
        if session {
            self.persistent = None;
            self.watches = FuturesUnordered::new();
            if !planted!(NoReadOnReconnect) {
                self.nodes.forget_watches();
            }
        }
        self.up = up;
        if up && self.loaded && planted!(NoReadOnReconnect) {
            (self.held, self.syncing) = (false, true);
            let root = Arc::clone(self.nodes.keys().root());
            self.nodes.enqueue(&root, self.nodes.root_read_kind());
        } else if up && self.loaded && self.persistent.is_some() && planted!(GapTakenForTold) {
            (self.held, self.syncing) = (false, true);
        } else if up && self.held {
            self.sync_at = Some(Instant::now() + self.pace.pause(self.nodes.len()));
        }
    }

    fn sync(&mut self) {
        self.in_flight = InFlight::default();
        (self.held, self.syncing) = (false, true);
        // The sync reads these nodes as well.
        self.refused.clear();
        self.retry_at = None;
        self.pace.begun();
        self.choose_watches();
        self.nodes.begin_sync();
    }

    fn alarm(&mut self, now: Instant) {
        let due = |alarm: &mut Option<Instant>| alarm.take_if(|at| *at <= now).is_some();
        // `run` requests again at the top of its loop.
        due(&mut self.busy_until);
        if due(&mut self.sync_at) {
            self.sync();
        }
        if due(&mut self.retry_at) {
            for (key, kind) in std::mem::take(&mut self.refused) {
                if key == *self.nodes.keys().root() {
                    // The root may be read for the first time, and then everything below it follows.
                    self.nodes.enqueue_for_sync(&key, kind);
                } else {
                    self.nodes.enqueue(&key, kind);
                }
            }
        }
    }

    fn fired(&mut self, key: &Arc<str>, kind: ReadKind, fired: Fired) {
        // The end of a session comes as `SessionChange`.
        if let Fired::Event(_) = fired {
            self.nodes.fired(key, kind);
        }
    }

    fn publish(&mut self) {
        let synced = self.syncing && self.nodes.is_synced() && !self.nodes.is_root_refused();
        // Before the first sync is done, a part of the nodes would appear to be all of them.
        if !self.loaded && !synced {
            return;
        }
        self.store.publish(self.folder, &std::mem::take(&mut self.events));
        if synced {
            self.syncing = false;
            self.loaded = true;
            self.batch = (2 * self.batch).min(self.shared.max_reads_per_request());
            self.store.caught_up();
        }
    }

    /// Removes the watches, a few at a time, so that other requests get through in between.
    async fn remove_watches(mut self) {
        self.in_flight = InFlight::default();
        self.persistent = None;
        let mut watches = std::mem::take(&mut self.watches).into_iter();
        while watches.by_ref().take(WATCHES_PER_BATCH).count() == WATCHES_PER_BATCH {
            // Without a link, the server has no watches, and those dropped here are not set again.
            if self.up {
                // Requests are answered in order: the answer arrives after the server has removed these
                // watches.
                let request =
                    Request::Exists { path: self.nodes.keys().full_root().to_owned(), watch: false };
                let removed = self.attachment.generation.session.submit(request, Lane::Call);
                tokio::select! {
                    () = self.shared.closing.cancelled() => return,
                    change = self.attachment.changed() => self.up = !change.lost,
                    _ = removed => {}
                }
            }
        }
    }
}

/// Number of watches removed at a time.
const WATCHES_PER_BATCH: usize = 128;

/// Waits for the next signal of a watch; `None` if there is no watch. Cancel safe.
async fn next_signal(watch: &mut Option<PersistentWatch>) -> Option<PersistentSignal> {
    watch.as_mut()?.next().await
}

/// Ends the waits for the task, also if it panicked or was dropped.
impl Drop for CacheTask {
    fn drop(&mut self) {
        self.store.close();
    }
}
