use super::VersionedNode;
use crate::client::Client;
use crate::error::Error;
use bytes::Bytes;

impl Client {
    /// Makes sure that there is a node at `path`: makes a persistent one without data, and missing parents,
    /// and leaves one alone that exists. For users of kazoo: the method of the same name.
    ///
    /// One request when it exists. Parents that it makes are of the kind that
    /// [`ClientBuilder::parents`](crate::ClientBuilder::parents) says; they stay, too, as long as the node
    /// does. It is made exactly: a request that is applied late does not bring the node back that somebody
    /// deleted since.
    ///
    /// # Errors
    /// `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `Timeout`, `Closed`; `OutcomeUnknown` when the
    /// session ended before it could be found out whether it was made.
    ///
    /// # Cancel safety
    /// This method is cancel safe: the node may have been made, and calling it again does no harm.
    pub async fn ensure_path(&self, path: &str) -> Result<(), Error> {
        // Needs no permission on any node, and the root is there in any case.
        if self.exists(path).await?.is_some() {
            return Ok(());
        }
        let node = VersionedNode::new(self, path)?;
        // Where somebody else was faster it is there, too.
        Box::pin(node.write(None, &Bytes::new(), |transaction| transaction)).await.map(drop)
    }
}
