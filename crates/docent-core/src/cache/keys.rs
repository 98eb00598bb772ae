use crate::node::is_own_name;
use std::sync::Arc;

/// Keys by which a cache identifies its nodes: the names of children, or the paths of the nodes of a tree.
#[derive(Debug)]
pub(super) struct Keys {
    /// Key of the cache's own node: empty for a cache of children, whose keys are names.
    root: Arc<str>,
    /// Full path of the cache's own node.
    full: String,
}

impl Keys {
    /// Keys of the children of the node at `full`: their names.
    pub(super) fn names(full: String) -> Self {
        Self { root: Arc::from(""), full }
    }

    /// Keys of the nodes of the tree at `path`: their paths. The servers know `path` as `full`.
    pub(super) fn paths(path: &str, full: String) -> Self {
        Self { root: Arc::from(path), full }
    }

    pub(super) fn root(&self) -> &Arc<str> {
        &self.root
    }

    /// Returns true for the keys of a cache of children.
    pub(super) fn are_names(&self) -> bool {
        self.root.is_empty()
    }

    /// Full path of the cache's own node.
    pub(super) fn full_root(&self) -> &str {
        &self.full
    }

    /// Full path of a node.
    pub(super) fn full(&self, key: &str) -> String {
        let below = key.strip_prefix(&*self.root).unwrap_or(key).trim_start_matches('/');
        match (below, self.full.as_str()) {
            ("", full) => full.to_owned(),
            (below, "/") => format!("/{below}"),
            (below, full) => format!("{full}/{below}"),
        }
    }

    /// Key of the node at a full path; `None` if the cache does not contain nodes there.
    pub(super) fn of_full(&self, full: &str) -> Option<String> {
        let below = full.strip_prefix(&self.full)?;
        let below = match self.full.as_str() {
            "/" => below,
            _ if below.is_empty() => below,
            _ => below.strip_prefix('/')?,
        };
        match below {
            "" => Some(self.root.to_string()),
            name if self.are_names() => (!name.contains('/') && !is_own_name(name)).then(|| name.to_owned()),
            below => Some(self.child(&self.root, below)),
        }
    }

    /// Key of a child.
    pub(super) fn child(&self, key: &str, name: &str) -> String {
        let mut child = String::with_capacity(key.len() + 1 + name.len());
        self.write_child(&mut child, key, name);
        child
    }

    /// Same as [`child`](Self::child), but replaces the text in `child`.
    pub(super) fn write_child(&self, child: &mut String, key: &str, name: &str) {
        child.clear();
        if !self.are_names() {
            child.push_str(key.trim_end_matches('/'));
            child.push('/');
        }
        child.push_str(name);
    }

    /// Key of the parent of `key`, which is not the root.
    pub(super) fn parent<'a>(&self, key: &'a str) -> &'a str {
        if self.are_names() { "" } else { docent_proto::parent(key).unwrap_or("/") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_known_by_their_names() {
        let keys = Keys::names("/ns/a".to_owned());
        assert_eq!((keys.full(""), keys.full("b")), ("/ns/a".to_owned(), "/ns/a/b".to_owned()));
        let of_full = |full| keys.of_full(full);
        assert_eq!(of_full("/ns/a"), Some(String::new()));
        assert_eq!(of_full("/ns/a/b"), Some("b".to_owned()));
        for elsewhere in ["/ns/a/b/c", "/ns/ab", "/ns", "/ns/a/_docent"] {
            assert_eq!(of_full(elsewhere), None, "{elsewhere}");
        }
        assert_eq!((keys.child("", "b"), keys.parent("b")), ("b".to_owned(), ""));
    }

    #[test]
    fn nodes_of_a_tree_are_known_by_their_paths() {
        for (path, full) in [("/a", "/ns/a"), ("/", "/ns"), ("/a", "/a"), ("/", "/")] {
            let keys = Keys::paths(path, full.to_owned());
            let prefix = path.trim_end_matches('/');
            for below in ["/b", "/b/c"] {
                let key = format!("{prefix}{below}");
                let at_servers = format!("{}{below}", full.trim_end_matches('/'));
                assert_eq!(keys.full(&key), at_servers);
                assert_eq!(keys.of_full(&at_servers), Some(key));
            }
            assert_eq!((keys.full(path), keys.of_full(full)), (full.to_owned(), Some(path.to_owned())));
            assert_eq!(keys.child(path, "b"), format!("{prefix}/b"));
            assert_eq!(keys.parent(&format!("{prefix}/b")), path);
        }
        assert_eq!(Keys::paths("/a", "/ns/a".to_owned()).of_full("/ns/ab"), None);
    }
}
