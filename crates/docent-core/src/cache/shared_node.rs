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

/// A [`NodeCache`] that all handles of a client on one path share: one read and one watch for all of them.
///
/// # Guarantees
/// Once a handle has [caught up](Self::caught_up), it shows nothing older than what the servers had reported
/// when the handle was created. If other handles already use the cache, its value is taken without a read,
/// unless a change was reported that is not read yet.
///
/// # On drop
/// With the last handle, the cache's task ends and its watch is removed.
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

/// Request of a handle for a notification when the cache is up to date.
pub(super) struct Join {
    /// True if the handle also wants the next error of a read, and an immediate read if the task is pausing.
    pub(super) wants_errors: bool,
    pub(super) reply: oneshot::Sender<Result<(), Error>>,
}

impl SharedNode {
    /// Returns the cache of `path` that this client shares, or a new one. The node need not exist yet.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, `Closed`.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { cache: NodeCache::common(client, path)? })
    }

    /// The cache. Its value may be older than this handle until it has [caught up](Self::caught_up).
    pub fn cache(&self) -> &NodeCache {
        &self.cache
    }

    /// Waits until the cache shows the latest state that the servers have reported, at most for the operation
    /// timeout. If the last read failed, the node is read again immediately.
    ///
    /// # Errors
    /// The error of a read that ends during the wait, if the servers refuse it, such as `NoAuth`; otherwise
    /// `Timeout`, `Closed`. The cache keeps retrying.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn caught_up(&self) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let cache = self.cache.clone();
        async move {
            let Handle { shared, path, .. } = &*cache.handle;
            let answer = cache.join(true);
            let Ok(answer) = tokio::time::timeout_at(deadline(cache.operation_timeout), answer).await else {
                return Err(status::timeout_error(shared, path));
            };
            // The task ends with the client.
            answer.unwrap_or_else(|_| Err(Error::new(shared.closed(), "watch").at(path)))
        }
    }

    /// Returns a stream like [`NodeCache::changes`], which starts when the cache has caught up.
    pub fn changes(&self) -> SyncStream<Result<Option<Arc<Node>>, Error>> {
        let (cache, errors) = (self.cache.clone(), self.cache.errors());
        let fresh = async move {
            // Errors are delivered by the other stream.
            let _ = cache.join(false).await;
            cache.changes().filter_map(async |change| change.ok())
        };
        let changes = stream::once(fresh).flatten();
        SyncStream::new(stream::select(changes.map(Ok), errors.map(Err)))
    }
}
