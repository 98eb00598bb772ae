//! What becomes of a session that its client gave up.

use crate::{builder, connect};
use docent::ConnectionState;
use docent::recipe::KeptNode;
use docent_proto::OpCode;
use docent_testkit::{Backend, both_backends};
use docent_tests::{SHORT_SESSION, soon};

both_backends! {
    async fn a_session_that_was_given_up_is_ended_after_its_nodes_were_replaced(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let nodes: Vec<_> = (0..20).map(|n| KeptNode::new(&client, &format!("/n{n}"), "1").unwrap()).collect();
        for node in &nodes {
            soon(node.present()).await.unwrap();
        }
        let markers = || other.children("/_docent/markers");
        soon(async { while !markers().await.is_ok_and(|markers| !markers.names.is_empty()) {} }).await;
        proxy.cut().await;
        let old = client.session_id().unwrap();
        let _alive = soon(server.front().sessions().keep_alive(old, server.address())).await.unwrap();
        soon(client.state().reached(ConnectionState::Lost)).await;
        let before = proxy.trace().len();
        proxy.heal().await.unwrap();
        proxy.until(|trace| trace[before..].iter().any(|frame| frame.op == Some(OpCode::CloseSession))).await;
        let trace = proxy.trace();
        let answered = trace[before..].iter().take_while(|frame| frame.op != Some(OpCode::CloseSession));
        // An attempt to create each, and a replacement of what is there.
        assert!(answered.filter(|frame| frame.is_reply(OpCode::Multi)).count() >= 2 * nodes.len());
        for node in &nodes {
            let owner = || async { other.get(node.path()).await.unwrap().stat.owner };
            soon(async { while owner().await != client.session_id() {} }).await;
        }
    }
}
