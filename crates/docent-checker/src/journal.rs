use docent_server::{self as server, Transaction, TransactionKind};
use std::time::Duration;

/// A change that the server committed, on the clock of the run. Contains the parts of a [`Transaction`] that
/// the checker needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// Number of the transaction. Several changes may have the same number.
    pub zxid: i64,
    /// Time since the run began.
    pub at: Duration,
    /// The session that requested the change; 0 for the server itself.
    pub session: i64,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Path of the changed node; empty for sessions.
    pub path: String,
    /// The session that owns the node; 0 if the node is not ephemeral.
    pub owner: i64,
}

/// Kind of a [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A session was opened.
    Opened,
    /// A session ended. The deletions of its ephemeral nodes follow with the same transaction number.
    Ended(EndCause),
    /// A node was created.
    Created,
    /// A node was deleted.
    Deleted,
    /// A node's data was set.
    Set,
    /// A node's access control list was set, which fires no watch.
    AclSet,
}

/// Cause of a session's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndCause {
    /// The session expired.
    Expired,
    /// The session's client closed it.
    Closed,
    /// A third party ended the session.
    Forced,
    /// The journal does not contain the cause: the recorded faults and calls of `close` decide.
    Unknown,
}

impl Change {
    /// Converts a server's journal. `start_ms` is the time of the server's clock at the start of the run. The
    /// journal contains milliseconds of that clock; the record contains times since the start of the run.
    pub fn of(journal: &[Transaction], start_ms: i64) -> Vec<Self> {
        journal.iter().filter_map(|transaction| Self::from_transaction(transaction, start_ms)).collect()
    }

    fn from_transaction(transaction: &Transaction, start_ms: i64) -> Option<Self> {
        let kind = match transaction.kind {
            TransactionKind::SessionOpened { .. } => ChangeKind::Opened,
            TransactionKind::SessionEnded { cause, .. } => ChangeKind::Ended(cause.into()),
            TransactionKind::Created => ChangeKind::Created,
            TransactionKind::Deleted => ChangeKind::Deleted,
            TransactionKind::DataSet { .. } => ChangeKind::Set,
            TransactionKind::AclSet { .. } => ChangeKind::AclSet,
            // Kinds of changes that servers add later affect neither nodes nor sessions.
            _ => return None,
        };
        let since = u64::try_from(transaction.time_ms.saturating_sub(start_ms)).unwrap_or(0);
        Some(Self {
            zxid: transaction.zxid,
            at: Duration::from_millis(since),
            session: transaction.session,
            kind,
            path: transaction.path.clone(),
            owner: transaction.owner,
        })
    }
}

impl From<server::EndCause> for EndCause {
    fn from(cause: server::EndCause) -> Self {
        match cause {
            server::EndCause::Expired => Self::Expired,
            server::EndCause::Closed => Self::Closed,
            server::EndCause::Forced => Self::Forced,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docent_battery::RawClient;
    use docent_proto::{Acl, Create, CreateMode, Request};
    use docent_server::Server;

    fn create(path: &str, mode: CreateMode) -> Request {
        Request::Create(Create::new(path.into(), "x".into(), Acl::open(), mode, 0))
    }

    #[tokio::test]
    async fn a_servers_journal_is_understood() {
        let server = Server::builder().journal(true).start().await.unwrap();
        let timeout = Duration::from_secs(6);
        let mut one = RawClient::open(server.connect_string(), timeout).await.unwrap();
        one.call(create("/lock", CreateMode::Persistent)).await.unwrap();
        one.call(create("/lock/lock-", CreateMode::EphemeralSequential)).await.unwrap();
        let mut two = RawClient::open(server.connect_string(), timeout).await.unwrap();
        two.call(Request::CloseSession).await.unwrap();
        let sessions = server.sessions();
        assert!(server.expire(sessions[0]));
        let journal = server.journal();
        let start = journal[0].time_ms - 5;
        let changes = Change::of(&journal, start);
        let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
        use ChangeKind::{Created, Deleted, Ended, Opened};
        let ended = [Ended(EndCause::Closed), Ended(EndCause::Forced), Deleted];
        assert_eq!(kinds, [&[Opened, Created, Created, Opened][..], &ended].concat());
        assert_eq!(changes[0].at, Duration::from_millis(5));
        assert_eq!(changes[6].path, "/lock/lock-0000000000");
        assert_eq!((changes[6].owner, changes[6].zxid), (sessions[0], changes[5].zxid));
    }
}
