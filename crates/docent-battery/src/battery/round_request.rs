//! Faults that break a link at a chosen request.

use super::recipe::Fault;
use crate::{Armed, FrameKind, Proxy, Rule, TestServer, Traced};
use docent_proto::OpCode;
use std::fmt;

/// The ways in which a link breaks at a request.
pub const BREAKS: [Fault; 4] = [Fault::ReplyLost, Fault::ResetBefore, Fault::ResetAfter, Fault::Expired];

/// A request of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundRequest {
    /// Its operation.
    pub op: OpCode,
    /// Its number, counted from 1, among the requests of the same operation.
    pub nth: usize,
}

impl RoundRequest {
    /// Returns the requests of a trace in order, without pings.
    pub fn all(trace: &[Traced]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for frame in trace {
            if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
                let nth = 1 + all.iter().filter(|request| request.op == op).count();
                all.push(Self { op, nth });
            }
        }
        all
    }
}

impl fmt::Display for RoundRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.op, self.nth)
    }
}

/// A fault that breaks a link when a chosen request is sent.
#[derive(Debug)]
pub struct Break<'a> {
    server: &'a TestServer,
    proxy: &'a Proxy,
    session: i64,
    fault: Fault,
    armed: Armed,
}

impl<'a> Break<'a> {
    /// Arms the fault, one of [`BREAKS`], for the link of a session that goes through `proxy`.
    pub fn at(
        request: RoundRequest,
        fault: Fault,
        server: &'a TestServer,
        proxy: &'a Proxy,
        session: i64,
    ) -> Self {
        let on = Rule::on(request.op).nth(request.nth);
        let armed = proxy.add(match fault {
            Fault::ResetBefore => on.reset_before(),
            Fault::ResetAfter => on.reset_after(),
            Fault::Expired => on.cut_after(),
            _ => on.swallow_reply(),
        });
        Self { server, proxy, session, fault, armed }
    }

    /// Returns true if the request was sent.
    pub fn has_begun(&self) -> bool {
        self.armed.has_fired()
    }

    /// Waits for the request and carries out the rest of the fault. [`Fault::ReplyLost`] breaks the link.
    /// [`Fault::Expired`] ends the session and then lets links through again.
    ///
    /// # Errors
    ///
    /// Fails if the session cannot be ended, or if links cannot be let through again.
    pub async fn done(&self) -> Result<(), String> {
        self.armed.fired().await;
        match self.fault {
            Fault::ReplyLost => self.proxy.reset().await,
            Fault::Expired => {
                self.server.expire(self.session).await.map_err(|error| error.to_string())?;
                self.proxy.heal().await.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        Ok(())
    }
}
