//! What a cache knows of its nodes, and the reads that are due. Pure: no I/O and no clock.

use super::folder::Folder;
use super::keys::Keys;
use super::reads::{ARMED_TOGETHER, FEW, Look, Queues, Read, Slot, Stage};
use std::collections::HashMap;
use std::sync::Arc;

/// Version of a node: the transactions that created it and that changed it last. A node that was created
/// again has the version numbers of its predecessor, so those prove nothing.
pub(super) type Version = (i64, i64);

/// The known nodes of a cache, and the queues of reads.
///
/// Answers must be reported in the order in which their requests were sent: then the last one is the newest.
#[derive(Debug)]
pub(super) struct Nodes {
    keys: Keys,
    max_depth: usize,
    nodes: HashMap<Arc<str>, Entry>,
    queues: Queues,
    /// Number of reads that the sync still waits for.
    due: usize,
    /// Transaction that the answers which are taken now are as of; 0 if it is not known.
    as_of: i64,
    /// Set while a persistent watch reports changes of every node, so that none needs watches of its own.
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
    /// Set when a persistent watch reported the creation of the node, so that it reports its children, too.
    is_reported: bool,
    /// Set when that was while its parent was being listed: the listing may be older.
    is_newer: bool,
    /// Number of the last listing of its parent that named it.
    listing: u64,
    /// `None` for a node without children, as most are.
    folder: Option<Box<Folder>>,
}

impl Entry {
    fn slot(&mut self, look: Look) -> &mut Slot {
        match look {
            Look::Data => &mut self.data,
            Look::Names => &mut self.names,
        }
    }

    fn due(&self) -> usize {
        usize::from(self.data.due) + usize::from(self.names.due)
    }

    fn is_asked(&self) -> bool {
        [&self.data, &self.names].iter().any(|slot| slot.stage == Stage::Asked)
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

    /// The first read of the cache's own node. A cache of children does not need its data.
    pub(super) fn root_look(&self) -> Look {
        if self.keys.are_names() { Look::Names } else { Look::Data }
    }

    /// Number of nodes, with the cache's own one, which is among them also while it does not exist.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Records whether a persistent watch reports changes of every node from now on. A sync is due after a
    /// change.
    pub(super) fn set_persistent(&mut self, persistent: bool) {
        self.persistent = persistent;
    }

    /// Records which transaction the answers that follow are as of.
    pub(super) fn as_of(&mut self, zxid: i64) {
        self.as_of = zxid;
    }

    /// True for the key of a node as it was asked for. False if the node was deleted since, even if another
    /// one was created in its place: the answer to that request says nothing about it.
    pub(super) fn is_current(&self, key: &Arc<str>) -> bool {
        is_current(&self.nodes, key)
    }

    /// Records that a persistent watch reported the creation of a node. It is read if its parent is kept.
    pub(super) fn created(&mut self, key: &str) {
        let is_root = *key == **self.keys.root();
        let (mut depth, mut is_listing) = (0, false);
        if !is_root {
            let parent = self.nodes.get(self.keys.parent(key)).filter(|it| it.depth < self.max_depth);
            let Some(parent) = parent else { return };
            (depth, is_listing) = (parent.depth + 1, parent.names.stage == Stage::Asked);
        }
        let mut is_due = false;
        let (key, mut node) = match self.nodes.remove_entry(key) {
            None => {
                let key = Arc::from(key);
                self.change_parent(&key, |folder, _| folder.add(Arc::clone(&key)));
                (key, Entry { depth, ..Entry::default() })
            }
            // A read under way may have found the node before this one, or none. Because the key is another
            // one from now on, its answer is not taken.
            Some((_, mut node)) if node.is_asked() => {
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
                // The next listing may be older, and have no place for it.
                self.change_parent(&key, |folder, _| folder.forget_order());
                (key, node)
            }
        };
        (node.is_reported, node.is_newer) = (true, is_listing);
        let look = if is_root { self.root_look() } else { Look::Data };
        want(&mut self.queues, &mut self.due, &key, &mut node, look, is_due);
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

    /// Begins a sync: all known nodes are read again. Reads under way are forgotten.
    pub(super) fn begin_sync(&mut self) {
        self.queues = Queues::default();
        self.due = 0;
        let (root, root_look) = (Arc::clone(self.keys.root()), self.root_look());
        for (key, node) in &mut self.nodes {
            (node.is_reported, node.is_newer) = (false, false);
            (node.data, node.names) = (node.data.at_rest(), node.names.at_rest());
            let has_names = node.known.is_some() && node.is_folder && node.depth < self.max_depth;
            let reads_data = *key != root || root_look == Look::Data;
            if reads_data {
                want(&mut self.queues, &mut self.due, key, node, Look::Data, true);
            }
            if has_names || !reads_data {
                want(&mut self.queues, &mut self.due, key, node, Look::Names, true);
            }
        }
    }

    /// Records that all watches ended.
    pub(super) fn forget_watches(&mut self) {
        for node in self.nodes.values_mut() {
            (node.data.watched, node.names.watched) = (false, false);
        }
    }

    /// True once everything was read since the sync began.
    pub(super) fn is_synced(&self) -> bool {
        self.due == 0
    }

    /// True while the servers refuse a read of the cache's own node.
    pub(super) fn is_root_refused(&self) -> bool {
        self.nodes.get(self.keys.root()).is_some_and(|root| root.data.refused || root.names.refused)
    }

    /// The next read, with the data of at most `most` nodes; below two they are read one by one.
    pub(super) fn next(&mut self, most: usize) -> Option<Read> {
        if let Some(read) = self.next_one(Look::Names, Stage::Queued) {
            return Some(read);
        }
        if self.queues.unread.len() > FEW && most > 1 {
            let next = || self.take(Look::Data, Stage::Queued).map(|(key, _)| key);
            let keys: Vec<_> = std::iter::from_fn(next).take(most).collect();
            if !keys.is_empty() {
                return Some(Read::Several(keys));
            }
        }
        if let Some(read) = self.next_one(Look::Data, Stage::Queued) {
            return Some(read);
        }
        // A sync reads first: a watch alone does not show what a node is.
        if !self.is_synced() {
            return None;
        }
        self.next_to_arm().or_else(|| self.next_one(Look::Data, Stage::Unwatched))
    }

    fn next_one(&mut self, look: Look, stage: Stage) -> Option<Read> {
        let (key, watch) = self.take(look, stage)?;
        Some(Read::One { key, look, watch })
    }

    /// Takes the next node in this stage, and returns whether it needs a watch.
    fn take(&mut self, look: Look, stage: Stage) -> Option<(Arc<str>, bool)> {
        let queue = match (look, stage) {
            (Look::Names, _) => &mut self.queues.unlisted,
            (Look::Data, Stage::Unwatched) => &mut self.queues.unwatched,
            (Look::Data, _) => &mut self.queues.unread,
        };
        while let Some(key) = queue.pop_front() {
            let Some((key, _)) = self.nodes.get_key_value(&key) else { continue };
            let key = Arc::clone(key);
            let slot = self.nodes.get_mut(&key).map(|node| node.slot(look));
            if let Some(slot) = slot.filter(|slot| slot.stage == stage) {
                slot.stage = Stage::Asked;
                return Some((key, !slot.watched && !self.persistent));
            }
        }
        // All nodes were in it, and will hardly be again.
        queue.shrink_to(FEW);
        None
    }

    /// The next nodes that are known and not watched. `None` if the transaction that the first one is as of
    /// is not known.
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
                    keys.extend(self.take(Look::Data, Stage::Unwatched).map(|(key, _)| key));
                }
            }
        }
        (!keys.is_empty()).then_some(Read::Watch { keys, since })
    }

    /// Records that a read left a watch. True if there was none.
    pub(super) fn watched(&mut self, key: &str, look: Look) -> bool {
        self.nodes.get_mut(key).is_some_and(|node| !std::mem::replace(&mut node.slot(look).watched, true))
    }

    /// Records that a node which is known has got a watch on its data. True if it had none.
    pub(super) fn armed(&mut self, key: &Arc<str>) -> bool {
        let is_news = self.watched(key, Look::Data);
        if self.nodes.get(key).is_some_and(|node| node.data.due) {
            // A sync began since, which waits for a read.
            self.unanswered(key, Look::Data);
        } else {
            self.answered(key, Look::Data);
        }
        is_news
    }

    /// Records that a watch on a node's data could not be set without a read.
    pub(super) fn not_armed(&mut self, key: &Arc<str>) {
        let Some(node) = self.nodes.get_mut(key).filter(|node| node.data.stage == Stage::Asked) else {
            return;
        };
        node.as_of = 0;
        if node.data.due {
            return self.unanswered(key, Look::Data);
        }
        node.data.stage = Stage::Unwatched;
        self.queues.unwatched.push_back(Arc::clone(key));
    }

    /// Records that a watch fired.
    pub(super) fn fired(&mut self, key: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(key) {
            node.slot(look).watched = false;
            self.want(key, look);
        }
    }

    /// Queues a read, once more if it is under way.
    pub(super) fn want(&mut self, key: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(key) {
            want(&mut self.queues, &mut self.due, key, node, look, false);
        }
    }

    /// Queues a read that the sync waits for.
    pub(super) fn want_for_sync(&mut self, key: &Arc<str>, look: Look) {
        if let Some(node) = self.nodes.get_mut(key) {
            want(&mut self.queues, &mut self.due, key, node, look, true);
        }
    }

    /// Records that a read got no answer: it is sent again.
    pub(super) fn unanswered(&mut self, key: &Arc<str>, look: Look) {
        let slot = self.nodes.get_mut(key).map(|node| node.slot(look));
        if let Some(slot) = slot.filter(|slot| slot.stage == Stage::Asked) {
            (slot.stage, slot.again) = (Stage::Queued, false);
            self.queues.push(Arc::clone(key), look);
        }
    }

    /// Records that a read was answered. True if the sync waited for it.
    fn answered(&mut self, key: &Arc<str>, look: Look) -> bool {
        let persistent = self.persistent;
        let Some(node) = self.nodes.get_mut(key) else { return false };
        let slot = node.slot(look);
        let was_due = std::mem::take(&mut slot.due);
        self.due -= usize::from(was_due);
        if std::mem::take(&mut slot.again) {
            // A change was reported while the read was under way: the reply may be older than that change.
            slot.stage = Stage::Queued;
            self.queues.push(Arc::clone(key), look);
        } else if look == Look::Data && !persistent && !slot.watched && !slot.refused {
            // A read of several nodes leaves no watches.
            slot.stage = Stage::Unwatched;
            self.queues.unwatched.push_back(Arc::clone(key));
        } else {
            slot.stage = Stage::Resting;
        }
        was_due
    }

    /// Records that a node's data was read. True if that is news.
    pub(super) fn read(&mut self, key: &Arc<str>, version: Version, is_folder: bool) -> bool {
        let was_refused = self.nodes.get_mut(key).is_some_and(|node| std::mem::take(&mut node.data.refused));
        let was_due = self.answered(key, Look::Data);
        let as_of = self.as_of;
        let Some(node) = self.nodes.get_mut(key) else { return false };
        let known = node.known.replace(version);
        (node.as_of, node.is_folder) = (as_of, is_folder);
        let is_same_node = known.is_some_and(|(czxid, _)| czxid == version.0);
        if is_folder && node.depth < self.max_depth && !is_same_node && !node.is_reported {
            want(&mut self.queues, &mut self.due, key, node, Look::Names, was_due);
        }
        if known != Some(version) {
            // Reported as readable now: another refusal is news again. Whether the cache's own node can be
            // listed shows only when that succeeds.
            node.names.refused &= key == self.keys.root();
            return true;
        }
        was_refused && !node.names.refused
    }

    /// Records a listing. Returns the nodes that were reported and no longer exist, each after those below
    /// it.
    ///
    /// Servers list children in the same order as before, mostly: only names between the first and the last
    /// one that is not in its place are looked up.
    pub(super) fn listed(&mut self, key: &Arc<str>, mut names: Vec<String>) -> Vec<Arc<str>> {
        let was_due = self.answered(key, Look::Names);
        let is_root_of_names = self.keys.are_names();
        let Some(node) = self.nodes.get_mut(key) else { return Vec::new() };
        if std::mem::take(&mut node.names.refused) && !node.data.refused && !is_root_of_names {
            // Read once more, and reported as readable.
            node.data.refused = true;
            want(&mut self.queues, &mut self.due, key, node, Look::Data, was_due);
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
        let (mut gone, mut newer) = (Vec::new(), Vec::new());
        for known in folder.replace(changed, listed) {
            if !is_current(&self.nodes, &known) {
                continue;
            }
            match self.nodes.get_mut(&known) {
                Some(node) if node.listing == listing => {}
                // Its creation was reported after this listing was made.
                Some(node) if node.is_newer => {
                    node.is_newer = false;
                    newer.push(known);
                }
                _ => self.remove(&known, &mut gone),
            }
        }
        newer.into_iter().for_each(|newer| folder.add(newer));
        if let Some(node) = self.nodes.get_mut(key) {
            node.folder = Some(folder);
        }
        gone
    }

    /// Records one name of a listing. New nodes are read.
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
        want(&mut self.queues, &mut self.due, &key, &mut node, Look::Data, due);
        self.nodes.insert(Arc::clone(&key), node);
        key
    }

    /// Records that a read was refused. True if that is news.
    pub(super) fn refused(&mut self, key: &Arc<str>, look: Look) -> bool {
        let Some(node) = self.nodes.get_mut(key) else { return false };
        if look == Look::Names {
            // A server may use the watch up without an event while the client may not read the node: the next
            // listing leaves another one.
            node.names.watched = false;
        }
        let is_news = !std::mem::replace(&mut node.slot(look).refused, true);
        self.answered(key, look);
        is_news
    }

    /// Records that there is no node at `key`. Returns the nodes that were reported and no longer exist, each
    /// after those below it. The cache's own node stays, to be waited for.
    pub(super) fn gone(&mut self, key: &Arc<str>, look: Look) -> Vec<Arc<str>> {
        let is_root = key == self.keys.root();
        let was_created = is_root && self.nodes.get_mut(key).is_some_and(|node| node.slot(look).again);
        self.answered(key, look);
        let mut gone = Vec::new();
        self.remove(key, &mut gone);
        if is_root {
            let root: Arc<str> = Arc::from(&**key);
            self.nodes.insert(root, Entry::default());
            if was_created {
                // An event that came before this answer may report its creation.
                self.want(key, look);
            }
        } else {
            // The next listing may have it again, in its old place.
            self.change_parent(key, |folder, is_current| folder.removed(is_current));
        }
        gone
    }

    fn remove(&mut self, key: &Arc<str>, gone: &mut Vec<Arc<str>>) {
        let Some(mut node) = self.nodes.remove(key) else { return };
        self.due -= node.due();
        for child in node.folder.take().into_iter().flat_map(|folder| folder.into_children()) {
            if is_current(&self.nodes, &child) {
                self.remove(&child, gone);
            }
        }
        if node.known.is_some() || node.data.refused {
            gone.push(Arc::clone(key));
        }
    }
}

fn is_current(nodes: &HashMap<Arc<str>, Entry>, key: &Arc<str>) -> bool {
    nodes.get_key_value(key).is_some_and(|(known, _)| Arc::ptr_eq(known, key))
}

fn want(queues: &mut Queues, all_due: &mut usize, key: &Arc<str>, node: &mut Entry, look: Look, due: bool) {
    let slot = node.slot(look);
    match slot.stage {
        Stage::Queued => {}
        Stage::Asked => slot.again = true,
        Stage::Resting | Stage::Unwatched => {
            slot.stage = Stage::Queued;
            queues.push(Arc::clone(key), look);
        }
    }
    if due && !std::mem::replace(&mut slot.due, true) {
        *all_due += 1;
    }
}

#[cfg(test)]
mod tests;
