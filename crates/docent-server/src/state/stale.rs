//! Replies of a member that lags behind the leader.

use super::effects::Effects;
use super::past::Staleness;
use super::reply::Reply;
use super::state::State;
use docent_proto::Request;

impl State {
    /// Answers a request as [`apply`](Self::apply) does, but for a member that may lag: reads show a past
    /// tree. If a read sets a watch, the member catches up right after the answer, and the watch then reports
    /// what has changed since that tree.
    pub(crate) fn apply_stale(
        &mut self,
        staleness: Staleness,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let Some(version) = self.database.past.oldest(staleness, now) else {
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
        // If an event reports a change, the client knows the present. A write always belongs to the present.
        if !reveals_nothing(request) || !effects.events.is_empty() {
            return reply;
        }
        reply.zxid = self.database.past.zxid(version).unwrap_or(reply.zxid);
        if reply.result.is_ok() {
            self.catch_up(version, session, effects);
        }
        reply
    }

    /// Reports the changes since a past version to the watches of a session, in their order. Watches that
    /// were set earlier have missed nothing, because they would have brought the session to the present.
    fn catch_up(&mut self, version: usize, session: i64, effects: &mut Effects) {
        effects.later.limit(self.limits().events_per_transaction);
        effects.visits += self.database.notify_missed(version, session, &mut effects.later);
        self.database.sessions.count_events(effects.later.as_slice());
    }
}

/// Returns whether a read of the tree asks for a watch; `None` if the request is no such read.
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

/// Returns whether the answer to a request reveals nothing about the tree.
fn reveals_nothing(request: &Request) -> bool {
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
