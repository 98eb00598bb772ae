use super::{CommitOutcome, VersionedNode};
use crate::client::{Client, PARENT_ROUNDS, TransactionResult, full_error};
use crate::error::{Error, ErrorKind};
use crate::node::{CreateMode, NodePath, Stat};
use crate::operation::InOperation;
use bytes::Bytes;

/// Result of [`Client::create_or_set`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CreatedOrSet {
    /// True if the node was created, false if its data was set.
    pub is_new: bool,
    /// Transaction that wrote the node: its `mzxid`.
    pub mzxid: i64,
    /// The node's stat; `None` if the reply was lost and another client wrote the node again before it could
    /// be read.
    pub stat: Option<Stat>,
}

impl Client {
    /// Sets the data of a node unconditionally, or creates the node with `mode` if it does not exist,
    /// including missing parents. It corresponds to Curator's `create().orSetData()`.
    ///
    /// If the node exists, this takes one request. The request contains one additional write, to an internal
    /// node of the session in a folder called `_docent`. The write is applied exactly once: if the reply is
    /// lost, the client finds out whether it was applied, and sends it again if not. The mode of an existing
    /// node does not change.
    ///
    /// # Errors
    /// `InvalidInput` also for the mode of an ephemeral or sequential node: a sequential node is always
    /// created, and an existing ephemeral node may expire with the session of another client.
    /// [`KeptNode`](crate::recipe::KeptNode) keeps an ephemeral node. `NoAuth`, `TooLarge`,
    /// `NoChildrenForEphemerals`, `Timeout`, `Closed`; `Unsupported` for a time to live if the servers have
    /// it disabled; `OutcomeUnknown` if the session ended before the outcome could be determined.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the write may have been applied. Dropping the call deletes the
    /// session's internal node of this write; if the write was not applied by then, it never will be.
    pub async fn create_or_set(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        mode: CreateMode,
    ) -> Result<CreatedOrSet, Error> {
        let node = VersionedNode::at(self, NodePath::new("create_or_set", path)?);
        let wire = mode.to_proto().0;
        if wire.is_ephemeral() || wire.is_sequential() {
            let detail = format!("mode {mode:?} must be persistent and not sequential");
            return Err(Error::invalid_input("create_or_set", detail).at(path));
        }
        // Boxed because it holds the futures of several transactions.
        Box::pin(create_or_set(&node, data.into(), mode)).await.in_operation("create_or_set")
    }
}

async fn create_or_set(node: &VersionedNode, data: Bytes, mode: CreateMode) -> Result<CreatedOrSet, Error> {
    let mut cas = node.cas_loop();
    let mut missing_parents = 0;
    loop {
        let node = cas.versioned();
        let set = node.client().transaction().set(node.path(), data.clone(), None);
        if let CommitOutcome::Applied(committed) = node.commit(set, false).await? {
            let stat = match committed.results.and_then(|results| results.into_iter().next()) {
                Some(TransactionResult::Set(stat)) => Some(stat),
                _ => stat_of(&node, committed.marker.mzxid).await,
            };
            return Ok(CreatedOrSet { is_new: false, mzxid: committed.marker.mzxid, stat });
        }
        let create = node.client().transaction().create(node.path(), data.clone(), mode);
        match node.commit(create, true).await? {
            CommitOutcome::Applied(committed) => {
                let mzxid = committed.marker.mzxid;
                return Ok(CreatedOrSet {
                    is_new: true,
                    mzxid,
                    stat: Some(node.written(None, &data, committed)),
                });
            }
            // Another client created the node in between.
            CommitOutcome::Conflict => cas.lost().await?,
            CommitOutcome::NoParent if missing_parents == PARENT_ROUNDS => {
                return Err(Error::new(ErrorKind::NoNode, "write").at(node.path()));
            }
            CommitOutcome::NoParent => {
                missing_parents += 1;
                node.client().ensure_parent(node.node_path()).await?;
            }
        }
    }
}

/// Reads the stat of the node that the transaction `mzxid` wrote; `None` if the node was written again since.
async fn stat_of(node: &VersionedNode, mzxid: i64) -> Option<Stat> {
    let client = node.client();
    // The node is written: if this read fails, the answer has no stat, but is not an error.
    let stat = match client.sync(node.path()).await {
        Ok(()) => client.exists(node.path()).await,
        Err(error) => Err(error),
    };
    match stat {
        Ok(stat) => stat.filter(|stat| stat.mzxid == mzxid),
        Err(error) => {
            // Event: A node was written, but the client could not read its metadata afterwards. The write
            // counts as successful.
            tracing::debug!(target: "docent::node", client = %client.label(), path = %node.path_at_servers(), error = %full_error(client, &error), "cannot read the metadata of a written node");
            None
        }
    }
}
