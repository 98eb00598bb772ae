//! Authentication of a new link: credentials and SASL, before anything else (decision 6).

use super::{Link, Machine};
use crate::session::sasl::{SaslError, SaslExchange, SaslStep};
use crate::session::{LinkError, SessionEnd};
use crate::time::Timestamp;
use bytes::Bytes;
use docent_proto::{Code, OpCode, Request, RequestFrame, Response, xid};

/// SASL authentication of the current link.
#[derive(Debug)]
pub(super) struct SaslInFlight {
    exchange: SaslExchange,
    /// Number of the step that the server has not answered yet.
    xid: i32,
    /// Token of that step until it is written.
    token: Option<Bytes>,
}

impl Machine {
    /// Requires an authentication on a link whose session is attached. Nothing else is sent before it is
    /// accepted, so that a refusal finds no requests in flight.
    pub(super) fn begin_authentication(&mut self, until: Timestamp) {
        self.to_authenticate = !self.settings.credentials.is_empty();
        let mut unanswered = self.settings.credentials.len();
        if self.settings.sasl.is_some() {
            let (exchange, token) = SaslExchange::begin();
            self.sasl = Some(SaslInFlight { exchange, xid: self.next_xid(), token: Some(token) });
            unanswered += 1;
        }
        self.link = if unanswered > 0 { Link::Authenticating { until, unanswered } } else { Link::Attached };
    }

    /// Returns true if SASL is not completed on the current link.
    pub(in crate::session) fn awaits_sasl(&self) -> bool {
        self.sasl.is_some()
    }

    /// Returns why the servers refused the client, if they did.
    pub(in crate::session) fn refusal(&self) -> Option<LinkError> {
        self.refusal.clone()
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
            Code::OK => self.one_accepted(),
            code => self.refused(LinkError::Credentials(code)),
        }
    }

    pub(super) fn is_sasl(&self, xid: i32) -> bool {
        self.sasl.as_ref().is_some_and(|sasl| sasl.xid == xid)
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
            _ => Err(SaslError::Refused),
        };
        match step {
            Ok(SaslStep::Done) => self.one_accepted(),
            Ok(SaslStep::Send(token)) => {
                self.sasl = Some(SaslInFlight { token: Some(token), xid: self.next_xid(), ..sasl });
            }
            Err(error @ SaslError::Refused) => self.refused(error.into()),
            // A session that was attached at another server with SASL stays alive; other servers may have it.
            Err(error @ SaslError::NotOffered) if self.losses == 0 => self.refused(error.into()),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Ends the session because the servers do not accept this client.
    pub(super) fn refused(&mut self, error: LinkError) {
        self.refusal.get_or_insert(error);
        self.end(SessionEnd::AuthFailed);
    }

    fn one_accepted(&mut self) {
        if let Link::Authenticating { unanswered, .. } = &mut self.link {
            *unanswered -= 1;
            if *unanswered == 0 {
                self.link = Link::Attached;
            }
        }
    }
}
