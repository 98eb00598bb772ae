use crate::net::Net;
use crate::raw::{PATIENCE, RawClient, RawError};
use bytes::Bytes;
use docent_core::{Error, ErrorKind};
use docent_proto::{ConnectRequest, ConnectResponse};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// Sessions that went through one or more proxies, with their passwords, which make it possible to end any of
/// them from outside.
#[derive(Clone, Default)]
pub struct Sessions {
    passwords: Arc<Mutex<HashMap<i64, Bytes>>>,
    net: Net,
}

/// Error of ending a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpireError {
    /// The session was not opened through this proxy.
    #[error("session {0:#x} was not opened through this proxy")]
    Unknown(i64),
    /// The server could not be reached, or did not end the session.
    #[error("cannot end the session on the server: {0}")]
    Link(#[source] io::Error),
}

impl From<RawError> for ExpireError {
    fn from(error: RawError) -> Self {
        match error {
            RawError::Unknown(session_id) => Self::Unknown(session_id),
            RawError::Io(error) => Self::Link(error),
            other => Self::Link(io::Error::other(other)),
        }
    }
}

impl From<ExpireError> for Error {
    fn from(error: ExpireError) -> Self {
        let kind = match error {
            ExpireError::Unknown(_) => ErrorKind::InvalidInput,
            ExpireError::Link(_) => ErrorKind::Unavailable,
        };
        Self::of_recipe(kind, "expire", error)
    }
}

impl Sessions {
    /// Creates an empty record of sessions on `net`. Proxies that use the record also listen on `net`.
    pub fn on(net: Net) -> Self {
        Self { passwords: Arc::default(), net }
    }

    pub(super) fn net(&self) -> &Net {
        &self.net
    }

    pub(super) fn remember(&self, response: &ConnectResponse) {
        if response.session_id != 0 {
            self.passwords().insert(response.session_id, response.password.clone());
        }
    }

    /// Returns the sessions seen so far, in no particular order.
    pub fn ids(&self) -> Vec<i64> {
        self.passwords().keys().copied().collect()
    }

    /// Returns the password of a session, for tests that check whether it leaks.
    pub fn password(&self, session_id: i64) -> Option<Bytes> {
        self.passwords().get(&session_id).cloned()
    }

    /// Ends a session as an expiry does, by attaching to it on a separate link and closing it. Waits until
    /// the session has ended.
    ///
    /// # Errors
    /// If the session is not known, the server is unreachable, or the session could not be closed within 30
    /// s.
    pub async fn expire(&self, session_id: i64, server: SocketAddr) -> Result<(), ExpireError> {
        timeout(PATIENCE, self.close_from_outside(session_id, server))
            .await
            .unwrap_or_else(|_| Err(RawError::Io(io::ErrorKind::TimedOut.into())))
            .map_err(ExpireError::from)
    }

    async fn close_from_outside(&self, session_id: i64, server: SocketAddr) -> Result<(), RawError> {
        loop {
            let closed = match self.attach(session_id, server).await {
                Ok(link) => link.close().await,
                Err(error) => Err(error),
            };
            match closed {
                Ok(()) | Err(RawError::Gone(_)) => return Ok(()),
                // The client has resumed the session before it was closed. The server then closes this link,
                // sometimes before it answers.
                Err(RawError::Io(error)) if taken_back(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Attaches to a session on a separate link, with a timeout of 10 s, so the session continues for at
    /// least that time.
    ///
    /// # Errors
    /// If the session is not known or has expired, or the server is unreachable.
    pub async fn attach(&self, session_id: i64, server: SocketAddr) -> Result<RawClient, RawError> {
        let password = self.passwords().get(&session_id).cloned().ok_or(RawError::Unknown(session_id))?;
        let connect = ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 10_000,
            session_id,
            password,
            read_only: Some(false),
        };
        RawClient::attach_on(&self.net, server, &connect).await
    }

    fn passwords(&self) -> MutexGuard<'_, HashMap<i64, Bytes>> {
        self.passwords.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the server closed a link that it had accepted. An unreachable server refuses the link
/// instead, and a silent one times out.
fn taken_back(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

// Passwords are never printed.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids().iter().map(|id| format!("{id:#x}"))).finish()
    }
}
