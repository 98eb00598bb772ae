use super::client::{Client, SESSION_TIMEOUT};
use anyhow::Result;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::future::ready;
use zookeeper_client::{Acls, CreateMode, CreateOptions};

/// The crate `zookeeper-client`, used as its users would use it.
#[derive(Debug)]
pub(crate) struct ZookeeperClient(zookeeper_client::Client);

impl ZookeeperClient {
    async fn create(&self, prefix: &str) -> Result<String> {
        let (_, sequence) = self.0.create(prefix, b"", &mode()).await?;
        Ok(format!("{prefix}{sequence}"))
    }
}

impl Client for ZookeeperClient {
    async fn connect(address: &str) -> Result<Self> {
        let connector = zookeeper_client::Client::connector().with_session_timeout(SESSION_TIMEOUT);
        Ok(Self(connector.connect(address).await?))
    }

    async fn get(&mut self, path: &str) -> Result<()> {
        self.0.get_data(path).await?;
        Ok(())
    }

    async fn create(&mut self, prefix: &str) -> Result<String> {
        Self::create(self, prefix).await
    }

    async fn delete(&mut self, path: &str) -> Result<()> {
        Ok(self.0.delete(path, None).await?)
    }

    async fn create_and_list(&mut self, prefix: &str, folder: &str) -> Result<String> {
        let list = async { Ok(self.0.get_children(folder).await?) };
        let (path, _) = tokio::try_join!(Self::create(self, prefix), list)?;
        Ok(path)
    }

    async fn get_many(&mut self, path: &str, count: usize, in_flight: usize) -> Result<()> {
        let gets = stream::iter(0..count).map(|_| self.0.get_data(path)).buffer_unordered(in_flight);
        Ok(gets.try_for_each(|_| ready(Ok(()))).await?)
    }

    async fn create_many(&mut self, prefix: &str, count: usize, in_flight: usize) -> Result<()> {
        let creates = stream::iter(0..count).map(|_| Self::create(self, prefix)).buffer_unordered(in_flight);
        creates.try_for_each(|_| ready(Ok(()))).await
    }

    async fn close(self) -> Result<()> {
        let mut state = self.0.state_watcher();
        drop(self.0);
        while !state.changed().await.is_terminated() {}
        Ok(())
    }
}

fn mode() -> CreateOptions<'static> {
    CreateMode::EphemeralSequential.with_acls(Acls::anyone_all())
}
