use super::ConfigBuilder;
use super::last_published::LastPublished;
use crate::history::History;
use crate::subscription::{Fallback, SharedFeed};
use crate::value::ValueFormat;
use crate::{Codec, Json, Snapshot, SubscribeError, Subscription};
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A configuration value in its own node, published by a few processes and followed by many.
///
/// # Expected flow
/// An operator [publishes](Self::publish) the value, or changes it with [`update`](Self::update). Services
/// [subscribe](Self::subscribe) once, read [`Subscription::current`] whenever they need the value, and wait
/// for [`Subscription::changed`] if they must react to changes.
///
/// Cheap to clone. All subscriptions of a client to one path share one read per change and one watch at the
/// server. The subscriptions of a `Config` and its clones also share the decoded value.
///
/// # Guarantees
/// - A publisher learns the outcome: each publish is applied at most once, even if replies are lost.
/// - A value that cannot be read back, or that fails [validation](ConfigBuilder::validate), is rejected
///   before it is published.
/// - The replaced value is added to the [history](Self::history) in the same transaction. A history that may
///   not be written, or that has foreign nodes below its values, does not block a publish: the affected part
///   is skipped with a warning.
/// - Readers have the guarantees of [`Subscription`].
///
/// # Assumptions
/// Values are small and change rarely: every server holds all of them in memory, and each reader reads each
/// change. Any process with the permission may write the published bytes, by any means.
///
/// # Examples
/// ```no_run
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Limits { per_second: u32 }
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::Config;
///
/// let limits = Config::<Limits>::new(&client, "/config/limits")?;
/// limits.publish(&Limits { per_second: 100 }).await?;
/// let subscription = limits.subscribe().await?;
/// println!("{} per second", subscription.current().per_second);           // no I/O, no lock
/// # Ok(()) }
/// ```
pub struct Config<T> {
    pub(super) inner: Arc<Inner<T>>,
}

pub(super) struct Inner<T> {
    pub(super) versioned: VersionedNode,
    pub(super) format: ValueFormat<T>,
    pub(super) history: History,
    pub(super) last_published: LastPublished,
    fallback: Fallback<T>,
    feed: Mutex<Weak<SharedFeed<T>>>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Config<T> {
    /// Creates the configuration at `path`, as JSON, with the last ten values as its history.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Returns a builder for a configuration with its own settings, as JSON.
    pub fn builder(client: &Client, path: &str) -> ConfigBuilder<T> {
        Self::builder_with(client, path, Json::new())
    }
}

impl<T: Send + Sync + 'static> Config<T> {
    /// Returns a builder for a configuration with a custom codec.
    pub fn builder_with(client: &Client, path: &str, codec: impl Codec<T>) -> ConfigBuilder<T> {
        ConfigBuilder::new(client, path, Arc::new(codec))
    }

    pub(crate) fn from_parts(
        versioned: VersionedNode,
        format: ValueFormat<T>,
        history: usize,
        fallback: Fallback<T>,
    ) -> Self {
        let history = History::new(versioned.path(), history);
        let (last_published, feed) = (LastPublished::default(), Mutex::default());
        Self { inner: Arc::new(Inner { versioned, format, history, last_published, fallback, feed }) }
    }

    pub(crate) fn client(&self) -> &Client {
        self.inner.versioned.client()
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.inner.versioned.path()
    }

    /// Returns the current value on the server that this client is connected to, or `None` if there is none.
    ///
    /// # Errors
    /// [`SubscribeError::Refused`] if the value is invalid; [`SubscribeError::Core`] with `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<Option<Snapshot<T>>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move { config.read().await.in_operation("get") }
    }

    async fn read(&self) -> Result<Option<Snapshot<T>>, SubscribeError> {
        let Some(node) = self.inner.versioned.read().await? else { return Ok(None) };
        let revision = (&node.stat).into();
        match self.inner.format.read(&node.data) {
            Ok(value) => Ok(Some(Snapshot::new(value, revision, crate::Origin::Server))),
            Err(refusal) => {
                let (path, rejection) = (self.path().to_owned(), refusal.of(revision));
                Err(SubscribeError::Refused { path, rejection })
            }
        }
    }

    /// Follows the value, waiting until the servers have answered, for at most the operation timeout. With a
    /// [snapshot file](ConfigBuilder::snapshot_file) or a [default](ConfigBuilder::default_value), the wait
    /// is at most [`fallback_after`](ConfigBuilder::fallback_after). A file that does not exist or is ignored
    /// counts as no file.
    ///
    /// # Errors
    /// Without a file and a default: [`SubscribeError::Missing`] or [`SubscribeError::Refused`] if the
    /// servers have no valid value, and [`SubscribeError::Core`] with `NoAuth` or `Timeout` if they do not
    /// answer the read. In any case `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe(&self) -> impl Future<Output = Result<Subscription<T>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move {
            let (feed, was_running) = config.feed()?;
            feed.ready(was_running, config.inner.fallback.after).await.in_operation("subscribe")?;
            Ok(Subscription::new(feed))
        }
    }

    /// Like [`subscribe`](Self::subscribe), but if there is no valid value, waits until one is published,
    /// without a time limit. Also waits through an outage of the servers.
    ///
    /// # Errors
    /// [`SubscribeError::Core`] with `NoAuth` or another error that only an operator can fix; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe_when_published(
        &self,
    ) -> impl Future<Output = Result<Subscription<T>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move {
            let (feed, was_running) = config.feed()?;
            feed.published(was_running, config.inner.fallback.after).await.in_operation("subscribe")?;
            Ok(Subscription::new(feed))
        }
    }

    /// Returns the running feed and true, or a new feed and false.
    fn feed(&self) -> Result<(Arc<SharedFeed<T>>, bool), Error> {
        let mut running = self.inner.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = running.upgrade() {
            return Ok((feed, true));
        }
        let Inner { versioned, format, fallback, .. } = &*self.inner;
        let feed = Arc::new(SharedFeed::start(versioned, format, fallback).in_operation("subscribe")?);
        *running = Arc::downgrade(&feed);
        Ok((feed, false))
    }
}

impl<T> Clone for Config<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for Config<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "Config", self.inner.versioned.path(), self.inner.versioned.client())
            .field("history", &self.inner.history)
            .finish_non_exhaustive()
    }
}
