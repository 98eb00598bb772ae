use super::{Ended, VersionedNode};
use crate::client::{Client, PARENT_ROUNDS, TransactionResult};
use crate::error::{Error, ErrorKind};
use crate::node::{CreateMode, Stat};
use bytes::Bytes;

/// Result of [`Client::create_or_set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreatedOrSet {
    /// True when the node was created, false when its data was set.
    pub is_new: bool,
    /// Transaction that wrote it: the node's `mzxid`.
    pub mzxid: i64,
    /// The node's stat; `None` where the reply was lost and somebody else had written the node again before
    /// it could be looked at.
    pub stat: Option<Stat>,
}

impl Client {
    /// Sets a node's data whatever it has, or creates the node with it, as `mode`, where there is none; and
    /// missing parents before it. For users of Curator: `create().orSetData()`.
    ///
    /// One request when the node exists, and one write more in it, to a node of the session's own in a folder
    /// called `_docent`. It happens exactly once: when the reply is lost it is found out whether it was
    /// applied, and it is sent again if not. The mode of a node that exists stays as it is.
    ///
    /// # Errors
    /// `InvalidInput` also for the mode of an ephemeral or sequential node: a sequential one is always
    /// created, and an ephemeral one that exists may go with the session of somebody else.
    /// [`KeptNode`](crate::recipe::KeptNode) keeps such a node. `NoAuth`, `TooLarge`,
    /// `NoChildrenForEphemerals`, `Timeout`, `Closed`; `Unsupported` for a time to live where the servers
    /// have that switched off; `OutcomeUnknown` when the session ended before the outcome could be found out.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been written. If it was not before the call is dropped
    /// and its marker deleted, it never will be.
    pub async fn create_or_set(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        mode: CreateMode,
    ) -> Result<CreatedOrSet, Error> {
        let node = VersionedNode::new(self, path)?;
        let wire = mode.to_proto().0;
        if wire.is_ephemeral() || wire.is_sequential() {
            let detail = format!("mode {mode:?} must be that of a persistent node without a number");
            return Err(Error::invalid_input("write", detail).at(path));
        }
        // On the heap, because it holds the futures of several transactions.
        Box::pin(create_or_set(&node, data.into(), mode)).await
    }
}

async fn create_or_set(node: &VersionedNode, data: Bytes, mode: CreateMode) -> Result<CreatedOrSet, Error> {
    let mut cas = node.cas_loop();
    let mut missing_parents = 0;
    loop {
        let node = cas.versioned();
        let set = node.client().transaction().set(node.path(), data.clone(), None);
        if let Ended::Applied(committed) = node.commit(set, false).await? {
            let stat = match committed.results.and_then(|results| results.into_iter().next()) {
                Some(TransactionResult::Set(stat)) => Some(stat),
                _ => look(&node, committed.marker.mzxid).await,
            };
            return Ok(CreatedOrSet { is_new: false, mzxid: committed.marker.mzxid, stat });
        }
        let create = node.client().transaction().create(node.path(), data.clone(), mode);
        match node.commit(create, true).await? {
            Ended::Applied(committed) => {
                let mzxid = committed.marker.mzxid;
                return Ok(CreatedOrSet {
                    is_new: true,
                    mzxid,
                    stat: Some(node.written(None, &data, committed)),
                });
            }
            // Somebody else created it in between.
            Ended::Conflict => cas.lost().await?,
            Ended::NoParent if missing_parents == PARENT_ROUNDS => {
                return Err(Error::new(ErrorKind::NoNode, "write").at(node.path()));
            }
            Ended::NoParent => {
                missing_parents += 1;
                node.client().ensure_parent(node.node_path()).await?;
            }
        }
    }
}

/// The stat of the node that the transaction `mzxid` wrote, unless it was written again since.
async fn look(node: &VersionedNode, mzxid: i64) -> Option<Stat> {
    let client = node.client();
    // It is written: without a look the answer is less, and no error.
    let stat = match client.sync(node.path()).await {
        Ok(()) => client.exists(node.path()).await,
        Err(error) => Err(error),
    };
    match stat {
        Ok(stat) => stat.filter(|stat| stat.mzxid == mzxid),
        Err(error) => {
            tracing::debug!(path = node.path(), %error, "a written node could not be looked at");
            None
        }
    }
}
