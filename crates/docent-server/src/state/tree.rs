use super::acl;
use super::node::{Lifetime, Node};
use bytes::Bytes;
use docent_proto::{Acl, parent};
use std::collections::HashMap;
use std::sync::Arc;

/// Nodes that no client can delete.
pub(crate) const SYSTEM: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// The nodes by path.
#[derive(Clone)]
pub(crate) struct Tree {
    nodes: HashMap<String, Node>,
    bytes: usize,
    weight: usize,
}

impl Tree {
    /// Creates the tree of an unused server.
    pub(crate) fn new() -> Self {
        let mut tree = Self { nodes: HashMap::new(), bytes: 0, weight: 0 };
        for path in SYSTEM {
            let acl = if path == "/zookeeper/config" { acl::read_only() } else { acl::open() };
            tree.add(path, Node::new(Some(Bytes::new()), acl, Lifetime::Persistent, 0, 0));
        }
        if let Some(config) = tree.get_mut("/zookeeper/config") {
            config.aversion = -1;
        }
        tree
    }

    /// Removes all nodes, including those that every server has.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        (self.bytes, self.weight) = (0, 0);
    }

    /// Returns the node at `path`. The empty path also means the root, because cutting a top-level path at
    /// its last slash leaves the empty path for its parent.
    pub(crate) fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(root_alias(path))
    }

    pub(crate) fn get_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(root_alias(path))
    }

    /// Adds a node, and adds its name to its parent.
    pub(crate) fn add(&mut self, path: &str, node: Node) {
        if let Some(parent) = self.parent_mut(path) {
            parent.children.insert(name(path).to_owned());
        }
        let data = size(node.data.as_ref());
        self.bytes += path.len() + data;
        self.weight += weight(path, data, &node.acl);
        self.nodes.insert(path.to_owned(), node);
    }

    /// Removes a node, and removes its name from its parent.
    pub(crate) fn remove(&mut self, path: &str) -> Option<Node> {
        let node = self.nodes.remove(path)?;
        let data = size(node.data.as_ref());
        self.bytes -= path.len() + data;
        self.weight -= weight(path, data, &node.acl);
        if let Some(parent) = self.parent_mut(path) {
            parent.children.remove(name(path));
        }
        Some(node)
    }

    /// Replaces a node's data.
    pub(crate) fn replace_data(&mut self, path: &str, data: Option<Bytes>) {
        let added = size(data.as_ref());
        let Some(node) = self.nodes.get_mut(root_alias(path)) else { return };
        let removed = size(node.data.as_ref());
        node.data = data;
        self.bytes = self.bytes + added - removed;
        self.weight = self.weight + added - removed;
    }

    /// Replaces a node's access control list.
    pub(crate) fn replace_acl(&mut self, path: &str, list: Arc<[Acl]>) {
        let Some(node) = self.nodes.get_mut(root_alias(path)) else { return };
        let (added, removed) = (acl::weight(&list), acl::weight(&node.acl));
        node.acl = list;
        self.weight = self.weight + added - removed;
    }

    pub(crate) fn parent_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(parent(path)?)
    }

    /// Iterates over all nodes, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Returns the number of nodes below a node, and the number of nodes visited to count them. As in
    /// ZooKeeper, `"/"` counts all nodes except the root, and the empty path also counts the root.
    pub(crate) fn count_below(&self, path: &str) -> (i32, usize) {
        let all = self.len();
        let (count, visits) = match path {
            "" => (all, 0),
            "/" => (all - 1, 0),
            // Finding a node by its path takes longer than visiting the next node in the table.
            _ => match self.walk(path, all / 8) {
                Some(count) => (count, 8 * count),
                None => (self.nodes.keys().filter(|node| is_below(node, path)).count(), 2 * all),
            },
        };
        (i32::try_from(count).unwrap_or(i32::MAX), visits)
    }

    /// Returns the number of nodes below a node; `None` if there are more than `most`.
    fn walk(&self, path: &str, most: usize) -> Option<usize> {
        let (mut path, mut count) = (path.to_owned(), 0);
        let mut levels = vec![(path.len(), self.get(&path)?.children.iter())];
        while let Some((length, names)) = levels.last_mut() {
            path.truncate(*length);
            let Some(name) = names.next() else {
                levels.pop();
                continue;
            };
            count += 1;
            if count > most {
                return None;
            }
            path.push('/');
            path.push_str(name);
            let node = self.nodes.get(&path).filter(|node| !node.children.is_empty());
            levels.extend(node.map(|node| (path.len(), node.children.iter())));
        }
        Some(count)
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the bytes of all paths and data.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes that the nodes take up, as the limit counts them.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

/// Returns the bytes that a node takes up. The path of a node that a client created is stored in three
/// places: the tree, the parent, and the index of what ends the node's life.
pub(crate) fn weight(path: &str, data: usize, list: &[Acl]) -> usize {
    let places = if SYSTEM.contains(&path) { 0 } else { 3 };
    places * path.len() + data + acl::weight(list)
}

/// Copies the data out of the received bytes, which would otherwise stay in memory as long as the node.
pub(crate) fn owned(data: Option<&Bytes>) -> Option<Bytes> {
    data.map(|data| Bytes::copy_from_slice(data))
}

pub(crate) fn size(data: Option<&Bytes>) -> usize {
    data.map_or(0, Bytes::len)
}

/// Returns whether `node` is the path of a node below `path`, which must not be the root.
fn is_below(node: &str, path: &str) -> bool {
    node.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

fn root_alias(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
