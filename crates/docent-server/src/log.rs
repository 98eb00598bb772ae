//! All that the server logs. A subscriber may block, for example on a pipe that no process reads. So nothing
//! is logged while the ensemble is locked: entries are collected, and written once it is unlocked.

use crate::KeepError;
use crate::state::Refusal;
use docent_proto::DecodeError;
use std::io;
use std::net::SocketAddr;

/// Entry of the log.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A client met a limit.
    Refused { refusal: Refusal, peer: SocketAddr, session: Option<i64>, unsaid: u64 },
    /// A client did not read, and others waited for the memory that its replies took up.
    Stalled { peer: SocketAddr, session: Option<i64>, unsaid: u64 },
    /// The operating system handed no link over.
    NotAccepted { error: io::Error, unsaid: u64 },
    /// A client sent something other than a frame.
    NoFrame(DecodeError),
    /// A client asked for a session that it cannot have.
    NoSession(&'static str),
    /// The process may open fewer files than there may be links.
    #[cfg(feature = "cli")]
    FewFiles { files: i64, links: usize },
    /// A server stopped whose state could not be kept.
    StateLost(KeepError),
}

/// Entries that are written when it is dropped.
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
    /// Writes the entry now. The ensemble must not be locked.
    pub(crate) fn write(self) {
        match self {
            Self::Refused { refusal: Refusal { rule, value, limit }, peer, session, unsaid } => {
                let session = session.map(hex);
                tracing::warn!(rule, value, limit, %peer, session, unsaid, "refused: over a limit");
            }
            Self::Stalled { peer, session, unsaid } => {
                let session = session.map(hex);
                tracing::warn!(%peer, session, unsaid, "client reads nothing; closing its link for others");
            }
            Self::NotAccepted { error, unsaid } => {
                tracing::warn!(%error, unsaid, "cannot accept a connection; retrying");
            }
            Self::NoFrame(error) => tracing::debug!(%error, "link closed"),
            Self::NoSession(reason) => tracing::debug!(reason, "link refused"),
            #[cfg(feature = "cli")]
            Self::FewFiles { files, links } => {
                tracing::warn!(
                    files,
                    links,
                    "fewer open files than links are allowed; ulimit -n permits more"
                );
            }
            Self::StateLost(error) => tracing::error!(%error, "the server stopped, and its state is lost"),
        }
    }
}

fn hex(session: i64) -> String {
    format!("{session:#x}")
}
