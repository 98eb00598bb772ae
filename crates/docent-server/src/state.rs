//! The server as a pure state machine: no I/O and no clock. Time comes in as milliseconds since 1970 and
//! never goes back.

mod acl;
mod auth;
mod commit;
mod handshake;
mod inspect;
mod late;
mod life;
mod node;
mod past;
mod prepare;
mod read;
mod session;
mod tree;
mod watches;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use handshake::{Handshake, granted};
pub(crate) use late::Late;
pub(crate) use past::Behind;
pub(crate) use watches::{Event, NO_ZXID};

use crate::config::Config;
use crate::{EndCause, Transaction};
use docent_proto::{Code, OpCode, Request, Response};
use past::Past;
use session::Sessions;
use std::collections::BTreeSet;
use tree::Tree;
use watches::Watches;

/// Everything the server knows.
pub(crate) struct State {
    config: Config,
    tree: Tree,
    past: Past,
    sessions: Sessions,
    watches: Watches,
    containers: BTreeSet<String>,
    journal: Option<Vec<Transaction>>,
    random: fastrand::Rng,
    zxid: i64,
    frozen: bool,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) zxid: i64,
    pub(crate) result: Result<Response, Code>,
    /// Set when the link ends once the answer is written.
    pub(crate) closes: bool,
}

/// Effects of a step of the state machine, for its caller to carry out.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Events to send, in this order and before the reply.
    pub(crate) events: Vec<Event>,
    /// Events to send after the reply.
    pub(crate) later: Vec<Event>,
    /// Sessions that ended.
    pub(crate) ended: Vec<i64>,
}

impl State {
    pub(crate) fn new(config: Config, now: i64) -> Self {
        Self {
            tree: Tree::new(),
            past: Past::default(),
            sessions: Sessions::new(config.tick_ms(), now),
            watches: Watches::default(),
            containers: BTreeSet::new(),
            journal: config.journal.then(Vec::new),
            random: config.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            zxid: 0,
            frozen: false,
            config,
        }
    }

    /// Copy of the state for a server that is cut off from this one. Later changes of one are not seen by the
    /// other.
    pub(crate) fn snapshot(&self) -> Self {
        Self {
            config: self.config.clone(),
            tree: self.tree.clone(),
            past: Past::default(),
            sessions: self.sessions.clone(),
            watches: self.watches.clone(),
            containers: BTreeSet::new(),
            journal: None,
            random: self.random.clone(),
            zxid: self.zxid,
            frozen: true,
        }
    }

    /// Answers a request of a session. Its events are due before the answer. The caller says by
    /// [`touch`](Self::touch) whether the request keeps the session alive: that depends on the server it came
    /// through.
    pub(crate) fn apply(
        &mut self,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let result = match request {
            Request::Create(_)
            | Request::Delete { .. }
            | Request::SetData { .. }
            | Request::SetAcl { .. }
            | Request::Multi(_) => self.write(session, request, now, effects),
            Request::CloseSession => {
                self.end_session(session, EndCause::Closed, now, effects);
                Ok(Response::Empty)
            }
            Request::Auth { scheme, credentials } => self.authenticate(session, scheme, credentials),
            Request::Ping => Ok(Response::Empty),
            Request::Sync { path } => Ok(Response::Synced { path: path.clone() }),
            read => self.read(session, read, effects),
        };
        self.count_events(&effects.events);
        let is_auth = matches!(request, Request::Auth { .. });
        let closes = matches!(request, Request::CloseSession) || (is_auth && result.is_err());
        // ZooKeeper answers credentials before they reach the part that knows the transactions.
        Reply { zxid: if is_auth { 0 } else { self.zxid }, result, closes }
    }

    /// The answer to an `op` whose body could not be read. It takes up a transaction number if `op` is a
    /// write.
    pub(crate) fn unreadable(&mut self, op: OpCode, now: i64) -> Reply {
        if is_write(op) {
            self.next_zxid(now);
        }
        Reply { zxid: self.zxid, result: Err(Code::MARSHALLING_ERROR), closes: false }
    }

    /// The answer to an operation that this server does not have.
    pub(crate) fn unimplemented(&self) -> Reply {
        Reply { zxid: -1, result: Err(Code::UNIMPLEMENTED), closes: true }
    }

    /// Takes the next transaction number, before the tree changes.
    fn next_zxid(&mut self, now: i64) -> i64 {
        self.remember(now);
        self.zxid += 1;
        self.zxid
    }

    /// Transaction number in the header of an event.
    pub(crate) fn number_of(&self, event: &Event) -> i64 {
        if self.config.zxid_in_events { event.zxid } else { NO_ZXID }
    }

    fn count_events(&mut self, events: &[Event]) {
        for event in events {
            if let Some(session) = self.sessions.get_mut(event.session) {
                session.events_sent += 1;
            }
        }
    }
}

/// True for an operation that a follower does not answer by itself but passes on to its leader.
pub(crate) fn needs_leader(op: OpCode) -> bool {
    is_write(op) || op == OpCode::Sync
}

/// True for an operation that is made as a transaction.
pub(crate) fn is_write(op: OpCode) -> bool {
    match op {
        OpCode::Create
        | OpCode::Create2
        | OpCode::CreateContainer
        | OpCode::CreateTtl
        | OpCode::Delete
        | OpCode::SetData
        | OpCode::SetAcl
        | OpCode::Multi
        | OpCode::Check
        | OpCode::CloseSession => true,
        OpCode::Exists
        | OpCode::GetData
        | OpCode::GetAcl
        | OpCode::GetChildren
        | OpCode::GetChildren2
        | OpCode::Sync
        | OpCode::Ping
        | OpCode::MultiRead
        | OpCode::RemoveWatches
        | OpCode::Auth
        | OpCode::SetWatches => false,
    }
}
