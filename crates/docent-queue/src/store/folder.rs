use docent_core::{Client, CreateMode, Error, ErrorKind};

/// As [`ensure_folder`], for a folder that mostly is there: a look costs the leader nothing.
pub(crate) async fn ensure_known_folder(client: &Client, path: &str) -> Result<(), Error> {
    match client.exists(path).await? {
        Some(_) => Ok(()),
        None => ensure_folder(client, path).await,
    }
}

/// Creates the folder `path`, if it is missing, as one that stays: the numbers of items go on increasing.
pub(crate) async fn ensure_folder(client: &Client, path: &str) -> Result<(), Error> {
    match client.create(path, "", CreateMode::Persistent).await {
        Ok(_) => Ok(()),
        // The folder is the same, whichever client made it.
        Err(error) if matches!(error.kind(), ErrorKind::NodeExists | ErrorKind::OutcomeUnknown) => Ok(()),
        Err(error) => Err(error),
    }
}
