use super::node::{Handle, NodeCache};
use super::status;
use crate::client::Client;
use crate::error::Error;
use crate::node::Node;
use crate::task::SyncStream;
use crate::time::deadline;
use futures_util::stream::{self, StreamExt};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A [`NodeCache`] that all of a client's handles on one path share: one read and one watch for all of them.
///
/// # Guarantees
/// A handle shows nothing that is older than what the servers had told when it was made: where others hold
/// the cache already, its value is taken without a read once no change of it is known that was not read.
///
/// # On drop
/// With the last handle the cache's task ends, and its watch is removed.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::SharedNode;
/// # use docent_core::{Client, Error};
/// # async fn example(client: &Client) -> Result<(), Error> {
/// let limit = SharedNode::new(client, "/limits/uploads")?;
/// limit.caught_up().await?;
/// println!("{:?}", limit.cache().current().map(|node| node.data.clone()));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SharedNode {
    cache: NodeCache,
}

/// Wish of a handle to be told when the cache is fresh.
pub(super) struct Join {
    /// True when the next error of a read is told, too, and the node is read at once to find out.
    pub(super) hears_errors: bool,
    pub(super) told: oneshot::Sender<Result<(), Error>>,
}

impl SharedNode {
    /// The cache of `path` that this client has, or a new one. The node need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { cache: NodeCache::common(client, path)? })
    }

    /// The cache. The value may be older than this handle until it has [caught up](Self::caught_up).
    pub fn cache(&self) -> &NodeCache {
        &self.cache
    }

    /// Waits until the cache shows what the servers have, as far as they told, at most for the operation
    /// timeout. A node that could not be read is tried at once.
    ///
    /// # Errors
    /// That of a read that ends while this waits, when the servers refuse it, as `NoAuth`; else `Timeout`,
    /// `Closed`. The cache goes on to try.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn caught_up(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let cache = self.cache.clone();
        async move {
            let Handle { shared, path, .. } = &*cache.handle;
            let told = cache.join(true);
            let Ok(told) = tokio::time::timeout_at(deadline(cache.operation_timeout), told).await else {
                return Err(status::timeout_error(shared, path));
            };
            // The task goes with the client.
            told.unwrap_or_else(|_| Err(Error::new(shared.closed(), "watch").at(path)))
        }
    }

    /// Follows the node, as [`NodeCache::changes`] does, from the time on at which the cache has caught up.
    pub fn changes(&self) -> SyncStream<Result<Option<Arc<Node>>, Error>> {
        let (cache, errors) = (self.cache.clone(), self.cache.errors());
        let fresh = async move {
            // Errors go by the other stream.
            let _ = cache.join(false).await;
            cache.changes().filter_map(async |change| change.ok())
        };
        let changes = stream::once(fresh).flatten();
        SyncStream::new(stream::select(changes.map(Ok), errors.map(Err)))
    }
}
