use super::board::Board;
use super::watches::Watches;
use crate::inspect::{Inspector, Tree, complete};
use docent_core::recipe::{SubtreeEvent, SubtreeEvents};
use docent_core::{Error, ErrorKind};
use futures_util::future::FutureExt;
use futures_util::stream::{self, StreamExt};
use std::collections::HashSet;
use std::future::pending;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Time within which changes are merged.
const QUIET: Duration = Duration::from_millis(50);

/// Pause after a failed inspection, and the minimum interval between polls.
const PAUSE: Duration = Duration::from_secs(1);

/// Interval at which nodes that may not be read are tried again, because no event reports a permission.
const REFUSED: Duration = Duration::from_secs(30);

/// Keeps a tree and its board up to date: watches everything below the root, reads what has changed, and
/// inspects the places that are based on it.
///
/// On each new link, the watch is in place first. Then the stat of each node is compared with what was read.
/// Events that arrive during reads are applied afterwards, so a node that changes while it is read is read
/// again.
pub(super) struct Follower {
    inspector: Inspector,
    tree: Tree,
    events: SubtreeEvents,
    /// One-shot watches on nodes that the persistent watch does not cover.
    watches: Watches,
    /// False if the servers do not support persistent watches.
    is_watched: bool,
    board: watch::Sender<Board>,
    is_attached: bool,
    /// True if changes may have been missed.
    is_suspect: bool,
    /// True after a failure, until an inspection succeeds.
    is_due: bool,
    /// Time before which nothing is read, after a failure.
    not_before: Option<Instant>,
    /// Time of the next poll of nodes that are not watched, or may not be read.
    poll_at: Option<Instant>,
    /// Kind of the last failure that was posted, until an inspection succeeds.
    failed: Option<ErrorKind>,
}

impl Follower {
    pub(super) fn new(
        inspector: &Inspector,
        tree: Tree,
        events: SubtreeEvents,
        board: watch::Sender<Board>,
    ) -> Self {
        Self {
            inspector: inspector.clone(),
            tree,
            events,
            watches: Watches::default(),
            is_watched: false,
            board,
            is_attached: false,
            is_suspect: false,
            is_due: false,
            not_before: None,
            poll_at: None,
            failed: None,
        }
    }

    /// Runs until the client is closed.
    pub(super) async fn run(mut self) {
        while self.step().await.is_some() {}
    }

    async fn step(&mut self) -> Option<()> {
        self.wait().await?;
        self.gather().await?;
        if !self.is_attached || self.not_before.is_some() || !self.has_work() {
            return Some(());
        }
        let inspector = self.inspector.clone();
        let updating = async {
            let now = inspector.now().await;
            if self.is_suspect {
                verify(&inspector, &mut self.tree).await?;
                self.is_suspect = false;
            }
            complete(&inspector, &mut self.tree, now).await?;
            Ok::<_, Error>(now)
        };
        let updated = tokio::select! {
            biased;
            updated = updating => updated,
            // What was read until now stays, and is verified on the next link.
            () = self.events.unsettled() => return Some(()),
        };
        match updated.and_then(|now| self.watch_once().map(|()| now)) {
            Ok(now) => self.post(now),
            Err(error) if error.kind() == ErrorKind::Closed => return None,
            Err(error) => self.post_failure(&error),
        }
        Some(())
    }

    /// Returns true if something must be read, inspected or posted.
    fn has_work(&self) -> bool {
        self.is_suspect || self.is_due || self.tree.is_due()
    }

    /// Waits for something to do.
    async fn wait(&mut self) -> Option<()> {
        let alarm = [self.tree.next_turn(), self.poll_at, self.not_before].into_iter().flatten().min();
        let in_flight = self.inspector.limits.in_flight;
        tokio::select! {
            event = self.events.next() => self.apply(event?),
            fired = self.watches.changed(&mut self.tree, in_flight) => fired?,
            () = until(alarm) => {
                let now = Instant::now();
                self.tree.take_turns(now);
                self.not_before.take_if(|at| *at <= now);
                if self.poll_at.take_if(|at| *at <= now).is_some() {
                    self.poll();
                }
            }
        }
        Some(())
    }

    /// Collects the changes that follow quickly, and all that have arrived.
    async fn gather(&mut self) -> Option<()> {
        if !self.has_work() {
            return Some(());
        }
        let end = Instant::now() + QUIET;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(end) => break,
                event = self.events.next() => self.apply(event?),
            }
        }
        while let Some(event) = self.events.next().now_or_never() {
            self.apply(event?);
        }
        Some(())
    }

    fn apply(&mut self, event: SubtreeEvent) {
        match event {
            SubtreeEvent::Set(path) => self.tree.node_changed(&path, true),
            SubtreeEvent::Data(path) => self.tree.node_changed(&path, false),
            SubtreeEvent::Attached { is_watched } => {
                (self.is_attached, self.is_suspect) = (true, true);
                (self.watches, self.is_watched) = (Watches::default(), is_watched);
            }
            SubtreeEvent::Detached => {
                self.is_attached = false;
                self.post_stale();
            }
        }
    }

    /// Sets one-shot watches on what the persistent watch does not cover, and the time of the next poll.
    fn watch_once(&mut self) -> Result<(), Error> {
        let (client, limits) = (&self.inspector.client, &self.inspector.limits);
        self.watches.keep(client, &self.tree, limits.watches, self.is_watched)?;
        let refused = self.tree.nodes().refused().next().filter(|_| self.is_watched).map(|_| REFUSED);
        let unwatched = (self.watches.unwatched() > 0).then(|| limits.look_every.max(PAUSE));
        let interval = [refused, unwatched].into_iter().flatten().min();
        let next = interval.and_then(|interval| Instant::now().checked_add(interval));
        self.poll_at = next.map(|next| self.poll_at.map_or(next, |before| before.min(next)));
        Ok(())
    }

    /// Schedules nodes whose changes no event reports.
    fn poll(&mut self) {
        self.watches.poll_unwatched(&mut self.tree);
        if self.is_watched {
            let refused: Vec<_> = self.tree.nodes().refused().cloned().collect();
            refused.iter().for_each(|path| self.tree.node_changed(path, true));
        }
    }

    /// Posts what has changed.
    fn post(&mut self, now: Option<SystemTime>) {
        (self.is_due, self.failed) = (false, None);
        let (changes, summary) = (self.tree.take_changes(), self.tree.summary(now));
        let unwatched = self.watches.unwatched();
        let (zxid, is_stale) = (summary.as_of_zxid, false);
        self.board.send_modify(|board| {
            for (path, report) in changes {
                board.set(path, report, zxid);
            }
            (board.summary, board.unwatched, board.is_stale) = (Some(summary), unwatched, is_stale);
            board.failure = None;
        });
    }

    fn post_stale(&self) {
        self.board.send_modify(|board| board.is_stale = true);
    }

    fn post_failure(&mut self, error: &Error) {
        (self.is_due, self.not_before) = (true, Instant::now().checked_add(PAUSE));
        self.post_stale();
        // An outage is reported as staleness.
        if !error.is_retryable() && self.failed.replace(error.kind()) != Some(error.kind()) {
            self.board.send_modify(|board| board.fail(error.clone()));
        }
    }
}

/// Compares each node with what was read of it.
///
/// # Errors
/// Errors that are not about one node: `InvalidInput`, `Timeout`, `Closed`.
async fn verify(inspector: &Inspector, tree: &mut Tree) -> Result<(), Error> {
    let client = &inspector.client;
    let paths: HashSet<_> = tree.nodes().paths().cloned().collect();
    let stats = stream::iter(paths).map(|path| async move {
        let stat = client.exists(&path).await;
        (path, stat)
    });
    let mut stats = stats.buffer_unordered(inspector.limits.in_flight.max(1));
    while let Some((path, stat)) = stats.next().await {
        tree.verify(&path, stat?.as_ref());
    }
    Ok(())
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}
