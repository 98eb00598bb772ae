//! The journal, on which history checkers rely.

use crate::support::world::World;
use docent_proto::{CreateMode, Request};
use docent_server::{EndCause, Server, Transaction, TransactionKind};
use std::time::Duration;

/// Returns the journal of a history with changes of all kinds.
async fn history() -> Vec<Transaction> {
    let world = World::new(Server::builder().journal(true).seed(1)).await;
    let (follower, dial) = world.follower(|builder| builder).await;
    let (mut first, mut second) = (world.peer(4_000).await, dial.peer(5_000).await);
    let third = world.peer(6_000).await;
    first.create("/kept", CreateMode::Persistent).await.expect("the create succeeds");
    second.create("/mine", CreateMode::Ephemeral).await.expect("the create succeeds");
    world.at(1_234).await;
    first.set_data("/kept", b"1").await.expect("the write succeeds");
    first.set_data("/kept", b"2").await.expect("the write succeeds");
    first.delete("/none").await.expect_err("the node does not exist");
    assert!(world.server.expire(third.session.session_id));
    first.call(Request::CloseSession).await.expect("the session can be closed");
    follower.cut_off();
    world.end_of(&second).await;
    world.server.journal()
}

#[tokio::test(start_paused = true)]
async fn the_journal_records_change_time_session_and_cause() {
    let journal = history().await;
    let timeout = Duration::from_secs;
    let expected = [
        (1, 0, "", Kind::Opened(timeout(4))),
        (2, 0, "", Kind::Opened(timeout(5))),
        (3, 0, "", Kind::Opened(timeout(6))),
        (4, 0, "/kept", Kind::Created),
        (5, 0, "/mine", Kind::Created),
        (6, 1_234, "/kept", Kind::Set(1)),
        (7, 1_234, "/kept", Kind::Set(2)),
        (9, 1_234, "", Kind::Ended(EndCause::Forced, timeout(6))),
        (10, 1_234, "", Kind::Ended(EndCause::Closed, timeout(4))),
        (11, 8_000, "", Kind::Ended(EndCause::Expired, timeout(5))),
        (11, 8_000, "/mine", Kind::Deleted),
    ];
    let recorded: Vec<_> =
        journal.iter().map(|t| (t.zxid, t.time_ms, &*t.path, Kind::from(t.kind))).collect();
    assert_eq!(recorded, expected);
    let data: Vec<_> = journal.iter().filter_map(|t| Some((t.zxid, t.data.as_deref()?))).collect();
    assert_eq!(data, [(4, &b""[..]), (5, b""), (6, b"1"), (7, b"2")]);
    let (opened, created) = (&journal[1], &journal[4]);
    assert_eq!((created.session, created.owner), (opened.session, opened.session));
    for end in &journal[9..] {
        assert_eq!(end.session, opened.session);
    }
    assert_eq!((journal[3].owner, journal[10].owner), (0, opened.session));
}

/// A transaction kind that a test can construct.
#[derive(Debug, PartialEq)]
enum Kind {
    Opened(Duration),
    Ended(EndCause, Duration),
    Created,
    Deleted,
    Set(i32),
}

impl From<TransactionKind> for Kind {
    fn from(kind: TransactionKind) -> Self {
        match kind {
            TransactionKind::SessionOpened { timeout, .. } => Self::Opened(timeout),
            TransactionKind::SessionEnded { cause, timeout, .. } => Self::Ended(cause, timeout),
            TransactionKind::Created => Self::Created,
            TransactionKind::Deleted => Self::Deleted,
            TransactionKind::DataSet { version, .. } => Self::Set(version),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_clock_give_the_same_history() {
    let first = history().await;
    assert_eq!(history().await, first);
}

#[tokio::test(start_paused = true)]
async fn the_journal_is_read_from_an_earlier_position() {
    let world = World::new(Server::builder().journal(true)).await;
    let mut peer = world.peer(4_000).await;
    let mut read = world.server.journal();
    assert_eq!(read.len(), 1);
    assert!(world.server.journal_after(read.len()).is_empty());
    peer.create("/a", CreateMode::Persistent).await.unwrap();
    read.extend(world.server.journal_after(read.len()));
    peer.create("/b", CreateMode::Persistent).await.unwrap();
    read.extend(world.server.journal_after(read.len()));
    assert_eq!(read, world.server.journal());
    assert_eq!(read.len(), 3);
    assert!(world.server.journal_after(4).is_empty(), "entries were returned past the end");
}

#[tokio::test]
async fn times_do_not_decrease_with_the_clock() {
    let times = std::sync::Mutex::new([5_000, 9_000, 2_000, 9_500].into_iter());
    let next = move || times.lock().unwrap().next().unwrap_or(9_600);
    let clock = move || Duration::from_millis(next());
    let server = Server::builder().clock(clock).start().await.unwrap();
    let mut last = 0;
    while last < 9_600 {
        let now = server.time_ms();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
}
