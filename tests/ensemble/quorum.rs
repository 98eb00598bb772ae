//! Too few servers.

use crate::fleet::{Fleet, SHORT};
use docent_battery::{RealEnsemble, RealServer};
use futures_util::future::join_all;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn without_a_quorum_what_is_held_is_lost_and_with_one_again_others_have_it() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let fleet = Fleet::start(&ensemble, SHORT).await;
    fleet.goes_on().await;
    assert!(fleet.holds());
    let stopped = &ensemble.servers()[..2];
    stopped.iter().for_each(RealServer::stop);
    fleet.lock.is_lost().await;
    fleet.leadership.is_lost().await;
    // Longer than a session: its client gives it up, and begins anew once it can.
    tokio::time::sleep(SHORT * 2).await;
    for started in join_all(stopped.iter().map(RealServer::start_again)).await {
        started.unwrap();
    }
    fleet.has_recovered().await;
}
