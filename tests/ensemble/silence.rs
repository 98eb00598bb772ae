//! Servers that say nothing, and know no better.

use crate::exclusive;
use crate::fleet::{Fleet, LONG, SHORT, connect, is_connected, leader_of_two, patiently};
use docent::{CreateMode, ErrorKind};
use docent_battery::{RawClient, RealEnsemble, ServerOptions};
use docent_proto::Request;
use docent_tests::soon;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_leader_that_is_frozen_is_replaced_and_shows_nothing_old_when_it_returns() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = &ensemble.servers()[leader_of_two(&ensemble).await];
    // Both have their links there, and learn of the others then.
    let clients =
        [connect(leader.connect_string(), LONG).await, connect(leader.connect_string(), LONG).await];
    let fleet = Fleet::of(clients).await;
    fleet.move_to(&ensemble.connect_string());
    fleet.goes_on().await;
    leader.freeze().unwrap();
    fleet.goes_on().await;
    leader.thaw().unwrap();
    patiently(async {
        while leader.mode().await.as_deref() != Some("follower") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // Everything that they have seen since, they see there.
    fleet.move_to(&leader.connect_string());
    fleet.has_kept_everything().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_leader_that_is_cut_off_grants_nothing_to_its_clients() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = leader_of_two(&ensemble).await;
    let there = connect(ensemble.servers()[leader].connect_string(), SHORT).await;
    let elsewhere = connect(ensemble.servers()[(leader + 1) % 3].connect_string(), SHORT).await;
    let held = exclusive::mutex(&there, &elsewhere).await;
    ensemble.cut_off(leader);
    // It takes writes for as long as it believes to lead, and answers none.
    let hurried = there.with_operation_timeout(Duration::from_secs(1));
    let error = hurried.create("/written", "", CreateMode::Persistent).await.unwrap_err();
    assert!(error.may_have_applied(), "{error}");
    held.is_lost().await;
    held.taken_over().await;
    assert_eq!(hurried.get("/").await.unwrap_err().kind(), ErrorKind::Timeout);
    ensemble.mend();
    for client in [&elsewhere, &there] {
        patiently(client.sync("/")).await.unwrap();
        assert_eq!(patiently(client.exists("/written")).await.unwrap(), None);
    }
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}

/// The case that leases are for: the follower goes on answering reads, while the leader hears nothing of the
/// session and ends it.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_guard_is_lost_before_another_has_it_when_its_follower_is_cut_off_and_does_not_know() {
    // Twenty seconds until they give each other up.
    let options = ServerOptions::default().tick(Duration::from_millis(500)).sync_limit(40);
    let ensemble = RealEnsemble::start_with(options).await.unwrap();
    let leader = leader_of_two(&ensemble).await;
    let follower = &ensemble.servers()[(leader + 1) % 3];
    let mut reader = RawClient::open(follower.address(), LONG).await.unwrap();
    let there = connect(follower.connect_string(), SHORT).await;
    let elsewhere = connect(ensemble.servers()[leader].connect_string(), SHORT).await;
    let lock = exclusive::mutex(&there, &elsewhere).await;
    let leadership = exclusive::election(&there, &elsewhere).await;
    assert!(lock.is_held() && leadership.is_held());
    ensemble.cut_off((leader + 1) % 3);
    lock.is_lost().await;
    leadership.is_lost().await;
    reader.call(Request::Exists { path: "/lock".into(), watch: false }).await.unwrap();
    lock.taken_over().await;
    leadership.taken_over().await;
    ensemble.mend();
    assert!(is_connected(&there).await.generation > 1, "its session has ended");
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}
