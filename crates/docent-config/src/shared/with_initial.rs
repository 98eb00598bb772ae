use crate::{Codec, Config, PublishError, Snapshot, SubscribeError, Subscription};
use docent_core::{Client, Error};
use std::sync::Arc;

/// A value without a history that starts as its seed, which the first user writes.
pub(crate) struct WithInitial<T> {
    pub(crate) config: Config<T>,
    seed: Arc<T>,
}

impl<T: Send + Sync + 'static> WithInitial<T> {
    pub(crate) fn new(client: &Client, path: &str, seed: T, codec: impl Codec<T>) -> Result<Self, Error> {
        let config = Config::plain(client, path, Arc::new(codec))?;
        Ok(Self { config, seed: Arc::new(seed) })
    }

    pub(crate) fn client(&self) -> &Client {
        self.config.client()
    }

    pub(crate) async fn get(&self) -> Result<Snapshot<T>, PublishError> {
        loop {
            match self.config.get().await {
                Ok(Some(snapshot)) => return Ok(snapshot),
                Ok(None) => {}
                Err(SubscribeError::Refused { rejection, .. }) => {
                    return Err(PublishError::Unreadable(rejection));
                }
                Err(SubscribeError::Core(error)) => return Err(error.into()),
                Err(SubscribeError::Missing { .. }) => {
                    unreachable!("a plain read never fails because a value is missing")
                }
            }
            match self.config.publish_new(&self.seed).await {
                // Another client's seed was written first.
                Err(PublishError::Conflict) => {}
                result => return result,
            }
        }
    }

    pub(crate) async fn subscribe(&self) -> Result<Subscription<T>, SubscribeError> {
        match self.get().await {
            Ok(_) | Err(PublishError::Conflict) => {}
            Err(PublishError::Core(error)) => return Err(error.into()),
            // The subscription reports this error itself.
            Err(_) => {}
        }
        self.config.subscribe().await
    }
}

impl<T> Clone for WithInitial<T> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone(), seed: Arc::clone(&self.seed) }
    }
}
