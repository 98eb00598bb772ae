use super::acl;
use super::node::{Lifetime, Node};
use bytes::Bytes;
use docent_proto::{Acl, parent};
use std::collections::HashMap;
use std::sync::Arc;

/// Nodes that no client can delete.
pub(crate) const SYSTEM: [&str; 4] = ["/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"];

/// The nodes by their path.
#[derive(Clone)]
pub(crate) struct Tree {
    nodes: HashMap<String, Node>,
    bytes: usize,
    weight: usize,
}

impl Tree {
    /// The tree of a server that was never used.
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

    /// Takes all nodes away, those of a server that was never used too.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        (self.bytes, self.weight) = (0, 0);
    }

    /// The node at `path`. The empty path is the root too: that is what the parent of a node at the top looks
    /// like when a path is cut at its last slash.
    pub(crate) fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(root_alias(path))
    }

    pub(crate) fn get_mut(&mut self, path: &str) -> Option<&mut Node> {
        self.nodes.get_mut(root_alias(path))
    }

    /// Adds a node and enters it at its parent.
    pub(crate) fn add(&mut self, path: &str, node: Node) {
        if let Some(parent) = self.parent_mut(path) {
            parent.children.insert(name(path).to_owned());
        }
        let data = size(node.data.as_ref());
        self.bytes += path.len() + data;
        self.weight += weight(path, data, &node.acl);
        self.nodes.insert(path.to_owned(), node);
    }

    /// Takes a node away and strikes it off at its parent.
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

    /// All paths, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.nodes.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Number of the nodes below a node, and how many were looked at for that. For the root, ZooKeeper counts
    /// all but the root; for the empty path, which is the root too, the root as well.
    pub(crate) fn count_below(&self, path: &str) -> (i32, usize) {
        let all = self.len();
        let (count, looks) = match path {
            "" => (all, 0),
            "/" => (all - 1, 0),
            // To find a node by its path takes longer than to look at the next one.
            _ => match self.walk(path, all / 8) {
                Some(count) => (count, 8 * count),
                None => (self.nodes.keys().filter(|node| is_below(node, path)).count(), 2 * all),
            },
        };
        (i32::try_from(count).unwrap_or(i32::MAX), looks)
    }

    /// Number of the nodes below a node; `None` when there are more than `most`.
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

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of all paths and data.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that the nodes take up, as their limit counts them.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

/// Bytes that a node takes up. The path of one that a client made is kept in the tree, at its parent,
/// and with what ends its life.
pub(crate) fn weight(path: &str, data: usize, list: &[Acl]) -> usize {
    let places = if SYSTEM.contains(&path) { 0 } else { 3 };
    places * path.len() + data + acl::weight(list)
}

/// Copies data out of the received bytes it is a part of, which would otherwise live as long as the node.
pub(crate) fn owned(data: Option<&Bytes>) -> Option<Bytes> {
    data.map(|data| Bytes::copy_from_slice(data))
}

pub(crate) fn size(data: Option<&Bytes>) -> usize {
    data.map_or(0, Bytes::len)
}

/// True for the path of a node below the one at `path`, which is not the root.
fn is_below(node: &str, path: &str) -> bool {
    node.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

fn root_alias(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
