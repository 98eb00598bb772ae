//! The end of a session that was given up: its nodes would stand for as long as the servers keep it.

use crate::session::Credentials;
use crate::session::link::dialer::{Dialer, Ensemble, Start};
use crate::session::link::side_link::SideLink;
use crate::session::link::transport::Io;
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest, Request, xid};
use secrecy::{ExposeSecret, SecretSlice};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// Most links over which the session is asked for: a link that attaches it and cannot end it gives it one
/// more timeout to live (decision 6).
const MOST_LINKS: usize = 3;

/// Means to end a session on a link of its own.
pub(crate) struct SessionCloser {
    pub(in crate::session) session_id: i64,
    pub(in crate::session) password: SecretSlice<u8>,
    pub(in crate::session) timeout: Duration,
    /// Credentials: servers may take no request without them, not even this one. Empty once
    /// they were refused.
    pub(in crate::session) credentials: Vec<Credentials>,
}

/// Reason why the session was not ended over a link.
#[derive(Debug, thiserror::Error)]
enum Kept {
    #[error("the server did not attach it: {0}")]
    NotAttached(io::Error),
    #[error("the server refuses our credentials: {0}")]
    Refused(Code),
    #[error("the server did not say that it is gone: {0}")]
    NotTold(#[from] io::Error),
}

impl SessionCloser {
    /// Ends the session. Tries until a server says that the session is gone or that it refuses to end it; but
    /// not so often that the attempts would keep it alive, and not after the servers have ended it by
    /// themselves.
    pub(crate) async fn run(mut self, ensemble: &Ensemble) {
        let mut dialer = Dialer::new(ensemble.aside(), Start::Jittered);
        // Servers that do not answer may be down, and keep the session until they are back.
        let (mut links, mut over_at) = (0, None);
        while links < MOST_LINKS {
            let io = tokio::select! {
                io = dialer.next(self.timeout) => io,
                () = sleep_until(over_at.unwrap_or_else(Instant::now)), if over_at.is_some() => return,
            };
            let ended = timeout(dialer.attempt_timeout(self.timeout), self.end(io)).await;
            let Err(kept) = ended.unwrap_or_else(|_| Err(Kept::NotTold(io::ErrorKind::TimedOut.into())))
            else {
                return;
            };
            tracing::debug!(error = %kept, "an abandoned session could not be ended yet");
            match kept {
                Kept::NotAttached(_) => continue,
                Kept::Refused(_) if self.credentials.is_empty() => return,
                // Most servers end sessions for anybody who knows their password.
                Kept::Refused(_) => self.credentials.clear(),
                Kept::NotTold(_) => {}
            }
            links += 1;
            // A timeout after the last link the servers have ended the session by themselves (decision 6).
            over_at = Some(Instant::now() + self.timeout);
        }
    }

    async fn end(&self, io: Box<dyn Io>) -> Result<(), Kept> {
        let connect = ConnectRequest {
            // The end of a session needs no server that is up to date.
            last_zxid_seen: 0,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: self.session_id,
            password: Bytes::copy_from_slice(self.password.expose_secret()),
            read_only: Some(false),
        };
        let credentials = self.credentials.iter().map(Credentials::request);
        let mut side_link = SideLink::new(io);
        // In one write (decision 6): over a link that carries nothing back, the session would be attached and
        // live on.
        let response = side_link.connect_and_ask(&connect, credentials, &Request::CloseSession).await;
        let response = response.map_err(Kept::NotAttached)?;
        if response.timeout_ms <= 0 || response.session_id != self.session_id {
            return Ok(());
        }
        loop {
            let reply = side_link.reply().await?;
            match reply.code {
                Code::OK if reply.xid == xid::AUTH => {}
                Code::OK | Code::SESSION_EXPIRED => return Ok(()),
                code @ (Code::AUTH_FAILED | Code::NO_AUTH | Code::SESSION_CLOSED_REQUIRE_SASL_AUTH) => {
                    return Err(Kept::Refused(code));
                }
                code => return Err(Kept::NotTold(io::Error::other(code.to_string()))),
            }
        }
    }
}

impl fmt::Debug for SessionCloser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionCloser({:#x})", self.session_id)
    }
}
