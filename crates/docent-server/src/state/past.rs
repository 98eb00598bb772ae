//! What the tree was a while ago, for followers that lag.

use super::tree::Tree;
use super::{Effects, Reply, State};
use docent_proto::Request;
use std::collections::VecDeque;

/// The trees of the last while. Without a span nothing is kept.
#[derive(Default)]
pub(super) struct Past {
    span_ms: i64,
    /// In the order of their times and transactions.
    versions: VecDeque<Version>,
}

/// A tree between two transactions.
struct Version {
    /// The transaction it shows.
    zxid: i64,
    /// When the next one was made.
    until_ms: i64,
    tree: Tree,
}

/// How far a server may be behind when it answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Behind {
    pub(crate) lag_ms: i64,
    /// The newest transaction that the client knows of: what it is shown is not older.
    pub(crate) seen: i64,
}

impl Past {
    fn forget(&mut self, now: i64) {
        while self.versions.front().is_some_and(|version| version.until_ms + self.span_ms <= now) {
            self.versions.pop_front();
        }
    }

    /// The oldest version that may be shown; `None` when that is the present.
    fn oldest(&self, behind: Behind, now: i64) -> Option<usize> {
        let is_too_old = |version: &Version| {
            version.until_ms <= now.saturating_sub(behind.lag_ms) || version.zxid < behind.seen
        };
        let index = self.versions.partition_point(is_too_old);
        (index < self.versions.len()).then_some(index)
    }
}

impl State {
    /// Keeps the tree's versions for so long from here on; 0 for not at all.
    pub(crate) fn keep_past(&mut self, span_ms: i64) {
        self.past.span_ms = span_ms;
        if span_ms == 0 {
            self.past.versions.clear();
        }
    }

    /// Keeps the present, which is about to change.
    pub(super) fn remember(&mut self, now: i64) {
        self.past.forget(now);
        if self.past.span_ms > 0 {
            let version = Version { zxid: self.zxid, until_ms: now, tree: self.tree.clone() };
            self.past.versions.push_back(version);
        }
    }

    /// As [`apply`](Self::apply), by a server that may be behind: reads without a watch show the tree of back then.
    pub(crate) fn apply_behind(
        &mut self,
        behind: Behind,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let Some(index) = self.past.oldest(behind, now) else {
            return self.apply(session, request, now, effects);
        };
        if is_plain_read(request) {
            self.exchange(index);
            let reply = self.apply(session, request, now, effects);
            self.exchange(index);
            return reply;
        }
        let mut reply = self.apply(session, request, now, effects);
        // These say nothing of the tree. Where an event tells of a change, the client knows the present.
        let says_nothing = matches!(request, Request::Ping | Request::SetWatches(_));
        if says_nothing && effects.events.is_empty() {
            reply.zxid = self.past.versions.get(index).map_or(reply.zxid, |version| version.zxid);
        }
        reply
    }

    /// Puts a version in the present's place, or back.
    fn exchange(&mut self, index: usize) {
        if let Some(version) = self.past.versions.get_mut(index) {
            std::mem::swap(&mut self.tree, &mut version.tree);
            std::mem::swap(&mut self.zxid, &mut version.zxid);
        }
    }
}

/// True for a read that changes nothing, not even watches.
fn is_plain_read(request: &Request) -> bool {
    match request {
        Request::Exists { watch, .. }
        | Request::GetData { watch, .. }
        | Request::GetChildren { watch, .. }
        | Request::GetChildren2 { watch, .. } => !watch,
        Request::MultiRead(_) => true,
        _ => false,
    }
}
