use super::Config;
use crate::history::{self, Keep};
use crate::rollout;
use crate::subscription::Fallback;
use crate::tree::SharedTreeFeed;
use crate::updates::running_or;
use crate::value::ValueFormat;
use crate::{SubscribeError, TreeSubscription};
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// A folder of configurations: each node below the path is a key with its own value, all of one type. The key
/// of a node is its path below the folder, such as `mail` or `mail/port`. Created by [`new`](Self::new) or
/// [`ConfigBuilder::build_tree`](crate::ConfigBuilder::build_tree). Cheap to clone.
///
/// # Guarantees
/// Each key has the guarantees of [`Config`]. An invalid value does not affect other keys.
///
/// A node with data is a key, even if it has children. A node without data is a key only if it has no
/// children: otherwise it is a folder, which holds keys and has no value. Such a node is created with each
/// key below it, so an empty value would appear that was never published. If the format has no empty value,
/// as in JSON, a node without data and children is rejected only if the key had a valid value before. In a
/// format with an empty value, a new folder may be shown as an empty value until its first key is read.
///
/// The node at the path itself is no key. The histories (`_history`) and the reports of readers (`_running`)
/// are not read.
///
/// # Assumptions
/// All values fit in memory. Each node of the tree uses two watches at the servers, or the whole tree uses
/// one [persistent watch](docent_core::ClientBuilder::persistent_watches).
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
    history: Keep,
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
    pub(crate) fn from_parts(versioned: VersionedNode, format: ValueFormat<T>, history: Keep) -> Self {
        Self { inner: Arc::new(Inner { versioned, format, history, feed: Mutex::default() }) }
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.inner.versioned.path()
    }

    /// Returns one of the configurations, to publish, follow or delete it. A key of several segments, such as
    /// `mail/port`, is a node further below. A key that other keys are below cannot be deleted.
    ///
    /// # Errors
    /// `InvalidInput` if `key` is not a path below the folder: it has an empty segment, starts or ends with a
    /// `/`, or has a reserved segment (`_history`, `_running`).
    pub fn key(&self, key: &str) -> Result<Config<T>, Error> {
        let reserved = [history::FOLDER, rollout::FOLDER];
        if key.split('/').any(|segment| segment.is_empty() || reserved.contains(&segment)) {
            let [history, running] = reserved;
            let detail = format!(
                "key {key:?} must be segments separated by '/', none empty, {history:?} or {running:?}"
            );
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
            let Inner { versioned, format, feed, .. } = &*tree.inner;
            let (feed, _) = running_or(feed, || SharedTreeFeed::start(versioned, format))?;
            feed.ready().await.in_operation("subscribe")?;
            Ok(TreeSubscription::new(feed))
        }
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
