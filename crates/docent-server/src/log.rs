//! All log events of the server. A subscriber may block, for example on a pipe that no process reads. Entries
//! are therefore collected while the ensemble is locked, and written once it is unlocked.

use crate::KeepError;
use crate::state::Refusal;
use docent_proto::DecodeError;
use std::io;
use std::net::SocketAddr;

/// A log entry.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A client exceeded a limit.
    Refused { refusal: Refusal, peer: SocketAddr, session: Option<i64>, unsaid: u64 },
    /// A client did not read its replies while other clients waited for the memory that they occupy.
    Stalled { peer: SocketAddr, session: Option<i64>, unsaid: u64 },
    /// The operating system failed to accept a connection.
    NotAccepted { error: io::Error, unsaid: u64 },
    /// A client sent bytes that are not a valid frame.
    NoFrame(DecodeError),
    /// A client requested a session that it cannot have.
    NoSession(&'static str),
    /// The process may open fewer files than the server may have links.
    #[cfg(feature = "cli")]
    FewFiles { files: i64, links: usize },
    /// A server has stopped, and its state could not be saved.
    StateLost(KeepError),
}

/// Log entries that are written when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct Log(Vec<Entry>);

impl Log {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.0.push(entry);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Entry::write);
    }
}

impl Entry {
    /// Writes the entry to the log. The ensemble must not be locked.
    pub(crate) fn write(self) {
        match self {
            Self::Refused { refusal: Refusal { rule, value, limit }, peer, session, unsaid } => {
                let session = session.map(hex);
                // Event: A client exceeded a limit of the server. The server refused the request or closed
                // the connection. The field `rule` names the limit, and `unsaid` counts warnings that were
                // suppressed before this one.
                // Action: If the client's demand is legitimate, raise the limit. Otherwise, find the client
                // by its address in `peer` and fix it.
                // Without client: it is about the server.
                tracing::warn!(
                    target: "docent::server",
                    rule, value, limit, %peer, session, unsaid,
                    "client exceeded a limit; refusing the request or closing the connection"
                );
            }
            Self::Stalled { peer, session, unsaid } => {
                let session = session.map(hex);
                // Event: A client has read no replies for a minute while requests of other clients wait for
                // memory. The server closes its connection; the session continues until its timeout.
                // Action: Find out why the client at the address in `peer` is stalled. If many clients need
                // large replies at the same time, raise `queued_bytes`.
                // Without client: it is about the server.
                tracing::warn!(
                    target: "docent::server",
                    %peer, session, unsaid,
                    "client does not read its replies while others wait for memory; closing its connection"
                );
            }
            Self::NotAccepted { error, unsaid } => {
                // Event: The operating system failed to accept a connection. The server retries after 50 ms.
                // If the process has too many open files, the server also closes the oldest connection
                // without a session.
                // Action: If the error is about open files, raise the limit of the process (`ulimit -n`).
                // Without client: it is about the server.
                tracing::warn!(target: "docent::server", %error, unsaid, "cannot accept a connection; retrying");
            }
            // Event: A client sent bytes that are not a valid request, or a request that is too long. The
            // server closed the connection.
            // Without client: it is about the server.
            Self::NoFrame(error) => {
                tracing::debug!(target: "docent::server", %error, "invalid request received; connection closed");
            }
            // Event: A client asked for a session that this server cannot give it, for the reason in
            // `reason`. The server closed the connection.
            // Without client: it is about the server.
            Self::NoSession(reason) => {
                tracing::debug!(target: "docent::server", reason, "refused a session; connection closed");
            }
            #[cfg(feature = "cli")]
            Self::FewFiles { files, links } => {
                // Event: The process may open fewer files than the server may have connections. Some clients
                // may be unable to connect.
                // Action: Raise the limit of open files (`ulimit -n`), or lower `--connections`.
                // Without client: it is about the server.
                tracing::warn!(
                    target: "docent::server",
                    files,
                    links,
                    "the limit of open files is below the limit of connections; raise it with ulimit -n"
                );
            }
            // Event: The server stopped, but could not save its state in its file. Changes since the server
            // started are lost, and so are all sessions.
            // Action: Fix the cause in `error`, such as a full disk, before the server is started again.
            // Without client: it is about the server.
            Self::StateLost(error) => {
                tracing::error!(target: "docent::server", %error, "cannot save the state; latest changes lost");
            }
        }
    }
}

fn hex(session: i64) -> String {
    format!("{session:#x}")
}
