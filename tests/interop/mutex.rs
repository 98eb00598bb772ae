//! `Mutex` and `InterProcessMutex`.

use crate::curator::{Curator, IDENTITY, both};
use docent::Mutex;
use docent::locks::AcquireError;
use docent_battery::Backend;
use docent_tests::{connect, in_time, soon, tick, until};
use std::time::{Duration, Instant};

const PATH: &str = "/locks/report";

/// Waits until so many are in the line.
async fn until_waiting(mutex: &Mutex, count: usize) {
    until(async || mutex.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_mutex_and_curators_exclude_each_other_and_hand_over_both_ways() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (ours, theirs) = (Mutex::new(&client, PATH).unwrap(), curator.make(&format!("mutex {PATH}")).await);

    let guard = soon(ours.acquire()).await.unwrap();
    assert_eq!(theirs.done("participants").await, [guard.path()]);
    theirs.refused("try").await;
    let waiting = theirs.tell("acquire");
    until_waiting(&ours, 2).await;
    assert!(!waiting.is_finished());
    let line = soon(ours.participants()).await.unwrap();
    assert!(line[0].holds && line[0].fence == guard.fence() && !line[1].holds);
    assert!(line.iter().all(|one| one.identity == IDENTITY), "{line:?}");
    soon(guard.release()).await.unwrap();
    waiting.done().await;

    assert!(matches!(soon(ours.try_acquire()).await, Err(AcquireError::Busy(_))));
    let waiting = tokio::spawn(ours.acquire());
    until_waiting(&ours, 2).await;
    assert!(!waiting.is_finished());
    let other = curator.make(&format!("mutex {PATH}")).await;
    let nodes = other.done("participants").await;
    assert!(nodes.len() == 2 && nodes[0].ends_with(&line[1].name), "{nodes:?}");
    theirs.done("release").await;
    let guard = soon(waiting).await.unwrap().unwrap();
    assert_eq!(nodes[1], guard.path());
    assert!(guard.fence() > line[1].fence);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_line_of_ours_and_curators_is_served_in_the_order_they_came() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = Mutex::new(&client, PATH).unwrap();
    let first = soon(ours.acquire()).await.unwrap();
    let mut line = Vec::new();
    for pair in 0..3 {
        let theirs = curator.make(&format!("mutex {PATH}")).await;
        let their_turn = theirs.tell("acquire");
        until_waiting(&ours, 2 * pair + 2).await;
        let our_turn = tokio::spawn(ours.acquire());
        until_waiting(&ours, 2 * pair + 3).await;
        line.push((theirs, their_turn, our_turn));
    }
    soon(first.release()).await.unwrap();
    for (theirs, their_turn, our_turn) in line {
        their_turn.done().await;
        assert!(!our_turn.is_finished());
        theirs.done("release").await;
        let guard = soon(our_turn).await.unwrap().unwrap();
        theirs.refused("try").await;
        soon(guard.release()).await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn either_is_asked_for_the_lock_by_the_other() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let (ours, theirs) = (Mutex::new(&client, PATH).unwrap(), curator.make(&format!("mutex {PATH}")).await);

    let guard = soon(ours.acquire()).await.unwrap();
    theirs.done(&format!("revoke {}", guard.path())).await;
    soon(guard.revoked()).await;
    assert!(guard.is_held(), "it is asked, not forced");
    soon(guard.release()).await.unwrap();

    theirs.done("allow-revoking").await;
    theirs.done("acquire").await;
    let holder = soon(ours.participants()).await.unwrap().remove(0);
    soon(ours.revoke(&holder)).await.unwrap();
    theirs.done("be-revoked").await;
    theirs.done("release").await;
    soon(soon(ours.acquire()).await.unwrap().release()).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn the_lock_of_a_killed_curator_is_ours_when_its_session_has_expired() {
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
        // It says something every third of the timeout.
        assert!(took > TIMEOUT / 2, "{took:?}");
        took
    })
    .await;
}
