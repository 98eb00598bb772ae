use super::Config;
use crate::history::FOLDER;
use crate::subscription::Fallback;
use crate::tree::SharedTreeFeed;
use crate::value::ValueFormat;
use crate::{SubscribeError, TreeSubscription};
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// A folder of configurations: each child of the node at the path is a key with its own value, all of one
/// type. Created by [`new`](Self::new) or
/// [`ConfigBuilder::build_tree`](crate::ConfigBuilder::build_tree). Cheap to clone.
///
/// # Guarantees
/// Each key has the guarantees of [`Config`]. An invalid value does not affect other keys. The children of a
/// key are ignored: a tree has one level.
///
/// # Examples
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::{ConfigTree, TreeChange};
///
/// let flags = ConfigTree::<bool>::new(&client, "/config/flags")?;
/// flags.key("dark-mode")?.publish(&true).await?;
/// let mut subscription = flags.subscribe().await?;
/// if subscription.current().get("dark-mode").is_some_and(|flag| *flag.value()) {}
/// while let Some(change) = subscription.changed().await {
///     match change {
///         Ok(TreeChange::Value(key, flag)) => println!("{key}: {}", **flag),
///         Ok(_) => {}
///         Err(error) => eprintln!("{error}"), // the client retries
///     }
/// }
/// # Ok(()) }
/// ```
pub struct ConfigTree<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    versioned: VersionedNode,
    format: ValueFormat<T>,
    history: usize,
    feed: Mutex<Weak<SharedTreeFeed<T>>>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> ConfigTree<T> {
    /// Creates the folder of configurations below `path`, as JSON, each with a history of ten values. The
    /// path need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Config::builder(client, path).build_tree()
    }
}

impl<T: Send + Sync + 'static> ConfigTree<T> {
    pub(crate) fn from_parts(versioned: VersionedNode, format: ValueFormat<T>, history: usize) -> Self {
        Self { inner: Arc::new(Inner { versioned, format, history, feed: Mutex::default() }) }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.inner.versioned.path()
    }

    /// Returns one of the configurations, to publish, follow or delete it.
    ///
    /// # Errors
    /// `InvalidInput` if `key` is not the name of a node: empty, with a `/`, or reserved (`_history`).
    pub fn key(&self, key: &str) -> Result<Config<T>, Error> {
        if key.is_empty() || key.contains('/') || key == FOLDER {
            let detail = format!("key {key:?} must be one segment of a path, and not {FOLDER:?}");
            return Err(Error::invalid_input("config", detail));
        }
        let Inner { versioned, format, history, .. } = &*self.inner;
        let path = format!("{}/{key}", self.path());
        let versioned = VersionedNode::new(versioned.client(), &path).in_operation("config")?;
        let fallback = Fallback { default: None, file: None, after: Duration::ZERO };
        Ok(Config::from_parts(versioned, format.at(&path), *history, fallback))
    }

    /// Follows all keys, waiting until all of them were read, for at most the operation timeout. A folder
    /// that does not exist has no keys.
    ///
    /// # Errors
    /// [`SubscribeError::Core`] with `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe(
        &self,
    ) -> impl Future<Output = Result<TreeSubscription<T>, SubscribeError>> + Send + use<T> {
        let tree = self.clone();
        async move {
            let feed = tree.feed()?;
            feed.ready().await.in_operation("subscribe")?;
            Ok(TreeSubscription::new(feed))
        }
    }

    fn feed(&self) -> Result<Arc<SharedTreeFeed<T>>, Error> {
        let mut running = self.inner.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = running.upgrade() {
            return Ok(feed);
        }
        let feed = Arc::new(SharedTreeFeed::start(&self.inner.versioned, &self.inner.format)?);
        *running = Arc::downgrade(&feed);
        Ok(feed)
    }
}

impl<T> Clone for ConfigTree<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for ConfigTree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "ConfigTree", self.inner.versioned.path(), self.inner.versioned.client())
            .finish_non_exhaustive()
    }
}
