use super::LayeredSubscription;
use super::feed::SharedLayersFeed;
use crate::SubscribeError;
use crate::updates::running_or;
use crate::value::{Checks, Validate};
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::de::DeserializeOwned;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};

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
            let Inner { client, layers, checks, feed } = &*config.inner;
            let feed = running_or(feed, || SharedLayersFeed::start(client, layers, checks));
            let (feed, _) = feed.in_operation("subscribe")?;
            feed.ready(&checks.path).await.in_operation("subscribe")?;
            Ok(LayeredSubscription::new(feed))
        }
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

/// Builder of a [`LayeredConfig`]. Its defaults are those of Spring Cloud Zookeeper.
#[must_use = "a builder does nothing until `build` is called"]
pub struct LayeredConfigBuilder<T> {
    client: Client,
    application: String,
    root: String,
    default_context: String,
    separator: String,
    profiles: Vec<String>,
    validate: Option<Arc<Validate<T>>>,
    shows_detail: bool,
}

impl<T: DeserializeOwned + Send + Sync + 'static> LayeredConfigBuilder<T> {
    pub(super) fn new(client: &Client, application: &str) -> Self {
        Self {
            client: client.clone(),
            application: application.to_owned(),
            root: "/config".to_owned(),
            default_context: "application".to_owned(),
            separator: ",".to_owned(),
            profiles: Vec::new(),
            validate: None,
            shows_detail: false,
        }
    }

    /// Sets the path of the node below which all layers are. Default `/config`.
    pub fn root(mut self, path: impl Into<String>) -> Self {
        self.root = path.into();
        self
    }

    /// Sets the name of the layers that all applications share. Default `application`.
    pub fn default_context(mut self, name: impl Into<String>) -> Self {
        self.default_context = name.into();
        self
    }

    /// Sets the text between the name of an application and a profile. Default `,`.
    pub fn profile_separator(mut self, separator: impl Into<String>) -> Self {
        self.separator = separator.into();
        self
    }

    /// Sets the active profiles, the weakest first. Default none.
    pub fn profiles<P: Into<String>>(mut self, profiles: impl IntoIterator<Item = P>) -> Self {
        self.profiles = profiles.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a rule that the whole value must satisfy beyond what its type guarantees. If a value violates the
    /// rule, or the rule panics, the last valid value stays.
    ///
    /// The rule runs once per change, on a thread for blocking code. While it takes longer than a second, the
    /// subscriptions are [stale](crate::LayeredSubscription::is_stale).
    ///
    /// The text of the rule's error becomes [`Rejection::detail`](crate::Rejection::detail). It is logged
    /// only with [`show_rejection_detail`](Self::show_rejection_detail).
    pub fn validate<E: Into<Box<dyn StdError + Send + Sync>>>(
        mut self,
        rule: impl Fn(&T) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.validate = Some(Arc::new(move |value| rule(value).map_err(|error| error.into().to_string())));
        self
    }

    /// Includes the invalid text or the message of the validation in the printed text of a
    /// [`Rejection`](crate::Rejection), and therefore in the log. By default only the key, its node and the
    /// violated rule are printed. Use this only for values without secrets.
    pub fn show_rejection_detail(mut self) -> Self {
        self.shows_detail = true;
        self
    }

    /// Creates the configuration.
    ///
    /// # Errors
    /// `InvalidInput` if the name of the application or of the default context, the separator or a profile is
    /// empty, if the separator or a profile contains a `/`, or if the path of a layer breaks a rule.
    pub fn build(self) -> Result<LayeredConfig<T>, Error> {
        for (what, text, is_name) in [
            ("application", &self.application, false),
            ("default context", &self.default_context, false),
            ("profile separator", &self.separator, true),
        ]
        .into_iter()
        .chain(self.profiles.iter().map(|profile| ("profile", profile, true)))
        {
            if text.is_empty() || (is_name && text.contains('/')) {
                let rule = if is_name { "must not be empty or contain '/'" } else { "must not be empty" };
                return Err(Error::invalid_input("config", format!("{what} {text:?} {rule}")));
            }
        }
        let layers = self.contexts().into_iter();
        let layers = layers.map(|path| VersionedNode::new(&self.client, &path).in_operation("config"));
        let layers = layers.collect::<Result<_, _>>()?;
        let path = format!("{}/{}", self.root_prefix(), self.application);
        let (validate, shows_detail) = (self.validate.clone(), self.shows_detail);
        let checks = Checks { path: path.into(), validate, shows_detail };
        Ok(LayeredConfig::from_parts(&self.client, layers, checks))
    }

    /// Returns the root without a `/` at its end.
    fn root_prefix(&self) -> &str {
        if self.root == "/" { "" } else { &self.root }
    }

    /// Returns the paths of the layers, the weakest first. A path that occurs twice counts at its strongest
    /// place.
    fn contexts(&self) -> Vec<String> {
        let mut contexts = Vec::new();
        for name in [&self.default_context, &self.application] {
            let base = format!("{}/{name}", self.root_prefix());
            let of_profiles =
                self.profiles.iter().map(|profile| format!("{base}{}{profile}", self.separator));
            for path in [base.clone()].into_iter().chain(of_profiles) {
                contexts.retain(|known| *known != path);
                contexts.push(path);
            }
        }
        contexts
    }
}

impl<T> Clone for LayeredConfigBuilder<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            application: self.application.clone(),
            root: self.root.clone(),
            default_context: self.default_context.clone(),
            separator: self.separator.clone(),
            profiles: self.profiles.clone(),
            validate: self.validate.clone(),
            shows_detail: self.shows_detail,
        }
    }
}

impl<T> fmt::Debug for LayeredConfigBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayeredConfigBuilder")
            .field("application", &self.application)
            .field("root", &self.root)
            .field("default_context", &self.default_context)
            .field("profiles", &self.profiles)
            .finish_non_exhaustive()
    }
}
