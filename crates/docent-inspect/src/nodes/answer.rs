use super::{Data, Folder, Known, Nodes, Read};
use std::collections::{HashMap, HashSet};

/// Answer to a read.
#[derive(Debug)]
pub(crate) enum Answer {
    Data(Known<Data>),
    Folder(Known<Folder>),
}

/// Answers of an earlier inspection that still hold, because a watch would have reported a change.
#[derive(Debug, Default)]
pub(crate) struct Earlier(HashMap<Read, Answer>);

impl Earlier {
    /// Keeps the answers to these reads.
    pub(crate) fn of(nodes: Nodes, reads: &HashSet<Read>) -> Self {
        Self(nodes.into_answers().filter(|(read, _)| reads.contains(read)).collect())
    }

    pub(crate) fn get(&self, read: &Read) -> Option<&Answer> {
        self.0.get(read)
    }

    pub(crate) fn take(&mut self, read: &Read) -> Option<Answer> {
        self.0.remove(read)
    }
}
