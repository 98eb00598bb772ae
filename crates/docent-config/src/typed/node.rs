use super::{NodeError, TypedNodeChanges};
use crate::{Codec, Config, Json, Snapshot};
use docent_core::recipe::{InOperation, debug_handle};
use docent_core::{Client, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A node whose data is a value of type `T`, encoded by a codec.
///
/// # Guarantees
/// - Each write is one exact transaction: a lost reply neither repeats nor hides it.
/// - Data that is not a valid value is an error that names the path and the cause, both in reads and in
///   watches. An [`update`](Self::update) does not overwrite such data.
///
/// # Caveats
/// A typed node has no history, no default, and no last valid value that stays: use [`Config`] for these.
/// Codecs run in the caller's task.
///
/// Cheap to clone. A [`NodeModel`](crate::NodeModel) creates nodes from a template of their paths.
pub struct TypedNode<T> {
    config: Config<T>,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> TypedNode<T> {
    /// Creates a handle for the node at `path`, with its value as JSON. The node need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Self::with_codec(client, path, Json::new())
    }
}

impl<T: Send + Sync + 'static> TypedNode<T> {
    /// Creates a handle for the node at `path`, with its value in a custom codec.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn with_codec(client: &Client, path: &str, codec: impl Codec<T>) -> Result<Self, Error> {
        Self::from_parts(client, path, Arc::new(codec))
    }

    pub(super) fn from_parts(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Result<Self, Error> {
        Ok(Self { config: Config::plain(client, path, codec).in_operation("typed_node")? })
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.config.path()
    }

    /// Returns the current value on the server that this client is connected to, or `None` if there is no
    /// node.
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

    /// Creates the node with `value`, and missing parents first.
    ///
    /// # Errors
    /// [`NodeError::Exists`], [`NodeError::Unencodable`]; [`NodeError::Core`] with `NoAuth`, `TooLarge`,
    /// `Timeout`, `Closed`, and with `OutcomeUnknown` only if the session ended before the outcome could be
    /// determined.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been created.
    pub fn create(&self, value: &T) -> impl Future<Output = Result<Snapshot<T>, NodeError>> + Send + use<T> {
        let (node, created) = (self.clone(), self.config.publish_new(value));
        async move {
            created.await.in_operation("create").map_err(|error| NodeError::of_write(error, node.path()))
        }
    }

    /// Sets the value unconditionally. If there is no node, creates it with the value, and missing parents
    /// first.
    ///
    /// # Errors
    /// Same as [`create`](Self::create), without `Exists`. Also `Timeout` if other clients wrote first on
    /// every attempt.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn set(&self, value: &T) -> impl Future<Output = Result<Snapshot<T>, NodeError>> + Send + use<T> {
        let (node, set) = (self.clone(), self.config.publish(value));
        async move { set.await.in_operation("set").map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Computes a new value from the current one (`None` if there is no node) and sets it. If another client
    /// writes first, this is repeated with the newer value. If `change` returns `None`, nothing is written
    /// and this method returns `None`.
    ///
    /// # Errors
    /// [`NodeError::Undecodable`] if the current data is not a valid value; otherwise the same as
    /// [`set`](Self::set).
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

    /// Deletes the node, whatever its data is. Returns false if there was no node.
    ///
    /// # Errors
    /// [`NodeError::Core`] with `NotEmpty` if there are nodes below it, `NoAuth`, `Timeout`, `Closed`,
    /// `OutcomeUnknown`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been deleted.
    pub fn delete(&self) -> impl Future<Output = Result<bool, NodeError>> + Send + use<T> {
        let (node, deleted) = (self.clone(), self.config.delete());
        async move { deleted.await.map_err(|error| NodeError::of_write(error, node.path())) }
    }

    /// Follows the value: the current one first, then each change, with `None` for no node. A slow reader
    /// misses values in between, but never the last one.
    ///
    /// The stream continues through lost connections, new sessions and invalid data, and ends when the client
    /// is closed.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub fn watch(&self) -> Result<TypedNodeChanges<T>, Error> {
        let nodes = self.config.client().watch_data(self.path())?;
        Ok(TypedNodeChanges::new(nodes, self.config.format().clone()))
    }
}

impl<T> Clone for TypedNode<T> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone() }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for TypedNode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "TypedNode", self.path(), self.config.client()).finish_non_exhaustive()
    }
}
