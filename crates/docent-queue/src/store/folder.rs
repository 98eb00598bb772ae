use docent_core::recipe::ensure_node;
use docent_core::{Client, CreateMode, Error};

/// Creates a folder like [`ensure_folder`], for a folder that usually exists: a read costs the leader
/// nothing.
pub(crate) async fn ensure_known_folder(client: &Client, path: &str) -> Result<(), Error> {
    match client.exists(path).await? {
        Some(_) => Ok(()),
        None => ensure_folder(client, path).await,
    }
}

/// Creates the folder `path` if it is missing, as a persistent node, so that the numbers of items keep
/// increasing.
pub(crate) async fn ensure_folder(client: &Client, path: &str) -> Result<(), Error> {
    ensure_node(client, path, CreateMode::Persistent).await
}
