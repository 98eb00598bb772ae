//! Writes that a follower which was cut off from its leader delivers once their sender has gone elsewhere.

use crate::{builder, connect};
use docent::server::Follower;
use docent::{Client, CreateMode, ErrorKind};
use docent_testkit::{Backend, TestServer};
use docent_tests::{SHORT_SESSION, soon, until};
use std::time::Duration;

/// A client that has its link at a follower.
async fn at_follower(server: &TestServer) -> (Follower, Client) {
    let leader = server.as_embedded().unwrap();
    let follower = leader.follower().sync_limit(Duration::from_secs(60)).start().await.unwrap();
    let client = builder(server, follower.connect_string()).session_timeout(SHORT_SESSION);
    let client = soon(client.connect()).await.unwrap();
    (follower, client)
}

#[tokio::test]
async fn a_write_of_unknown_outcome_is_applied_after_its_session_moved_and_did_not_find_it() {
    let server = Backend::Embedded.start().await;
    let (follower, client) = at_follower(&server).await;
    let watching = connect(&server).await;
    follower.cut_off_holding();
    let write = tokio::spawn({
        let client = client.clone();
        async move { client.create("/late", "", CreateMode::Persistent).await }
    });
    // The write, and the session that asks for the follower anew.
    until(async || follower.held_count() >= 2).await;
    client.update_servers(&server.connect_string()).unwrap();
    let error = soon(write).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    soon(client.sync("/")).await.unwrap();
    assert_eq!(client.exists("/late").await.unwrap(), None);
    follower.rejoin();
    until(async || watching.exists("/late").await.unwrap().is_some()).await;
    // The leader takes the session for the follower's, and refuses its next write: that costs a link and nothing else.
    soon(client.create("/next", "", CreateMode::Ephemeral)).await.unwrap();
}
