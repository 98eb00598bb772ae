//! A kept node whose process is stalled while another client replaces the node.

use docent::CreateMode;
use docent::recipe::KeptNode;
use docent_battery::{Backend, Direction, Flow, Rule, Traced, both_backends_in_real_time};
use docent_proto::{EventKind, OpCode};
use docent_tests::{SESSION, Stalled, builder, connect, soon};
use std::sync::Arc;

both_backends_in_real_time! {
    async fn a_removal_that_stalls_behind_its_read_leaves_the_node_of_another_client_alone(backend: Backend) {
        let server = backend.start().await;
        let (other, stranger) = (connect(&server).await, connect(&server).await);
        let proxy = Arc::new(server.proxy().await);
        let connecting = builder(&server, proxy.connect_string()).session_timeout(SESSION);
        let (link, writer) = (Arc::clone(&proxy), other.clone());
        let process = Stalled::after(connecting, async move |client| {
            let node = KeptNode::new(client, "/a", "").unwrap();
            soon(node.present()).await.unwrap();
            // The node was changed, and is set again, so that its removal reads it first.
            let read = link.add(Rule::on(OpCode::GetData).path(|path| path.ends_with("/a")).hold());
            soon(writer.set("/a", "wrong", None)).await.unwrap();
            soon(read.fired()).await;
            node.request_removal();
            let read = link.add(Rule::on(OpCode::Exists).path(|path| path.ends_with("/a")).hold());
            link.heal().await.unwrap();
            soon(read.fired()).await;
            node
        }, async |node| soon(node.removed()).await.unwrap()).await;
        // The process is stalled, and finds the reply together with the event of the deletion.
        assert_eq!(other.get("/a").await.unwrap().stat.version, 2);
        proxy.set_flow(Direction::ToServer, Flow::Pass);
        proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::Exists))).await;
        soon(stranger.delete("/a", None)).await.unwrap();
        soon(stranger.create("/a", "", CreateMode::Ephemeral)).await.unwrap();
        for _ in 0..2 {
            soon(stranger.set("/a", "theirs", None)).await.unwrap();
        }
        let is_deletion = |frame: &Traced| frame.event == Some(EventKind::Deleted);
        proxy.until(|trace| trace.iter().any(is_deletion)).await;
        process.resume().await;
        assert_eq!(other.get("/a").await.unwrap().data, "theirs");
    }
}
