//! The end of a session that its client gave up, that a server refused to attach, or whose close had no
//! answer: its nodes would stand for as long as the servers keep it.

use crate::session::Credentials;
use crate::session::link::dialer::{Dialer, Ensemble, Start};
use crate::session::link::side_link::SideLink;
use crate::session::link::transport::Io;
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest, ConnectResponse, ReplyHeader, Request, xid};
use secrecy::{ExposeSecret, SecretSlice};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Most links, one soon after the other, over which the session is asked for: a link that attaches it and
/// cannot end it gives it one more timeout to live (decision 6).
const MOST_LINKS: usize = 3;

/// Pause after the first write that no quorum acknowledged, give or take a quarter; the next ones are longer.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Means to end a session on a link of its own.
#[derive(Clone)]
pub(crate) struct SessionCloser {
    pub(in crate::session) session_id: i64,
    pub(in crate::session) password: SecretSlice<u8>,
    pub(crate) timeout: Duration,
    /// Credentials: servers may take no request without them, not even this one. Empty once
    /// they were refused.
    pub(in crate::session) credentials: Vec<Credentials>,
}

/// Reason why nothing was found out over a link.
#[derive(Debug, thiserror::Error)]
enum Kept {
    #[error("the server did not attach it: {0}")]
    NotAttached(io::Error),
    #[error("the server refuses our credentials: {0}")]
    Refused(Code),
    #[error("the server did not answer: {0}")]
    NotTold(#[from] io::Error),
}

/// Answer of a server that was asked to attach the session and close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// A quorum closed it.
    Closed,
    /// There is no such session, says this server.
    Unknown,
}

impl SessionCloser {
    /// Ends the session. Returns true once it is certain that it is over, and false when the servers refuse
    /// every request of this client: they end it when it was silent for long enough.
    ///
    /// The word of one server that there is no such session proves nothing: a leader that has lost its
    /// followers ends sessions by its own clock, and the next leader does not know. It is proven once the
    /// same term of the leader has acknowledged a write after that (decision 25).
    pub(crate) async fn run(mut self, ensemble: &Ensemble, start: Start) -> bool {
        // Newest transaction of the term of which a server that does not know the session has to be, or
        // later.
        let mut seen = None;
        let mut seen_at = Instant::now();
        // Links over which the session was attached and not ended.
        let mut links = 0;
        let mut pause = FIRST_PAUSE;
        let mut dialer = Dialer::new(ensemble.aside(), start);
        loop {
            let io = dialer.next(self.timeout).await;
            let limit = dialer.attempt_timeout(self.timeout);
            let ended = timeout(limit, self.end(io, seen)).await;
            let kept = match ended.unwrap_or_else(|_| Err(Kept::NotTold(io::ErrorKind::TimedOut.into()))) {
                Ok(Answer::Closed) => return true,
                Ok(Answer::Unknown) if planted!(ExpiredIsGone) => return true,
                Ok(Answer::Unknown) => match self.newest(ensemble).await {
                    Ok(newest) if seen.map(term) == Some(term(newest)) => return true,
                    Ok(newest) => {
                        (seen, seen_at) = (Some(newest), Instant::now());
                        dialer = Dialer::new(ensemble.aside(), Start::AtOnce);
                        continue;
                    }
                    Err(kept) => {
                        // Each attempt opens a session at a server that may have enough to do.
                        sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
                        pause = (pause * 2).min(self.timeout);
                        kept
                    }
                },
                Err(kept) => kept,
            };
            tracing::debug!(error = %kept, "a session could not be ended yet");
            match kept {
                Kept::NotAttached(_) => {
                    // Servers that were restored from an older copy may never see it.
                    if seen_at.elapsed() > self.timeout {
                        seen = None;
                    }
                    continue;
                }
                Kept::Refused(_) if self.credentials.is_empty() => return false,
                // Most servers end sessions for anybody who knows their password.
                Kept::Refused(_) => self.credentials.clear(),
                Kept::NotTold(_) => {}
            }
            links += 1;
            if links >= MOST_LINKS {
                // Longer than its timeout, so that these attempts do not keep it alive.
                sleep(self.timeout * 3 / 2).await;
            }
        }
    }

    /// Attaches the session and closes it, at a server that has seen the transaction `seen`.
    async fn end(&self, io: Box<dyn Io>, seen: Option<i64>) -> Result<Answer, Kept> {
        let connect = ConnectRequest {
            // Servers that have seen less do not answer. Without it, any will do: the end of a session needs
            // no server that is up to date.
            last_zxid_seen: seen.unwrap_or_default(),
            timeout_ms: self.timeout_ms(),
            session_id: self.session_id,
            password: Bytes::copy_from_slice(self.password.expose_secret()),
            read_only: Some(false),
        };
        let (response, mut side_link) = self.attach(io, &connect).await.map_err(Kept::NotAttached)?;
        if response.timeout_ms <= 0 || response.session_id != self.session_id {
            return Ok(Answer::Unknown);
        }
        match closed(&mut side_link).await?.code {
            Code::SESSION_EXPIRED => Ok(Answer::Unknown),
            _ => Ok(Answer::Closed),
        }
    }

    /// The newest transaction, after a write that a quorum acknowledged: opens a session and closes it.
    async fn newest(&self, ensemble: &Ensemble) -> Result<i64, Kept> {
        let mut dialer = Dialer::new(ensemble.aside(), Start::AtOnce);
        let io = dialer.next(self.timeout).await;
        let write = async {
            let connect = ConnectRequest::new_session(self.timeout_ms());
            let (_, mut side_link) = self.attach(io, &connect).await.map_err(Kept::NotAttached)?;
            closed(&mut side_link).await
        };
        let written = timeout(dialer.attempt_timeout(self.timeout), write).await;
        match written.unwrap_or_else(|_| Err(Kept::NotAttached(io::ErrorKind::TimedOut.into()))) {
            Ok(ReplyHeader { code: Code::OK, zxid, .. }) => Ok(zxid),
            Ok(reply) => Err(Kept::NotAttached(io::Error::other(reply.code.to_string()))),
            // It was not the session that was attached.
            Err(Kept::NotTold(error)) => Err(Kept::NotAttached(error)),
            Err(kept) => Err(kept),
        }
    }

    /// Opens or takes up a session and closes it, in one write: over a link that carries nothing back, the
    /// session would be attached and live on (decision 6). Returns the answer to the first half.
    async fn attach(
        &self,
        io: Box<dyn Io>,
        connect: &ConnectRequest,
    ) -> io::Result<(ConnectResponse, SideLink)> {
        let credentials = self.credentials.iter().map(Credentials::request);
        let mut side_link = SideLink::new(io);
        let response = side_link.connect_and_ask(connect, credentials, &Request::CloseSession).await?;
        Ok((response, side_link))
    }

    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

/// The answer to the request to close.
async fn closed(side_link: &mut SideLink) -> Result<ReplyHeader, Kept> {
    loop {
        let reply = side_link.reply().await?;
        match reply.code {
            Code::OK if reply.xid == xid::AUTH => {}
            Code::OK | Code::SESSION_EXPIRED => return Ok(reply),
            code @ (Code::AUTH_FAILED | Code::NO_AUTH | Code::SESSION_CLOSED_REQUIRE_SASL_AUTH) => {
                return Err(Kept::Refused(code));
            }
            code => return Err(Kept::NotTold(io::Error::other(code.to_string()))),
        }
    }
}

/// The term of the leader that gave a transaction its number.
fn term(zxid: i64) -> i64 {
    zxid >> u32::BITS
}

impl fmt::Debug for SessionCloser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionCloser({:#x})", self.session_id)
    }
}
