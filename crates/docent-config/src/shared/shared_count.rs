use super::with_initial::WithInitial;
use crate::{Codec, CodecError, PublishError, Snapshot, SubscribeError, Subscription};
use bytes::Bytes;
use docent_core::recipe::curator::decode_count;
use docent_core::recipe::{InOperation, debug_handle};
use docent_core::{Client, Error};
use futures_util::FutureExt;
use std::fmt;
use std::future::Future;

/// A number shared by many processes, in the layout of Curator's `SharedCount`: 32 bits, highest byte first,
/// in a persistent node. If the data is longer, only the first four bytes are used.
///
/// The first user writes the seed; later seeds have no effect. Each write is applied at most once, even if
/// replies are lost. For a number that many processes increment, see [`Counter`](crate::Counter). Cheap to
/// clone.
///
/// # Examples
/// ```no_run
/// # async fn example(client: docent_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use docent_config::SharedCount;
///
/// let replicas = SharedCount::new(&client, "/replicas", 3)?;
/// let subscription = replicas.subscribe().await?;
/// replicas.set(5).await?;
/// println!("{}", **subscription.current());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedCount(WithInitial<i32>);

struct Count;

impl Codec<i32> for Count {
    fn encode(&self, value: &i32) -> Result<Bytes, CodecError> {
        Ok(Bytes::copy_from_slice(&value.to_be_bytes()))
    }

    fn decode(&self, data: &Bytes) -> Result<i32, CodecError> {
        decode_count(data)
            .ok_or_else(|| CodecError::new(format!("a number takes 4 bytes, not {}", data.len())))
    }
}

impl SharedCount {
    /// Creates the number at `path`, which is initially `seed`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str, seed: i32) -> Result<Self, Error> {
        WithInitial::new(client, path, seed, Count).map(Self).in_operation("shared_count")
    }

    /// Returns the path as given.
    pub fn path(&self) -> &str {
        self.0.config.path()
    }

    /// Returns the current value on the server that this client is connected to. Writes the seed if there is
    /// no value.
    ///
    /// # Errors
    /// [`PublishError::Unreadable`] if the node does not hold a number; [`PublishError::Core`] with `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the seed may have been written.
    pub fn get(&self) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
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
    pub fn set(
        &self,
        value: i32,
    ) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
        self.0.config.publish(&value).map(|set| set.in_operation("set"))
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
    pub fn compare_and_set(
        &self,
        seen: &Snapshot<i32>,
        value: i32,
    ) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
        self.0.config.publish_if(&value, seen).map(|set| set.in_operation("compare_and_set"))
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
    ) -> impl Future<Output = Result<Subscription<i32>, SubscribeError>> + Send + use<> {
        let value = self.0.clone();
        async move { value.subscribe().await.in_operation("subscribe") }
    }
}

impl fmt::Debug for SharedCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedCount", self.path(), self.0.client()).finish_non_exhaustive()
    }
}
