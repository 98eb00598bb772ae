use super::feed::Feed;
use crate::inspect::{Inspector, Tree};
use docent_core::Error;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Followed trees of an inspector and its clones, each shared by all of its subscribers.
#[derive(Debug, Default)]
pub(crate) struct Feeds(Mutex<HashMap<Key, Weak<Feed>>>);

/// Root of a tree, and whether recipes below it are followed, too.
type Key = (String, bool);

impl Feeds {
    /// Returns the followed tree of all recipes at and below `root`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub(super) fn below(&self, inspector: &Inspector, root: &str) -> Result<Arc<Feed>, Error> {
        self.shared((root.to_owned(), true), inspector, Tree::below)
    }

    /// Returns the followed report on `path` alone.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub(super) fn only(&self, inspector: &Inspector, path: &str) -> Result<Arc<Feed>, Error> {
        self.shared((path.to_owned(), false), inspector, Tree::only)
    }

    fn shared(
        &self,
        key: Key,
        inspector: &Inspector,
        tree: fn(&str, &crate::inspect::Limits) -> Tree,
    ) -> Result<Arc<Feed>, Error> {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(&key).and_then(Weak::upgrade).filter(|feed| feed.is_followed()) {
            return Ok(feed);
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::start(inspector, &key.0, tree(&key.0, inspector.limits()))?);
        feeds.insert(key, Arc::downgrade(&feed));
        Ok(feed)
    }
}
