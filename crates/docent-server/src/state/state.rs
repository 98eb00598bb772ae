use super::acl::{Identity, SASL, host};
use super::database::Database;
use super::effects::Effects;
use super::event::{Event, NO_ZXID};
use super::handshake::{Handshake, granted};
use super::node::Lifetime;
use super::op_code::is_write;
use super::origin::Origin;
use super::reader::Reader;
use super::refusal::{Notes, Refusal};
use super::reply::Reply;
use super::sasl::Sasl;
use super::writer::Writer;
use crate::config::Config;
use crate::{EndCause, Limits};
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest, ConnectResponse, MultiResult, OpCode, Request, Response, Stat};
use std::net::IpAddr;

/// The complete state of the server.
pub(crate) struct State {
    config: Config,
    pub(super) database: Database,
    frozen: bool,
    pub(super) read_only: bool,
}

impl State {
    /// Creates the state of an unused server, whose numbers come after those of `origin`. With a seed,
    /// transactions are numbered from 1.
    pub(crate) fn new(config: Config, origin: Origin) -> Self {
        let mut database = Database::new(&config);
        database.begin_after(if config.seed.is_some() { origin.without_transactions() } else { origin });
        Self { database, config, frozen: false, read_only: false }
    }

    /// Returns a copy of the state for a follower that is cut off. Later changes of either state do not
    /// affect the other.
    pub(crate) fn snapshot(&self) -> Self {
        let (config, database) = (self.config.clone(), self.database.snapshot());
        Self { config, database, frozen: true, read_only: false }
    }

    /// Opens the session that a link requests, or attaches the link to it, with a timeout within
    /// `timeouts_ms`.
    pub(crate) fn connect(
        &mut self,
        request: &ConnectRequest,
        timeouts_ms: (i32, i32),
        peer: IpAddr,
        now: i64,
    ) -> Handshake {
        if let Some(reason) = self.refused_in_mode(request) {
            return Handshake::Refused(reason);
        }
        let (database, is_read_only) = (&mut self.database, self.read_only);
        if request.last_zxid_seen > database.zxid {
            return Handshake::Refused("the client has seen newer transactions than this server has");
        }
        let timeout_ms = granted(request, timeouts_ms);
        let id = if request.session_id == 0 {
            if let Some(refusal) = refuses_session(database, &self.config.limits) {
                return Handshake::OverLimit(refusal);
            }
            database.open_session(timeout_ms, is_read_only, now)
        } else {
            request.session_id
        };
        if request.session_id != 0 && !database.sessions.attach(request, timeout_ms, now) {
            return Handshake::Expired(ConnectResponse {
                timeout_ms: 0,
                session_id: 0,
                password: Bytes::from_static(&[0; 16]),
                read_only: request.read_only.map(|_| is_read_only),
            });
        }
        let Some(session) = database.sessions.get_mut(id) else {
            return Handshake::Refused("the session does not exist");
        };
        session.attached = true;
        session.identities = vec![Identity { scheme: "ip".into(), id: host(peer) }];
        session.sasl = Sasl::default();
        Handshake::Attached(ConnectResponse {
            timeout_ms,
            session_id: id,
            password: Bytes::copy_from_slice(&session.password),
            read_only: request.read_only.map(|_| is_read_only),
        })
    }

    /// Records that the link of a session is closed, and removes the session's watches.
    pub(crate) fn detach(&mut self, id: i64) {
        if !planted!(WatchesOutliveLink) {
            self.database.watches.remove_session(id);
        }
        self.database.sessions.detach(id);
    }

    /// Answers a request of a session. Its events must be sent before the answer. The caller calls
    /// [`touch`](Self::touch) if the request keeps the session alive, which depends on the member that
    /// received it.
    pub(crate) fn apply(
        &mut self,
        session: i64,
        request: &Request,
        now: i64,
        effects: &mut Effects,
    ) -> Reply {
        let (database, limits) = (&mut self.database, &self.config.limits);
        effects.events.limit(limits.events_per_transaction);
        let mut notes = Notes::default();
        let result = match request {
            Request::Create(_)
            | Request::Delete { .. }
            | Request::SetData { .. }
            | Request::SetAcl { .. }
            | Request::Check { .. }
            | Request::Reconfig { .. }
            | Request::Multi(_) => {
                effects.visits += database.visits_to_remember();
                Writer::begin(database, limits, session, now).write(request, effects)
            }
            Request::CloseSession => {
                database.end_session(session, EndCause::Closed, now, effects);
                Ok(Response::Empty)
            }
            Request::Auth { scheme, credentials } => {
                let most = limits.auth_bytes_per_connection;
                let proof = (scheme.as_str(), &credentials[..]);
                database.sessions.authenticate(session, proof, most, &mut notes).map(|()| Response::Empty)
            }
            // Without users, a real server answers as if the authentication had succeeded.
            Request::Sasl { token } => {
                let (token, most) = (token.as_deref().unwrap_or_default(), limits.auth_bytes_per_connection);
                let answer = database.sessions.sasl_step(session, token, most, &mut notes);
                answer.map(|token| Response::Sasl { token }).map_err(|code| self.config.refusal(code))
            }
            Request::Ping => Ok(Response::Empty),
            Request::Sync { path } => Ok(Response::Synced { path: path.clone() }),
            read => {
                let mut reader = Reader::new(database, limits, session);
                let answer = reader.answer(read, &mut effects.events);
                (notes, effects.visits) = (reader.notes, effects.visits + reader.visits);
                answer
            }
        };
        effects.refusal = effects.refusal.or(notes.into_refusal()).or(database.past.take_refusal());
        database.sessions.count_events(effects.events.as_slice());
        let is_auth = matches!(request, Request::Auth { .. } | Request::Sasl { .. });
        let closes = matches!(request, Request::CloseSession) || (is_auth && result.is_err());
        // ZooKeeper answers credentials in a component that does not know the transactions.
        Reply { zxid: if is_auth { 0 } else { database.zxid }, result, closes }
    }

    /// Returns the reply to a request on a link that has not authenticated although it must, if so.
    pub(crate) fn requires_sasl(&self, session: i64) -> Option<Reply> {
        let is_proved = || self.database.sessions.identities(session).iter().any(|one| one.scheme == SASL);
        let is_missing = self.config.require_sasl && !is_proved();
        let result = Err(Code::SESSION_CLOSED_REQUIRE_SASL_AUTH);
        is_missing.then_some(Reply { zxid: 0, result, closes: true })
    }

    /// Returns the reply to an `op` whose body could not be decoded. It uses up a transaction number if `op`
    /// is a write, except for a reconfiguration, which is decoded earlier.
    pub(crate) fn unreadable(&mut self, op: OpCode, now: i64) -> Reply {
        if is_write(op) && op != OpCode::Reconfig {
            self.database.next_zxid(now);
        }
        Reply { zxid: self.database.zxid, result: Err(Code::MARSHALLING_ERROR), closes: false }
    }

    /// Returns the reply to a client that sent an operation reserved for servers.
    pub(crate) fn forbidden(&mut self, now: i64) -> Reply {
        self.database.next_zxid(now);
        Reply { zxid: self.database.zxid, result: Err(Code::BAD_ARGUMENTS), closes: false }
    }

    /// Returns the reply to an operation that this server does not support.
    pub(crate) fn unimplemented(&self) -> Reply {
        Reply { zxid: -1, result: Err(Code::UNIMPLEMENTED), closes: true }
    }

    /// Shows the owner of containers as ClickHouse Keeper does, in the reply to a request.
    pub(crate) fn show_containers(&self, request: &Request, reply: &mut Reply) {
        let show = |path: &str, stat: &mut Stat| {
            if self.database.tree.get(path).is_some_and(|node| node.lifetime == Lifetime::Container) {
                stat.ephemeral_owner = i64::MIN;
            }
        };
        match (request, &mut reply.result) {
            (_, Ok(Response::Created { path, stat: Some(stat) })) => show(path, stat),
            (Request::MultiRead(ops), Ok(Response::Multi(results))) => {
                for (op, result) in ops.iter().zip(results) {
                    if let MultiResult::Data { stat, .. } = result {
                        show(op.path(), stat);
                    }
                }
            }
            (
                request,
                Ok(
                    Response::Stat(stat)
                    | Response::Data { stat, .. }
                    | Response::Acl { stat, .. }
                    | Response::Children { stat: Some(stat), .. },
                ),
            ) => request.path().into_iter().for_each(|path| show(path, stat)),
            _ => {}
        }
    }

    /// Records that a request of a session that moved was refused. A write uses up a transaction number.
    pub(crate) fn refuse(&mut self, op: OpCode, now: i64) {
        if is_write(op) {
            self.database.next_zxid(now);
        }
    }

    /// Returns whether the leader refuses a request because its session belongs to another member than the
    /// one that received it. ZooKeeper accepts the end of a session, because an expiry is the same operation.
    /// It checks the session of a multi only with its first operation.
    pub(crate) fn refuses_as_moved(&self, session: i64, member: u32, request: &Request) -> bool {
        let is_checked = match request {
            Request::CloseSession
            | Request::Auth { .. }
            | Request::Sasl { .. }
            | Request::Reconfig { .. } => false,
            Request::Multi(ops) => !ops.is_empty(),
            _ => true,
        };
        is_checked && self.database.sessions.get(session).is_some_and(|session| session.owner != member)
    }

    /// Makes `member` the owner of a session, so that requests through other members are refused.
    pub(crate) fn set_owner(&mut self, session: i64, member: u32) {
        self.database.sessions.set_owner(session, member);
    }

    /// Accepts a follower's report that a session was attached there, which may be outdated.
    pub(crate) fn revalidate(&mut self, request: &ConnectRequest, timeout_ms: i32, member: u32, now: i64) {
        if self.database.sessions.attach(request, timeout_ms, now) {
            self.set_owner(request.session_id, member);
        }
    }

    /// Returns the transaction number for the header of an event.
    pub(crate) fn number_of(&self, event: &Event) -> i64 {
        if self.config.zxid_in_events { event.zxid } else { NO_ZXID }
    }

    /// Keeps past trees for `span_ms` milliseconds from now on; 0 to keep none.
    pub(crate) fn keep_past(&mut self, span_ms: i64) {
        self.database.past.keep(span_ms);
    }

    /// Makes a session expire `timeout_ms` from now; this is the timeout of the link that was used.
    pub(crate) fn touch(&mut self, id: i64, timeout_ms: i32, now: i64) {
        self.database.sessions.touch(id, timeout_ms, now);
    }

    /// Denies a session to the next link that asks for it. Returns `false` if there is no such session.
    pub(crate) fn deny(&mut self, id: i64, now: i64) -> bool {
        self.database.sessions.deny(id, now)
    }

    /// Ends a session in its own transaction. Returns `false` if there is no such session.
    pub(crate) fn expire(&mut self, id: i64, cause: EndCause, now: i64, effects: &mut Effects) -> bool {
        effects.events.limit(self.config.limits.events_per_transaction);
        let existed = self.database.end_session(id, cause, now, effects);
        self.database.sessions.count_events(effects.events.as_slice());
        existed
    }

    /// Returns the sessions whose timeout has passed.
    pub(crate) fn overdue(&self, now: i64) -> Vec<i64> {
        if self.frozen { Vec::new() } else { self.database.sessions.overdue(now, self.read_only) }
    }

    /// Returns the containers that have lost their last child, and the nodes whose time to live has passed,
    /// for [`reap`](Self::reap).
    pub(crate) fn done(&self, now: i64) -> Vec<String> {
        if self.frozen || self.read_only { Vec::new() } else { self.database.done(now) }
    }

    /// Deletes one of the nodes returned by [`done`](Self::done), in its own transaction.
    pub(crate) fn reap(&mut self, path: &str, now: i64, effects: &mut Effects) {
        effects.events.limit(self.config.limits.events_per_transaction);
        self.database.reap(path, now, &mut effects.events);
        self.database.sessions.count_events(effects.events.as_slice());
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns whether the expiry of sessions is stopped.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Stops the expiry of sessions, as in an ensemble without a leader.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Resumes the expiry of sessions. Each session has its full timeout from now.
    pub(crate) fn thaw(&mut self, now: i64) {
        self.frozen = false;
        self.database.sessions.touch_all(now);
    }
}

/// Returns the limit that one more session would exceed.
fn refuses_session(database: &Database, limits: &Limits) -> Option<Refusal> {
    let sessions = Refusal::over_limit("sessions", database.sessions.len() + 1, limits.sessions);
    sessions.or(Refusal::over_limit("journal_bytes", database.journal_bytes(), limits.journal_bytes))
}
