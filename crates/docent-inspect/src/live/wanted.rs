use super::watch::Watch;
use crate::inspect::Inspection;
use crate::nodes::{Known, Nodes, Read};
use std::collections::HashSet;

/// Watch that reports when the answer to a read changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    pub(super) watch: Watch,
    pub(super) read: Read,
}

/// Returns the watches for everything that was inspected, without duplicates, in the order of the reads.
pub(super) fn wanted<T>(inspection: &Inspection<T>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    for (path, reads) in &inspection.reads {
        for read in reads {
            if let Some(watch) = watch(&inspection.nodes, read) {
                wanted.push(Wanted { watch, read: read.clone() });
            }
            // The stat of the path itself is part of the report, and was read together with its children.
            if let (Read::Children(children), Some(Known::Present(_))) = (read, inspection.nodes.folder(path))
                && children == path
            {
                wanted.push(Wanted { watch: Watch::Node(path.clone()), read: read.clone() });
            }
        }
    }
    let mut seen = HashSet::new();
    wanted.retain(|one| seen.insert(one.clone()));
    wanted
}

/// Returns the watch for a read, or `None` for an omitted read.
fn watch(nodes: &Nodes, read: &Read) -> Option<Watch> {
    match read {
        Read::Data(path) => match nodes.data(path)? {
            Known::Present(_) | Known::Absent => Some(Watch::Node(path.clone())),
            Known::Refused => Some(Watch::Data(path.clone())),
            Known::LeftOut => None,
        },
        Read::Children(path) => match nodes.folder(path)? {
            Known::LeftOut => None,
            _ => Some(Watch::Children(path.clone())),
        },
    }
}
