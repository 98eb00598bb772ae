//! Answers of a server that is behind the leader.

use super::effects::Effects;
use super::missed::stays_of;
use super::past::{Behind, watch_of};
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
        let most = self.limits().events_per_transaction;
        effects.later.limit(most);
        if let Some(watched) = watch_of(request) {
            self.database.exchange(version);
            let reply = self.apply(session, request, now, effects);
            self.database.exchange(version);
            effects.later.extend(
                watched.and_then(|(aspect, path)| self.database.overtaken(version, session, aspect, path)),
            );
            self.database.sessions.count_events(effects.later.as_slice());
            return reply;
        }
        let mut reply = self.apply(session, request, now, effects);
        let stays = stays_of(request);
        // No other request asks for the past: a write may have made versions of it go.
        if reply.result.is_ok() && !stays.is_empty() {
            effects.later.extend(self.database.missed(version, session, &stays, most.saturating_add(1)));
            effects.looks += self.database.looks_for_missed(version, &stays);
            self.database.sessions.count_events(effects.later.as_slice());
        }
        // Where an event tells of a change, the client knows the present.
        if says_nothing(request) && effects.events.is_empty() {
            reply.zxid = self.database.past.zxid(version).unwrap_or(reply.zxid);
        }
        reply
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
