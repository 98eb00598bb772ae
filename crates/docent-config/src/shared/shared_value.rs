use super::with_initial::WithInitial;
use crate::{PublishError, Raw, Snapshot, SubscribeError, Subscription};
use bytes::Bytes;
use docent_core::recipe::{InOperation, debug_handle};
use docent_core::{Client, Error};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;

/// Bytes shared by many processes, in the layout of Curator's `SharedValue`: the data of a persistent node.
///
/// The first user writes the seed; later seeds have no effect. Each write is applied at most once, even if
/// replies are lost. A `SharedValue` is a [`Config`](crate::Config) without a history, whose values are
/// bytes. Cheap to clone.
///
/// # Examples
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::SharedValue;
///
/// let motto = SharedValue::new(&client, "/motto", "festina lente")?;
/// let seen = motto.get().await?;
/// motto.compare_and_set(&seen, "carpe diem").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedValue(WithInitial<Bytes>);

impl SharedValue {
    /// Creates the value at `path`, which is initially `seed`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str, seed: impl Into<Bytes>) -> Result<Self, Error> {
        WithInitial::new(client, path, seed.into(), Raw).map(Self).in_operation("shared_value")
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.0.config.path()
    }

    /// Returns the current value on the server that this client is connected to. Writes the seed if there is
    /// no value.
    ///
    /// # Errors
    /// [`PublishError::Unreadable`] if the node's data cannot be decoded; [`PublishError::Core`] with
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the seed may have been written.
    pub fn get(&self) -> impl Future<Output = Result<Snapshot<Bytes>, PublishError>> + Send + use<> {
        let value = self.0.clone();
        async move { value.get().await.in_operation("get") }
    }

    /// Sets the value unconditionally.
    ///
    /// # Errors
    /// Same as [`Config::publish`](crate::Config::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn set<V: Into<Bytes>>(
        &self,
        value: V,
    ) -> impl Future<Output = Result<Snapshot<Bytes>, PublishError>> + Send + use<V> {
        self.0.config.publish(&value.into()).map(|set| set.in_operation("set"))
    }

    /// Sets the value if it is still `seen`: the same value of the same node. Corresponds to Curator's
    /// `trySet`.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] if another client wrote first; otherwise the same as
    /// [`Config::publish_if`](crate::Config::publish_if).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn compare_and_set<V: Into<Bytes>>(
        &self,
        seen: &Snapshot<Bytes>,
        value: V,
    ) -> impl Future<Output = Result<Snapshot<Bytes>, PublishError>> + Send + use<V> {
        self.0.config.publish_if(&value.into(), seen).map(|set| set.in_operation("compare_and_set"))
    }

    /// Follows the value. If the node is deleted, the last value stays until it is set again.
    ///
    /// # Errors
    /// Same as [`Config::subscribe`](crate::Config::subscribe).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the seed may have been written.
    pub fn subscribe(
        &self,
    ) -> impl Future<Output = Result<Subscription<Bytes>, SubscribeError>> + Send + use<> {
        let value = self.0.clone();
        async move { value.subscribe().await.in_operation("subscribe") }
    }
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedValue", self.path(), self.0.client()).finish_non_exhaustive()
    }
}
