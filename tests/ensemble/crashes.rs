//! Servers that are killed.

use crate::fleet::{Fleet, LONG, connect};
use docent_battery::RealEnsemble;
use futures_util::future::join_all;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_leader_that_is_killed_costs_nothing_but_a_pause() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, LONG).await;
    fleet.keeps_working().await;
    let leader = ensemble.leader().await.unwrap();
    ensemble.servers()[leader].stop();
    let next = ensemble.leader().await.unwrap();
    assert_ne!(next, leader);
    fleet.has_kept_everything().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_follower_that_is_killed_costs_its_clients_nothing_but_a_pause() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let server = &ensemble.servers()[(leader + 1) % 3];
    // Both clients are connected to this server, and learn of the other servers afterwards.
    let clients =
        [connect(server.connect_string(), LONG).await, connect(server.connect_string(), LONG).await];
    let fleet = Fleet::of(clients).await;
    fleet.move_to(&ensemble.connect_string());
    fleet.keeps_working().await;
    let before = fleet.clients.each_ref().map(|client| client.state().current().suspensions);
    server.stop();
    fleet.keeps_working().await;
    let after = fleet.clients.each_ref().map(|client| client.state().current().suspensions);
    assert!(after[0] > before[0] && after[1] > before[1], "both clients have moved");
    fleet.has_kept_everything().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn an_ensemble_restarted_all_together_costs_nothing_but_a_pause() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, LONG).await;
    fleet.keeps_working().await;
    ensemble.servers().iter().for_each(docent_battery::RealServer::stop);
    for started in join_all(ensemble.servers().iter().map(docent_battery::RealServer::start_again)).await {
        started.unwrap();
    }
    fleet.has_kept_everything().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn servers_that_are_restarted_one_after_the_other_cost_nothing_but_pauses() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, LONG).await;
    for server in ensemble.servers() {
        fleet.keeps_working().await;
        server.stop();
        server.start_again().await.unwrap();
        ensemble.leader().await.unwrap();
    }
    fleet.has_kept_everything().await;
}
