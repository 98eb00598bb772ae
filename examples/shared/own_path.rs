use docent::{Client, Error, ErrorKind};
use std::process;
use std::time::SystemTime;

/// Returns a path that no other run uses.
pub fn own_path(example: &str) -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("/docent-{example}-{}-{:x}", process::id(), since_epoch.as_millis())
}

/// Deletes `root` and the locks below it immediately. Their nodes are containers, which the servers would
/// delete a while later.
///
/// # Errors
/// If the servers are unreachable, or there are more nodes below `root`.
pub async fn clean_up(client: &Client, root: &str) -> Result<(), Error> {
    let Some(children) = present(client.children(root).await)? else { return Ok(()) };
    for name in children.names {
        present(client.delete(&format!("{root}/{name}"), None).await)?;
    }
    present(client.delete(root, None).await)?;
    Ok(())
}

/// Maps a missing node to `None`.
fn present<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
        Err(error) => Err(error),
    }
}
