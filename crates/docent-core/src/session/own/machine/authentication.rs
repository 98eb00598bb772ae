//! Authentication of a new link: credentials and SASL, before anything else (decision 6).

use super::{Link, Machine};
use crate::session::sasl::{SaslError, SaslExchange, SaslStep};
use crate::session::{LinkError, SessionEnd};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{Code, OpCode, Request, RequestFrame, Response, xid};
use std::fmt;

/// SASL authentication of the current link.
pub(super) struct SaslInFlight {
    exchange: SaslExchange,
    /// Number of the step that the server has not answered yet.
    pub(super) xid: i32,
    /// Token of that step until it is written.
    token: Option<Bytes>,
}

// The token contains a hash of the password.
impl fmt::Debug for SaslInFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslInFlight").field("xid", &self.xid).finish_non_exhaustive()
    }
}

impl Machine {
    /// Requires an authentication on a link whose session is attached. Nothing else is sent before it is
    /// accepted, so that a refusal finds no requests in flight.
    pub(super) fn begin_authentication(&mut self, until: Timestamp) {
        self.to_authenticate = !self.settings.credentials.is_empty();
        if self.settings.sasl.is_some() {
            let (exchange, token) = *self.begun_sasl.take().unwrap_or_default();
            let step = SaslInFlight { exchange, xid: self.next_xid(), token: Some(token) };
            self.sasl = Some(Box::new(step));
        }
        self.link = Link::Authenticating { until, unanswered: self.settings.credentials.len() };
        self.attach_once_authenticated();
    }

    /// Returns true if SASL is not completed on the current link.
    pub(in crate::session) fn awaits_sasl(&self) -> bool {
        self.sasl.is_some()
    }

    /// Returns why the servers refused the client, if they did.
    pub(in crate::session) fn refusal(&self) -> Option<LinkError> {
        self.refusal.as_deref().cloned()
    }

    pub(super) fn write_authentication(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let before = out.len();
        if let Some(sasl) = &mut self.sasl
            && let Some(token) = sasl.token.take()
        {
            RequestFrame::encode_parts(sasl.xid, &Request::Sasl { token: Some(token) }, out);
        }
        if std::mem::take(&mut self.to_authenticate) {
            for credentials in &self.settings.credentials {
                RequestFrame::encode_parts(xid::AUTH, &credentials.request(), out);
            }
        }
        if out.len() > before {
            self.last_sent = now;
        }
    }

    /// Handles the reply to one of the client's credentials. The reply is not matched with requests in
    /// flight, because servers may answer credentials early.
    pub(super) fn credentials_answered(&mut self, code: Code) {
        match code {
            Code::OK => {
                if let Link::Authenticating { unanswered, .. } = &mut self.link {
                    *unanswered = unanswered.saturating_sub(1);
                }
                self.attach_once_authenticated();
            }
            code => self.refused(LinkError::Credentials(code)),
        }
    }

    /// Handles the reply to a step of SASL.
    pub(super) fn sasl_answered(&mut self, code: Code, body: Bytes) -> Result<(), LinkError> {
        let (Some(settings), Some(mut sasl)) = (self.settings.sasl.clone(), self.sasl.take()) else {
            return Ok(());
        };
        let step = match code {
            Code::OK => match Response::decode(OpCode::Sasl, body)? {
                Response::Sasl { token } => sasl.exchange.step(&settings, token.as_deref()),
                _ => Err(SaslError::NotOffered),
            },
            Code::UNIMPLEMENTED => Err(SaslError::NotOffered),
            _ => Err(sasl.exchange.refused()),
        };
        match step {
            Ok(SaslStep::Done) => self.attach_once_authenticated(),
            Ok(SaslStep::Send(token)) => {
                (sasl.token, sasl.xid) = (Some(token), self.next_xid());
                self.sasl = Some(sasl);
            }
            // A session that was attached at another server with SASL stays alive.
            Err(error) if error.is_refusal_of_all() || (error.is_refusal() && self.losses == 0) => {
                self.refused(error.into());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Ends the session because the servers do not accept this client.
    pub(super) fn refused(&mut self, error: LinkError) {
        self.refusal.get_or_insert_with(|| Box::new(error));
        self.end(SessionEnd::AuthFailed);
    }

    /// Ends the authentication once the server has accepted all credentials and completed SASL. A server may
    /// answer credentials that nobody sent, so these replies do not count for SASL.
    fn attach_once_authenticated(&mut self) {
        if matches!(self.link, Link::Authenticating { unanswered: 0, .. }) && self.sasl.is_none() {
            self.link = Link::Attached;
        }
    }
}
