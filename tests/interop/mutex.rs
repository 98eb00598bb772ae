//! `Mutex` and `InterProcessMutex`.

use crate::curator::{Curator, IDENTITY, both};
use docent::Mutex;
use docent::locks::AcquireError;
use docent_battery::Backend;
use docent_tests::{connect, in_time, soon, tick, until};
use std::time::{Duration, Instant};

const PATH: &str = "/locks/report";

/// Waits until the line has `count` contenders.
async fn until_waiting(mutex: &Mutex, count: usize) {
    until(async || mutex.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_mutex_and_curators_exclude_each_other_and_hand_over_both_ways() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (own, peer) = (Mutex::new(&client, PATH).unwrap(), curator.make(&format!("mutex {PATH}")).await);

    let guard = soon(own.acquire()).await.unwrap();
    assert_eq!(peer.done("participants").await, [guard.path()]);
    peer.refused("try").await;
    let waiting = peer.start("acquire");
    until_waiting(&own, 2).await;
    assert!(!waiting.is_finished());
    let line = soon(own.participants()).await.unwrap();
    assert!(line[0].holds && line[0].fence == guard.fence() && !line[1].holds);
    assert!(line.iter().all(|one| one.identity == IDENTITY), "{line:?}");
    soon(guard.release()).await.unwrap();
    waiting.done().await;

    assert!(matches!(soon(own.try_acquire()).await, Err(AcquireError::Busy(_))));
    let waiting = tokio::spawn(own.acquire());
    until_waiting(&own, 2).await;
    assert!(!waiting.is_finished());
    let other = curator.make(&format!("mutex {PATH}")).await;
    let nodes = other.done("participants").await;
    assert!(nodes.len() == 2 && nodes[0].ends_with(&line[1].name), "{nodes:?}");
    peer.done("release").await;
    let guard = soon(waiting).await.unwrap().unwrap();
    assert_eq!(nodes[1], guard.path());
    assert!(guard.fence() > line[1].fence);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_line_of_docent_and_curator_clients_is_served_in_order_of_arrival() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = Mutex::new(&client, PATH).unwrap();
    let first = soon(own.acquire()).await.unwrap();
    let mut line = Vec::new();
    for pair in 0..3 {
        let peer = curator.make(&format!("mutex {PATH}")).await;
        let peer_turn = peer.start("acquire");
        until_waiting(&own, 2 * pair + 2).await;
        let own_turn = tokio::spawn(own.acquire());
        until_waiting(&own, 2 * pair + 3).await;
        line.push((peer, peer_turn, own_turn));
    }
    soon(first.release()).await.unwrap();
    for (peer, peer_turn, own_turn) in line {
        peer_turn.done().await;
        assert!(!own_turn.is_finished());
        peer.done("release").await;
        let guard = soon(own_turn).await.unwrap().unwrap();
        peer.refused("try").await;
        soon(guard.release()).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn either_client_revokes_the_lock_of_the_other() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (own, peer) = (Mutex::new(&client, PATH).unwrap(), curator.make(&format!("mutex {PATH}")).await);

    let guard = soon(own.acquire()).await.unwrap();
    peer.done(&format!("revoke {}", guard.path())).await;
    soon(guard.revoked()).await;
    assert!(guard.is_held(), "the guard is asked for, but still held");
    soon(guard.release()).await.unwrap();

    peer.done("allow-revoking").await;
    peer.done("acquire").await;
    let holder = soon(own.participants()).await.unwrap().remove(0);
    soon(own.revoke(&holder)).await.unwrap();
    peer.done("be-revoked").await;
    peer.done("release").await;
    soon(soon(own.acquire()).await.unwrap().release()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn docent_gets_the_lock_of_a_killed_curator_when_its_session_has_expired() {
    const TIMEOUT: Duration = Duration::from_secs(4);
    let server = Backend::Real.start().await;
    let client = connect(&server).await;
    let mutex = Mutex::new(&client, PATH).unwrap();
    in_time(TIMEOUT + 4 * tick(), async || {
        let mut curator = Curator::start_with(&server, TIMEOUT).await;
        curator.make(&format!("mutex {PATH}")).await.done("acquire").await;
        let waiting = tokio::spawn(mutex.acquire());
        until_waiting(&mutex, 2).await;
        let killed = Instant::now();
        curator.kill();
        let guard = soon(waiting).await.unwrap().unwrap();
        let took = killed.elapsed();
        soon(guard.release()).await.unwrap();
        // The client sends a heartbeat at every third of the timeout.
        assert!(took > TIMEOUT / 2, "{took:?}");
        took
    })
    .await;
}
