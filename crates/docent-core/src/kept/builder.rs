use super::life::Life;
use super::{KeptNode, sequential};
use crate::client::Client;
use crate::error::Error;
use crate::node::CreateMode;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// Settings of a [`KeptNode`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is told to keep"]
pub struct KeptNodeBuilder {
    client: Client,
    path: String,
    data: Bytes,
    mode: CreateMode,
}

/// Least time to live: the node is touched three times in it.
const LEAST_TTL: Duration = Duration::from_secs(1);

impl KeptNodeBuilder {
    pub(super) fn new(client: &Client, path: String) -> Self {
        Self { client: client.clone(), path, data: Bytes::new(), mode: CreateMode::Ephemeral }
    }

    /// Sets the data to keep; none by default.
    pub fn data(self, data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), ..self }
    }

    /// Sets the mode, [`Ephemeral`](CreateMode::Ephemeral) by default. A time to live must be at least a
    /// second.
    pub fn mode(self, mode: CreateMode) -> Self {
        Self { mode, ..self }
    }

    /// Begins to keep the node. A sequential one is made first, once, for its number; any other is made in
    /// the background, and [`present`](KeptNode::present) waits for that. Parents are created on demand.
    ///
    /// # Errors
    /// `InvalidInput` when the path or the time to live breaks a rule, `AlreadyRegistered` when this client
    /// keeps a node there already, `Closed`. Of a sequential node also those of
    /// [`create`](Client::create); `OutcomeUnknown` says for one that belongs to no session that it may have
    /// been made.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the node is deleted. For a sequential one that belongs to no session it is
    /// *not* cancel safe: the node may have been made, and stays.
    pub async fn keep(self) -> Result<KeptNode, Error> {
        let Self { client, path, data, mode } = self;
        let life = Life::of(mode);
        if let Some(ttl) = life.ttl().filter(|ttl| *ttl < LEAST_TTL || mode.bad_ttl().is_some()) {
            let detail = format!("time to live {ttl:?} must be from 1 s to 2^40 ms");
            return Err(Error::invalid_input("create", detail).at(&path));
        }
        let path = match mode {
            CreateMode::EphemeralSequential => client.create(&path, data.clone(), mode).await?.path,
            _ if mode.to_proto().0.is_sequential() => {
                Box::pin(sequential::create(&client, &path, &data, mode)).await?
            }
            _ => path,
        };
        KeptNode::keep(&client, &path, data, life)
    }
}

// The data is not printed.
impl fmt::Debug for KeptNodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptNodeBuilder")
            .field("path", &self.path)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
