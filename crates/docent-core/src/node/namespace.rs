//! Paths of nodes, and the namespace that maps them; names of the folders in which clients keep their own
//! nodes, beside those of recipes (decision 26), and of the proofs that they create below claimed nodes
//! (decision 28).

use crate::error::Error;
use docent_proto::{parent, validate_path};
use std::fmt;
use std::ops::Deref;
use uuid::Uuid;

/// Name of the folder shared by all clients that may create nodes beside it.
pub(crate) const OWN: &str = "_docent";

/// The rule that reserves these folders, as errors state it after a path.
pub(crate) const NOT_OWN: &str =
    "must not be a folder \"_docent\" or below one: these nodes belong to Docent's clients";

/// Suffix after the id in the name of a proof. The name does not end with digits, so that it is not mistaken
/// for that of a sequential node.
pub(crate) const PROOF: &str = "-claim";

/// Returns true for the name of a folder in which clients keep their own nodes, such as the markers of exact
/// writes: `_docent`, and `_docent-…` for one session. Recipes skip these names.
pub fn is_own_name(name: &str) -> bool {
    name.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns true for the path of such a folder, and of all nodes below it.
pub fn is_own_path(path: &str) -> bool {
    path.split('/').any(is_own_name)
}

/// Returns true for the name of the proof of a claim.
pub(crate) fn is_proof(name: &str) -> bool {
    name.strip_suffix(PROOF).is_some_and(|id| Uuid::try_parse(id).is_ok())
}

/// Location of a client's paths in the tree: chroot and namespace together. Paths are mapped only here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// Absolute, without a trailing slash; empty if there is no prefix.
    prefix: String,
}

impl Namespace {
    /// Creates the prefix. The namespace must not be reserved. A chroot may be, for tools that read these
    /// nodes.
    pub(crate) fn new(chroot: &str, namespace: &str) -> Result<Self, Error> {
        for part in [chroot, namespace] {
            if !part.is_empty() {
                check("connect", part)?;
            }
        }
        if is_own_path(namespace) {
            return Err(Error::invalid_input("connect", format!("namespace {namespace:?} {NOT_OWN}")));
        }
        let part = |part: &str| if part == "/" { String::new() } else { part.to_owned() };
        Ok(Self { prefix: part(chroot) + &part(namespace) })
    }

    /// Returns the path as the server knows it.
    pub(crate) fn full(&self, operation: &'static str, path: &str) -> Result<String, Error> {
        check(operation, path)?;
        Ok(self.join(path))
    }

    /// Like [`full`](Self::full), for a path that was already [checked](check).
    pub(crate) fn join(&self, path: &str) -> String {
        match (self.prefix.as_str(), path) {
            ("", path) => path.to_owned(),
            (prefix, "/") => prefix.to_owned(),
            (prefix, path) => [prefix, path].concat(),
        }
    }

    /// Returns the full path of a sequential node's prefix, whose last segment may be empty.
    pub(crate) fn full_sequential(&self, operation: &'static str, path: &str) -> Result<String, Error> {
        check_sequential(operation, path)?;
        Ok(self.join_sequential(path))
    }

    /// Like [`full_sequential`](Self::full_sequential), for a path that was already
    /// [checked](check_sequential).
    pub(crate) fn join_sequential(&self, path: &str) -> String {
        if self.prefix.is_empty() { path.to_owned() } else { [&self.prefix, path].concat() }
    }

    /// Returns the full path of the namespace's own node; empty for the root.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns true if `chroot` is the first part of the prefix.
    pub(crate) fn begins_with(&self, chroot: &str) -> bool {
        self.prefix.strip_prefix(chroot).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns true for the namespace's own node and all nodes below it.
    pub(crate) fn contains(&self, full: &str) -> bool {
        full.strip_prefix(&self.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the error with its path as the server knows it, for a log message.
    pub(crate) fn located(&self, error: &Error) -> Error {
        match error.path() {
            Some(path) => error.clone().at(&self.join(path)),
            None => error.clone(),
        }
    }

    /// Returns the path as the user knows it.
    pub(crate) fn relative(&self, full: impl AsRef<str> + Into<String>) -> String {
        if self.prefix.is_empty() {
            return full.into();
        }
        match full.as_ref().strip_prefix(&self.prefix) {
            Some("") => "/".to_owned(),
            Some(relative) if relative.starts_with('/') => relative.to_owned(),
            _ => full.into(),
        }
    }
}

/// Checks that a node can have this path.
pub(crate) fn check(operation: &'static str, path: &str) -> Result<(), Error> {
    validate_path(path).map_err(|error| Error::invalid_input(operation, error.to_string()))
}

/// Checks that a sequential node can have this path before its number.
pub(crate) fn check_sequential(operation: &'static str, path: &str) -> Result<(), Error> {
    // The server checks the path together with its number.
    check(operation, path).or_else(|error| check(operation, &format!("{path}0")).map_err(|_| error))
}

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
        check(operation, &path)?;
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
    fn folders_of_clients_are_distinguished_from_nodes_of_recipes() {
        for own in ["/_docent", "/_docent/a", "/a/_docent-1f/b", "/_docent-1f"] {
            assert!(is_own_path(own), "{own}");
        }
        for other in ["/", "/a", "/_docents", "/_docent2/a", "/a_docent", "/docent"] {
            assert!(!is_own_path(other), "{other}");
        }
    }

    #[test]
    fn paths_are_mapped_in_both_directions() {
        let namespace = Namespace::new("/shop", "/eu").unwrap();
        for (path, full) in [("/", "/shop/eu"), ("/a", "/shop/eu/a"), ("/a/b", "/shop/eu/a/b")] {
            assert_eq!(namespace.full("get", path).unwrap(), full);
            assert_eq!(namespace.relative(full), path);
        }
        assert_eq!(Namespace::default().full("get", "/").unwrap(), "/");
    }

    #[test]
    fn a_path_that_only_begins_like_the_namespace_is_not_in_it() {
        let namespace = Namespace::new("/shop", "").unwrap();
        assert_eq!(namespace.relative("/shopping/a"), "/shopping/a");
    }

    #[test]
    fn a_sequential_prefix_may_end_with_a_slash() {
        let namespace = Namespace::new("/shop", "").unwrap();
        assert_eq!(namespace.full_sequential("create", "/a/").unwrap(), "/shop/a/");
        assert_eq!(namespace.full_sequential("create", "/").unwrap(), "/shop/");
        assert_eq!(namespace.full_sequential("create", "/a/..").unwrap(), "/shop/a/..");
        assert!(namespace.full_sequential("create", "a").unwrap_err().to_string().contains("\"a\""));
    }

    #[test]
    fn invalid_paths_name_value_and_rule() {
        let error = Namespace::default().full("get", "a").unwrap_err();
        assert_eq!(error.to_string(), "get: path \"a\" must start with '/'");
        assert!(Namespace::new("", "shop").is_err());
    }

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
