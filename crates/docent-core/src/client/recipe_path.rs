use crate::client::Client;
use crate::error::Error;
use crate::node::{NOT_OWN, NodePath, is_own_path};

impl NodePath {
    /// Validates the path of a recipe of `client`, like [`new`](Self::new). Also refuses paths that are
    /// reserved at the servers, with the client's chroot and namespace: `/zookeeper` and folders named
    /// `_docent`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is reserved.
    pub fn of_recipe(
        client: &Client,
        operation: &'static str,
        path: impl Into<String>,
    ) -> Result<Self, Error> {
        let path = Self::new(operation, path)?;
        refuse_reserved(client, operation, &path)?;
        Ok(path)
    }
}

/// Refuses a path, which may be the prefix of a sequential node, if it is reserved.
pub(crate) fn refuse_reserved(client: &Client, operation: &'static str, path: &str) -> Result<(), Error> {
    let full = client.shared().namespace.join_sequential(path);
    match reserved(&full) {
        Some(rule) => Err(Error::invalid_input(operation, refusal(path, &full, rule))),
        None => Ok(()),
    }
}

/// Returns the rule that a recipe at the path `full` at the servers breaks, if it is reserved.
fn reserved(full: &str) -> Option<&'static str> {
    if full.split('/').nth(1) == Some("zookeeper") {
        return Some("must not be \"/zookeeper\" or below it: these nodes belong to the servers");
    }
    is_own_path(full).then_some(NOT_OWN)
}

fn refusal(path: &str, full: &str, rule: &str) -> String {
    match path == full {
        true => format!("path {path:?} {rule}"),
        false => format!("path {path:?}, which is {full:?} at the servers, {rule}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn recipes_have_no_reserved_paths_at_the_servers() {
        let plain = Client::builder("127.0.0.1:1").build().unwrap();
        let within = Client::builder("127.0.0.1:1/a/_docent").build().unwrap();
        let system = Client::builder("127.0.0.1:1/zookeeper").build().unwrap();
        let refused = |client, path| NodePath::of_recipe(client, "test", path).unwrap_err().to_string();
        let servers = "must not be \"/zookeeper\" or below it: these nodes belong to the servers";
        let own = "must not be a folder \"_docent\" or below one: these nodes belong to Docent's clients";
        for path in ["/zookeeper", "/zookeeper/x"] {
            assert_eq!(refused(&plain, path), format!("test: path {path:?} {servers}"));
        }
        for path in ["/_docent", "/_docent/x", "/a/_docent-1f/x"] {
            assert_eq!(refused(&plain, path), format!("test: path {path:?} {own}"));
        }
        let named = |full: &str| format!("test: path \"/x\", which is {full:?} at the servers,");
        assert_eq!(refused(&within, "/x"), format!("{} {own}", named("/a/_docent/x")));
        assert_eq!(refused(&system, "/x"), format!("{} {servers}", named("/zookeeper/x")));
        let shop = Client::builder("127.0.0.1:1/shop").build().unwrap();
        for path in ["/zookeeper", "/a/zookeeper", "/zookeepers", "/_docents"] {
            NodePath::of_recipe(&shop, "test", path).unwrap();
        }
    }
}
