use docent::{Client, Error, ErrorKind};
use std::process;
use std::time::SystemTime;

/// A path that no other run uses.
pub fn own_path(example: &str) -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("/docent-{example}-{}-{:x}", process::id(), since_epoch.as_millis())
}

/// Deletes `root` and the locks below it at once. Their nodes are containers: the servers would delete them a
/// while later.
///
/// # Errors
/// When the servers are away, or there is more below than that.
pub async fn clean_up(client: &Client, root: &str) -> Result<(), Error> {
    let Some(children) = present(client.children(root).await)? else { return Ok(()) };
    for name in children.names {
        present(client.delete(&format!("{root}/{name}"), None).await)?;
    }
    present(client.delete(root, None).await)?;
    Ok(())
}

/// `None` for a missing node.
fn present<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
        Err(error) => Err(error),
    }
}
