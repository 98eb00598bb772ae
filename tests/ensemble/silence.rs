//! Servers that are silent without knowing that they are cut off.

use crate::exclusive;
use crate::fleet::{Fleet, LONG, SHORT, connect, is_connected, leader_of_two, patiently};
use docent::{CreateMode, ErrorKind};
use docent_battery::{RawClient, RealEnsemble, ServerOptions};
use docent_proto::Request;
use docent_tests::soon;
use std::time::Duration;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_frozen_leader_is_replaced_and_serves_nothing_stale_when_it_resumes() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = &ensemble.servers()[leader_of_two(&ensemble).await];
    // Both clients are connected to this server, and learn of the other servers afterwards.
    let clients =
        [connect(leader.connect_string(), LONG).await, connect(leader.connect_string(), LONG).await];
    let fleet = Fleet::of(clients).await;
    fleet.move_to(&ensemble.connect_string());
    fleet.keeps_working().await;
    leader.freeze().unwrap();
    fleet.keeps_working().await;
    leader.thaw().unwrap();
    patiently(async {
        while leader.mode().await.as_deref() != Some("follower") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // The returned leader must show everything that the clients have seen meanwhile.
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
    // The leader accepts writes as long as it believes that it leads, but answers none.
    let hurried = there.with_operation_timeout(Duration::from_secs(1));
    let error = hurried.create("/written", "", CreateMode::Persistent).await.unwrap_err();
    assert!(error.may_have_applied(), "{error}");
    held.is_lost().await;
    held.taken_over().await;
    assert_eq!(hurried.get("/").await.unwrap_err().kind(), ErrorKind::Timeout);
    ensemble.heal();
    for client in [&elsewhere, &there] {
        patiently(client.sync("/")).await.unwrap();
        assert_eq!(patiently(client.exists("/written")).await.unwrap(), None);
    }
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}

/// The case for which leases exist: the follower keeps answering reads, while the leader receives nothing
/// from the session and expires it.
#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_guard_of_a_partitioned_follower_is_lost_before_another_client_holds_it() {
    // The servers give each other up after twenty seconds.
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
    ensemble.heal();
    assert!(is_connected(&there).await.generation > 1, "the session has ended");
    soon(there.close()).await;
    soon(elsewhere.close()).await;
}
