use crate::client::Client;
use crate::error::Error;
use crate::node::{is_own_path, namespace};
use docent_proto::parent;
use std::fmt;
use std::ops::Deref;

/// Validated path of a node below the root, relative to the client's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodePath(String);

impl NodePath {
    /// Validates `path`. Errors name `operation`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule or is the root.
    pub fn new(operation: &'static str, path: impl Into<String>) -> Result<Self, Error> {
        let path = path.into();
        namespace::check(operation, &path)?;
        match path.as_str() {
            "/" => Err(Error::invalid_input(operation, "path \"/\" must not be the root")),
            _ => Ok(Self(path)),
        }
    }

    /// Validates the path of a recipe of `client`, like [`new`](Self::new). Also refuses paths that are reserved
    /// at the servers, with the client's chroot and namespace: `/zookeeper` and folders named `_docent`.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, is the root or is reserved.
    pub fn of_recipe(
        client: &Client,
        operation: &'static str,
        path: impl Into<String>,
    ) -> Result<Self, Error> {
        let path = Self::new(operation, path)?;
        let full = client.shared().namespace.join(&path);
        match reserved(&full) {
            Some(rule) => Err(Error::invalid_input(operation, refusal(&path, &full, rule))),
            None => Ok(path),
        }
    }

    /// Returns the path as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the parent, which may be the root.
    pub fn parent(&self) -> &str {
        parent(&self.0).unwrap_or("/")
    }
}

/// Returns the rule that a recipe at the path `full` at the servers breaks, if it is reserved.
fn reserved(full: &str) -> Option<&'static str> {
    if full.split('/').nth(1) == Some("zookeeper") {
        return Some("must not be \"/zookeeper\" or below it: these nodes belong to the servers");
    }
    is_own_path(full)
        .then_some("must not be a folder \"_docent\" or below one: these nodes belong to Docent's clients")
}

fn refusal(path: &str, full: &str, rule: &str) -> String {
    match path == full {
        true => format!("path {path:?} {rule}"),
        false => format!("path {path:?}, which is {full:?} at the servers, {rule}"),
    }
}

impl Deref for NodePath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<NodePath> for String {
    fn from(path: NodePath) -> Self {
        path.0
    }
}

impl fmt::Display for NodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_returns_its_parent() {
        for (path, above) in [("/a", "/"), ("/a/b", "/a"), ("/a/b/c", "/a/b")] {
            let path = NodePath::new("test", path).unwrap();
            assert_eq!(path.parent(), above);
        }
    }

    #[test]
    fn bad_paths_and_the_root_are_refused_with_value_and_rule() {
        let refused = |path: &str| NodePath::new("test", path).unwrap_err().to_string();
        assert_eq!(refused("/"), "test: path \"/\" must not be the root");
        assert_eq!(refused("a"), "test: path \"a\" must start with '/'");
        assert!(refused("/a/").starts_with("test: path \"/a/\""));
    }

    #[tokio::test]
    async fn recipes_have_no_reserved_paths_at_the_servers() {
        let plain = Client::builder("127.0.0.1:1").build().unwrap();
        let within = Client::builder("127.0.0.1:1/a").namespace("/_docent").build().unwrap();
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
