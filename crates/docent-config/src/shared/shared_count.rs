use super::with_initial::WithInitial;
use crate::{Codec, CodecError, PublishError, Snapshot, SubscribeError, Subscription};
use bytes::Bytes;
use docent_core::recipe::curator::decode_count;
use docent_core::recipe::debug_handle;
use docent_core::{Client, Error};
use std::fmt;
use std::future::Future;

/// A number that many share, in the layout of Curator's `SharedCount`: 32 bits, the highest byte first, in a
/// persistent node. Of longer data the first four bytes count.
///
/// The first user writes the seed, and others' seeds count for nothing then. Each write is applied once or
/// not at all, also when replies are lost. For a number that is counted up by many see
/// [`Counter`](crate::Counter). Cheap to clone.
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
    /// The number at `path`, which is `seed` at first.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str, seed: i32) -> Result<Self, Error> {
        WithInitial::new(client, path, seed, Count).map(Self)
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        self.0.config.path()
    }

    /// The value now, at the server this client talks to. Writes the seed when there is none.
    ///
    /// # Errors
    /// [`PublishError::Unreadable`] when what is there is not a number; [`PublishError::Core`] with `NoAuth`,
    /// `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the seed may have been written.
    pub fn get(&self) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
        let value = self.0.clone();
        async move { value.get().await }
    }

    /// Sets the value, whatever it is.
    ///
    /// # Errors
    /// As [`Config::publish`](crate::Config::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn set(
        &self,
        value: i32,
    ) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
        self.0.config.publish(&value)
    }

    /// Sets the value if it is still `seen`: the same value of the same node. Curator's `trySet`.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] when somebody else was faster; else as
    /// [`Config::publish_if`](crate::Config::publish_if).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been set.
    pub fn compare_and_set(
        &self,
        seen: &Snapshot<i32>,
        value: i32,
    ) -> impl Future<Output = Result<Snapshot<i32>, PublishError>> + Send + use<> {
        self.0.config.publish_if(&value, seen)
    }

    /// Follows the value. When the node is deleted the last value stays, until it is set again.
    ///
    /// # Errors
    /// As [`Config::subscribe`](crate::Config::subscribe).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the seed may have been written.
    pub fn subscribe(
        &self,
    ) -> impl Future<Output = Result<Subscription<i32>, SubscribeError>> + Send + use<> {
        let value = self.0.clone();
        async move { value.subscribe().await }
    }
}

impl fmt::Debug for SharedCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SharedCount", self.path(), self.0.client()).finish_non_exhaustive()
    }
}
