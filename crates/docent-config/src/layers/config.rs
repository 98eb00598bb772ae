use super::feed::SharedLayersFeed;
use super::{LayeredConfigBuilder, LayeredSubscription};
use crate::SubscribeError;
use crate::value::Checks;
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A typed value of which each key may have a text in several layers, as [Spring Cloud
/// Zookeeper](https://docs.spring.io/spring-cloud-zookeeper/reference/config.html) stores it. Cheap to clone.
///
/// The layers are, the weakest first: `/config/application`, `/config/application,<profile>` for each
/// profile, `/config/<application>`, and `/config/<application>,<profile>` for each profile. The path of a
/// node below its layer is its key: `/config/orders/server/port` is `server.port` in the layer of the
/// application `orders`. Of the texts under one key, the strongest is used.
///
/// # Types
/// serde deserialises the value. Dots separate the names of nested fields.
///
/// | Type | Text, or keys below |
/// |---|---|
/// | number, `char` | as Rust parses it, spaces around it are ignored |
/// | `bool` | `true`, `on`, `yes`, `1`; `false`, `off`, `no`, `0`; in any case |
/// | `String` | UTF-8, unchanged |
/// | `Option` | `None` if the key and all keys below it are absent |
/// | struct | fields in any style: `max-threads`, `maxThreads` and `max_threads` are the same field |
/// | map | names unchanged; `level[org.example]` for a key with dots |
/// | list, tuple | `hosts[0]` and so on, or one text separated by commas. The list of the strongest layer replaces the whole list |
/// | enum | the name of a variant in any style, or keys below the name for its content |
///
/// Inside `#[serde(flatten)]` and untagged enums, every text is a string. Placeholders (`${…}`) are not
/// replaced.
///
/// # Guarantees
/// - A subscription converges to the value on the servers, through lost connections and new sessions.
/// - A layer that does not exist has no keys. It is read as soon as it is created.
/// - A key has a value under the same conditions as in a [`ConfigTree`](crate::ConfigTree). It never goes
///   back to an older text of the same node, except after a restore of the ensemble.
/// - If the value is invalid as a whole, it is reported and the last valid value stays.
///
/// # Caveats
/// A snapshot is not the state of all layers at one moment, even within one layer: changes of one transaction
/// may arrive in several snapshots. After a lost connection, a snapshot may combine keys that were read again
/// with keys that were not yet; [`is_stale`](crate::LayeredSubscription::is_stale) is true until all were
/// read. While an operator creates several keys, snapshots contain only some of them. Use defaults
/// (`#[serde(default)]`) for fields that may be absent.
///
/// # Assumptions
/// All values fit in memory. Each layer uses the watches of a [`ConfigTree`](crate::ConfigTree).
///
/// # Examples
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::LayeredConfig;
///
/// #[derive(serde::Deserialize)]
/// struct Settings {
///     server: Server,
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Server {
///     port: u16,
/// }
///
/// let orders = LayeredConfig::<Settings>::builder(&client, "orders").profiles(["production"]).build()?;
/// let settings = orders.subscribe().await?.current();
/// println!("port {}", settings.server.port);
/// if let Some(origin) = settings.origin("server.port") {
///     println!("set by {} in version {}", origin.path, origin.revision.version);
/// }
/// # Ok(()) }
/// ```
pub struct LayeredConfig<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    client: Client,
    /// The weakest first.
    layers: Vec<VersionedNode>,
    checks: Checks<T>,
    feed: Mutex<Weak<SharedLayersFeed<T>>>,
}

impl<T: DeserializeOwned + Send + Sync + 'static> LayeredConfig<T> {
    /// Returns a builder for the configuration of an application, with the layout of Spring Cloud Zookeeper
    /// and without profiles.
    pub fn builder(client: &Client, application: &str) -> LayeredConfigBuilder<T> {
        LayeredConfigBuilder::new(client, application)
    }

    pub(super) fn from_parts(client: &Client, layers: Vec<VersionedNode>, checks: Checks<T>) -> Self {
        let client = client.clone();
        Self { inner: Arc::new(Inner { client, layers, checks, feed: Mutex::default() }) }
    }

    /// Follows the value, waiting until all layers were read, for at most the operation timeout.
    ///
    /// # Errors
    /// [`SubscribeError::Refused`] if the value is invalid, for example because a required key is absent;
    /// [`SubscribeError::Core`] with `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn subscribe(
        &self,
    ) -> impl Future<Output = Result<LayeredSubscription<T>, SubscribeError>> + Send + use<T> {
        let config = self.clone();
        async move {
            let feed = config.feed().in_operation("subscribe")?;
            feed.ready(&config.inner.checks.path).await.in_operation("subscribe")?;
            Ok(LayeredSubscription::new(feed))
        }
    }

    fn feed(&self) -> Result<Arc<SharedLayersFeed<T>>, Error> {
        let mut running = self.inner.feed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = running.upgrade() {
            return Ok(feed);
        }
        let Inner { client, layers, checks, .. } = &*self.inner;
        let feed = Arc::new(SharedLayersFeed::start(client, layers, checks)?);
        *running = Arc::downgrade(&feed);
        Ok(feed)
    }
}

impl<T> LayeredConfig<T> {
    /// Returns the path of the application's layer without a profile.
    pub fn path(&self) -> &str {
        &self.inner.checks.path
    }

    /// Returns the paths of all layers, the weakest first.
    pub fn layers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.inner.layers.iter().map(VersionedNode::path)
    }
}

impl<T> Clone for LayeredConfig<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for LayeredConfig<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "LayeredConfig", self.path(), &self.inner.client).finish_non_exhaustive()
    }
}
