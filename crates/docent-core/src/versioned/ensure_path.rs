use super::VersionedNode;
use crate::client::Client;
use crate::error::Error;
use crate::node::NodePath;
use crate::operation::InOperation;
use bytes::Bytes;

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
