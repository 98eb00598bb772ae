//! Applies changes whose checks held, and fires the watches they touch.

use super::State;
use super::node::{Lifetime, Node};
use super::prepare::Change;
use super::session::Sessions;
use super::tree::Tree;
use super::watches::{Audience, Event};
use crate::journal::{Transaction, TransactionKind};
use bytes::Bytes;
use docent_proto::{Acl, MultiResult, Stat, parent};
use std::sync::Arc;

/// The transaction that a change is part of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) zxid: i64,
    pub(crate) session: i64,
    pub(crate) now: i64,
}

impl State {
    pub(crate) fn commit(&mut self, commit: Commit, change: Change, events: &mut Vec<Event>) -> MultiResult {
        match change {
            Change::Create { path, data, acl, lifetime, parent_creates, with_stat } => {
                let node = Node::new(data, acl, lifetime, commit.zxid, commit.now);
                let stat = self.add_node(commit, &path, node, parent_creates, events);
                MultiResult::Created { path, stat: with_stat.then(|| stat.into()) }
            }
            Change::Delete { path } => {
                self.remove_node(commit, &path, events);
                MultiResult::Deleted
            }
            Change::SetData { path, data, version } => {
                MultiResult::Set(self.replace_data(commit, &path, data, version, events).into())
            }
            Change::SetAcl { path, acl, version } => {
                MultiResult::Set(self.replace_acl(commit, &path, acl, version).into())
            }
            Change::Check => MultiResult::Checked,
        }
    }

    fn add_node(
        &mut self,
        commit: Commit,
        path: &str,
        node: Node,
        parent_creates: i32,
        events: &mut Vec<Event>,
    ) -> Stat {
        let stat = node.stat();
        let lifetime = node.lifetime;
        self.tree.add(path, node);
        if let Some(parent) = self.tree.parent_mut(path) {
            // The counter never goes back, so past its end it stays there, and so does the time of the
            // change.
            if parent_creates > parent.creates {
                parent.creates = parent_creates;
                parent.pzxid = commit.zxid;
            }
        }
        match lifetime {
            Lifetime::Persistent => {}
            Lifetime::Container => {
                self.containers.insert(path.to_owned());
            }
            Lifetime::Ephemeral(owner) => {
                if let Some(session) = self.sessions.get_mut(owner) {
                    session.ephemerals.insert(path.to_owned());
                }
            }
        }
        self.record(commit, TransactionKind::Created, path, lifetime.owner());
        let parent = parent(path).unwrap_or("/");
        self.watches.created(
            audience(&self.tree, &self.sessions, commit.zxid, path),
            audience(&self.tree, &self.sessions, commit.zxid, parent),
            events,
        );
        stat
    }

    pub(crate) fn remove_node(&mut self, commit: Commit, path: &str, events: &mut Vec<Event>) {
        let Some(node) = self.tree.remove(path) else { return };
        if let Some(parent) = self.tree.parent_mut(path) {
            parent.pzxid = commit.zxid;
        }
        match node.lifetime {
            Lifetime::Persistent => {}
            Lifetime::Container => {
                self.containers.remove(path);
            }
            Lifetime::Ephemeral(owner) => {
                if let Some(session) = self.sessions.get_mut(owner) {
                    session.ephemerals.remove(path);
                }
            }
        }
        self.record(commit, TransactionKind::Deleted, path, node.lifetime.owner());
        let parent = audience(&self.tree, &self.sessions, commit.zxid, parent(path).unwrap_or("/"));
        self.watches.deleted(
            Audience { path, acl: &node.acl, sessions: &self.sessions, zxid: commit.zxid },
            parent,
            events,
        );
    }

    fn replace_data(
        &mut self,
        commit: Commit,
        path: &str,
        data: Option<Bytes>,
        version: i32,
        events: &mut Vec<Event>,
    ) -> Stat {
        self.tree.replace_data(path, data);
        let Some(node) = self.tree.get_mut(path) else { return Stat::default() };
        node.version = version;
        node.mzxid = commit.zxid;
        node.mtime = commit.now;
        let (stat, owner) = (node.stat(), node.lifetime.owner());
        self.record(commit, TransactionKind::DataSet { version }, path, owner);
        self.watches.data_set(audience(&self.tree, &self.sessions, commit.zxid, path), events);
        stat
    }

    fn replace_acl(&mut self, commit: Commit, path: &str, acl: Arc<[Acl]>, version: i32) -> Stat {
        let Some(node) = self.tree.get_mut(path) else { return Stat::default() };
        node.acl = acl;
        node.aversion = version;
        let (stat, owner) = (node.stat(), node.lifetime.owner());
        self.record(commit, TransactionKind::AclSet { version }, path, owner);
        stat
    }

    pub(crate) fn record(&mut self, commit: Commit, kind: TransactionKind, path: &str, owner: i64) {
        if let Some(journal) = &mut self.journal {
            let Commit { zxid, session, now: time_ms } = commit;
            let written = matches!(kind, TransactionKind::Created | TransactionKind::DataSet { .. });
            let data = self.tree.get(path).filter(|_| written).and_then(|node| node.data.clone());
            journal.push(Transaction { zxid, time_ms, session, kind, path: path.to_owned(), owner, data });
        }
    }
}

fn audience<'a>(tree: &'a Tree, sessions: &'a Sessions, zxid: i64, path: &'a str) -> Audience<'a> {
    Audience { path, acl: tree.get(path).map_or(&[], |node| &node.acl), sessions, zxid }
}
