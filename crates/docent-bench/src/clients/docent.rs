use super::client::{Client, SESSION_TIMEOUT};
use anyhow::Result;
use docent::CreateMode;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::future::ready;

/// Docent's client, used as services would use it.
#[derive(Debug)]
pub(crate) struct Docent(docent::Client);

impl Client for Docent {
    async fn connect(address: &str) -> Result<Self> {
        Ok(Self(docent::Client::builder(address).session_timeout(SESSION_TIMEOUT).connect().await?))
    }

    async fn get(&mut self, path: &str) -> Result<()> {
        self.0.get(path).await?;
        Ok(())
    }

    async fn create(&mut self, prefix: &str) -> Result<String> {
        Ok(self.0.create(prefix, "", CreateMode::EphemeralSequential).await?.path)
    }

    async fn delete(&mut self, path: &str) -> Result<()> {
        Ok(self.0.delete(path, None).await?)
    }

    async fn create_and_list(&mut self, prefix: &str, folder: &str) -> Result<String> {
        let create = self.0.create(prefix, "", CreateMode::EphemeralSequential);
        let (created, _) = tokio::try_join!(create, self.0.children(folder))?;
        Ok(created.path)
    }

    async fn get_many(&mut self, path: &str, count: usize, in_flight: usize) -> Result<()> {
        let gets = stream::iter(0..count).map(|_| self.0.get(path)).buffer_unordered(in_flight);
        Ok(gets.try_for_each(|_| ready(Ok(()))).await?)
    }

    async fn create_many(&mut self, prefix: &str, count: usize, in_flight: usize) -> Result<()> {
        let create = |_| self.0.create(prefix, "", CreateMode::EphemeralSequential);
        let creates = stream::iter(0..count).map(create).buffer_unordered(in_flight);
        Ok(creates.try_for_each(|_| ready(Ok(()))).await?)
    }

    async fn close(self) -> Result<()> {
        self.0.close().await;
        Ok(())
    }
}
