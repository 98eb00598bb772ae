//! Compares the events and replies of one link of a watching client with the journal.

use crate::journal::{Change, ChangeKind};
use crate::watch_model::{WatchModel, WatchReport};
use crate::watched_tree::WatchedTree;
use crate::watcher::{Received, WatcherLink};
use docent_proto::{Code, EventKind, Request, Response, WatchEvent, Watches};
use std::collections::BTreeSet;
use std::time::Duration;

/// A link, followed through the journal from its start.
pub(crate) struct WatchedLink<'a> {
    pub(crate) session: i64,
    pub(crate) tree: WatchedTree,
    pub(crate) watches: WatchModel,
    /// Names that the client authenticated with the digest scheme.
    pub(crate) proved: BTreeSet<String>,
    /// Sessions of all clients that have ended.
    pub(crate) ended: BTreeSet<i64>,
    /// Changes that are not yet reflected by the link.
    remaining: &'a [Change],
    /// The latest transaction that is reflected by the link.
    zxid: i64,
    /// Events of that transaction that have not been reported yet.
    due: Vec<WatchReport>,
    /// Events that arrived while no watch was set. They belong to watches that are being re-armed.
    late: Vec<WatchReport>,
}

impl<'a> WatchedLink<'a> {
    fn new(session: i64, journal: &'a [Change]) -> Self {
        Self {
            session,
            tree: WatchedTree::new(),
            watches: WatchModel::default(),
            proved: BTreeSet::new(),
            ended: BTreeSet::new(),
            remaining: journal,
            zxid: 0,
            due: Vec::new(),
            late: Vec::new(),
        }
    }

    /// Follows a link to its end, or to the first wrong reply or event. `judge` is called for each reply that
    /// arrives when it should, before the reply changes the watches.
    pub(crate) fn follow(
        link: &WatcherLink,
        journal: &'a [Change],
        mut judge: impl FnMut(&Self, &Request, &Result<Response, Code>) -> Option<String>,
    ) -> Option<(Duration, String)> {
        let mut followed = Self::new(link.session, journal);
        link.received.iter().find_map(|(at, received)| {
            let wrong = match received {
                Received::Event { event, zxid } => followed.event(event, *zxid),
                // The reply to credentials contains no transaction.
                Received::Reply { request: request @ Request::Auth { .. }, result, .. } => {
                    followed.answered(request, result)
                }
                Received::Reply { request, zxid, result } => followed.reply(*zxid).or_else(|| {
                    let wrong = judge(&followed, request, result);
                    wrong.or_else(|| followed.answered(request, result))
                }),
            };
            wrong.map(|what| (*at, what))
        })
    }

    /// Advances to the next transaction up to `until`, and notes the events that report it. Returns false if
    /// there is none.
    fn step(&mut self, until: i64) -> bool {
        let Some(zxid) = self.remaining.first().map(|change| change.zxid).filter(|zxid| *zxid <= until)
        else {
            return false;
        };
        let end =
            self.remaining.iter().position(|change| change.zxid != zxid).unwrap_or(self.remaining.len());
        let (now, remaining) = self.remaining.split_at(end);
        for change in now {
            self.due.extend(self.watches.fire(change));
            self.tree.apply(change);
            if matches!(change.kind, ChangeKind::Ended(_)) {
                self.ended.insert(change.session);
            }
        }
        (self.remaining, self.zxid) = (remaining, zxid);
        true
    }

    fn event(&mut self, event: &WatchEvent, zxid: i64) -> Option<String> {
        let report = (event.kind, event.path.clone());
        if self.watches.is_empty() && self.due.is_empty() {
            self.late.push(report);
            return None;
        }
        while self.due.is_empty() && self.step(i64::MAX) {}
        let Some(place) = self.due.iter().position(|due| *due == report) else {
            return Some(format!("{} was reported, but {} was expected", describe(&report), self.all_due()));
        };
        self.due.swap_remove(place);
        let is_numbered = zxid > 0 && zxid != self.zxid;
        is_numbered
            .then(|| format!("{} was reported as of {zxid:#x}, not {:#x}", describe(&report), self.zxid))
    }

    /// Checks that everything up to the transaction of a reply was reported before the reply.
    fn reply(&mut self, zxid: i64) -> Option<String> {
        while self.due.is_empty() && self.step(zxid) {}
        if !self.due.is_empty() {
            return Some(format!("a reply of {zxid:#x} came before {}", self.all_due()));
        }
        (zxid < self.zxid).then(|| format!("a reply is of {zxid:#x}, but follows {:#x}", self.zxid))
    }

    /// Changes the watches according to a reply.
    fn answered(&mut self, request: &Request, result: &Result<Response, Code>) -> Option<String> {
        let late = std::mem::take(&mut self.late);
        match request {
            Request::SetWatches2 { once, .. } if result.is_ok() => {
                if let Some(wrong) = self.set_again(once, &late) {
                    return Some(wrong);
                }
            }
            _ if !late.is_empty() => {
                return Some(format!("{} was reported without a watch", describe(&late[0])));
            }
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

    /// Re-arms one-shot watches. Those that missed a change must report it immediately.
    fn set_again(&mut self, once: &Watches, late: &[WatchReport]) -> Option<String> {
        let all = self.tree.set_again(once);
        let missed: Vec<WatchReport> =
            all.iter().filter_map(|(path, _, event)| Some(((*event)?, (*path).to_owned()))).collect();
        for (path, is_on_children, event) in all {
            if event.is_none() {
                self.watches.set_again(path, is_on_children);
            }
        }
        (missed != late).then(|| {
            let [report, due] =
                [late, &missed].map(|all| all.iter().map(describe).collect::<Vec<_>>().join(", "));
            format!("watches were set again and reported [{report}] instead of [{due}]")
        })
    }

    fn all_due(&self) -> String {
        match self.due.as_slice() {
            [] => "nothing".to_owned(),
            due => format!("{} of {:#x}", due.iter().map(describe).collect::<Vec<_>>().join(", "), self.zxid),
        }
    }
}

fn describe((kind, path): &WatchReport) -> String {
    let kind = match kind {
        EventKind::Created => "the creation of",
        EventKind::Deleted => "the deletion of",
        EventKind::DataChanged => "new data of",
        EventKind::ChildrenChanged => "new children of",
    };
    format!("{kind} {path}")
}
