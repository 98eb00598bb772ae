//! Servers that say nothing, and know no better.

use crate::exclusive;
use crate::fleet::{Fleet, LONG, SHORT, connect};
use docent_testkit::{RealEnsemble, ServerOptions};
use docent_tests::soon;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_leader_that_is_frozen_is_replaced_and_shows_nothing_old_when_it_returns() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, LONG).await;
    fleet.goes_on().await;
    let leader = &ensemble.servers()[ensemble.leader().await.unwrap()];
    leader.freeze().unwrap();
    fleet.goes_on().await;
    leader.thaw().unwrap();
    fleet.goes_on().await;
    fleet.has_kept_everything().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_leader_that_is_cut_off_grants_nothing_to_its_clients() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let there = connect(ensemble.servers()[leader].connect_string(), SHORT).await;
    let elsewhere = connect(ensemble.servers()[(leader + 1) % 3].connect_string(), SHORT).await;
    let held = exclusive::mutex(&there, &elsewhere).await;
    ensemble.cut_off(leader);
    // It takes writes of its clients for as long as it believes to lead, and answers none.
    held.is_lost().await;
    held.taken_over().await;
    assert!(there.with_operation_timeout(Duration::from_secs(1)).get("/lock").await.is_err());
    ensemble.mend();
    soon(there.sync("/")).await.unwrap();
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}

/// The case that leases are for: the follower goes on answering pings and reads, so that its client notices nothing, while the
/// leader hears nothing of the session and ends it.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_guard_is_lost_before_another_has_it_when_its_follower_is_cut_off_and_does_not_know() {
    let options = ServerOptions::default().tick(Duration::from_millis(500)).sync_limit(40);
    let ensemble = RealEnsemble::start_with(options).await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let follower = (leader + 1) % 3;
    let there = connect(ensemble.servers()[follower].connect_string(), SHORT).await;
    let elsewhere = connect(ensemble.servers()[leader].connect_string(), SHORT).await;
    let lock = exclusive::mutex(&there, &elsewhere).await;
    let leadership = exclusive::election(&there, &elsewhere).await;
    ensemble.cut_off(follower);
    lock.is_lost().await;
    leadership.is_lost().await;
    lock.taken_over().await;
    leadership.taken_over().await;
    ensemble.mend();
    soon(there.sync("/")).await.unwrap();
    assert_eq!(there.state().current().epoch, 2);
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}
