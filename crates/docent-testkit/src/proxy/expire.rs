use crate::net::Net;
use crate::raw::{PATIENCE, RawClient, RawError};
use bytes::Bytes;
use docent_proto::{ConnectRequest, ConnectResponse};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// Sessions that went through one or more proxies, with their passwords: enough to end any of them from
/// outside.
#[derive(Clone, Default)]
pub struct Sessions {
    known: Arc<Mutex<HashMap<i64, Bytes>>>,
    net: Net,
}

/// Reason why a session could not be ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpireError {
    /// It was not opened through this proxy.
    #[error("session {0:#x} was not opened through this proxy")]
    Unknown(i64),
    /// The server could not be reached, or did not end it.
    #[error("the server could not be told to end the session: {0}")]
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

impl Sessions {
    /// A record of sessions on `net`, where proxies with this record listen, too.
    pub fn on(net: Net) -> Self {
        Self { known: Arc::default(), net }
    }

    pub(super) fn net(&self) -> &Net {
        &self.net
    }

    pub(super) fn remember(&self, response: &ConnectResponse) {
        if response.session_id != 0 {
            self.known().insert(response.session_id, response.password.clone());
        }
    }

    /// The sessions seen so far, in no order.
    pub fn ids(&self) -> Vec<i64> {
        self.known().keys().copied().collect()
    }

    /// The password of a session that was seen, for tests that look whether it leaks.
    pub fn password(&self, session_id: i64) -> Option<Bytes> {
        self.known().get(&session_id).cloned()
    }

    /// Ends a session as expiry does, by attaching to it on a link of our own and closing it. It is gone when
    /// this returns.
    ///
    /// # Errors
    /// When the session is not known, or the server cannot be reached or does not let it be closed for 30 s.
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
                // Its client has taken the session back before it was closed: the server then closes this
                // link, at times before it answers on it.
                Err(RawError::Io(error)) if taken_back(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Attaches to a session on a link of our own, with a timeout of 10 s: it lives on for that long.
    ///
    /// # Errors
    /// When the session is not known or gone already, or the server cannot be reached.
    pub async fn attach(&self, session_id: i64, server: SocketAddr) -> Result<RawClient, RawError> {
        let password = self.known().get(&session_id).cloned().ok_or(RawError::Unknown(session_id))?;
        let connect = ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 10_000,
            session_id,
            password,
            read_only: Some(false),
        };
        RawClient::attach_on(&self.net, server, &connect).await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<i64, Bytes>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True when the server closed a link that it had accepted. A server that cannot be reached refuses instead,
/// and a silent one times out.
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
