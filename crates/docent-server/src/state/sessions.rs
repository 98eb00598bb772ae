use super::acl::{Identity, SASL};
use super::auth;
use super::event::Event;
use super::refusal::Notes;
use super::sasl::{Answer, Sasl};
use super::session::Session;
use crate::config::{Config, SaslUsers, SuperUser};
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest};
use std::collections::BTreeMap;

/// The sessions by id, with their expiry times.
#[derive(Clone)]
pub(crate) struct Sessions {
    sessions: BTreeMap<i64, Session>,
    tick_ms: i64,
    last_id: i64,
    /// Source of passwords.
    random: fastrand::Rng,
    super_user: Option<SuperUser>,
    pub(super) sasl_users: SaslUsers,
}

impl Sessions {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            sessions: BTreeMap::new(),
            tick_ms: config.tick_ms(),
            last_id: 0,
            random: config.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            super_user: config.super_user.clone(),
            sasl_users: config.sasl_users.clone(),
        }
    }

    /// Makes sessions opened from now on have ids above `last_id`.
    pub(super) fn begin_after(&mut self, last_id: i64) {
        self.last_id = self.last_id.max(last_id);
    }

    /// Opens a session and returns its id.
    pub(crate) fn open(&mut self, timeout_ms: i32, now: i64) -> i64 {
        let mut password = [0; 16];
        self.random.fill(&mut password);
        self.last_id += 1;
        self.sessions.insert(self.last_id, Session::new(password, timeout_ms));
        self.touch(self.last_id, timeout_ms, now);
        self.last_id
    }

    /// Opens a session without a transaction, and returns its id.
    pub(super) fn open_local(&mut self, timeout_ms: i32, now: i64) -> i64 {
        let id = self.open(timeout_ms, now);
        if let Some(session) = self.get_mut(id) {
            session.is_local = true;
        }
        id
    }

    /// Removes the sessions that were opened without a transaction.
    pub(super) fn remove_local(&mut self) {
        self.sessions.retain(|_, session| !session.is_local);
    }

    /// Adds a session that another server opened. Returns `false` if it already exists.
    pub(super) fn restore(&mut self, id: i64, password: [u8; 16], timeout_ms: i32) -> bool {
        self.begin_after(id);
        self.sessions.insert(id, Session::new(password, timeout_ms)).is_none()
    }

    /// Attaches a link to an existing session. Returns `false` if there is no session with that id and
    /// password.
    pub(crate) fn attach(&mut self, request: &ConnectRequest, timeout_ms: i32, now: i64) -> bool {
        let Some(session) = self.get_mut(request.session_id) else { return false };
        if request.password != session.password.as_slice() || std::mem::take(&mut session.is_denied) {
            return false;
        }
        session.timeout_ms = timeout_ms;
        self.touch(request.session_id, timeout_ms, now);
        true
    }

    /// Denies a session to the next link that asks for it, and gives the session a full timeout. Returns
    /// `false` if there is no such session.
    pub(crate) fn deny(&mut self, id: i64, now: i64) -> bool {
        let Some(session) = self.get_mut(id) else { return false };
        session.is_denied = true;
        let timeout_ms = session.timeout_ms;
        self.touch(id, timeout_ms, now);
        true
    }

    /// Records that the link of a session is closed.
    pub(crate) fn detach(&mut self, id: i64) {
        if let Some(session) = self.get_mut(id) {
            session.attached = false;
            session.identities.clear();
            session.sasl = Sasl::default();
        }
    }

    /// Adds the identities that the credentials prove to the client of a session, if the scheme is supported.
    pub(crate) fn authenticate(
        &mut self,
        id: i64,
        (scheme, credentials): (&str, &[u8]),
        most_bytes: usize,
        notes: &mut Notes,
    ) -> Result<(), Code> {
        // The size is checked before hashing, which takes time.
        let admitted = notes.admit("auth_bytes_per_connection", credentials.len(), most_bytes);
        admitted.map_err(|_| Code::AUTH_FAILED)?;
        let identities = auth::identities(scheme, credentials, self.super_user.as_ref())?;
        let session = self.get_mut(id).ok_or(Code::AUTH_FAILED)?;
        identities.into_iter().try_for_each(|identity| session.add_identity(identity, most_bytes, notes))
    }

    /// Answers a token of SASL, and adds the identity that the client has proved. Returns the server's token;
    /// `None` if the server does not offer SASL.
    pub(crate) fn sasl_step(
        &mut self,
        id: i64,
        token: &[u8],
        most_bytes: usize,
        notes: &mut Notes,
    ) -> Result<Option<Bytes>, Code> {
        if self.sasl_users.is_empty() {
            return Ok(None);
        }
        let session = self.sessions.get_mut(&id).ok_or(Code::AUTH_FAILED)?;
        let nonce = || format!("{:032x}", self.random.u128(..));
        match session.sasl.step(&self.sasl_users, token, nonce)? {
            Answer::Challenge(token) => Ok(Some(token)),
            Answer::Accepted { user, token } => {
                let identity = Identity { scheme: SASL.into(), id: user };
                session.add_identity(identity, most_bytes, notes)?;
                Ok(Some(token))
            }
        }
    }

    /// Makes `member` the owner of a session, so that requests through other members are refused.
    pub(crate) fn set_owner(&mut self, id: i64, member: u32) {
        if let Some(session) = self.get_mut(id) {
            session.owner = member;
        }
    }

    /// Counts events that are sent.
    pub(crate) fn count_events(&mut self, events: &[Event]) {
        for event in events {
            if let Some(session) = self.get_mut(event.session) {
                session.events_sent += 1;
            }
        }
    }

    /// Makes a session expire `timeout_ms` from now, whether that is later or earlier than before.
    pub(crate) fn touch(&mut self, id: i64, timeout_ms: i32, now: i64) {
        let expires_at = self.bucket(now, timeout_ms);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.expires_at = expires_at;
        }
    }

    /// Gives every session a full timeout.
    pub(crate) fn touch_all(&mut self, now: i64) {
        let all: Vec<_> = self.sessions.iter().map(|(id, session)| (*id, session.timeout_ms)).collect();
        for (id, timeout_ms) in all {
            self.touch(id, timeout_ms, now);
        }
    }

    /// Returns the sessions that were not touched in time, in the order of their ids. `only_local` omits
    /// those that were opened in a transaction.
    pub(crate) fn overdue(&self, now: i64, only_local: bool) -> Vec<i64> {
        let is_due = |session: &Session| session.expires_at <= now && (session.is_local || !only_local);
        self.sessions.iter().filter(|(_, session)| is_due(session)).map(|(id, _)| *id).collect()
    }

    /// Returns the end of the tick in which a timeout that starts now ends.
    fn bucket(&self, now: i64, timeout_ms: i32) -> i64 {
        (now.saturating_add(i64::from(timeout_ms)) / self.tick_ms)
            .saturating_add(1)
            .saturating_mul(self.tick_ms)
    }

    pub(crate) fn remove(&mut self, id: i64) -> Option<Session> {
        self.sessions.remove(&id)
    }

    pub(crate) fn get(&self, id: i64) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: i64) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// Returns the identities of a session's client.
    pub(crate) fn identities(&self, id: i64) -> &[Identity] {
        self.get(id).map_or(&[], |session| &session.identities)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    pub(crate) fn tick_ms(&self) -> i64 {
        self.tick_ms
    }

    /// Returns the last id that was assigned.
    pub(super) fn last_id(&self) -> i64 {
        self.last_id
    }

    pub(crate) fn ids(&self) -> Vec<i64> {
        self.sessions.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }
}
