use super::Client;
use crate::error::{Error, ErrorKind};
use crate::node::CreateMode;
use bytes::Bytes;
use tokio::time::Instant;

/// Creates an empty node at `path` with `mode`, and missing parents before it, unless the node exists. The
/// node exists when this returns.
///
/// If the reply is lost, the create is sent again. A create that is applied late is harmless, but until then
/// the node may not exist (decision 11).
///
/// # Errors
/// `NoAuth`, `NoChildrenForEphemerals`, `InvalidInput`, `Closed`; `Timeout` if no reply arrived within the
/// operation timeout.
///
/// # Cancel safety
/// This function is cancel safe. The node may have been created, and calling the function again is harmless.
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
