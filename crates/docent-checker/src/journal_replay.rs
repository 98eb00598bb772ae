//! Replays the server's journal into the lifetimes of nodes and sessions, and the order of each line.
//!
//! Modelled: the session that owned a node, what removed the node, the cause of a session's end, and the
//! first contender of a line after each transaction. Not modelled: data, access control lists, watches, and
//! failed or check-only writes.

use crate::contender::{Contender, is_id};
use crate::journal::{Change, ChangeKind, EndCause};
use crate::line::Line;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Marker before the number in the names of a queue's idle consumers.
pub(crate) const IDLE: &str = "idle-";

/// Prefix of the names of a queue's items and claims.
pub(crate) const ITEM: &str = "item-";

/// A transaction, with its number and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) zxid: i64,
    pub(crate) at: Duration,
}

/// A node from its creation to its deletion.
#[derive(Debug)]
pub(crate) struct NodeLife {
    pub(crate) path: String,
    pub(crate) owner: i64,
    pub(crate) created: Moment,
    pub(crate) deleted: Option<Deletion>,
    /// The contender that the node's name describes, if the node belongs to a line.
    pub(crate) contender: Option<Contender>,
    /// Moment at which the node became first in its line for the first time.
    pub(crate) first: Option<Moment>,
}

/// The deletion of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deletion {
    pub(crate) when: Moment,
    pub(crate) by: Remover,
}

/// What deleted a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remover {
    /// The client of a session.
    Session(i64),
    /// The end of the session that owned the node.
    EndOf(i64),
    /// The server, which deletes empty containers.
    Server,
}

/// A session from its opening to its end.
#[derive(Debug)]
pub(crate) struct SessionLife {
    pub(crate) opened: Moment,
    pub(crate) ended: Option<(Moment, EndCause)>,
}

/// A replayed journal.
#[derive(Debug, Default)]
pub(crate) struct JournalReplay {
    nodes: Vec<NodeLife>,
    by_path: HashMap<String, Vec<usize>>,
    sessions: BTreeMap<i64, SessionLife>,
    lines: BTreeMap<(String, String), Line>,
    /// The contenders of each folder.
    folders: HashMap<String, Vec<usize>>,
    /// Folders whose nodes do not belong to recorded attempts.
    apart: BTreeSet<String>,
}

impl NodeLife {
    /// The path of the node's line, or of any other folder.
    pub(crate) fn folder(&self) -> &str {
        docent_proto::parent(&self.path).unwrap_or("/")
    }

    /// Returns true for the node of a double barrier's member, whose name is a bare id.
    pub(crate) fn is_members(&self) -> bool {
        self.owner != 0 && is_id(self.path.rsplit('/').next().unwrap_or_default())
    }

    pub(crate) fn is_alive_at(&self, at: Duration) -> bool {
        self.created.at <= at && self.deleted.is_none_or(|deleted| deleted.when.at > at)
    }
}

impl JournalReplay {
    /// Replays a journal.
    #[cfg(test)]
    pub(crate) fn of(journal: &[Change]) -> Self {
        Self::apart_from(journal, BTreeSet::new())
    }

    /// Replays a journal. Nodes in these folders do not belong to lines.
    pub(crate) fn apart_from(journal: &[Change], folders: BTreeSet<String>) -> Self {
        let mut replay = Self { apart: folders, ..Self::default() };
        for transaction in journal.chunk_by(|one, other| one.zxid == other.zxid) {
            replay.apply(transaction);
        }
        replay
    }

    /// Applies all changes of one transaction atomically.
    fn apply(&mut self, transaction: &[Change]) {
        let mut touched = BTreeSet::new();
        let mut ended = None;
        let mut now = Moment { zxid: 0, at: Duration::ZERO };
        for change in transaction {
            now = Moment { zxid: change.zxid, at: change.at };
            match change.kind {
                ChangeKind::Opened => {
                    self.sessions.insert(change.session, SessionLife { opened: now, ended: None });
                }
                ChangeKind::Ended(cause) => {
                    ended = Some(change.session);
                    if let Some(session) = self.sessions.get_mut(&change.session) {
                        session.ended = Some((now, cause));
                    }
                }
                ChangeKind::Created => touched.extend(self.create(change, now)),
                ChangeKind::Deleted => {
                    let by = match (ended, change.session) {
                        (Some(session), _) => Remover::EndOf(session),
                        (None, 0) => Remover::Server,
                        (None, session) => Remover::Session(session),
                    };
                    touched.extend(self.delete(&change.path, Deletion { when: now, by }));
                }
                ChangeKind::Set | ChangeKind::AclSet => {}
            }
        }
        for key in touched {
            let first = self.lines.get_mut(&key).and_then(Line::turn);
            if let Some(node) = first {
                self.nodes[node].first.get_or_insert(now);
            }
        }
    }

    fn create(&mut self, change: &Change, created: Moment) -> Option<(String, String)> {
        let index = self.nodes.len();
        // Only ephemeral nodes are places in a line.
        let name = change.path.rsplit('/').next().unwrap_or_default();
        let contender = (change.owner != 0).then(|| Contender::of(name)).flatten();
        // Idle consumers of a queue wait for notifications and hold nothing, and claims form no line: see
        // `queues`.
        let is_apart = self.apart.contains(docent_proto::parent(&change.path).unwrap_or("/"));
        let contender = contender
            .filter(|contender| contender.kind != IDLE && !contender.kind.starts_with(ITEM) && !is_apart);
        let node = NodeLife {
            path: change.path.clone(),
            owner: change.owner,
            created,
            deleted: None,
            contender,
            first: None,
        };
        let key = line_key(&node);
        if let (Some(key), Some(contender)) = (&key, &node.contender) {
            self.lines.entry(key.clone()).or_default().join(index, contender, created.zxid);
            self.folders.entry(key.0.clone()).or_default().push(index);
        }
        self.by_path.entry(change.path.clone()).or_default().push(index);
        self.nodes.push(node);
        key
    }

    fn delete(&mut self, path: &str, deleted: Deletion) -> Option<(String, String)> {
        let index = *self.by_path.get(path)?.last()?;
        self.nodes[index].deleted = Some(deleted);
        let node = &self.nodes[index];
        let key = line_key(node)?;
        if let (Some(line), Some(contender)) = (self.lines.get_mut(&key), &node.contender) {
            line.leave(index, contender, node.created.zxid);
        }
        Some(key)
    }

    /// All nodes that ever existed, in the order of their creation.
    pub(crate) fn nodes(&self) -> &[NodeLife] {
        &self.nodes
    }

    /// The nodes that belonged to a line.
    pub(crate) fn contenders(&self) -> impl Iterator<Item = (usize, &NodeLife)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.contender.is_some())
    }

    /// The nodes in the lines at a path.
    pub(crate) fn contenders_in<'s>(
        &'s self,
        folder: &str,
    ) -> impl Iterator<Item = (usize, &'s NodeLife)> + use<'s> {
        self.folders.get(folder).into_iter().flatten().map(|index| (*index, &self.nodes[*index]))
    }

    /// The node that was last created at a path by the given time, existing or deleted.
    pub(crate) fn node_at(&self, path: &str, at: Duration) -> Option<usize> {
        let lives = self.by_path.get(path)?;
        lives.iter().rev().copied().find(|index| self.nodes[*index].created.at <= at)
    }

    /// The sessions, by their id.
    pub(crate) fn sessions(&self) -> &BTreeMap<i64, SessionLife> {
        &self.sessions
    }
}

fn line_key(node: &NodeLife) -> Option<(String, String)> {
    let contender = node.contender.as_ref()?;
    Some((node.folder().to_owned(), contender.family().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(zxid: i64, session: i64, kind: ChangeKind, path: &str) -> Change {
        let owner = if path.is_empty() { 0 } else { session };
        let at = Duration::from_millis(zxid.unsigned_abs());
        Change { zxid, at, session, kind, path: path.to_owned(), owner }
    }

    fn firsts(replay: &JournalReplay) -> Vec<Option<i64>> {
        replay.nodes().iter().map(|node| node.first.map(|first| first.zxid)).collect()
    }

    #[test]
    fn the_next_node_is_first_once_its_predecessor_is_deleted() {
        use ChangeKind::{Created, Deleted, Opened};
        let replay = JournalReplay::of(&[
            change(1, 7, Opened, ""),
            change(2, 7, Created, "/l/lock-0000000000"),
            change(3, 7, Created, "/l/lock-0000000001"),
            change(4, 7, Created, "/l/lock-0000000002"),
            change(5, 7, Deleted, "/l/lock-0000000001"),
            change(6, 7, Deleted, "/l/lock-0000000000"),
        ]);
        assert_eq!(firsts(&replay), [Some(2), None, Some(6)]);
        assert_eq!(replay.nodes()[0].deleted.unwrap().by, Remover::Session(7));
    }

    #[test]
    fn the_end_of_a_session_deletes_its_nodes_immediately() {
        use ChangeKind::{Created, Deleted, Ended, Opened};
        let replay = JournalReplay::of(&[
            change(1, 7, Opened, ""),
            change(2, 7, Created, "/l/lock-0000000000"),
            change(3, 7, Created, "/l/lock-0000000001"),
            change(4, 8, Created, "/l/lock-0000000002"),
            change(5, 7, Ended(EndCause::Forced), ""),
            change(5, 7, Deleted, "/l/lock-0000000000"),
            change(5, 7, Deleted, "/l/lock-0000000001"),
        ]);
        assert_eq!(firsts(&replay), [Some(2), None, Some(5)], "none becomes first within a transaction");
        assert_eq!(replay.nodes()[0].deleted.unwrap().by, Remover::EndOf(7));
        assert_eq!(replay.sessions()[&7].ended.unwrap().1, EndCause::Forced);
    }

    #[test]
    fn near_the_end_of_the_counter_creation_decides() {
        use ChangeKind::{Created, Deleted};
        let replay = JournalReplay::of(&[
            change(2, 7, Created, "/l/lock-2147483647"),
            change(3, 7, Created, "/l/lock--2147483648"),
            change(4, 7, Deleted, "/l/lock-2147483647"),
        ]);
        assert_eq!(firsts(&replay), [Some(2), Some(4)]);
    }

    #[test]
    fn claims_and_idle_consumers_of_a_queue_are_in_no_line() {
        use ChangeKind::Created;
        let replay = JournalReplay::of(&[
            change(2, 7, Created, "/q/claims/item-0000000000"),
            change(3, 7, Created, "/q/claims/item-p80000001-t0000000000000007-0000000001"),
            change(4, 7, Created, "/q/idle/_c_00000000-0000-4000-8000-000000000001-idle-0000000000"),
        ]);
        assert_eq!(replay.contenders().count(), 0);
    }

    #[test]
    fn different_recipes_have_different_lines() {
        use ChangeKind::Created;
        let replay = JournalReplay::of(&[
            change(2, 7, Created, "/l/lock-0000000000"),
            change(3, 7, Created, "/l/lease-0000000001"),
            change(4, 7, Created, "/l/__READ__0000000002"),
            change(5, 7, Created, "/l/__WRIT__0000000003"),
        ]);
        assert_eq!(firsts(&replay), [Some(2), Some(3), Some(4), None]);
    }
}
