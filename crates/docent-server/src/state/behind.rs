//! Answers of a server that is behind the leader.

use super::effects::Effects;
use super::event::Event;
use super::missed::stays_of;
use super::past::{Behind, watch_of};
use super::reply::Reply;
use super::state::State;
use super::watches::Aspect;
use docent_proto::{EventKind, Request};
use std::collections::HashSet;

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
        // Where an event tells of a change, the client knows the present, and no write is of the past.
        if !says_nothing(request) || !effects.events.is_empty() {
            return reply;
        }
        reply.zxid = self.database.past.zxid(version).unwrap_or(reply.zxid);
        if reply.result.is_ok() {
            self.catch_up(version, session, request, effects);
        }
        reply
    }

    /// Tells what watches that a request sets have missed since a version of the past, in the order of
    /// transactions. A change that concerns several of them is told once.
    fn catch_up(&mut self, version: usize, session: i64, request: &Request, effects: &mut Effects) {
        let (stays, most) = (stays_of(request), self.limits().events_per_transaction);
        let database = &mut self.database;
        effects.looks += database.looks_for_missed(version, &stays, once_of(request).count());
        let mut missed = match stays.is_empty() {
            true => Vec::new(),
            false => database.missed(version, session, &stays, most.saturating_add(1)),
        };
        let overtaken: Vec<Event> = once_of(request)
            .filter_map(|(aspect, path)| database.overtaken(version, session, aspect, path))
            .collect();
        let told: HashSet<(i64, EventKind, &str)> = missed.iter().map(Event::news).collect();
        let new: Vec<Event> = overtaken.into_iter().filter(|event| !told.contains(&event.news())).collect();
        missed.extend(new);
        missed.sort_by_key(|event| event.zxid);
        effects.later.extend(missed);
        self.database.sessions.count_events(effects.later.as_slice());
    }
}

/// Watches that come true once which a request sets again.
fn once_of(request: &Request) -> impl Iterator<Item = (Aspect, &str)> {
    let once = match request {
        Request::SetWatches(once) | Request::SetWatches2 { once, .. } => Some(once),
        _ => None,
    };
    once.into_iter().flat_map(|once| {
        let on_data = once.data.iter().chain(&once.exist).map(|path| (Aspect::Data, path.as_str()));
        on_data.chain(once.child.iter().map(|path| (Aspect::Children, path.as_str())))
    })
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
