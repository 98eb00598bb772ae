//! Credentials and access control lists.

use crate::family::{Family, Other};
use crate::for_clients;
use docent_battery::Backend;

/// Digest of the credentials `alice:secret`, as every client and server computes it.
const ALICE: &str = "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E=";

for_clients! {
    [Kazoo, Java, C] async fn a_node_restricted_to_its_creator_is_closed_to_other_clients(
        family: Family,
        backend: Backend
    ) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let (alice, stranger) = (other.session().await, other.session().await);
        let without_credentials = stranger.start("create-mine /mine x").failed().await;
        assert_eq!(without_credentials, "invalidacl", "the session has no credentials yet");

        alice.done("auth digest alice:secret").await;
        alice.done("create-mine /mine x").await;
        assert_eq!(alice.done("acl /mine").await, [format!("rwcda:digest:{ALICE}")]);
        assert_eq!(alice.done("get /mine").await, ["x", "0"]);
        for denied in ["get /mine", "set /mine y -1", "create persistent /mine/child x", "children /mine"] {
            assert_eq!(stranger.start(denied).failed().await, "noauth", "{denied}");
        }
        stranger.done("exists /mine").await;

        stranger.done("auth digest bob:secret").await;
        assert_eq!(stranger.start("get /mine").failed().await, "noauth");
        stranger.done("auth digest alice:secret").await;
        assert_eq!(stranger.done("get /mine").await, ["x", "0"]);
        stranger.done("set-acl /mine r world anyone").await;
        assert_eq!(stranger.done("acl /mine").await, ["r:world:anyone"]);
        assert_eq!(alice.start("set /mine y -1").failed().await, "noauth");
    }

    [Kazoo, Java, C] async fn credentials_are_sent_again_on_a_new_link(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let alice = other.session().await;
        alice.done("auth digest alice:secret").await;
        alice.done("create-mine /mine x").await;
        other.proxy().reset().await;
        alice.done("until suspended").await;
        alice.done("until connected").await;
        assert_eq!(alice.done("get /mine").await, ["x", "0"]);
    }

    [Java] async fn a_session_learns_its_identity(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let alice = other.session().await;
        assert_eq!(alice.done("whoami").await, ["ip:127.0.0.1"]);
        alice.done("auth digest alice:secret").await;
        assert_eq!(alice.done("whoami").await, ["digest:alice", "ip:127.0.0.1"]);
    }

    [Java, C] async fn an_unknown_scheme_ends_the_session(family: Family, backend: Backend) {
        let server = backend.start().await;
        let other = Other::start(family, &server).await;
        let session = other.session().await;
        // The reply depends on the client.
        drop(session.start("auth unheard-of x"));
        session.done("until authfailed").await;
    }
}
