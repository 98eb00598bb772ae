use super::ConfigBuilder;
use super::last_published::LastPublished;
use crate::history::History;
use crate::subscription::{Fallback, SharedFeed};
use crate::value::ValueFormat;
use crate::{Codec, Json, Snapshot, SubscribeError, Subscription};
use docent_core::recipe::{VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A value of configuration in a node of its own: published by some, followed by many.
///
/// # Expected flow
/// An operator [publishes](Self::publish) it, or changes it by [`update`](Self::update). Services
/// [subscribe](Self::subscribe) once, read [`Subscription::current`] whenever they need the value, and wait
/// for [`Subscription::changed`] where they have to act.
///
/// Cheap to clone. All subscriptions of a client to one path share one read of each change, and one watch at
/// the server; those of a `Config` and its clones share the decoded value as well.
///
/// # Guarantees
/// - A publisher learns the outcome: each publish is applied once or not at all, also when replies are lost.
/// - A value that cannot be read back, or fails [validation](ConfigBuilder::validate), is refused before it
///   is published.
/// - The replaced value goes into the [history](Self::history) in the same transaction. A history that may
///   not be written, or that has foreign nodes below its values, blocks no publish: what stands in the way
///   is left out, with a warning.
/// - For readers see [`Subscription`].
///
/// # Assumptions
/// Values are small, and changed by people or by something slow: all of them live in the memory of every
/// server, and each reader reads each change. The published bytes may be written by anybody with the right
/// to, by any means.
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
    /// The configuration at `path`, as JSON, with the last ten values as its history.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::builder(client, path).build()
    }

    /// Prepares a configuration with settings of its own, as JSON.
    pub fn builder(client: &Client, path: &str) -> ConfigBuilder<T> {
        Self::builder_with(client, path, Json::new())
    }
}

impl<T: Send + Sync + 'static> Config<T> {
    /// Prepares a configuration with a codec of its own.
    pub fn builder_with(client: &Client, path: &str, codec: impl Codec<T>) -> ConfigBuilder<T> {
        ConfigBuilder::new(client, path, Arc::new(codec))
    }

    pub(crate) fn made(
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

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.inner.versioned.path()
    }

    /// The value published now, at the server this client talks to; `None` when there is none.
    ///
    /// # Errors
    /// [`SubscribeError::Refused`] when it is no good value; [`SubscribeError::Core`] with `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<Option<Snapshot<T>>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move { config.read().await }
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

    /// Follows the value from now on. Waits until there is one: the servers are asked first, for at most the
    /// operation timeout; with a [snapshot file](ConfigBuilder::snapshot_file) or a
    /// [default](ConfigBuilder::default_value) at most for [`fallback_after`](ConfigBuilder::fallback_after).
    ///
    /// # Errors
    /// When there is neither of these: [`SubscribeError::Missing`] and [`SubscribeError::Refused`] when the
    /// servers have no good value, [`SubscribeError::Core`] with `NoAuth` or `Timeout` when they do not tell;
    /// `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe(&self) -> impl Future<Output = Result<Subscription<T>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move {
            let (feed, was_running) = config.feed()?;
            feed.ready(was_running, config.inner.fallback.after).await?;
            Ok(Subscription::new(feed))
        }
    }

    /// As [`subscribe`](Self::subscribe), and waits where that finds no good value: until one is published,
    /// however long that takes. An outage of the servers is waited out as well.
    ///
    /// # Errors
    /// [`SubscribeError::Core`] with `NoAuth` or another that only people can mend; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe_when_published(
        &self,
    ) -> impl Future<Output = Result<Subscription<T>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move {
            let (feed, was_running) = config.feed()?;
            feed.published(was_running, config.inner.fallback.after).await?;
            Ok(Subscription::new(feed))
        }
    }

    /// The feed that runs, with true, or a new one.
    fn feed(&self) -> Result<(Arc<SharedFeed<T>>, bool), Error> {
        let mut running = self.inner.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = running.upgrade() {
            return Ok((feed, true));
        }
        let Inner { versioned, format, fallback, .. } = &*self.inner;
        let feed = Arc::new(SharedFeed::start(versioned, format, fallback)?);
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
