//! Links that break at a request.

use super::recipe::Fault;
use crate::{Armed, FrameKind, Proxy, Rule, TestServer, Traced};
use docent_proto::OpCode;
use std::fmt;

/// The faults by which a link breaks at a request.
pub const BREAKS: [Fault; 4] = [Fault::ReplyLost, Fault::ResetBefore, Fault::ResetAfter, Fault::Expired];

/// A request of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// Its operation.
    pub op: OpCode,
    /// Its number, counted from 1, among those of the same operation.
    pub nth: usize,
}

impl Asked {
    /// The requests of a trace in their order, without pings.
    pub fn all(trace: &[Traced]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for frame in trace {
            if let (FrameKind::Request, Some(op)) = (frame.kind, frame.op.filter(|op| *op != OpCode::Ping)) {
                let nth = 1 + all.iter().filter(|asked| asked.op == op).count();
                all.push(Self { op, nth });
            }
        }
        all
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.op, self.nth)
    }
}

/// Breaks a link when a request is made.
#[derive(Debug)]
pub struct Break<'a> {
    server: &'a TestServer,
    proxy: &'a Proxy,
    session: i64,
    fault: Fault,
    armed: Armed,
}

impl<'a> Break<'a> {
    /// Will break the link of a session that goes through `proxy`, by one of [`BREAKS`].
    pub fn at(asked: Asked, fault: Fault, server: &'a TestServer, proxy: &'a Proxy, session: i64) -> Self {
        let on = Rule::on(asked.op).nth(asked.nth);
        let armed = proxy.add(match fault {
            Fault::ResetBefore => on.reset_before(),
            Fault::ResetAfter => on.reset_after(),
            Fault::Expired => on.cut_after(),
            _ => on.swallow_reply(),
        });
        Self { server, proxy, session, fault, armed }
    }

    /// True when the request was made.
    pub fn has_begun(&self) -> bool {
        self.armed.has_fired()
    }

    /// Waits for the request and carries out the rest of the fault: there may be a link again, and the
    /// session has ended where the fault says so.
    ///
    /// # Errors
    /// When the session cannot be ended, or no link let through.
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
