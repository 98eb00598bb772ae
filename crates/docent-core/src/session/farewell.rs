//! The end of a session that was given up: its nodes would stand for as long as the servers keep it.

use super::dialer::{Dialer, Ensemble, Start};
use super::exchange::Exchange;
use super::transport::Io;
use bytes::Bytes;
use docent_proto::{Code, ConnectRequest, Request};
use secrecy::{ExposeSecret, SecretSlice};
use std::fmt;
use std::io;
use std::time::Duration;

/// What it takes to end a session on a link of its own.
pub(crate) struct Farewell {
    pub(super) session_id: i64,
    pub(super) password: SecretSlice<u8>,
    pub(super) timeout: Duration,
}

impl Farewell {
    /// Ends the session. Tries until a server says that it is gone.
    pub(crate) async fn say(self, ensemble: &Ensemble) {
        let mut dialer = Dialer::new(ensemble.aside(), Start::Jittered);
        loop {
            let io = dialer.next(self.timeout).await;
            let limit = dialer.attempt_timeout(self.timeout);
            match tokio::time::timeout(limit, self.end(io)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => tracing::debug!(%error, "an abandoned session could not be ended yet"),
                Err(_) => tracing::debug!("an abandoned session could not be ended yet: no answer"),
            }
        }
    }

    async fn end(&self, io: Box<dyn Io>) -> io::Result<()> {
        let connect = ConnectRequest {
            // Whoever only says goodbye needs no server that is up to date.
            last_zxid_seen: 0,
            timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            session_id: self.session_id,
            password: Bytes::copy_from_slice(self.password.expose_secret()),
            read_only: Some(false),
        };
        let mut exchange = Exchange::new(io);
        // In one write: on a link that carries nothing back, attaching again and again would keep the session alive for ever.
        let response = exchange.connect_and_ask(&connect, &Request::CloseSession).await?;
        if response.timeout_ms <= 0 || response.session_id != self.session_id {
            return Ok(());
        }
        match exchange.reply().await?.code {
            Code::OK | Code::SESSION_EXPIRED => Ok(()),
            code => Err(io::Error::other(code.to_string())),
        }
    }
}

impl fmt::Debug for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Farewell({:#x})", self.session_id)
    }
}
