use super::own::{NOT_OWN, is_own_path};
use crate::error::Error;
use docent_proto::validate_path;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
