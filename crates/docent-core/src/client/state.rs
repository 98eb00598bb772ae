use crate::task::SyncStream;
use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use serde::Serialize;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::watch;

/// State of a client's connection to its ensemble.
///
/// `Connecting → Connected ⇄ Suspended → Lost → Connected` (in the next session), and `Closed` at the end. If
/// the servers refuse the client's credentials, the state changes to `AuthFailed`. `Closed` and `RolledBack`
/// are final.
///
/// A client that only reads can be `ReadOnly` instead of `Connected`. Its session ends with each lost link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConnectionState {
    /// No session yet.
    Connecting,
    /// A session is attached to a server.
    Connected,
    /// A [client that only reads](crate::ClientBuilder::read_only) is attached to a server that has lost its
    /// quorum: what it reads may be out of date.
    ReadOnly,
    /// The link is down; the session may live on. Guards whose lease ends in the meantime are lost.
    Suspended,
    /// The session has ended and its guards are lost; a new session is being opened.
    Lost,
    /// The servers were restored from an older snapshot, and the client has stopped.
    RolledBack,
    /// The servers refused the client's credentials. The session has ended and its guards are lost;
    /// operations fail with [`ErrorKind::AuthFailed`](crate::ErrorKind::AuthFailed). The client tries to open
    /// a new session about every 30 seconds.
    AuthFailed,
    /// The client was closed.
    Closed,
}

impl ConnectionState {
    /// Returns the number used in metrics.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Connecting => 0,
            Self::Connected => 1,
            Self::Suspended => 2,
            Self::Lost => 3,
            Self::Closed => 4,
            Self::RolledBack => 5,
            Self::AuthFailed => 6,
            Self::ReadOnly => 7,
        }
    }
}

impl fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::ReadOnly => "read-only",
            Self::Suspended => "suspended",
            Self::Lost => "lost",
            Self::RolledBack => "rolled back",
            Self::AuthFailed => "auth failed",
            Self::Closed => "closed",
        })
    }
}

/// State of the connection, with counters of changes that a slow observer could have missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct ConnectionStatus {
    /// The state.
    pub state: ConnectionState,
    /// Number of the client's session: 1, 2, 3 …
    pub generation: u64,
    /// Number of times that the link was lost, in all sessions together.
    pub suspensions: u64,
    /// Number of times that the servers were found to be restored from an older snapshot.
    pub rollbacks: u64,
}

impl ConnectionStatus {
    /// Returns true if a session is attached to a server.
    pub(crate) fn is_attached(&self) -> bool {
        matches!(self.state, ConnectionState::Connected | ConnectionState::ReadOnly)
    }

    /// Returns true if no other state follows.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.state, ConnectionState::Closed | ConnectionState::RolledBack)
    }

    fn closed(self) -> Self {
        Self { state: ConnectionState::Closed, ..self }
    }
}

impl fmt::Display for ConnectionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (session {}, links lost {}", self.state, self.generation, self.suspensions)?;
        match self.rollbacks {
            0 => f.write_str(")"),
            rollbacks => write!(f, ", servers rolled back {rollbacks})"),
        }
    }
}

impl PartialEq<ConnectionState> for ConnectionStatus {
    fn eq(&self, state: &ConnectionState) -> bool {
        self.state == *state
    }
}

/// Observes the connection state of a client.
///
/// Level-triggered: a slow observer skips intermediate states, but `generation` and `suspensions` show that
/// something happened. A watcher never delays the client. As a `Stream` it yields the current state first,
/// then each change, and ends after the final state, `Closed` or `RolledBack`.
pub struct StateWatcher {
    receiver: watch::Receiver<ConnectionStatus>,
    /// True once the final state was seen.
    ended: bool,
    stream: Option<SyncStream<ConnectionStatus>>,
}

impl StateWatcher {
    pub(crate) fn new(receiver: watch::Receiver<ConnectionStatus>) -> Self {
        Self { receiver, ended: false, stream: None }
    }

    /// Returns the current state.
    pub fn current(&self) -> ConnectionStatus {
        *self.receiver.borrow()
    }

    /// Waits until the state differs from the one that this watcher saw last, and returns the new state.
    /// Returns `None` after the final state, `Closed` or `RolledBack`. A watcher created later returns the
    /// final state once.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<ConnectionStatus> {
        if self.ended {
            return None;
        }
        if !self.current().is_final() && self.receiver.changed().await.is_err() {
            // The sender is dropped only with a client whose runtime was shut down.
            self.ended = true;
            return Some(self.current().closed());
        }
        Some(self.seen())
    }

    /// Returns the current state, and records that this watcher has seen it.
    fn seen(&mut self) -> ConnectionStatus {
        let current = *self.receiver.borrow_and_update();
        self.ended |= current.is_final();
        current
    }

    /// Waits until the state is `state`; returns immediately if it already is. Returns `None` if the client
    /// is closed and the state can no longer be reached.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn reached(&mut self, state: ConnectionState) -> Option<ConnectionStatus> {
        self.wait_for(|connection| *connection == state).await
    }

    /// Waits until `condition` holds, for example for a later session; returns immediately if it already
    /// holds. Returns `None` if the client is closed and `condition` can no longer hold.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_for(
        &mut self,
        mut condition: impl FnMut(&ConnectionStatus) -> bool,
    ) -> Option<ConnectionStatus> {
        let mut current = self.seen();
        loop {
            if condition(&current) {
                return Some(current);
            }
            current = self.changed().await?;
        }
    }
}

impl fmt::Debug for StateWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StateWatcher").field(&self.current()).finish()
    }
}

impl Clone for StateWatcher {
    fn clone(&self) -> Self {
        Self { ended: self.ended, ..Self::new(self.receiver.clone()) }
    }
}

impl Stream for StateWatcher {
    type Item = ConnectionStatus;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ConnectionStatus>> {
        let this = &mut *self;
        let stream = this.stream.get_or_insert_with(|| {
            let watcher = Self::new(this.receiver.clone());
            SyncStream::new(stream::unfold((watcher, true), |(mut watcher, is_first)| async move {
                let connection = if is_first { watcher.seen() } else { watcher.changed().await? };
                Some((connection, (watcher, false)))
            }))
        });
        stream.poll_next_unpin(cx)
    }
}
