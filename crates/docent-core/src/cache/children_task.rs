//! The task of a cache of children: follows the session, asks, and publishes.
//!
//! A *sync* lists the folder and reads every child; it is how the cache begins and what it does after each
//! lost link. In between, watches tell what to read.

mod alarms;
mod asked;
mod child_watch;
mod persistent;
mod requests;

use super::attachment::{Attachment, News};
use super::children_event::ChildrenEvent;
use super::children_store::ChildrenStore;
use super::let_go::let_go;
use super::read_queue::ReadQueue;
use super::subtree_watch::SubtreeWatch;
use super::sync_pace::SyncPace;
use crate::node::Stat;
use crate::operation::Shared;
use crate::session::{Fired, Outcome, PersistentNews, Watch};
use crate::time::Backoff;
use crate::watch::patience;
use alarms::Alarms;
use asked::{Ask, Asked};
use child_watch::ChildWatch;
use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keeps the children of one node on a [`ChildrenStore`].
pub(super) struct ChildrenTask {
    shared: Arc<Shared>,
    path: String,
    full: String,
    store: Arc<ChildrenStore>,
    abandoned: CancellationToken,
    attachment: Attachment,
    /// True while the link is up and the session takes requests.
    up: bool,
    /// True on a new link before its sync: nothing is asked until then.
    held: bool,
    listing: Listing,
    folder: Option<Stat>,
    folder_watch: Option<Box<Watch>>,
    /// Tells of every child, in place of the folder's watch and one for each child.
    persistent: SubtreeWatch,
    work: ReadQueue,
    asked: Asked,
    watches: FuturesUnordered<ChildWatch>,
    /// Children to read again, because they could not be read.
    unreadable: Vec<Arc<str>>,
    /// Changes found and not published yet.
    events: Vec<ChildrenEvent>,
    /// Most children in one request.
    batch: usize,
    /// Set when a read of several children was lost with its link.
    lost_batch: bool,
    loaded: bool,
    syncing: bool,
    alarms: Alarms,
    pace: SyncPace,
    /// Pauses between attempts at a folder that cannot be listed, or at a session that takes no more
    /// requests.
    patience: Backoff,
    /// Pauses between attempts at children that cannot be read.
    mending: Backoff,
}

/// State of the list of children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Wanted,
    /// A listing is under way; `again` when the folder changed since.
    Asked {
        again: bool,
    },
    /// A watch tells when it changes.
    Known,
    /// The servers refuse it: an alarm is set.
    Refused,
}

enum Step {
    News(News),
    Told(PersistentNews),
    Answered(Ask, Outcome),
    FolderFired(Fired),
    Fired(Arc<str>, Fired),
    Alarm,
    /// Nobody is interested any more.
    Abandoned,
    Closed,
}

impl ChildrenTask {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: String,
        full: String,
        store: Arc<ChildrenStore>,
        abandoned: CancellationToken,
    ) -> Self {
        Self {
            attachment: Attachment::new(&shared),
            batch: shared.most_in_a_read(),
            shared,
            path,
            full,
            store,
            abandoned,
            up: false,
            held: true,
            listing: Listing::Wanted,
            folder: None,
            folder_watch: None,
            persistent: SubtreeWatch::default(),
            work: ReadQueue::default(),
            asked: Asked::default(),
            watches: FuturesUnordered::new(),
            unreadable: Vec::new(),
            events: Vec::new(),
            lost_batch: false,
            loaded: false,
            syncing: false,
            alarms: Alarms::default(),
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
                Step::FolderFired(fired) => self.folder_fired(fired),
                Step::Fired(name, fired) => self.fired(&name, fired),
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
        let alarm = self.alarms.first();
        tokio::select! {
            biased;
            () = self.shared.closing.cancelled() => Step::Closed,
            () = self.abandoned.cancelled() => Step::Abandoned,
            news = self.attachment.news() => Step::News(news),
            Some(news) = self.persistent.next() => Step::Told(news),
            Some((ask, outcome)) = self.asked.next() => Step::Answered(ask, outcome),
            Some(fired) = fired(&mut self.folder_watch) => Step::FolderFired(fired),
            Some((name, fired)) = self.watches.next() => Step::Fired(name, fired),
            Some(()) = alarms::at(alarm) => Step::Alarm,
        }
    }

    /// Takes the answers and events that are there already, so that they are published together.
    fn take_the_rest(&mut self) {
        while let Some(Some((ask, outcome))) = self.asked.next().now_or_never() {
            self.answered_in_order(ask, outcome);
        }
        self.take_told();
        while let Some(Some((name, fired))) = self.watches.next().now_or_never() {
            self.fired(&name, fired);
        }
    }

    fn news(&mut self, News { session, lost, up }: News) {
        if lost {
            // Answers from before the link was lost count.
            self.take_the_rest();
            self.forget_asked();
            if std::mem::take(&mut self.lost_batch) {
                self.smaller_batches();
            }
            // Requests from before the sync would leave watches that its persistent one takes the place of.
            (self.held, self.syncing) = (true, false);
            self.alarms.sync = None;
            self.alarms.busy = None;
            self.store.stale();
        }
        if session {
            self.folder_watch = None;
            self.persistent.end();
            self.watches = FuturesUnordered::new();
            if !planted!(NoReadOnReconnect) {
                self.work.forget_watches();
            }
        }
        self.up = up;
        if up && self.loaded && planted!(NoReadOnReconnect) {
            self.held = false;
            self.syncing = true;
            self.list_again();
        } else if up && self.loaded && self.persistent.is_set() && planted!(GapTakenForTold) {
            (self.held, self.syncing) = (false, true);
        } else if up {
            self.alarms.sync = Some(Instant::now() + self.pace.pause(self.work.len()));
        }
    }

    fn sync(&mut self) {
        self.forget_asked();
        self.alarms.sync = None;
        self.held = false;
        self.syncing = true;
        self.pace.begun();
        self.choose_watches();
        self.listing = Listing::Wanted;
        self.work.forget_told();
        self.work.begin_sync();
    }

    fn alarm(&mut self, now: Instant) {
        let due = |alarm: &mut Option<Instant>| alarm.take_if(|at| *at <= now).is_some();
        // `run` asks again at the top of its loop.
        due(&mut self.alarms.busy);
        if due(&mut self.alarms.sync) {
            self.sync();
        }
        if due(&mut self.alarms.mend) {
            for name in std::mem::take(&mut self.unreadable) {
                self.work.unread(&name);
            }
        }
    }

    fn folder_fired(&mut self, fired: Fired) {
        self.folder_watch = None;
        // The end of a session comes as `News`.
        if let Fired::Event(_) = fired {
            self.list_again();
        }
    }

    fn list_again(&mut self) {
        self.listing = match self.listing {
            Listing::Asked { .. } => Listing::Asked { again: true },
            Listing::Wanted | Listing::Known => Listing::Wanted,
            Listing::Refused => Listing::Refused,
        };
    }

    fn fired(&mut self, name: &Arc<str>, fired: Fired) {
        if let Fired::Event(_) = fired {
            self.work.fired(name);
        }
    }

    fn publish(&mut self) {
        let synced = self.syncing && self.work.is_synced();
        // Before the first sync is done, a part of the children would be shown as if it were all.
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
        self.folder_watch = None;
        self.persistent.end();
        let watches = std::mem::take(&mut self.watches).into_iter();
        let_go(&self.shared, &mut self.attachment, self.up, &self.full, watches).await;
    }
}

/// Ends the waits for the task, also where it panicked or was dropped.
impl Drop for ChildrenTask {
    fn drop(&mut self) {
        self.store.close();
    }
}

async fn fired(watch: &mut Option<Box<Watch>>) -> Option<Fired> {
    Some(watch.as_mut()?.await)
}
