use super::{NodeError, TypedNodeChanges};
use crate::subscription::Fallback;
use crate::value::ValueFormat;
use crate::{Codec, Config, Json, Snapshot};
use docent_core::recipe::{VersionedNode, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Node whose data is a value of type `T`, by a codec.
///
/// # Guarantees
/// - Each write is one exact transaction: a lost reply neither doubles nor hides it.
/// - Data that is no value is an error that names the path and the cause, in a read as in a watch. It is not
///   overwritten by an [`update`](Self::update).
///
/// # Caveats
/// It has no history, no default, and no last good value that stays: [`Config`] has these. Codecs run in the
/// caller's task.
///
/// Cheap to clone. A [`NodeModel`](crate::NodeModel) gives nodes by a template of their paths.
pub struct TypedNode<T> {
    config: Config<T>,
    format: ValueFormat<T>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> TypedNode<T> {
    /// The node at `path`, with its value as JSON. It need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::with_codec(client, path, Json::new())
    }
}

impl<T: Send + Sync + 'static> TypedNode<T> {
    /// The node at `path`, with its value in a codec of your own.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn with_codec(client: &Client, path: &str, codec: impl Codec<T>) -> Result<Self, Error> {
        Self::made(client, path, Arc::new(codec))
    }

    pub(super) fn made(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Result<Self, Error> {
        let format =
            ValueFormat { path: path.into(), codec, validate: None, metrics_name: None, shows_detail: false };
        let fallback = Fallback { default: None, file: None, after: Duration::ZERO };
        let config = Config::made(VersionedNode::new(client, path)?, format.clone(), 0, fallback);
        Ok(Self { config, format })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.config.path()
    }

    /// The value now, at the server this client talks to; `None` when there is no node.
    ///
    /// # Errors
    /// [`NodeError::Undecodable`]; [`NodeError::Core`] with `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn get(&self) -> impl Future<Output = Result<Option<Snapshot<T>>, NodeError>> + Send + use<T> {
        let (node, got) = (self.clone(), Box::pin(self.config.get()));
        async move { got.await.map_err(|error| NodeError::of_read(error, node.path())) }
    }

    /// Creates the node with `value`, and missing parents before it.
    ///
    /// # Errors
    /// [`NodeError::Exists`], [`NodeError::Unencodable`]; [`NodeError::Core`] with `NoAuth`, `TooLarge`,
    /// `Timeout`, `Closed`, and with `OutcomeUnknown` only when the session ended before it could be found
    /// out what became of it.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been created.
    pub fn create(&self, value: &T) -> impl Future<Output = Result<Snapshot<T>, NodeError>> + Send + use<T> {
        let (node, created) = (self.clone(), self.config.publish_new(value));
        async move { created.await.map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Sets the value, whatever is there, or creates the node with it, and missing parents before it.
    ///
    /// # Errors
    /// As [`create`](Self::create), without `Exists`. `Timeout`, too, when others were faster all the time.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn set(&self, value: &T) -> impl Future<Output = Result<Snapshot<T>, NodeError>> + Send + use<T> {
        let (node, set) = (self.clone(), self.config.publish(value));
        async move { set.await.map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Makes a new value from the present one, `None` when there is no node, and sets it if nobody else was
    /// faster; else does it again with the value that is there then. Where `change` returns `None` nothing is
    /// written, and this returns `None`.
    ///
    /// # Errors
    /// [`NodeError::Undecodable`] when the present data is no value; else as [`set`](Self::set).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn update<F>(
        &self,
        change: F,
    ) -> impl Future<Output = Result<Option<Snapshot<T>>, NodeError>> + Send + use<T, F>
    where
        F: FnMut(Option<T>) -> Option<T> + Send,
    {
        let (node, updated) = (self.clone(), self.config.update(change));
        async move { updated.await.map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Deletes the node, whatever its data is. False when there was none.
    ///
    /// # Errors
    /// [`NodeError::Core`] with `NotEmpty` when there is something below it, `NoAuth`, `Timeout`, `Closed`,
    /// `OutcomeUnknown`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been deleted.
    pub fn delete(&self) -> impl Future<Output = Result<bool, NodeError>> + Send + use<T> {
        let (node, deleted) = (self.clone(), self.config.delete());
        async move { deleted.await.map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Follows the value: the present one first, then each change; `None` for no node. A slow reader misses
    /// values in between, and never the last one.
    ///
    /// It goes on through lost links, new sessions and data that is no value, and ends when the client is
    /// closed.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule.
    pub fn watch(&self) -> Result<TypedNodeChanges<T>, Error> {
        let nodes = self.config.client().watch_data(self.path())?;
        Ok(TypedNodeChanges::new(nodes, self.format.clone()))
    }
}

impl<T> Clone for TypedNode<T> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone(), format: self.format.clone() }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for TypedNode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "TypedNode", self.path(), self.config.client()).finish_non_exhaustive()
    }
}
