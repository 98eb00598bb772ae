use super::ConfigTree;
use super::publish::LastPublished;
use crate::file::LocalFile;
use crate::history::{History, Keep};
use crate::rollout::Running;
use crate::subscription::{Fallback, SharedFeed};
use crate::telemetry::Counts;
use crate::updates::running_or;
use crate::value::{Checks, Validate, ValueFormat};
use crate::{Codec, Json, Origin, Snapshot, SubscribeError, Subscription};
use docent_core::recipe::{InOperation, VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

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

    /// Creates a configuration without a history, a default and a file.
    pub(crate) fn plain(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Result<Self, Error> {
        let fallback = Fallback { default: None, file: None, after: Duration::ZERO };
        let (versioned, format) = (VersionedNode::new(client, path)?, ValueFormat::new(path, codec));
        Ok(Self::from_parts(versioned, format, Keep::NONE, fallback))
    }

    pub(crate) fn from_parts(
        versioned: VersionedNode,
        format: ValueFormat<T>,
        history: Keep,
        fallback: Fallback<T>,
    ) -> Self {
        let history = History::new(versioned.path(), history);
        let (last_published, feed) = (LastPublished::default(), Mutex::default());
        Self { inner: Arc::new(Inner { versioned, format, history, last_published, fallback, feed }) }
    }

    pub(crate) fn client(&self) -> &Client {
        self.inner.versioned.client()
    }

    pub(crate) fn format(&self) -> &ValueFormat<T> {
        &self.inner.format
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
        match self.inner.format.read_revision(revision, &node.data) {
            Ok(value) => Ok(Some(Snapshot::new(value, revision, Origin::Server))),
            Err(rejection) => Err(SubscribeError::Refused { path: self.path().to_owned(), rejection }),
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

    /// Returns a handle that reports which revision this process runs, as the reader `id`, such as the name
    /// of the host or pod. Does no I/O: the report begins with [`Running::set`].
    ///
    /// # Errors
    /// `InvalidInput` if `id` is not one segment of a path, or is reserved.
    pub fn report_as(&self, id: &str) -> Result<Running, Error> {
        Running::new(&self.inner.versioned, id)
    }

    /// Returns the running feed and true, or a new feed and false.
    fn feed(&self) -> Result<(Arc<SharedFeed<T>>, bool), Error> {
        let Inner { versioned, format, fallback, feed, .. } = &*self.inner;
        running_or(feed, || SharedFeed::start(versioned, format, fallback)).in_operation("subscribe")
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

/// Builder of a [`Config`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConfigBuilder<T> {
    client: Client,
    path: String,
    codec: Arc<dyn Codec<T>>,
    validate: Option<Arc<Validate<T>>>,
    history: Keep,
    default: Option<Arc<Snapshot<T>>>,
    file: Option<PathBuf>,
    fallback_after: Duration,
    metrics_name: Option<Arc<str>>,
    shows_detail: bool,
}

/// Default and maximum number of earlier values to keep.
const HISTORY: usize = 10;
const LONGEST_HISTORY: usize = 1_000;

impl<T: Send + Sync + 'static> ConfigBuilder<T> {
    pub(crate) fn new(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            codec,
            validate: None,
            history: Keep { length: HISTORY, or_more: false },
            default: None,
            file: None,
            fallback_after: Duration::from_secs(2),
            metrics_name: None,
            shows_detail: false,
        }
    }

    /// Sets a rule that values must satisfy beyond what their type guarantees. A publisher with this rule
    /// cannot publish a value that violates it. A subscriber keeps the last valid value and is notified. A
    /// panic of the rule counts as a rejection.
    ///
    /// For a subscription, the rule runs once per change, after the codec, on a thread for blocking code. A
    /// slow rule therefore delays only this configuration; its subscriptions are
    /// [stale](crate::Subscription::is_stale) after a second. For a publisher, the rule runs in the caller's
    /// task.
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

    /// Includes the message of the codec or the validation in the printed text of a
    /// [`Rejection`](crate::Rejection) and of the errors around it, and therefore in the log. By default only
    /// the step and the position in the data are printed, because such messages may repeat parts of the
    /// value. Use this only for values without secrets.
    pub fn show_rejection_detail(mut self) -> Self {
        self.shows_detail = true;
        self
    }

    /// Sets how many replaced values are kept for [`Config::rollback`], from 0 to 1,000. Default 10. The
    /// publisher's setting applies: a publisher with a smaller number deletes the oldest values.
    ///
    /// With 0, a publish writes one node instead of two to four, and does not touch a history that other
    /// publishers keep.
    pub fn history(mut self, length: usize) -> Self {
        self.history.length = length;
        self
    }

    /// Leaves a longer history at its length: the replaced value takes the place of the oldest one. For
    /// Docent's own tools, which publish values of services whose settings they do not know.
    #[doc(hidden)]
    pub fn keep_longer_history(mut self) -> Self {
        self.history.or_more = true;
        self
    }

    /// Sets the value to use while there is no other: none is published, every published value was invalid,
    /// or no server answers. The value must satisfy the rule of [`validate`](Self::validate), which
    /// [`build`](Self::build) checks.
    pub fn default_value(mut self, value: T) -> Self {
        self.default = Some(Arc::new(Snapshot::default_value(value)));
        self
    }

    /// Sets a file that stores the last valid value for the next start, so that a service can start while no
    /// server answers. The file's folder must exist. To connect without waiting for a server, create the
    /// client with [`build`](docent_core::ClientBuilder::build).
    ///
    /// Each save writes a new file with access for the owner only (mode 0600), and then replaces the old one.
    /// Other subscribers to the same value may use the same file. A value that is read from the file is
    /// checked like any other value.
    ///
    /// On Unix, the file is ignored with a warning if:
    ///
    /// - it belongs to a user other than this process's user or root, or
    /// - its group or everyone may write to it.
    ///
    /// Keep the file in a folder that no other user may write to: anyone who can create a file there can
    /// replace this one. The value is stored in clear text. The file stays when the value is deleted.
    ///
    /// The file records the node's path, including the client's chroot and namespace, and is ignored for any
    /// other node. It does not record the servers, because their names may change. If two environments have
    /// the same chroot, namespace and path, give each its own file.
    pub fn snapshot_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Sets how long [`Config::subscribe`] waits for the servers before it uses the file or the default.
    /// Default 2 s.
    pub fn fallback_after(mut self, patience: Duration) -> Self {
        self.fallback_after = patience;
        self
    }

    /// Sets the configuration's name in metrics, with the feature `metrics`. A path is never a label. A
    /// process that subscribes then reports `docent_config_version`, the version of the node whose value it
    /// uses.
    pub fn metrics_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// Creates the configuration.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is reserved, if the history is longer than
    /// 1,000 values, if the default is rejected by the validation, or if the file has no name.
    pub fn build(self) -> Result<Config<T>, Error> {
        let versioned = self.versioned()?;
        if let Some(file) = self.file.as_ref().filter(|file| file.file_name().is_none()) {
            let detail = format!("snapshot file {file:?} must have a name");
            return Err(Error::invalid_input("config", detail));
        }
        let format = self.format();
        if let Some(rejection) = self.default.as_ref().and_then(|default| format.checks.check(default).err())
        {
            let detail = format!("default value of {:?}: {}", self.path, rejection.summary());
            return Err(Error::invalid_input("config", detail));
        }
        let file = self.file.as_ref().map(|file| LocalFile::new(file, versioned.path_at_servers()));
        let fallback = Fallback { default: self.default, file, after: self.fallback_after };
        // Registers the metric series.
        let _ = Counts::new(&self.client, self.metrics_name.as_deref());
        Ok(Config::from_parts(versioned, format, self.history, fallback))
    }

    /// Creates a folder of such configurations, one for each node below the path.
    ///
    /// # Errors
    /// Same as [`build`](Self::build); also `InvalidInput` if a default or a file is set, because keys may be
    /// created and deleted.
    pub fn build_tree(self) -> Result<ConfigTree<T>, Error> {
        let versioned = self.versioned()?;
        if self.default.is_some() || self.file.is_some() {
            let detail = "a folder of configurations must have no default and no snapshot file";
            return Err(Error::invalid_input("config", detail));
        }
        Ok(ConfigTree::from_parts(versioned, self.format(), self.history))
    }

    fn versioned(&self) -> Result<VersionedNode, Error> {
        let length = self.history.length;
        if length > LONGEST_HISTORY {
            let detail = format!("a history of {length} values must be at most {LONGEST_HISTORY}");
            return Err(Error::invalid_input("config", detail));
        }
        VersionedNode::new(&self.client, &self.path).in_operation("config")
    }

    fn format(&self) -> ValueFormat<T> {
        let (codec, validate) = (Arc::clone(&self.codec), self.validate.clone());
        let checks = Checks { path: self.path.as_str().into(), validate, shows_detail: self.shows_detail };
        ValueFormat { codec, checks, metrics_name: self.metrics_name.clone() }
    }
}

// The default may hold secrets, so `Debug` does not print it.
impl<T> Clone for ConfigBuilder<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            codec: Arc::clone(&self.codec),
            validate: self.validate.clone(),
            history: self.history,
            default: self.default.clone(),
            file: self.file.clone(),
            fallback_after: self.fallback_after,
            metrics_name: self.metrics_name.clone(),
            shows_detail: self.shows_detail,
        }
    }
}

impl<T> fmt::Debug for ConfigBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigBuilder")
            .field("path", &self.path)
            .field("history", &self.history.length)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
