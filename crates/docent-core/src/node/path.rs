use crate::error::Error;
use crate::node::namespace;
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

    /// Returns the path as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the parent, which may be the root.
    pub fn parent(&self) -> &str {
        parent(&self.0).unwrap_or("/")
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
}
