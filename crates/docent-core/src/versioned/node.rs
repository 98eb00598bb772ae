use super::CasLoop;
use crate::client::{Client, Committed, PARENT_ROUNDS, Transaction, TransactionResult, debug_handle};
use crate::error::{Error, ErrorKind};
use crate::node::{CreateMode, Node, NodePath, Stat};
use bytes::Bytes;
use std::fmt;
use std::time::Duration;

/// A value in a persistent node, written by [exact transactions](Transaction::commit_exactly): a lost reply
/// neither doubles nor hides a write, and its outcome is known all the same.
///
/// A write is not bound to a hold. To write only while a right is held, use
/// [`Held::transaction`](crate::Held::transaction), or [`Hold::end_with`](crate::recipe::Hold::end_with) to
/// end the hold with the write.
///
/// Cheap to clone.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::VersionedNode;
/// # use docent_core::{Client, Error};
/// # async fn example(client: &Client) -> Result<(), Error> {
/// let limit = VersionedNode::new(client, "/limits/uploads")?;
/// let seen = limit.read().await?;
/// let written = limit.write(seen.as_ref().map(|node| &node.stat), &"20".into(), |with| with).await?;
/// if written.is_none() {
///     println!("another client changed the limit first");
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct VersionedNode {
    client: Client,
    path: NodePath,
}

/// Result of a transaction of a node.
pub(super) enum Ended {
    Applied(Committed),
    /// Somebody else was faster.
    Conflict,
    /// The parent is missing.
    NoParent,
}

impl VersionedNode {
    /// The node at `path`.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule or is the root.
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self { client: client.clone(), path: NodePath::new("write", path)? })
    }

    /// The client it was made with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path as the servers know it: with the client's chroot and namespace.
    pub fn path_at_servers(&self) -> String {
        self.client.shared().namespace.join(&self.path)
    }

    pub(super) fn node_path(&self) -> &NodePath {
        &self.path
    }

    /// The same node, with another time for each of its operations.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { client: self.client.with_operation_timeout(timeout), path: self.path.clone() }
    }

    /// Begins to read and write until nobody else is faster.
    pub fn cas_loop(&self) -> CasLoop {
        CasLoop::new(self)
    }

    /// The node as the server knows it that this client talks to; `None` when there is none.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn read(&self) -> Result<Option<Node>, Error> {
        match self.client.get(&self.path).await {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes `data` if the node is still as in `seen`, which is `None` for no node; together with the
    /// operations that `with` adds. Missing parents are created. Returns the node's new stat; `None` when
    /// somebody else was faster, there or at a node of the other operations, and nothing was written.
    ///
    /// Where the reply was lost, the counts of children in the stat are those of `seen`.
    ///
    /// # Caveats
    /// The servers compare the version. A node that was deleted and created anew since, and has the same
    /// version by now, passes for the seen one: nothing in the protocol tells the two apart before the write.
    ///
    /// # Errors
    /// `NoAuth`, `TooLarge`, `NoChildrenForEphemerals`, `Timeout`, `Closed`; `OutcomeUnknown` when the
    /// session ended before the outcome could be found out.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been written.
    pub async fn write(
        &self,
        seen: Option<&Stat>,
        data: &Bytes,
        with: impl Fn(Transaction) -> Transaction,
    ) -> Result<Option<Stat>, Error> {
        for _ in 0..PARENT_ROUNDS {
            let transaction = self.client.transaction();
            let transaction = match seen {
                Some(_) if planted!(CasWithoutVersion) => transaction.set(&self.path, data.clone(), None),
                Some(seen) => transaction.set(&self.path, data.clone(), seen.version),
                None => transaction.create(&self.path, data.clone(), CreateMode::Persistent),
            };
            match Box::pin(self.commit(with(transaction), seen.is_none())).await? {
                Ended::Applied(committed) => return Ok(Some(self.written(seen, data, committed))),
                Ended::Conflict => return Ok(None),
                Ended::NoParent => Box::pin(self.client.ensure_parent(&self.path)).await?,
            }
        }
        Err(Error::new(ErrorKind::NoNode, "write").at(&self.path))
    }

    /// Deletes the node if it is still the one that was `seen`, after the operations that `with` adds. False
    /// when somebody else was faster, there or at a node of the other operations, and nothing was done.
    ///
    /// # Errors
    /// `NotEmpty` when there is something below it; else as [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been deleted.
    pub async fn delete(
        &self,
        seen: &Stat,
        with: impl Fn(Transaction) -> Transaction,
    ) -> Result<bool, Error> {
        // First of all: nodes below it do not matter if it was changed.
        let same = self.client.transaction().check(&self.path, seen.version);
        let transaction = with(same).delete(&self.path, seen.version);
        Ok(matches!(Box::pin(self.commit(transaction, false)).await?, Ended::Applied(_)))
    }

    /// Writes `data` whatever data the node has, and creates the node if there is none.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been written.
    pub async fn set(&self, data: impl Into<Bytes>) -> Result<(), Error> {
        let data = data.into();
        let mut cas = self.cas_loop();
        loop {
            let versioned = cas.versioned();
            let set = versioned.client.transaction().set(&self.path, data.clone(), None);
            match Box::pin(versioned.commit(set, false)).await? {
                Ended::Applied(_) => return Ok(()),
                Ended::Conflict | Ended::NoParent => {}
            }
            // There was no node.
            if versioned.write(None, &data, |transaction| transaction).await?.is_some() {
                return Ok(());
            }
            cas.lost().await?;
        }
    }

    pub(super) async fn commit(&self, transaction: Transaction, creates: bool) -> Result<Ended, Error> {
        match transaction.commit_marked().await {
            Ok(committed) => Ok(Ended::Applied(committed)),
            Err(error) => match error.kind() {
                ErrorKind::NoNode if creates && error.path() == Some(&self.path) => Ok(Ended::NoParent),
                ErrorKind::NoNode | ErrorKind::NodeExists | ErrorKind::BadVersion => Ok(Ended::Conflict),
                _ => Err(error),
            },
        }
    }

    /// The stat of the written node. A create in a transaction may have no stat in its result, and a lost
    /// reply has none: it is made from that of the marker then.
    pub(super) fn written(&self, seen: Option<&Stat>, data: &Bytes, committed: Committed) -> Stat {
        let Committed { results, marker } = committed;
        if let Some(TransactionResult::Set(stat)) = results.and_then(|results| results.into_iter().next()) {
            if seen.is_some_and(|seen| seen.czxid != stat.czxid) {
                tracing::warn!(path = %self.path, "a node was deleted and created anew as it was written");
            }
            return stat;
        }
        let (mzxid, modified, data_length) = (marker.mzxid, marker.modified, data.len());
        match seen {
            Some(seen) => {
                Stat { mzxid, modified, data_length, version: seen.version.wrapping_add(1), ..*seen }
            }
            None => Stat {
                czxid: mzxid,
                mzxid,
                pzxid: mzxid,
                created: modified,
                modified,
                version: 0,
                cversion: 0,
                aversion: 0,
                owner: None,
                data_length,
                num_children: 0,
            },
        }
    }
}

impl fmt::Debug for VersionedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "VersionedNode", &self.path, &self.client).finish_non_exhaustive()
    }
}
