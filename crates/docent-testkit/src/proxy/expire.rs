use crate::raw::{RawClient, RawError};
use bytes::Bytes;
use docent_proto::{ConnectRequest, ConnectResponse};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that went through one or more proxies, with their passwords: enough to end any of them from outside.
#[derive(Clone, Default)]
pub struct Sessions {
    known: Arc<Mutex<HashMap<i64, Bytes>>>,
}

/// Why a session could not be ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpireError {
    /// It was not opened through a proxy that shares this record.
    #[error("session {0:#x} was not opened through this proxy")]
    Unknown(i64),
    /// The server could not be reached, or the session is gone.
    #[error(transparent)]
    Link(#[from] RawError),
}

impl Sessions {
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

    /// Ends a session as expiry does, by attaching to it on a link of our own and closing it. It is gone when this
    /// returns.
    ///
    /// # Errors
    /// When the session is not known or gone already, or the server cannot be reached.
    pub async fn expire(&self, session_id: i64, server: SocketAddr) -> Result<(), ExpireError> {
        let mut link = self.attach(session_id, server).await?;
        loop {
            match link.close().await {
                // Its client has taken the session back before it was closed.
                Err(RawError::Io(_)) => {}
                closed => return Ok(closed?),
            }
            link = match self.attach(session_id, server).await {
                Err(ExpireError::Link(RawError::Gone(_))) => return Ok(()),
                attached => attached?,
            };
        }
    }

    /// Attaches to a session on a link of our own, with a timeout of 10 s: it lives on for that long.
    ///
    /// # Errors
    /// When the session is not known or gone already, or the server cannot be reached.
    pub async fn attach(&self, session_id: i64, server: SocketAddr) -> Result<RawClient, ExpireError> {
        let password = self.known().get(&session_id).cloned().ok_or(ExpireError::Unknown(session_id))?;
        let connect = ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: 10_000,
            session_id,
            password,
            read_only: Some(false),
        };
        Ok(RawClient::attach(server, &connect).await?)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<i64, Bytes>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Passwords are never printed.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids().iter().map(|id| format!("{id:#x}"))).finish()
    }
}
