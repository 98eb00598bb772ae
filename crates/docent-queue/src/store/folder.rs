use docent_core::recipe::ensure_node;
use docent_core::{Client, CreateMode, Error};

/// As [`ensure_folder`], for a folder that mostly is there: a look costs the leader nothing.
pub(crate) async fn ensure_known_folder(client: &Client, path: &str) -> Result<(), Error> {
    match client.exists(path).await? {
        Some(_) => Ok(()),
        None => ensure_folder(client, path).await,
    }
}

/// Creates the folder `path`, if it is missing, as one that stays: the numbers of items go on increasing.
pub(crate) async fn ensure_folder(client: &Client, path: &str) -> Result<(), Error> {
    ensure_node(client, path, CreateMode::Persistent).await
}
