//! Ensembles without a quorum.

use crate::fleet::{Fleet, SHORT};
use docent_battery::{RealEnsemble, RealServer};
use futures_util::future::join_all;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn without_a_quorum_guards_are_lost_and_after_its_return_other_clients_hold_them() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, SHORT).await;
    fleet.keeps_working().await;
    assert!(fleet.holds());
    let stopped = &ensemble.servers()[..2];
    stopped.iter().for_each(RealServer::stop);
    fleet.lock.is_lost().await;
    fleet.leadership.is_lost().await;
    // Longer than a session timeout: each client gives up its session, and opens a new one when the ensemble
    // serves again.
    tokio::time::sleep(SHORT * 2).await;
    for started in join_all(stopped.iter().map(RealServer::start_again)).await {
        started.unwrap();
    }
    fleet.has_recovered().await;
}
