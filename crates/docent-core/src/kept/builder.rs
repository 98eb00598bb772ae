use super::lifetime::Lifetime;
use super::{Desired, KeptNode, sequential};
use crate::client::{Client, refuse_reserved};
use crate::error::Error;
use crate::node::CreateMode;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// Settings of a [`KeptNode`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `keep` is called"]
pub struct KeptNodeBuilder {
    client: Client,
    path: String,
    data: Bytes,
    mode: CreateMode,
}

/// Minimum time to live: the node is touched three times within it.
const LEAST_TTL: Duration = Duration::from_secs(1);

impl KeptNodeBuilder {
    pub(super) fn new(client: &Client, path: String) -> Self {
        Self { client: client.clone(), path, data: Bytes::new(), mode: CreateMode::Ephemeral }
    }

    /// Sets the data to keep; empty by default.
    pub fn data(self, data: impl Into<Bytes>) -> Self {
        Self { data: data.into(), ..self }
    }

    /// Sets the mode, [`Ephemeral`](CreateMode::Ephemeral) by default. A time to live must be at least one
    /// second.
    pub fn mode(self, mode: CreateMode) -> Self {
        Self { mode, ..self }
    }

    /// Starts keeping the node. Parents are created on demand.
    ///
    /// A sequential node is created first, exactly once, to obtain its number. Any other node is created in
    /// the background, and [`present`](KeptNode::present) waits for it.
    ///
    /// # Errors
    /// `InvalidInput` if the path or the time to live breaks a rule or the path is
    /// [reserved](crate::recipe::NodePath::of_recipe), `AlreadyRegistered` if this client already keeps a
    /// node at the path, `Closed`. For a sequential node also the errors of
    /// [`create`](Client::create). For a sequential node that belongs to no session, `OutcomeUnknown` means
    /// that the node may have been created.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// Exception: for a sequential node that belongs to no session, this method is *not* cancel safe: the
    /// node may have been created, and then remains.
    pub async fn keep(self) -> Result<KeptNode, Error> {
        let Self { client, path, data, mode } = self;
        let lifetime = Lifetime::of(mode);
        if let Some(ttl) = lifetime.ttl().filter(|ttl| *ttl < LEAST_TTL || mode.bad_ttl().is_some()) {
            let detail = format!("time to live {ttl:?} must be from 1 s to 2^40 ms");
            return Err(Error::invalid_input("create", detail).at(&path));
        }
        // Before a sequential node is created.
        refuse_reserved(&client, "create", &path)?;
        let path = match mode {
            CreateMode::EphemeralSequential => client.create(&path, data.clone(), mode).await?.path,
            _ if mode.to_proto().0.is_sequential() => {
                Box::pin(sequential::create(&client, &path, &data, mode)).await?
            }
            _ => path,
        };
        KeptNode::keep(&client, &path, Desired::new(data, lifetime.mode()), lifetime)
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
