//! Answers of a server that is behind the leader.

use super::effects::Effects;
use super::past::Behind;
use super::reply::Reply;
use super::state::State;
use docent_proto::Request;

impl State {
    /// As [`apply`](Self::apply), by a server that may be behind: reads show the tree of back then. A watch
    /// that is set meanwhile tells right after the answer what has changed since: this is when the server
    /// catches up.
    pub(crate) fn apply_behind(
        &mut self,
        behind: Behind,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let Some(version) = self.database.past.oldest(behind, now) else {
            return self.apply(session, request, now, effects);
        };
        if let Some(is_watched) = reads(request) {
            self.database.exchange(version);
            let reply = self.apply(session, request, now, effects);
            self.database.exchange(version);
            if is_watched {
                self.catch_up(version, session, effects);
            }
            return reply;
        }
        let mut reply = self.apply(session, request, now, effects);
        // Where an event tells of a change, the client knows the present, and no write is of the past.
        if !says_nothing(request) || !effects.events.is_empty() {
            return reply;
        }
        reply.zxid = self.database.past.zxid(version).unwrap_or(reply.zxid);
        if reply.result.is_ok() {
            self.catch_up(version, session, effects);
        }
        reply
    }

    /// Tells what the watches of a session have missed since a version of the past, in the order in which the
    /// changes were made. Those that were set before have missed nothing: they would have brought the session
    /// to the present.
    fn catch_up(&mut self, version: usize, session: i64, effects: &mut Effects) {
        effects.later.limit(self.limits().events_per_transaction);
        effects.looks += self.database.tell_late(version, session, &mut effects.later);
        self.database.sessions.count_events(effects.later.as_slice());
    }
}

/// True for a read of the tree that asks for a watch; `None` when it is no such read.
fn reads(request: &Request) -> Option<bool> {
    match request {
        Request::Exists { watch, .. }
        | Request::GetData { watch, .. }
        | Request::GetChildren { watch, .. }
        | Request::GetChildren2 { watch, .. } => Some(*watch),
        Request::GetAcl { .. } | Request::GetAllChildrenNumber { .. } | Request::MultiRead(_) => Some(false),
        _ => None,
    }
}

/// True for a request whose answer says nothing of the tree.
fn says_nothing(request: &Request) -> bool {
    matches!(
        request,
        Request::Ping
            | Request::SetWatches(_)
            | Request::SetWatches2 { .. }
            | Request::AddWatch { .. }
            | Request::CheckWatches { .. }
            | Request::RemoveWatches { .. }
            | Request::WhoAmI
    )
}
