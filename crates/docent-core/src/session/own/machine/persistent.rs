//! Persistent watches of the machine.

use super::{Link, Machine};
use crate::session::abilities::Ability;
use crate::session::requests::{InFlight, Phase};
use crate::session::{Cause, Lane, LinkError, Outcome, PersistentSignal, Reply, WatchKind};
use crate::time::Timestamp;
use docent_proto::{Code, OpCode, ReplyHeader, Request, WatchMode, Watches, xid};
use std::net::SocketAddr;
use tokio::sync::mpsc::UnboundedReceiver;

impl Machine {
    /// Records the server of the next link, and whether no server with a quorum was found before.
    pub(in crate::session) fn dialled(&mut self, server: Option<SocketAddr>, again: bool, now: Timestamp) {
        self.asks_read_only = again && self.settings.only_reads;
        self.settings.abilities.linked(server, now);
    }

    /// Keeps a persistent watch on `path` and everything below it. Returns `None` if the server of the link
    /// is known not to support persistent watches, or if the session accepts no more requests.
    pub(in crate::session) fn watch_below(
        &mut self,
        path: &str,
    ) -> Option<(u64, UnboundedReceiver<PersistentSignal>)> {
        // On a new link all persistent watches are set together, before anything else.
        let is_known = matches!(self.link, Link::Attached | Link::Authenticating { .. });
        if self.phase != Phase::Open
            || (is_known && self.settings.abilities.lacks(Ability::PersistentWatches))
        {
            return None;
        }
        let registered = self.persistent.register(path);
        if is_known {
            self.add_watch(path.to_owned());
        }
        Some(registered)
    }

    fn push_own(&mut self, request: Request) {
        self.requests.push(request, Lane::Cleanup, None, None);
    }

    /// Removes a subscriber of a persistent watch. The last subscriber removes the watch as well.
    pub(super) fn unregister_persistent(&mut self, id: u64, path: &str) {
        if self.persistent.unregister(id, path) && self.link != Link::Down {
            self.persistent.orphans.insert(path.to_owned());
            self.remove_forsaken();
        }
    }

    /// Removes persistent watches that have no use left. The removal also deletes watches of other kinds on
    /// the path, so those must have no subscriber either.
    pub(super) fn remove_forsaken(&mut self) {
        let (watches, requests) = (&self.watches, &self.requests);
        let forsaken = self.persistent.forsaken(|path| {
            watches.has(path)
                || requests.will_watch(path, WatchKind::Data)
                || requests.will_watch(path, WatchKind::Child)
        });
        for path in forsaken {
            if self.settings.abilities.lacks(Ability::RemoveWatches) {
                continue;
            }
            self.push_own(Request::RemoveWatches { path, kind: docent_proto::WatchKind::Any });
        }
    }

    /// Records that a request is written. If the request would set a watch on the data at the path of a
    /// persistent watch, changes it to set none, because the persistent watch serves it; returns true for
    /// such a request. Watches on children are in another table of the servers and do not conflict.
    pub(super) fn note_persistent(&mut self, request: &mut Request) -> bool {
        let persistent = &mut self.persistent;
        match request {
            Request::AddWatch { path, .. } => {
                persistent.at_server.insert(path.clone());
                self.keep_on_children(std::slice::from_ref(path));
            }
            Request::SetWatches2 { recursive, .. } => {
                persistent.at_server.extend(recursive.iter().cloned());
                self.keep_on_children(recursive);
            }
            Request::RemoveWatches { path, kind: docent_proto::WatchKind::Any } => {
                persistent.at_server.remove(path);
            }
            // Watches restored on a new link are sent before the persistent ones, or are watches on children.
            Request::SetWatches(watches) => {
                let replaced =
                    watches.data.iter().filter(|path| persistent.at_server.contains(*path)).cloned();
                replaced.collect::<Vec<_>>().into_iter().for_each(|path| self.replaced(path));
            }
            Request::Exists { path, watch } | Request::GetData { path, watch } => {
                let is_served = *watch && persistent.at_server.contains(path);
                *watch &= !is_served;
                return is_served;
            }
            _ => {}
        }
        false
    }

    /// Restores those of the watches on the children of `paths`, behind the request that sets persistent
    /// watches there. Servers before 3.9 put persistent watches into both of their tables, where they replace
    /// other watches, and do not report changes of the set of children.
    fn keep_on_children(&mut self, paths: &[String]) {
        let (watches, requests) = (&self.watches, &self.requests);
        let is_watched =
            |path: &&String| watches.has_on_children(path) || requests.will_watch(path, WatchKind::Child);
        let child: Vec<_> = paths.iter().filter(is_watched).cloned().collect();
        if child.is_empty() {
            return;
        }
        let relative_zxid = *self.restore_from.get_or_insert(self.last_zxid);
        self.unrestored += 1;
        self.restore.push_back(Request::SetWatches(Watches { relative_zxid, child, ..Watches::default() }));
    }

    /// Records that a watch on data replaces the persistent watch on a path, at servers before 3.9. The
    /// persistent watch is re-armed immediately, because other subscribers still need it. Its own
    /// subscriptions end, because changes below the path are not reported in between.
    fn replaced(&mut self, path: String) {
        self.persistent.withdraw_at(&path, &mut self.deliveries.persistent);
        let mode = WatchMode::PersistentRecursive;
        self.restore.push_back(Request::AddWatch { path, mode });
    }

    fn add_watch(&mut self, path: String) {
        self.push_own(Request::AddWatch { path, mode: WatchMode::PersistentRecursive });
    }

    /// Returns the requests that restore the persistent watches on a new link. If the server is known not to
    /// support them, the watches end instead.
    pub(super) fn restore_persistent(&mut self, relative_zxid: i64) -> Vec<Request> {
        if self.settings.abilities.lacks(Ability::PersistentWatches) {
            self.persistent.withdraw(&mut self.deliveries.persistent);
            return Vec::new();
        }
        let once = Watches { relative_zxid, ..Watches::default() };
        let lists = self.persistent.restore(self.settings.outbound_limit).into_iter();
        let request_of =
            |recursive| Request::SetWatches2 { once: once.clone(), persistent: Vec::new(), recursive };
        lists.map(request_of).collect()
    }

    /// Handles the reply to a request for persistent watches.
    pub(super) fn persistent_answered(&mut self, code: Code, now: Timestamp) -> Result<(), LinkError> {
        match code {
            Code::OK => self.settings.abilities.answered(Ability::PersistentWatches),
            Code::THROTTLED | Code::SESSION_EXPIRED => {
                return Err(LinkError::Protocol(format!("cannot set a persistent watch: {code}")));
            }
            _ => {
                self.settings.abilities.refused(Ability::PersistentWatches, now);
                self.persistent.withdraw(&mut self.deliveries.persistent);
            }
        }
        Ok(())
    }

    /// Handles a reply that is not the one due. Servers before 3.6 refuse a request of an unknown kind before
    /// they answer earlier requests, and close the link.
    pub(super) fn refused_early(&mut self, header: ReplyHeader, now: Timestamp) {
        let mut in_flight = self.requests.in_flight.iter_mut();
        // Requests that restore watches share one number; those for one-shot watches are never refused.
        let is_refused = |sent: &&mut InFlight| {
            sent.xid == header.xid && (header.xid != xid::SET_WATCHES || sets_persistent(sent.op))
        };
        let Some(refused) = in_flight.find(is_refused) else { return };
        if header.code != Code::UNIMPLEMENTED {
            return;
        }
        let ability = refused.ability;
        // The request stays in its position until the link is lost, like all others in flight.
        if let Some(done) = refused.done.take() {
            let outcome = match ability {
                // The next attempt is sent in another form.
                Some(Ability::Create2) => Outcome::NotSent(Cause::LinkLost),
                _ => Outcome::Reply(Reply::new(Err(header.code), header.zxid)),
            };
            self.deliveries.finished.push((done, outcome));
        }
        if let Some(ability) = ability {
            self.settings.abilities.refused(ability, now);
        }
    }

    /// Records that the link is lost, before its requests are dropped.
    pub(super) fn persistent_link_lost(&mut self, now: Timestamp) {
        let mut in_flight = self.requests.in_flight.iter();
        if !self.settings.abilities.lacks(Ability::PersistentWatches)
            && in_flight.any(|sent| sets_persistent(sent.op))
        {
            self.settings.abilities.unanswered(Ability::PersistentWatches, now);
        }
        self.persistent.link_lost();
    }

    /// Returns true while persistent watches are in place at the server of the link.
    pub(in crate::session) fn has_persistent(&self) -> bool {
        self.link == Link::Attached
            && self.settings.abilities.has(Ability::PersistentWatches)
            && !self.persistent.at_server.is_empty()
    }
}

/// Returns true for requests that set persistent watches.
fn sets_persistent(op: OpCode) -> bool {
    matches!(op, OpCode::AddWatch | OpCode::SetWatches2)
}
