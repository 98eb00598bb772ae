//! A session with as many ephemeral nodes as it may have: its end is one transaction that names them all.

use crate::fleet::{LONG, connect};
use docent::{Client, CreateMode, Error};
use docent_battery::{RealEnsemble, RealServer};
use docent_tests::soon;
use futures_util::future::join_all;

/// Twice `jute.maxbuffer` by default: nothing longer is read by a server from its log, or by a follower from
/// its leader.
const READABLE: usize = 2 * 0xf_ffff;

/// A path in that transaction has its length before it.
const LENGTH: usize = 4;

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn servers_start_again_after_the_end_of_a_session_that_owned_as_much_as_it_may() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let client = connect(ensemble.connect_string(), LONG).await;
    client.create("/owned", "", CreateMode::Persistent).await.unwrap();
    let (owned, refused) = own(&client).await;
    kill_and_start(&ensemble).await;
    soon(client.sync("/")).await.unwrap();
    assert_eq!(client.state().current().generation, 1, "the session goes on");
    soon(client.close()).await;
    kill_and_start(&ensemble).await;
    let client = connect(ensemble.connect_string(), LONG).await;
    assert_eq!(soon(client.children("/owned")).await.unwrap().names, [""; 0]);
    // There may be others, whose limits are lower.
    assert!(owned <= READABLE / 2, "{owned} bytes");
    let refused = refused.expect("a session may not have that many").to_string();
    assert!(refused.contains("ephemeral"), "{refused}");
    soon(client.close()).await;
}

/// Makes ephemeral nodes until one is refused, or no server could bear more. Returns their bytes and why the
/// last was refused.
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
