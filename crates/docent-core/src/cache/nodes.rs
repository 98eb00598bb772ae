//! What a cache knows about its nodes, and the reads that are due. Pure: no I/O and no clock.

use super::folder::Folder;
use super::keys::Keys;
use super::reads::{ARMED_TOGETHER, FEW, Queues, Read, ReadKind, Slot, Stage};
use std::collections::HashMap;
use std::sync::Arc;

/// Version of a node: the transactions that created it and that last changed it. A re-created node has the
/// version numbers of its predecessor, so these numbers prove nothing.
pub(super) type Version = (i64, i64);

/// The known nodes of a cache, and the queues of reads.
///
/// Answers must be reported in the order in which their requests were sent, so that the last one is the
/// newest.
#[derive(Debug)]
pub(super) struct Nodes {
    keys: Keys,
    max_depth: usize,
    nodes: HashMap<Arc<str>, Entry>,
    queues: Queues,
    /// Number of reads that the sync still waits for.
    due: usize,
    /// Transaction that the answers being processed are as of; 0 if unknown.
    as_of: i64,
    /// Set while a persistent watch reports changes of every node, so that no node needs a separate watch.
    persistent: bool,
}

#[derive(Debug, Default)]
pub(super) struct Entry {
    depth: usize,
    data: Slot,
    names: Slot,
    known: Option<Version>,
    /// Transaction that the known data is as of.
    as_of: i64,
    /// False for an ephemeral node, which has no children.
    is_folder: bool,
    /// Set when a persistent watch reported the creation of the node, and therefore also reports its
    /// children.
    is_reported: bool,
    /// Set if the creation was reported while the parent was being listed: the listing may be older.
    is_newer: bool,
    /// Number of the last listing of the parent that contained the node.
    listing: u64,
    /// `None` for a node without children, which is the most frequent case.
    folder: Option<Box<Folder>>,
}

impl Entry {
    fn slot(&mut self, kind: ReadKind) -> &mut Slot {
        match kind {
            ReadKind::Data => &mut self.data,
            ReadKind::Names => &mut self.names,
        }
    }

    fn due(&self) -> usize {
        usize::from(self.data.due) + usize::from(self.names.due)
    }

    fn is_in_flight(&self) -> bool {
        [&self.data, &self.names].iter().any(|slot| slot.stage == Stage::InFlight)
    }
}

impl Nodes {
    pub(super) fn new(keys: Keys, max_depth: usize) -> Self {
        let root = (Arc::clone(keys.root()), Entry::default());
        Self {
            keys,
            max_depth,
            nodes: HashMap::from([root]),
            queues: Queues::default(),
            due: 0,
            as_of: 0,
            persistent: false,
        }
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The first read of the cache's own node. A cache of children does not need that node's data.
    pub(super) fn root_read_kind(&self) -> ReadKind {
        if self.keys.are_names() { ReadKind::Names } else { ReadKind::Data }
    }

    /// Number of nodes, including the cache's own node even while it does not exist.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Records whether a persistent watch reports changes of every node from now on. After a change of this
    /// setting, a sync is due.
    pub(super) fn set_persistent(&mut self, persistent: bool) {
        self.persistent = persistent;
    }

    /// Records which transaction the following answers are as of.
    pub(super) fn as_of(&mut self, zxid: i64) {
        self.as_of = zxid;
    }

    /// Returns true for the key of a node as it was requested. Returns false if the node was deleted since,
    /// even if a new node was created in its place: the answer to that request says nothing about the new
    /// node.
    pub(super) fn is_current(&self, key: &Arc<str>) -> bool {
        is_current(&self.nodes, key)
    }

    /// Records that a persistent watch reported the creation of a node. The node is read if its parent is
    /// cached.
    pub(super) fn created(&mut self, key: &str) {
        let is_root = *key == **self.keys.root();
        let (mut depth, mut is_listing) = (0, false);
        if !is_root {
            let parent = self.nodes.get(self.keys.parent(key)).filter(|it| it.depth < self.max_depth);
            let Some(parent) = parent else { return };
            (depth, is_listing) = (parent.depth + 1, parent.names.stage == Stage::InFlight);
        }
        let mut is_due = false;
        let (key, mut node) = match self.nodes.remove_entry(key) {
            None => {
                let key = Arc::from(key);
                self.change_parent(&key, |folder, _| folder.add(Arc::clone(&key)));
                (key, Entry { depth, ..Entry::default() })
            }
            // A read in flight may have found the previous node, or none. Because the key object changes now,
            // the answer to that read is discarded.
            Some((_, mut node)) if node.is_in_flight() => {
                is_due = node.due() > 0;
                self.due -= node.due();
                (node.data, node.names) = (node.data.at_rest(), node.names.at_rest());
                let key = Arc::from(key);
                self.change_parent(&key, |folder, is_current| {
                    folder.removed(is_current);
                    folder.add(Arc::clone(&key));
                });
                (key, node)
            }
            Some((key, node)) => {
                // The next listing may be older and not contain the node.
                self.change_parent(&key, |folder, _| folder.forget_order());
                (key, node)
            }
        };
        (node.is_reported, node.is_newer) = (true, is_listing);
        let kind = if is_root { self.root_read_kind() } else { ReadKind::Data };
        enqueue(&mut self.queues, &mut self.due, &key, &mut node, kind, is_due);
        self.nodes.insert(key, node);
    }

    /// Changes the folder of a node's parent.
    fn change_parent(&mut self, key: &str, change: impl FnOnce(&mut Folder, &dyn Fn(&Arc<str>) -> bool)) {
        if *key == **self.keys.root() {
            return;
        }
        let parent = self.keys.parent(key);
        let Some(node) = self.nodes.get_mut(parent) else { return };
        let mut folder = node.folder.take().unwrap_or_default();
        change(&mut folder, &|child| is_current(&self.nodes, child));
        if let Some(node) = self.nodes.get_mut(parent) {
            node.folder = Some(folder);
        }
    }

    /// Starts a sync: all known nodes are read again. Reads in flight are forgotten.
    pub(super) fn begin_sync(&mut self) {
        self.queues = Queues::default();
        self.due = 0;
        let (root, root_read_kind) = (Arc::clone(self.keys.root()), self.root_read_kind());
        for (key, node) in &mut self.nodes {
            (node.is_reported, node.is_newer) = (false, false);
            (node.data, node.names) = (node.data.at_rest(), node.names.at_rest());
            let has_names = node.known.is_some() && node.is_folder && node.depth < self.max_depth;
            let reads_data = *key != root || root_read_kind == ReadKind::Data;
            if reads_data {
                enqueue(&mut self.queues, &mut self.due, key, node, ReadKind::Data, true);
            }
            if has_names || !reads_data {
                enqueue(&mut self.queues, &mut self.due, key, node, ReadKind::Names, true);
            }
        }
    }

    /// Records that all watches ended.
    pub(super) fn forget_watches(&mut self) {
        for node in self.nodes.values_mut() {
            (node.data.watched, node.names.watched) = (false, false);
        }
    }

    /// Returns true if everything was read since the sync started.
    pub(super) fn is_synced(&self) -> bool {
        self.due == 0
    }

    /// Returns true while the servers refuse a read of the cache's own node.
    pub(super) fn is_root_refused(&self) -> bool {
        self.nodes.get(self.keys.root()).is_some_and(|root| root.data.refused || root.names.refused)
    }

    /// Returns the next read, with the data of at most `max` nodes; if `max` is below two, nodes are read
    /// one by one.
    pub(super) fn next(&mut self, max: usize) -> Option<Read> {
        if let Some(read) = self.next_one(ReadKind::Names, Stage::Queued) {
            return Some(read);
        }
        if self.queues.unread.len() > FEW && max > 1 {
            let next = || self.take(ReadKind::Data, Stage::Queued).map(|(key, _)| key);
            let keys: Vec<_> = std::iter::from_fn(next).take(max).collect();
            if !keys.is_empty() {
                return Some(Read::Several(keys));
            }
        }
        if let Some(read) = self.next_one(ReadKind::Data, Stage::Queued) {
            return Some(read);
        }
        // A sync reads first: a watch alone does not show the state of a node.
        if !self.is_synced() {
            return None;
        }
        self.next_to_arm().or_else(|| self.next_one(ReadKind::Data, Stage::Unwatched))
    }

    fn next_one(&mut self, kind: ReadKind, stage: Stage) -> Option<Read> {
        let (key, watch) = self.take(kind, stage)?;
        Some(Read::One { key, kind, watch })
    }

    /// Takes the next node in this stage, and returns whether it needs a watch.
    fn take(&mut self, kind: ReadKind, stage: Stage) -> Option<(Arc<str>, bool)> {
        let queue = match (kind, stage) {
            (ReadKind::Names, _) => &mut self.queues.unlisted,
            (ReadKind::Data, Stage::Unwatched) => &mut self.queues.unwatched,
            (ReadKind::Data, _) => &mut self.queues.unread,
        };
        while let Some(key) = queue.pop_front() {
            let Some((key, _)) = self.nodes.get_key_value(&key) else { continue };
            let key = Arc::clone(key);
            let slot = self.nodes.get_mut(&key).map(|node| node.slot(kind));
            if let Some(slot) = slot.filter(|slot| slot.stage == stage) {
                slot.stage = Stage::InFlight;
                return Some((key, !slot.watched && !self.persistent));
            }
        }
        // The queue contained all nodes, and is unlikely to grow to that size again.
        queue.shrink_to(FEW);
        None
    }

    /// Returns the next nodes that are known and not watched. Returns `None` if the transaction that the
    /// first of them is as of is unknown.
    fn next_to_arm(&mut self) -> Option<Read> {
        let (mut keys, mut since) = (Vec::new(), i64::MAX);
        while keys.len() < ARMED_TOGETHER
            && let Some(key) = self.queues.unwatched.front()
        {
            match self.nodes.get(key).filter(|node| node.data.stage == Stage::Unwatched) {
                None => drop(self.queues.unwatched.pop_front()),
                Some(node) if node.as_of == 0 => break,
                Some(node) => {
                    since = since.min(node.as_of);
                    keys.extend(self.take(ReadKind::Data, Stage::Unwatched).map(|(key, _)| key));
                }
            }
        }
        (!keys.is_empty()).then_some(Read::Watch { keys, since })
    }

    /// Records that a read left a watch. Returns true if there was none before.
    pub(super) fn watched(&mut self, key: &str, kind: ReadKind) -> bool {
        self.nodes.get_mut(key).is_some_and(|node| !std::mem::replace(&mut node.slot(kind).watched, true))
    }

    /// Records that a watch was set on the data of a known node. Returns true if there was none before.
    pub(super) fn armed(&mut self, key: &Arc<str>) -> bool {
        let is_new = self.watched(key, ReadKind::Data);
        if self.nodes.get(key).is_some_and(|node| node.data.due) {
            // A sync has started since, and waits for a read.
            self.unanswered(key, ReadKind::Data);
        } else {
            self.answered(key, ReadKind::Data);
        }
        is_new
    }

    /// Records that a watch on a node's data could not be set without a read.
    pub(super) fn not_armed(&mut self, key: &Arc<str>) {
        let Some(node) = self.nodes.get_mut(key).filter(|node| node.data.stage == Stage::InFlight) else {
            return;
        };
        node.as_of = 0;
        if node.data.due {
            return self.unanswered(key, ReadKind::Data);
        }
        node.data.stage = Stage::Unwatched;
        self.queues.unwatched.push_back(Arc::clone(key));
    }

    /// Records that a watch fired.
    pub(super) fn fired(&mut self, key: &Arc<str>, kind: ReadKind) {
        if let Some(node) = self.nodes.get_mut(key) {
            node.slot(kind).watched = false;
            self.enqueue(key, kind);
        }
    }

    /// Queues a read. If a read is in flight, queues another one after it.
    pub(super) fn enqueue(&mut self, key: &Arc<str>, kind: ReadKind) {
        if let Some(node) = self.nodes.get_mut(key) {
            enqueue(&mut self.queues, &mut self.due, key, node, kind, false);
        }
    }

    /// Queues a read that the sync waits for.
    pub(super) fn enqueue_for_sync(&mut self, key: &Arc<str>, kind: ReadKind) {
        if let Some(node) = self.nodes.get_mut(key) {
            enqueue(&mut self.queues, &mut self.due, key, node, kind, true);
        }
    }

    /// Records that a read got no answer and must be sent again.
    pub(super) fn unanswered(&mut self, key: &Arc<str>, kind: ReadKind) {
        let slot = self.nodes.get_mut(key).map(|node| node.slot(kind));
        if let Some(slot) = slot.filter(|slot| slot.stage == Stage::InFlight) {
            (slot.stage, slot.read_again) = (Stage::Queued, false);
            self.queues.push(Arc::clone(key), kind);
        }
    }

    /// Records that a read was answered. Returns true if the sync waited for it.
    fn answered(&mut self, key: &Arc<str>, kind: ReadKind) -> bool {
        let persistent = self.persistent;
        let Some(node) = self.nodes.get_mut(key) else { return false };
        let slot = node.slot(kind);
        let was_due = std::mem::take(&mut slot.due);
        self.due -= usize::from(was_due);
        if std::mem::take(&mut slot.read_again) {
            // A change was reported while the read was in flight: the reply may be older than that change.
            slot.stage = Stage::Queued;
            self.queues.push(Arc::clone(key), kind);
        } else if kind == ReadKind::Data && !persistent && !slot.watched && !slot.refused {
            // A read of several nodes leaves no watches.
            slot.stage = Stage::Unwatched;
            self.queues.unwatched.push_back(Arc::clone(key));
        } else {
            slot.stage = Stage::Resting;
        }
        was_due
    }

    /// Records that a node's data was read. Returns true if the result must be reported.
    pub(super) fn read(&mut self, key: &Arc<str>, version: Version, is_folder: bool) -> bool {
        let was_refused = self.nodes.get_mut(key).is_some_and(|node| std::mem::take(&mut node.data.refused));
        let was_due = self.answered(key, ReadKind::Data);
        let as_of = self.as_of;
        let Some(node) = self.nodes.get_mut(key) else { return false };
        let known = node.known.replace(version);
        (node.as_of, node.is_folder) = (as_of, is_folder);
        let is_same_node = known.is_some_and(|(czxid, _)| czxid == version.0);
        if is_folder && node.depth < self.max_depth && !is_same_node && !node.is_reported {
            enqueue(&mut self.queues, &mut self.due, key, node, ReadKind::Names, was_due);
        }
        if known != Some(version) {
            // The node is now reported as readable, so another refusal is reported again. Whether the cache's
            // own node can be listed is known only when a listing succeeds.
            node.names.refused &= key == self.keys.root();
            return true;
        }
        was_refused && !node.names.refused
    }

    /// Records a listing. Returns the nodes that were reported and no longer exist, each after the nodes
    /// below it.
    ///
    /// Servers usually list children in the same order as before. Therefore only names between the first and
    /// the last difference are looked up.
    pub(super) fn listed(&mut self, key: &Arc<str>, mut names: Vec<String>) -> Vec<Arc<str>> {
        let was_due = self.answered(key, ReadKind::Names);
        let is_root_of_names = self.keys.are_names();
        let Some(node) = self.nodes.get_mut(key) else { return Vec::new() };
        if std::mem::take(&mut node.names.refused) && !node.data.refused && !is_root_of_names {
            // Read once more, and then reported as readable.
            node.data.refused = true;
            enqueue(&mut self.queues, &mut self.due, key, node, ReadKind::Data, was_due);
        }
        if names.is_empty() && node.folder.is_none() {
            return Vec::new();
        }
        let depth = node.depth + 1;
        let mut folder = node.folder.take().unwrap_or_default();
        let listing = folder.begin_listing();
        let (changed, changed_names) = folder.changed(&names);
        let mut child = String::new();
        let mut listed = Vec::with_capacity(changed_names.len());
        for name in names.drain(changed_names) {
            self.keys.write_child(&mut child, key, &name);
            listed.push(self.listed_one(&child, depth, listing, was_due));
        }
        let (mut deleted, mut newer) = (Vec::new(), Vec::new());
        for known in folder.replace(changed, listed) {
            if !is_current(&self.nodes, &known) {
                continue;
            }
            match self.nodes.get_mut(&known) {
                Some(node) if node.listing == listing => {}
                // The creation of the node was reported after this listing was made.
                Some(node) if node.is_newer => {
                    node.is_newer = false;
                    newer.push(known);
                }
                _ => self.remove(&known, &mut deleted),
            }
        }
        newer.into_iter().for_each(|newer| folder.add(newer));
        if let Some(node) = self.nodes.get_mut(key) {
            node.folder = Some(folder);
        }
        deleted
    }

    /// Records one name of a listing. New nodes are queued for reading.
    fn listed_one(&mut self, child: &str, depth: usize, listing: u64, due: bool) -> Arc<str> {
        if let Some((key, _)) = self.nodes.get_key_value(child) {
            let key = Arc::clone(key);
            if let Some(node) = self.nodes.get_mut(child) {
                (node.listing, node.is_newer) = (listing, false);
            }
            return key;
        }
        let key: Arc<str> = Arc::from(child);
        let mut node = Entry { depth, listing, ..Entry::default() };
        enqueue(&mut self.queues, &mut self.due, &key, &mut node, ReadKind::Data, due);
        self.nodes.insert(Arc::clone(&key), node);
        key
    }

    /// Records that a read was refused. Returns true if this must be reported.
    pub(super) fn refused(&mut self, key: &Arc<str>, kind: ReadKind) -> bool {
        let Some(node) = self.nodes.get_mut(key) else { return false };
        if kind == ReadKind::Names {
            // While the client may not read the node, a server may use up the watch without an event. The
            // next listing leaves another watch.
            node.names.watched = false;
        }
        let is_new = !std::mem::replace(&mut node.slot(kind).refused, true);
        self.answered(key, kind);
        is_new
    }

    /// Records that there is no node at `key`. Returns the nodes that were reported and no longer exist, each
    /// after the nodes below it. The cache's own node stays in the map, because the cache waits for its
    /// creation.
    pub(super) fn deleted(&mut self, key: &Arc<str>, kind: ReadKind) -> Vec<Arc<str>> {
        let is_root = key == self.keys.root();
        let was_created = is_root && self.nodes.get_mut(key).is_some_and(|node| node.slot(kind).read_again);
        self.answered(key, kind);
        let mut deleted = Vec::new();
        self.remove(key, &mut deleted);
        if is_root {
            let root: Arc<str> = Arc::from(&**key);
            self.nodes.insert(root, Entry::default());
            if was_created {
                // An event that came before this answer may have reported the creation.
                self.enqueue(key, kind);
            }
        } else {
            // The next listing may contain the child again, at its old position.
            self.change_parent(key, |folder, is_current| folder.removed(is_current));
        }
        deleted
    }

    fn remove(&mut self, key: &Arc<str>, deleted: &mut Vec<Arc<str>>) {
        let Some(mut node) = self.nodes.remove(key) else { return };
        self.due -= node.due();
        for child in node.folder.take().into_iter().flat_map(|folder| folder.into_children()) {
            if is_current(&self.nodes, &child) {
                self.remove(&child, deleted);
            }
        }
        if node.known.is_some() || node.data.refused {
            deleted.push(Arc::clone(key));
        }
    }
}

fn is_current(nodes: &HashMap<Arc<str>, Entry>, key: &Arc<str>) -> bool {
    nodes.get_key_value(key).is_some_and(|(known, _)| Arc::ptr_eq(known, key))
}

fn enqueue(
    queues: &mut Queues,
    all_due: &mut usize,
    key: &Arc<str>,
    node: &mut Entry,
    kind: ReadKind,
    due: bool,
) {
    let slot = node.slot(kind);
    match slot.stage {
        Stage::Queued => {}
        Stage::InFlight => slot.read_again = true,
        Stage::Resting | Stage::Unwatched => {
            slot.stage = Stage::Queued;
            queues.push(Arc::clone(key), kind);
        }
    }
    if due && !std::mem::replace(&mut slot.due, true) {
        *all_due += 1;
    }
}

#[cfg(test)]
mod tests;
