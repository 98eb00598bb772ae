//! Closes a session that the client gave up, that a server refused to attach, or whose close request got no
//! reply. Otherwise the nodes of the session would exist for as long as the servers keep the session.

use crate::session::link::dialer::{Dialer, Ensemble, Start};
use crate::session::link::side_link::SideLink;
use crate::session::link::transport::Io;
use crate::session::sasl::{BegunSasl, SaslExchange};
use crate::session::{Credentials, Sasl};
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest, ConnectResponse, ReplyHeader, Request, xid};
use secrecy::{ExposeSecret, SecretSlice};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Maximum number of links used in quick succession. A link that attaches the session but fails to close it
/// extends the session's life by one more timeout (decision 6).
const MAX_LINKS: usize = 3;

/// Pause after the first attempt whose write no quorum acknowledged, give or take a quarter. Later pauses are
/// longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Everything needed to close a session over a separate link.
#[derive(Clone)]
pub(crate) struct SessionCloser {
    pub(in crate::session) session_id: i64,
    pub(in crate::session) password: SecretSlice<u8>,
    pub(crate) timeout: Duration,
    /// Credentials to present. Servers may reject every request without them, including the close. Empty once
    /// they were refused.
    pub(in crate::session) credentials: Vec<Credentials>,
    /// Identity for servers that reject the close without SASL. `None` once it was refused.
    pub(in crate::session) sasl: Option<Sasl>,
    /// True once a server has rejected the close without SASL. SASL takes several round trips, so a link that
    /// delivers nothing back would attach the session without closing it.
    pub(in crate::session) with_sasl: bool,
}

/// Reason why a link did not settle whether the session has ended.
#[derive(Debug, thiserror::Error)]
enum CloseError {
    #[error("the server did not attach the session: {0}")]
    NotAttached(io::Error),
    #[error("the server refused the client's credentials: {0}")]
    Refused(Code),
    #[error("the server did not reply: {0}")]
    NoReply(#[from] io::Error),
}

/// Reply of a server that was asked to attach the session and close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// A quorum closed the session.
    Closed,
    /// This server does not know the session.
    Unknown,
    /// This server opened another session, because it restores none.
    NotRestored,
}

impl SessionCloser {
    /// Ends the session. Returns true once the session is certain to be over. Returns false if the servers
    /// refuse every request of this client, or restore no sessions; they expire the session once it has been
    /// silent for long enough.
    ///
    /// The reply of a single server that the session does not exist proves nothing. A leader that has lost
    /// its followers expires sessions by its own clock, and the next leader does not learn of that. The end
    /// is proven once the same leader term has acknowledged a write after that reply (decision 25).
    pub(crate) async fn run(mut self, ensemble: &Ensemble, start: Start) -> bool {
        // A session without a password can be attached by no link, and lives until its timeout.
        if self.password.expose_secret().iter().all(|byte| *byte == 0) {
            return false;
        }
        // A transaction of a leader term. A server that denies the session must have seen this transaction or
        // a later one.
        let mut seen = None;
        let mut learned_at = Instant::now();
        // Number of links over which the session was attached but not closed.
        let mut links = 0;
        let mut pause = FIRST_PAUSE;
        let mut dialer = Dialer::new(ensemble.for_side_link(), start);
        loop {
            let io = dialer.next(self.timeout).await;
            let limit = dialer.attempt_timeout(self.timeout);
            let ended = match self.begin_sasl(dialer.host(), limit).await {
                Ok(begun) => timeout(limit, self.end(io, begun, seen)).await,
                Err(error) => Ok(Err(error)),
            };
            let error =
                match ended.unwrap_or_else(|_| Err(CloseError::NoReply(io::ErrorKind::TimedOut.into()))) {
                    Ok(Answer::Closed) => return true,
                    Ok(Answer::NotRestored) => return false,
                    Ok(Answer::Unknown) if planted!(ExpiredIsGone) => return true,
                    Ok(Answer::Unknown) => match self.newest(ensemble).await {
                        Ok(newest) if seen.map(term) == Some(term(newest)) => return true,
                        Ok(newest) => {
                            (seen, learned_at) = (Some(newest), Instant::now());
                            dialer = Dialer::new(ensemble.for_side_link(), Start::Immediately);
                            continue;
                        }
                        Err(error) => {
                            // Each attempt opens a session at a server that may be overloaded.
                            sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
                            pause = (pause * 2).min(self.timeout);
                            error
                        }
                    },
                    Err(error) => error,
                };
            // Event: A session that the client no longer uses could not be closed at the servers. The client
            // retries, or leaves the session to its timeout if the servers refuse the client's credentials.
            tracing::debug!(target: "docent::session", client = %ensemble.link_status.client(), error = %error, "failed to close a session at the servers");
            match error {
                CloseError::NotAttached(_) => {
                    // Servers that were restored from an older snapshot may never reach that transaction.
                    if learned_at.elapsed() > self.timeout {
                        seen = None;
                    }
                    continue;
                }
                CloseError::Refused(_) if self.sasl.is_some() && !self.with_sasl => self.with_sasl = true,
                CloseError::Refused(_) if self.with_sasl => (self.sasl, self.with_sasl) = (None, false),
                CloseError::Refused(_) if self.credentials.is_empty() => return false,
                // Most servers let any client that knows the session's password close it.
                CloseError::Refused(_) => self.credentials.clear(),
                CloseError::NoReply(_) => {}
            }
            links += 1;
            if links >= MAX_LINKS {
                // Longer than the session timeout, so that these attempts do not keep the session alive.
                sleep(self.timeout * 3 / 2).await;
            }
        }
    }

    /// Attaches the session and closes it, at a server that has seen the transaction `seen`.
    async fn end(
        &self,
        io: Box<dyn Io>,
        begun: Option<BegunSasl>,
        seen: Option<i64>,
    ) -> Result<Answer, CloseError> {
        let connect = ConnectRequest {
            // Servers that have seen less do not reply. Without a transaction any server will do, because
            // closing a session needs no server that is up to date.
            last_zxid_seen: seen.unwrap_or_default(),
            timeout_ms: self.timeout_ms(),
            session_id: self.session_id,
            password: Bytes::copy_from_slice(self.password.expose_secret()),
            read_only: Some(false),
        };
        let (response, mut side_link) = self.attach(io, begun, &connect).await?;
        if response.timeout_ms <= 0 {
            return Ok(Answer::Unknown);
        }
        // The server restores no sessions, and opened a new one: this says nothing about the old one.
        if response.session_id != self.session_id {
            return Ok(Answer::NotRestored);
        }
        match closed(&mut side_link).await?.code {
            Code::SESSION_EXPIRED => Ok(Answer::Unknown),
            _ => Ok(Answer::Closed),
        }
    }

    /// Returns the newest transaction after a write that a quorum acknowledged: opens a session and closes
    /// it.
    async fn newest(&self, ensemble: &Ensemble) -> Result<i64, CloseError> {
        let mut dialer = Dialer::new(ensemble.for_side_link(), Start::Immediately);
        let io = dialer.next(self.timeout).await;
        let limit = dialer.attempt_timeout(self.timeout);
        let begun = self.begin_sasl(dialer.host(), limit).await?;
        let write = async {
            let connect = ConnectRequest::new_session(self.timeout_ms());
            let (_, mut side_link) = self.attach(io, begun, &connect).await?;
            closed(&mut side_link).await
        };
        let written = timeout(limit, write).await;
        match written.unwrap_or_else(|_| Err(CloseError::NotAttached(io::ErrorKind::TimedOut.into()))) {
            Ok(ReplyHeader { code: Code::OK, zxid, .. }) => Ok(zxid),
            Ok(reply) => Err(CloseError::NotAttached(io::Error::other(reply.code.to_string()))),
            // The session that could not be attached is the temporary one, not the session to close.
            Err(CloseError::NoReply(error)) => Err(CloseError::NotAttached(error)),
            Err(error) => Err(error),
        }
    }

    /// Begins the authentication with the server `host`, if it is needed. Nothing was sent yet.
    async fn begin_sasl(&self, host: &str, limit: Duration) -> Result<Option<BegunSasl>, CloseError> {
        let Some(sasl) = self.sasl.as_ref().filter(|_| self.with_sasl) else { return Ok(None) };
        let begun = SaslExchange::begin(sasl, host, limit).await;
        begun.map(Some).map_err(|error| CloseError::NotAttached(io::Error::other(error)))
    }

    /// Opens or resumes a session and closes it, in one write. Over a link that delivers nothing back, the
    /// session would otherwise be attached and live on (decision 6). Returns the reply to the connect
    /// request.
    async fn attach(
        &self,
        io: Box<dyn Io>,
        begun: Option<BegunSasl>,
        connect: &ConnectRequest,
    ) -> Result<(ConnectResponse, SideLink), CloseError> {
        let credentials = self.credentials.iter().map(Credentials::request);
        let close = &Request::CloseSession;
        let mut side_link = SideLink::new(io);
        let Some((sasl, (exchange, token))) = self.sasl.as_ref().zip(begun) else {
            let connected = side_link.connect_and_send(connect, credentials, close).await;
            return Ok((connected.map_err(CloseError::NotAttached)?, side_link));
        };
        let connected = side_link.connect_with_sasl(connect, token).await;
        let response = connected.map_err(CloseError::NotAttached)?;
        if response.timeout_ms > 0 {
            let sent = side_link.authenticate_and_send(sasl, exchange, credentials, close).await;
            sent.map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => CloseError::Refused(Code::AUTH_FAILED),
                _ => CloseError::NoReply(error),
            })?;
        }
        Ok((response, side_link))
    }

    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// Returns the reply to the close request.
async fn closed(side_link: &mut SideLink) -> Result<ReplyHeader, CloseError> {
    loop {
        let reply = side_link.reply().await?;
        match reply.code {
            Code::OK if reply.xid == xid::AUTH => {}
            Code::OK | Code::SESSION_EXPIRED => return Ok(reply),
            code @ (Code::AUTH_FAILED | Code::NO_AUTH | Code::SESSION_CLOSED_REQUIRE_SASL_AUTH) => {
                return Err(CloseError::Refused(code));
            }
            code => return Err(CloseError::NoReply(io::Error::other(code.to_string()))),
        }
    }
}

/// Returns the term of the leader that numbered the transaction.
fn term(zxid: i64) -> i64 {
    zxid >> u32::BITS
}

impl fmt::Debug for SessionCloser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionCloser({:#x})", self.session_id)
    }
}
