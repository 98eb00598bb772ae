use crate::nodes::{Known, Nodes, Read};
use docent_core::{Client, Error, ErrorKind, Stat};
use futures_util::stream::{BoxStream, StreamExt};

/// One-shot watch that is re-armed after each change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Watch {
    /// Watches a node and its data; only the stat is read.
    Node(String),
    /// Watches a node that may not be read, to learn when it may.
    Data(String),
    /// Watches the names of a node's children.
    Children(String),
}

/// State reported by a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Absent,
    Refused,
    /// An error that says nothing about the node.
    Unclear,
    /// Transactions that created the node, and that changed its data or the names of its children.
    At(i64, i64),
}

impl Watch {
    /// Sets the watch.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule.
    pub(super) fn open(&self, client: &Client) -> Result<BoxStream<'static, Seen>, Error> {
        Ok(match self {
            Self::Node(path) => client.watch_exists(path)?.map(|stat| seen(stat, data_of)).boxed(),
            Self::Data(path) => {
                client.watch_data(path)?.map(|node| seen(node, |node| data_of(&node.stat))).boxed()
            }
            Self::Children(path) => {
                client.watch_children(path)?.map(|it| seen(it, |it| children_of(&it.stat))).boxed()
            }
        })
    }

    /// Returns true if the reported state matches the answer to a read.
    pub(super) fn agrees(&self, seen: Seen, nodes: &Nodes, read: &Read) -> bool {
        let of = match (self, read) {
            (Self::Children(_), Read::Children(_)) => children_of,
            _ => data_of,
        };
        let known = nodes.known(read).map(|known| match known {
            Known::Present(stat) => of(&stat),
            Known::Absent => Seen::Absent,
            Known::Refused => Seen::Refused,
            Known::LeftOut => Seen::Unclear,
        });
        known == Some(seen)
    }
}

fn data_of(stat: &Stat) -> Seen {
    Seen::At(stat.czxid, stat.mzxid)
}

fn children_of(stat: &Stat) -> Seen {
    Seen::At(stat.czxid, stat.pzxid)
}

fn seen<T>(item: Result<Option<T>, Error>, of: fn(&T) -> Seen) -> Seen {
    match item {
        Ok(Some(node)) => of(&node),
        Ok(None) => Seen::Absent,
        Err(error) if error.kind() == ErrorKind::NoAuth => Seen::Refused,
        Err(_) => Seen::Unclear,
    }
}
