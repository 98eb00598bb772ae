use super::Client;
use crate::error::Error;

/// Returns `path` as the servers know it, with chroot and namespace. Log messages name nodes in this way.
pub fn full_path(client: &Client, path: &str) -> String {
    client.shared().namespace.join(path)
}

/// Returns `error` with its path as the servers know it. Log messages contain errors in this way.
pub fn full_error(client: &Client, error: &Error) -> Error {
    client.shared().namespace.located(error)
}
