use super::board::Board;
use super::follower::Follower;
use crate::inspect::{Inspector, Tree};
use docent_core::Error;
use docent_core::recipe::{SubtreeEvents, SyncStream, spawn};
use futures_util::future::TryFutureExt;
use futures_util::stream;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::watch;

/// Followed trees of an inspector and its clones, each shared by all of its subscribers.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<HashMap<Key, Weak<Feed>>>);

/// Root of a tree, and whether recipes below it are followed, too.
type Key = (String, bool);

/// The board of a followed tree. One task reads and watches the tree, and ends with the last subscriber.
pub(super) type Feed = watch::Receiver<Board>;

/// A subscriber of a followed tree.
struct Subscriber<N> {
    feed: Arc<Feed>,
    /// Receives each change of the board.
    changes: Feed,
    /// Number of the last failure that was yielded.
    failure: u64,
    /// Returns what the board has for this subscriber.
    next: N,
}

/// Returns the items that `next` finds on the board of a followed tree, and each failure. The tree is the
/// report on `root` alone or, if `descends`, all recipes at and below it. The first poll subscribes.
pub(super) fn subscribe<T: Send + 'static>(
    inspector: &Inspector,
    root: &str,
    descends: bool,
    next: impl FnMut(&Feed) -> Option<T> + Send + 'static,
) -> SyncStream<Result<T, Error>> {
    let (inspector, root) = (inspector.clone(), root.to_owned());
    let subscribed = async move {
        let feed = inspector.feeds.shared(&inspector, root, descends)?;
        let subscriber = Subscriber { changes: feed.as_ref().clone(), feed, failure: 0, next };
        Ok(stream::unfold(subscriber, |mut subscriber| async move {
            let item = subscriber.next().await?;
            Some((item, subscriber))
        }))
    };
    SyncStream::new(subscribed.try_flatten_stream())
}

impl<T, N: FnMut(&Feed) -> Option<T>> Subscriber<N> {
    /// Returns the next item, or `None` once the client is closed. Cancel safe.
    async fn next(&mut self) -> Option<Result<T, Error>> {
        loop {
            self.changes.mark_unchanged();
            let item = self.failure().map(Err).or_else(|| (self.next)(&self.feed).map(Ok));
            if item.is_some() {
                return item;
            }
            self.changes.changed().await.ok()?;
        }
    }

    fn failure(&mut self) -> Option<Error> {
        let board = self.feed.borrow();
        let (number, error) = board.failure.as_ref().filter(|(number, _)| *number > self.failure)?;
        self.failure = *number;
        Some(error.clone())
    }
}

impl Feeds {
    /// Returns a followed tree, and starts to follow it if it has no subscriber.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    fn shared(&self, inspector: &Inspector, root: String, descends: bool) -> Result<Arc<Feed>, Error> {
        let key = (root, descends);
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_followed = |feed: &Arc<Feed>| feed.has_changed().is_ok();
        // The task may have ended before its subscribers, because the client was closed.
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade).filter(is_followed) {
            return Ok(feed);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(follow(inspector, &key.0, descends)?);
        feeds.insert(key, Arc::downgrade(&feed));
        Ok(feed)
    }
}

/// Starts to follow a tree.
fn follow(inspector: &Inspector, root: &str, descends: bool) -> Result<Feed, Error> {
    let events = SubtreeEvents::new(&inspector.client, root)?;
    let tree = if descends { Tree::below } else { Tree::only };
    let (board, feed) = watch::channel(Board::default());
    let follower = Follower::new(inspector, tree(root, &inspector.limits), events, board.clone());
    spawn(&inspector.client, async move {
        tokio::select! {
            biased;
            () = board.closed() => {}
            () = follower.run() => {}
        }
    });
    Ok(feed)
}
