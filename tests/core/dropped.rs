//! Creates of ephemeral nodes whose futures are dropped.

use crate::{builder, connect};
use docent::CreateMode;
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{child_count, soon, until};

both_backends! {
    async fn an_ephemeral_node_is_deleted_again_when_its_create_was_dropped_before_the_reply(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/folder", "", CreateMode::Persistent).await.unwrap();
        // Creates the session's marker.
        client.create("/first", "", CreateMode::Ephemeral).await.unwrap();
        let multis = || {
            let of_node = |path: &String| path.contains("/folder/a");
            let trace = proxy.trace();
            trace.iter().filter(|frame| frame.is_request(OpCode::Multi) && frame.path.as_ref().is_some_and(of_node)).count()
        };
        for mode in [CreateMode::Ephemeral, CreateMode::EphemeralSequential] {
            let held = proxy.add(Rule::on(OpCode::Multi).hold());
            let mut create = Box::pin(client.create("/folder/a", "x", mode));
            // The create may first need another marker while the previous one is in use.
            tokio::select! {
                result = create.as_mut() => panic!("returned without a reply: {result:?}"),
                () = soon(held.fired()) => {}
            }
            // The request is already written and cannot be withdrawn.
            drop(create);
            proxy.heal().await.unwrap();
            // The create and the request that undoes it.
            until(async || multis() % 2 == 0).await;
            until(async || child_count(&other, "/folder").await == 0).await;
        }
        // A node whose create was answered remains, even if another create of the same node is dropped.
        client.create("/folder/a", "x", CreateMode::Ephemeral).await.unwrap();
        let before = multis();
        let held = proxy.add(Rule::on(OpCode::Multi).hold());
        let mut again = Box::pin(client.create("/folder/a", "x", CreateMode::Ephemeral));
        tokio::select! {
            result = again.as_mut() => panic!("returned without a reply: {result:?}"),
            () = soon(held.fired()) => {}
        }
        drop(again);
        proxy.heal().await.unwrap();
        assert_eq!(client.get("/folder/a").await.unwrap().data, "x");
        // The close completes the client's own jobs before it ends the session.
        soon(client.close()).await;
        assert_eq!(multis() - before, 1, "only the create may be sent");
    }
}
