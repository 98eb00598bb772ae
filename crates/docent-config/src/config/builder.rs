use super::{Config, ConfigTree};
use crate::file::LocalFile;
use crate::subscription::Fallback;
use crate::telemetry::Counts;
use crate::value::{Validate, ValueFormat};
use crate::{Codec, Snapshot};
use docent_core::recipe::VersionedNode;
use docent_core::{Client, Error};
use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`Config`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct ConfigBuilder<T> {
    client: Client,
    path: String,
    codec: Arc<dyn Codec<T>>,
    validate: Option<Arc<Validate<T>>>,
    history: usize,
    default: Option<Arc<Snapshot<T>>>,
    file: Option<PathBuf>,
    fallback_after: Duration,
    metrics_name: Option<Arc<str>>,
    shows_detail: bool,
}

/// Earlier values that are kept unless it is said otherwise, and at most.
const HISTORY: usize = 10;
const LONGEST_HISTORY: usize = 1_000;

impl<T: Send + Sync + 'static> ConfigBuilder<T> {
    pub(crate) fn new(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            codec,
            validate: None,
            history: HISTORY,
            default: None,
            file: None,
            fallback_after: Duration::from_secs(2),
            metrics_name: None,
            shows_detail: false,
        }
    }

    /// A rule that good values keep, beyond what their type says. A publisher that uses it is refused values
    /// that break it; a subscriber keeps the last good value and is told. A panic of it counts as a refusal.
    ///
    /// For a subscription it runs once for each change, with the codec, on a thread for blocking code: what
    /// takes long holds up this configuration alone, and its subscriptions are
    /// [stale](crate::Subscription::is_stale) after a second. For a publisher it runs in the caller's task.
    ///
    /// The text of its error goes into [`Rejection::detail`](crate::Rejection::detail), and is not logged
    /// without [`show_rejection_detail`](Self::show_rejection_detail).
    pub fn validate<E: Into<Box<dyn StdError + Send + Sync>>>(
        mut self,
        rule: impl Fn(&T) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.validate = Some(Arc::new(move |value| rule(value).map_err(|error| error.into().to_string())));
        self
    }

    /// Prints what codec or validation said about a value that is refused: in [`Rejection`](crate::Rejection)
    /// and the errors around it, and so in the log. By default only the step and the place in the data are
    /// printed, because these texts may repeat parts of the value. For values without secrets.
    pub fn show_rejection_detail(mut self) -> Self {
        self.shows_detail = true;
        self
    }

    /// How many replaced values are kept for [`Config::rollback`], from 0 to 1,000. Default 10. The
    /// publisher's setting counts: with a smaller number the oldest are deleted.
    ///
    /// With 0 a publish writes one node instead of two to four, and the history that others keep is left
    /// alone.
    pub fn history(mut self, length: usize) -> Self {
        self.history = length;
        self
    }

    /// A value to go by while there is no other: none is published, the published one was always bad, or no
    /// server answers.
    pub fn default_value(mut self, value: T) -> Self {
        self.default = Some(Arc::new(Snapshot::default_value(value)));
        self
    }

    /// A file in a folder that exists, where the last good value is kept for the next start, so that a
    /// service can begin while no server answers. To connect without waiting for one build the client with
    /// [`build`](docent_core::ClientBuilder::build).
    ///
    /// A new file is written and put in its place, with access for the owner only (mode 0600); other
    /// subscribers to the same value may use the same file. A value read from it is checked as any value is.
    /// On Unix it is not taken when it belongs to somebody else than this process's user or root, or when its
    /// group or everybody may write to it: a warning says why, and it is gone on without. Keep it in a folder
    /// that nobody else may write to: anybody who can put a file there can take this one away. It holds the
    /// value in clear. It stays when the value is deleted.
    ///
    /// The file names the node by its path with the client's chroot and namespace, and is not taken for
    /// another node. It does not name the servers, because their names may change: if two environments have
    /// the same chroot, namespace and path, each needs a file of its own.
    pub fn snapshot_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// How long [`Config::subscribe`] waits for the servers before it goes by the file or the default.
    /// Default 2 s.
    pub fn fallback_after(mut self, patience: Duration) -> Self {
        self.fallback_after = patience;
        self
    }

    /// The configuration's name in metrics, with the feature `metrics`: a path is never a label. A process
    /// that subscribes tells `docent_config_version`, the number of changes of the node whose value it has.
    pub fn metrics_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// The configuration.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root, when the history is longer than 1,000
    /// values, or when the file has no name.
    pub fn build(self) -> Result<Config<T>, Error> {
        let versioned = self.versioned()?;
        if let Some(file) = self.file.as_ref().filter(|file| file.file_name().is_none()) {
            let detail = format!("snapshot file {file:?} must have a name");
            return Err(Error::invalid_input("config", detail));
        }
        let format = self.format();
        let file = self.file.as_ref().map(|file| LocalFile::new(file, versioned.path_at_servers()));
        let fallback = Fallback { default: self.default, file, after: self.fallback_after };
        // Its series begin now.
        let _ = Counts::new(&self.client, self.metrics_name.as_deref());
        Ok(Config::made(versioned, format, self.history, fallback))
    }

    /// A folder of such configurations, one for each node below the path.
    ///
    /// # Errors
    /// As [`build`](Self::build); `InvalidInput`, too, when there is a default or a file: keys come and go.
    pub fn build_tree(self) -> Result<ConfigTree<T>, Error> {
        let versioned = self.versioned()?;
        if self.default.is_some() || self.file.is_some() {
            let detail = "a folder of configurations must have no default and no snapshot file";
            return Err(Error::invalid_input("config", detail));
        }
        Ok(ConfigTree::made(versioned, self.format(), self.history))
    }

    fn versioned(&self) -> Result<VersionedNode, Error> {
        if self.history > LONGEST_HISTORY {
            let history = self.history;
            let detail = format!("a history of {history} values must be at most {LONGEST_HISTORY}");
            return Err(Error::invalid_input("config", detail));
        }
        VersionedNode::new(&self.client, &self.path)
    }

    fn format(&self) -> ValueFormat<T> {
        let (codec, validate) = (Arc::clone(&self.codec), self.validate.clone());
        ValueFormat {
            path: self.path.as_str().into(),
            codec,
            validate,
            metrics_name: self.metrics_name.clone(),
            shows_detail: self.shows_detail,
        }
    }
}

// The default may hold secrets.
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
            .field("history", &self.history)
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}
