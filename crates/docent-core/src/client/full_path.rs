use super::Client;

/// Returns `path` as the servers know it, with chroot and namespace. Log messages name nodes in this way.
pub fn full_path(client: &Client, path: &str) -> String {
    client.shared().namespace.join(path)
}
