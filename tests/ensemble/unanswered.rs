//! The fate of a write that was not answered, on bare links: what all of `late` goes by.

use crate::fleet::leader_of_two;
use bytes::Bytes;
use docent_battery::{RawClient, RawError, RealEnsemble, ServerOptions};
use docent_proto::{Acl, ConnectRequest, Create, CreateMode, Request};
use std::net::SocketAddr;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
/// One third goes back to the follower and lives on, one goes back and ends, one does not go back.
const SESSIONS: usize = 30;
/// Rounds until a write wins its race, which takes one of them mostly.
const ROUNDS: usize = 12;
/// Nobody answers there.
const NO_ANSWER: Duration = Duration::from_millis(50);

/// A session that left a follower with a write on its way.
struct Left {
    path: String,
    session: ConnectRequest,
}

/// A follower that was cut off brings the write, and then the news that the session was back there. The
/// leader takes the news first: to it the session has moved back, and the write is in order. Of a session
/// that did not go back, the write is refused.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_write_that_was_not_there_after_a_sync_is_applied_later_unless_its_session_has_ended() {
    // They do not find out that one of them is cut off.
    let ensemble = RealEnsemble::start_with(ServerOptions::default().tick(TIMEOUT / 10)).await.unwrap();
    // It is a race in the leader, which the write wins now and then.
    for round in 0..ROUNDS {
        if round_is_won_by_a_write(&ensemble, round).await {
            return;
        }
    }
    panic!("this version of ZooKeeper may be better than that");
}

/// True when one of those that went back and lived on was applied. None of the others ever is.
async fn round_is_won_by_a_write(ensemble: &RealEnsemble, round: usize) -> bool {
    let leader = leader_of_two(ensemble).await;
    let follower = (leader + 1) % 3;
    let [there, elsewhere] = [follower, leader].map(|server| ensemble.servers()[server].address());
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(RawClient::open(there, TIMEOUT).await.unwrap());
    }
    ensemble.cut_off(follower);
    let mut all = Vec::new();
    for (number, client) in clients.into_iter().enumerate() {
        all.push(write_and_leave(client, format!("/{round}-{number}")).await);
    }
    for left in all.iter().enumerate().filter(|(number, _)| number % 3 < 2).map(|(_, left)| left) {
        let back = RawClient::attach(there, &left.session);
        assert!(tokio::time::timeout(NO_ANSWER, back).await.is_err(), "its leader is to answer that");
    }
    let mut living = Vec::new();
    for (number, left) in all.iter().enumerate() {
        let mut moved = RawClient::attach(elsewhere, &left.session).await.unwrap();
        moved.call(Request::Sync { path: "/".into() }).await.unwrap();
        assert!(!is_there(&mut moved, left).await, "nothing comes through");
        if number % 3 == 1 {
            moved.close().await.unwrap();
        } else {
            living.push(moved);
        }
    }
    ensemble.mend();
    let applied = applied(there, &all).await;
    let of = |third: usize| applied.iter().skip(third).step_by(3).filter(|applied| **applied).count();
    assert_eq!(of(1), 0, "these had ended");
    assert_eq!(of(2), 0, "these had moved");
    of(0) > 0
}

async fn write_and_leave(mut client: RawClient, path: String) -> Left {
    let session = client.session();
    let session = ConnectRequest {
        last_zxid_seen: 0,
        timeout_ms: session.timeout_ms,
        session_id: session.session_id,
        password: session.password.clone(),
        read_only: Some(false),
    };
    let create = Create::new(path.clone(), Bytes::new(), Acl::open(), CreateMode::Persistent, 0);
    // Once the read is answered the server has got the write, too: they come as one.
    let read = Request::Exists { path: path.clone(), watch: false };
    client.send([read, Request::Create(create)]).await.unwrap();
    client.reply().await.unwrap();
    Left { path, session }
}

async fn is_there(client: &mut RawClient, left: &Left) -> bool {
    match client.call(Request::Exists { path: left.path.clone(), watch: false }).await {
        Ok(_) => true,
        Err(RawError::Refused(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Which of the writes were applied, once everything has come through.
async fn applied(follower: SocketAddr, all: &[Left]) -> Vec<bool> {
    let mut client = RawClient::open(follower, TIMEOUT).await.unwrap();
    client.call(Request::Sync { path: "/".into() }).await.unwrap();
    let mut applied = Vec::new();
    for left in all {
        applied.push(is_there(&mut client, left).await);
    }
    client.close().await.unwrap();
    applied
}
