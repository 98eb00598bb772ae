//! Finds out whether the ensemble was restored from an older snapshot.
//!
//! A server refuses a client that has seen newer transactions than the server itself: it closes the link
//! without a reply. After a restore, all servers do this permanently. A session that claims to have seen
//! nothing reveals the difference.

use crate::session::link::side_link::SideLink;
use crate::session::link::transport::Io;
use crate::session::sasl::SaslExchange;
use crate::session::{Credentials, SessionSettings};
use docent_proto::{Code, ConnectRequest, ReplyHeader, Request, xid};
use std::io;
use std::time::Duration;

/// Asks a server for its newest transaction, using a temporary session that is closed again. Without
/// the identities in `settings` the server may reject every request.
pub(in crate::session) async fn newest_transaction(
    io: Box<dyn Io>,
    host: &str,
    timeout: Duration,
    settings: &SessionSettings,
) -> io::Result<i64> {
    let mut side_link = SideLink::new(io);
    let connect = ConnectRequest::new_session(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    // A server that merely lags behind its leader must not be taken for a restored one.
    let sync = Request::Sync { path: "/".to_owned() };
    let credentials = settings.credentials.iter().map(Credentials::request);
    match &settings.sasl {
        Some(sasl) => {
            let begun = SaslExchange::begin(sasl, host, timeout).await;
            let (exchange, token) = begun.map_err(io::Error::other)?;
            let connected = side_link.connect_with_sasl(&connect, token).await?;
            if connected.timeout_ms <= 0 {
                return Err(io::Error::other("the server opened no session"));
            }
            side_link.authenticate_and_send(sasl, exchange, credentials, &sync).await?;
        }
        None => drop(side_link.connect_and_send(&connect, credentials, &sync).await?),
    }
    while granted(side_link.reply().await?)?.xid == xid::AUTH {}
    let newest = granted(side_link.call(&Request::Exists { path: "/".to_owned(), watch: false }).await?)?;
    side_link.call(&Request::CloseSession).await?;
    Ok(newest.zxid)
}

/// A refusal carries no information about transactions.
fn granted(reply: ReplyHeader) -> io::Result<ReplyHeader> {
    match reply.code {
        Code::OK => Ok(reply),
        code => Err(io::Error::other(code.to_string())),
    }
}
