//! Events and replies of one link of a client that watches, held against the journal.

use crate::journal::{Change, ChangeKind};
use crate::watch_model::{Told, WatchModel};
use crate::watched_tree::WatchedTree;
use crate::watcher::{Heard, WatcherLink};
use docent_proto::{Code, EventKind, Request, Response, WatchEvent, Watches};
use std::collections::BTreeSet;
use std::time::Duration;

/// A link, followed from its begin through the journal.
pub(crate) struct WatchedLink<'a> {
    pub(crate) session: i64,
    pub(crate) tree: WatchedTree,
    pub(crate) watches: WatchModel,
    /// Names that the client proved by digests.
    pub(crate) proved: BTreeSet<String>,
    /// Sessions that are over, of all clients.
    pub(crate) ended: BTreeSet<i64>,
    /// Changes that the link has not come to.
    left: &'a [Change],
    /// The transaction it has come to.
    zxid: i64,
    /// Events of that transaction that have not been told.
    due: Vec<Told>,
    /// Events that were told while no watch was set: of watches that are being set again.
    late: Vec<Told>,
}

impl<'a> WatchedLink<'a> {
    fn new(session: i64, journal: &'a [Change]) -> Self {
        Self {
            session,
            tree: WatchedTree::new(),
            watches: WatchModel::default(),
            proved: BTreeSet::new(),
            ended: BTreeSet::new(),
            left: journal,
            zxid: 0,
            due: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Follows a link to its end, or to the first reply or event that should not be; `judge` is asked about
    /// each reply that comes when it should, before the watches change by it.
    pub(crate) fn follow(
        link: &WatcherLink,
        journal: &'a [Change],
        mut judge: impl FnMut(&Self, &Request, &Result<Response, Code>) -> Option<String>,
    ) -> Option<(Duration, String)> {
        let mut followed = Self::new(link.session, journal);
        link.heard.iter().find_map(|(at, heard)| {
            let wrong = match heard {
                Heard::Event { event, zxid } => followed.event(event, *zxid),
                // The answer to credentials names no transaction.
                Heard::Reply { request: request @ Request::Auth { .. }, result, .. } => {
                    followed.answered(request, result)
                }
                Heard::Reply { request, zxid, result } => followed.reply(*zxid).or_else(|| {
                    let wrong = judge(&followed, request, result);
                    wrong.or_else(|| followed.answered(request, result))
                }),
            };
            wrong.map(|what| (*at, what))
        })
    }

    /// Goes on to the next transaction up to `until`, and notes the events that it is told by. False when
    /// there is none.
    fn step(&mut self, until: i64) -> bool {
        let Some(zxid) = self.left.first().map(|change| change.zxid).filter(|zxid| *zxid <= until) else {
            return false;
        };
        let end = self.left.iter().position(|change| change.zxid != zxid).unwrap_or(self.left.len());
        let (now, left) = self.left.split_at(end);
        for change in now {
            self.due.extend(self.watches.tell(change));
            self.tree.apply(change);
            if matches!(change.kind, ChangeKind::Ended(_)) {
                self.ended.insert(change.session);
            }
        }
        (self.left, self.zxid) = (left, zxid);
        true
    }

    fn event(&mut self, event: &WatchEvent, zxid: i64) -> Option<String> {
        let told = (event.kind, event.path.clone());
        if self.watches.is_empty() && self.due.is_empty() {
            self.late.push(told);
            return None;
        }
        while self.due.is_empty() && self.step(i64::MAX) {}
        let Some(place) = self.due.iter().position(|due| *due == told) else {
            return Some(format!("{} was told and {} was due", news(&told), self.all_due()));
        };
        self.due.swap_remove(place);
        let is_numbered = zxid > 0 && zxid != self.zxid;
        is_numbered.then(|| format!("{} was told as of {zxid:#x} and is of {:#x}", news(&told), self.zxid))
    }

    /// All that happened up to the transaction of a reply has been told before it.
    fn reply(&mut self, zxid: i64) -> Option<String> {
        while self.due.is_empty() && self.step(zxid) {}
        if !self.due.is_empty() {
            return Some(format!("a reply of {zxid:#x} came before {} was told", self.all_due()));
        }
        (zxid < self.zxid).then(|| format!("a reply is of {zxid:#x}, after {:#x} was told", self.zxid))
    }

    /// Changes the watches as a reply says.
    fn answered(&mut self, request: &Request, result: &Result<Response, Code>) -> Option<String> {
        let late = std::mem::take(&mut self.late);
        match request {
            Request::SetWatches2 { once, .. } if result.is_ok() => {
                if let Some(wrong) = self.set_again(once, &late) {
                    return Some(wrong);
                }
            }
            _ if !late.is_empty() => return Some(format!("{} was told without a watch", news(&late[0]))),
            Request::RemoveWatches { path, kind } if result.is_ok() => self.watches.remove(path, *kind),
            Request::Auth { credentials, .. } if result.is_ok() => {
                let credentials = String::from_utf8_lossy(credentials);
                self.proved.extend(credentials.split(':').next().map(str::to_owned));
            }
            _ => {}
        }
        let found = result.is_ok();
        if found || matches!((request, result), (Request::Exists { .. }, Err(Code::NO_NODE))) {
            self.watches.set(request, found);
        }
        None
    }

    /// Watches that come true once are set again, and those that missed something tell it at once.
    fn set_again(&mut self, once: &Watches, late: &[Told]) -> Option<String> {
        let all = self.tree.set_again(once);
        let missed: Vec<Told> =
            all.iter().filter_map(|(path, _, event)| Some(((*event)?, (*path).to_owned()))).collect();
        for (path, is_on_children, event) in all {
            if event.is_none() {
                self.watches.set_again(path, is_on_children);
            }
        }
        (missed != late).then(|| {
            let [told, due] = [late, &missed].map(|all| all.iter().map(news).collect::<Vec<_>>().join(", "));
            format!("watches were set again and told [{told}] in place of [{due}]")
        })
    }

    fn all_due(&self) -> String {
        match self.due.as_slice() {
            [] => "nothing".to_owned(),
            due => format!("{} of {:#x}", due.iter().map(news).collect::<Vec<_>>().join(", "), self.zxid),
        }
    }
}

fn news((kind, path): &Told) -> String {
    let kind = match kind {
        EventKind::Created => "the creation of",
        EventKind::Deleted => "the deletion of",
        EventKind::DataChanged => "new data of",
        EventKind::ChildrenChanged => "new children of",
    };
    format!("{kind} {path}")
}
