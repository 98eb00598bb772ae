use crate::client::{Client, Committed, PARENT_ROUNDS, Transaction, TransactionResult, debug_handle};
use crate::error::{Error, ErrorKind, if_exists};
use crate::guard::REVOKE;
use crate::node::{CreateMode, Node, NodePath, Stat};
use crate::operation::InOperation;
use bytes::Bytes;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// A value in a persistent node, written by [exact transactions](Transaction::commit_exactly): a lost reply
/// neither repeats nor hides a write, because the outcome is determined afterwards.
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

/// Result of a transaction on a node.
pub(super) enum CommitOutcome {
    Applied(Committed),
    /// Another client was faster.
    Conflict,
    /// The parent is missing.
    NoParent,
}

impl VersionedNode {
    /// Creates a handle for the node at `path`. Does no I/O.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is [reserved](NodePath::of_recipe).
    pub fn new(client: &Client, path: &str) -> Result<Self, Error> {
        Ok(Self::at(client, NodePath::of_recipe(client, "write", path)?))
    }

    /// Creates a handle for any node.
    pub(super) fn at(client: &Client, path: NodePath) -> Self {
        Self { client: client.clone(), path }
    }

    /// The client of this handle.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The path as given to the constructor.
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

    /// Returns the same node, with another timeout for each of its operations.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { client: self.client.with_operation_timeout(timeout), path: self.path.clone() }
    }

    /// Starts a loop that reads and writes until no other client is faster.
    pub fn cas_loop(&self) -> CasLoop {
        CasLoop { versioned: self.clone(), deadline: self.client.deadline(), lost: 0 }
    }

    /// Reads the node from the server of this client's connection; `None` if the node does not exist.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn read(&self) -> Result<Option<Node>, Error> {
        if_exists(self.client.get(&self.path).await)
    }

    /// Writes `data`, together with the operations that `with` adds, if the node is still as in `seen`, which
    /// is `None` if the node did not exist. Missing parents are created.
    ///
    /// Returns the node's new stat. Returns `None` if another client was faster, at this node or at a node of
    /// the other operations; nothing was written then. If the reply was lost, the child counts in the stat
    /// are those of `seen`.
    ///
    /// # Caveats
    /// The servers compare the version. A node that was deleted and re-created since, and has the same
    /// version now, is taken for the node that was seen: the protocol cannot distinguish the two before the
    /// write.
    ///
    /// # Errors
    /// `NoAuth`, `TooLarge`, `NoChildrenForEphemerals`, `Timeout`, `Closed`; `OutcomeUnknown` if the session
    /// ended before the outcome could be determined.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the write may have been applied.
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
                CommitOutcome::Applied(committed) => return Ok(Some(self.written(seen, data, committed))),
                CommitOutcome::Conflict => return Ok(None),
                CommitOutcome::NoParent => Box::pin(self.client.ensure_parent(&self.path)).await?,
            }
        }
        Err(Error::new(ErrorKind::NoNode, "write").at(&self.path))
    }

    /// Deletes the node if it is still as in `seen`, after the operations that `with` adds. Returns false if
    /// another client was faster, at this node or at a node of the other operations; nothing was changed
    /// then.
    ///
    /// # Errors
    /// `NotEmpty` if the node has children; otherwise the same as [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the node may have been deleted.
    pub async fn delete(
        &self,
        seen: &Stat,
        with: impl Fn(Transaction) -> Transaction,
    ) -> Result<bool, Error> {
        // Check first: if the node was changed, children below it do not matter.
        let same = self.client.transaction().check(&self.path, seen.version);
        let transaction = with(same).delete(&self.path, seen.version);
        Ok(matches!(Box::pin(self.commit(transaction, false)).await?, CommitOutcome::Applied(_)))
    }

    /// Writes `data` unconditionally, and creates the node if it does not exist.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the write may have been applied.
    pub async fn set(&self, data: impl Into<Bytes>) -> Result<(), Error> {
        let data = data.into();
        let mut cas = self.cas_loop();
        loop {
            let versioned = cas.versioned();
            let set = versioned.client.transaction().set(&self.path, data.clone(), None);
            match Box::pin(versioned.commit(set, false)).await? {
                CommitOutcome::Applied(_) => return Ok(()),
                CommitOutcome::Conflict | CommitOutcome::NoParent => {}
            }
            // The node did not exist.
            if versioned.write(None, &data, |transaction| transaction).await?.is_some() {
                return Ok(());
            }
            cas.lost().await?;
        }
    }

    pub(super) async fn commit(
        &self,
        transaction: Transaction,
        creates: bool,
    ) -> Result<CommitOutcome, Error> {
        match transaction.commit_marked().await {
            Ok(committed) => Ok(CommitOutcome::Applied(committed)),
            Err(error) => match error.kind() {
                ErrorKind::NoNode if creates && error.path() == Some(&self.path) => {
                    Ok(CommitOutcome::NoParent)
                }
                ErrorKind::NoNode | ErrorKind::NodeExists | ErrorKind::BadVersion => {
                    Ok(CommitOutcome::Conflict)
                }
                _ => Err(error),
            },
        }
    }

    /// Returns the stat of the written node. If the results contain no stat, because of a create in a
    /// transaction or a lost reply, the stat is derived from that of the marker.
    pub(super) fn written(&self, seen: Option<&Stat>, data: &Bytes, committed: Committed) -> Stat {
        let Committed { results, marker } = committed;
        if let Some(TransactionResult::Set(stat)) = results.and_then(|results| results.into_iter().next()) {
            if seen.is_some_and(|seen| seen.czxid != stat.czxid) {
                // Event: Another client deleted and re-created a versioned node between this client's read
                // and its write. The write was applied to the new node.
                // Action: Find out which program deletes the node.
                tracing::warn!(target: "docent::node", client = %self.client().label(), path = %self.path_at_servers(), "the node was deleted and re-created between the read and the write; the write applies to the new node");
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

/// The attempts of a read-modify-write on a [`VersionedNode`] that other clients also write: one deadline for
/// all attempts, and pauses between them.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::VersionedNode;
/// # use docent_core::Error;
/// /// Appends to the text in a node.
/// async fn append(text: &VersionedNode, more: &str) -> Result<(), Error> {
///     let mut cas = text.cas_loop();
///     loop {
///         let node = cas.versioned();
///         let seen = node.read().await?;
///         let mut data = seen.as_ref().map_or_else(Vec::new, |node| node.data.to_vec());
///         data.extend_from_slice(more.as_bytes());
///         let stat = seen.as_ref().map(|node| &node.stat);
///         if node.write(stat, &data.into(), |with| with).await?.is_some() {
///             return Ok(());
///         }
///         cas.lost().await?;
///     }
/// }
/// ```
#[derive(Debug)]
pub struct CasLoop {
    versioned: VersionedNode,
    deadline: Instant,
    lost: u32,
}

/// Maximum length of the first pause. Each pause is a random part of its maximum, which doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// Number of times that the maximum pause doubles.
const DOUBLINGS: u32 = 6;

impl CasLoop {
    /// The node, whose operations use the remaining time.
    pub fn versioned(&self) -> VersionedNode {
        self.versioned.within(self.deadline.saturating_duration_since(Instant::now()))
    }

    /// Pauses after another client wrote first, and lets the server catch up with that write.
    ///
    /// # Errors
    /// `Timeout` if no time is left; `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn lost(&mut self) -> Result<(), Error> {
        if Instant::now() >= self.deadline {
            let detail = format!("other clients wrote first {} times", self.lost + 1);
            return Err(Error::new(ErrorKind::Timeout, "write").at(self.versioned.path()).because(detail));
        }
        // No pause the first time: there may be only one other writer, and it has finished.
        if self.lost > 0 {
            let longest = FIRST_PAUSE * 2_u32.pow(self.lost.min(DOUBLINGS));
            tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        }
        self.lost += 1;
        self.versioned().client().sync(self.versioned.path()).await
    }
}

impl Client {
    /// Ensures that a node exists at `path`: creates a persistent node without data, and missing parents,
    /// unless the node exists. It corresponds to kazoo's method of the same name.
    ///
    /// If the node exists, this takes one request. Created parents are of the kind set with
    /// [`ClientBuilder::parents`](crate::ClientBuilder::parents), and remain at least as long as the node.
    /// The node is created exactly: a late request does not bring back a node that another client deleted
    /// since.
    ///
    /// # Errors
    /// `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `Timeout`, `Closed`; `OutcomeUnknown` if the
    /// session ended before the client could find out whether the node was created.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the node may have been created, and repeating the call does no harm.
    pub async fn ensure_path(&self, path: &str) -> Result<(), Error> {
        // `exists` needs no permission, and the root always exists.
        if self.exists(path).await.in_operation("ensure_path")?.is_some() {
            return Ok(());
        }
        let node = VersionedNode::at(self, NodePath::new("ensure_path", path)?);
        // If another client was faster, the node exists as well.
        let written = Box::pin(node.write(None, &Bytes::new(), |transaction| transaction)).await;
        written.in_operation("ensure_path").map(drop)
    }
}

/// Decodes the number in a node of Curator's `SharedCount`: the first four bytes, in big-endian order.
/// Returns `None` if there are fewer bytes.
pub fn decode_count(data: &[u8]) -> Option<i32> {
    data.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Returns true for the data of a contender that was asked to give up its place.
pub fn is_revocation(data: &[u8]) -> bool {
    data == REVOKE
}
