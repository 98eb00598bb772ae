//! Was the ensemble restored from an older copy?
//!
//! A server refuses a client that has seen newer transactions than its own, by closing the link without a
//! word. After a restore all of them do, for ever. A session that claims to have seen nothing finds out.

use crate::session::Credentials;
use crate::session::link::side_link::SideLink;
use crate::session::link::transport::Io;
use docent_proto::{Code, ConnectRequest, ReplyHeader, Request, xid};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time since when servers have refused to talk to this client, over all of its sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Option<Instant>>>);

impl Refusals {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::session) fn note(&self) {
        self.since().get_or_insert_with(Instant::now);
    }

    pub(in crate::session) fn clear(&self) {
        *self.since() = None;
    }

    /// True when they have gone on for two timeouts.
    pub(in crate::session) fn are_suspicious(&self, timeout: Duration) -> bool {
        self.since().is_some_and(|since| since.elapsed() >= timeout * 2)
    }
}

/// Asks a server for its newest transaction, by a session of its own that is closed again. The server may
/// take no request without `credentials`.
pub(in crate::session) async fn newest_transaction(
    io: Box<dyn Io>,
    timeout: Duration,
    credentials: &[Credentials],
) -> io::Result<i64> {
    let mut side_link = SideLink::new(io);
    let connect = ConnectRequest::new_session(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    // A server that lags behind its leader is no restored one.
    let sync = Request::Sync { path: "/".to_owned() };
    side_link.connect_and_ask(&connect, credentials.iter().map(Credentials::request), &sync).await?;
    while granted(side_link.reply().await?)?.xid == xid::AUTH {}
    let newest = granted(side_link.ask(&Request::Exists { path: "/".to_owned(), watch: false }).await?)?;
    side_link.ask(&Request::CloseSession).await?;
    Ok(newest.zxid)
}

/// A refusal says nothing of transactions.
fn granted(reply: ReplyHeader) -> io::Result<ReplyHeader> {
    match reply.code {
        Code::OK => Ok(reply),
        code => Err(io::Error::other(code.to_string())),
    }
}
