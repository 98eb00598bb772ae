//! A session with the maximum number of ephemeral nodes. Its end is one transaction that lists all of them.

use crate::fleet::{LONG, connect};
use docent::{Client, CreateMode, Error};
use docent_battery::{RealEnsemble, RealServer};
use docent_tests::soon;
use futures_util::future::join_all;

/// Twice the default of `jute.maxbuffer`. A server cannot read a longer transaction from its log, and a
/// follower cannot read it from its leader.
const READABLE: usize = 2 * 0xf_ffff;

/// Bytes of the length that precedes each path in this transaction.
const LENGTH: usize = 4;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn servers_restart_after_the_end_of_a_session_that_owned_the_maximum() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let client = connect(ensemble.connect_string(), LONG).await;
    client.create("/owned", "", CreateMode::Persistent).await.unwrap();
    let (owned, refused) = own(&client).await;
    kill_and_start(&ensemble).await;
    soon(client.sync("/")).await.unwrap();
    assert_eq!(client.state().current().generation, 1, "the session continues");
    soon(client.close()).await;
    kill_and_start(&ensemble).await;
    let client = connect(ensemble.connect_string(), LONG).await;
    assert_eq!(soon(client.children("/owned")).await.unwrap().names, [""; 0]);
    // Half of the limit, because other servers may have lower limits.
    assert!(owned <= READABLE / 2, "{owned} bytes");
    let refused = refused.expect("the last node is refused").to_string();
    assert!(refused.contains("ephemeral"), "{refused}");
    soon(client.close()).await;
}

/// Creates ephemeral nodes until one is refused, or until no server could read the transaction. Returns the
/// bytes of the nodes and the error of the refusal.
async fn own(client: &Client) -> (usize, Option<Error>) {
    const AT_ONCE: usize = 50;
    let create = async |number: usize| {
        client.create(&format!("/owned/{number:0>500}"), "", CreateMode::Ephemeral).await
    };
    let (mut owned, mut refused) = (0, None);
    for first in (0..).step_by(AT_ONCE) {
        for created in soon(join_all((first..first + AT_ONCE).map(create))).await {
            match created {
                Ok(created) => owned += LENGTH + created.path.len(),
                Err(error) => refused = Some(error),
            }
        }
        if refused.is_some() || owned > READABLE {
            break;
        }
    }
    (owned, refused)
}

async fn kill_and_start(ensemble: &RealEnsemble) {
    ensemble.servers().iter().for_each(RealServer::stop);
    for started in join_all(ensemble.servers().iter().map(RealServer::start_again)).await {
        started.unwrap();
    }
}
