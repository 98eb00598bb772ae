use super::Client;
use crate::error::{Error, ErrorKind};
use crate::node::CreateMode;
use bytes::Bytes;
use tokio::time::Instant;

/// Creates an empty node at `path` as `mode`, and missing parents before it, unless there is one: the node
/// exists when this returns.
///
/// If the reply is lost, the create is sent again: one that is applied late does no harm, but until then
/// there may be no node (decision 11).
///
/// # Errors
/// `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `Closed`; `Timeout` if no reply came within the
/// operation timeout.
///
/// # Cancel safety
/// This function is cancel safe: the node may have been created, and calling it again does no harm.
pub async fn ensure_node(client: &Client, path: &str, mode: CreateMode) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        match client.create(path, Bytes::new(), mode).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.kind() {
                ErrorKind::NodeExists => return Ok(()),
                ErrorKind::OutcomeUnknown if begun.elapsed() < client.operation_timeout() => {}
                ErrorKind::OutcomeUnknown => return Err(Error::new(ErrorKind::Timeout, "create").at(path)),
                _ => return Err(error),
            },
        }
    }
}
