//! Typed nodes: values at the paths of a template.

use bytes::Bytes;
use docent::config::{Codec, CodecError, NodeError, NodeModel, RejectionReason, TypedNode};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Order {
    lines: u32,
}

/// A codec that rejects everything but numbers from 0 to 9.
struct Digit;

impl Codec<u8> for Digit {
    fn encode(&self, value: &u8) -> Result<Bytes, CodecError> {
        match value {
            0..=9 => Ok(value.to_string().into()),
            _ => Err(CodecError::new("not a digit").with_detail(format!("{value} is not a digit"))),
        }
    }

    fn decode(&self, data: &Bytes) -> Result<u8, CodecError> {
        std::str::from_utf8(data)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| CodecError::new("not a digit"))
    }
}

both_backends! {
    async fn a_value_is_created_read_set_changed_and_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let orders = NodeModel::<Order>::new(&client, "/shops/{shop}/orders/{id}").unwrap();
        let order = orders.node(&[("id", "17"), ("shop", "eu")]).unwrap();
        assert_eq!(order.path(), "/shops/eu/orders/17");
        assert!(soon(order.get()).await.unwrap().is_none());
        assert_eq!(soon(order.update(|now| now)).await.unwrap().map(|now| now.lines), None);
        assert!(!soon(order.delete()).await.unwrap());
        let created = soon(order.create(&Order { lines: 1 })).await.unwrap();
        assert_eq!((created.lines, created.revision().unwrap().version), (1, 0));
        let twice = soon(order.create(&Order { lines: 9 })).await.unwrap_err();
        assert!(matches!(&twice, NodeError::Exists { path } if path == "/shops/eu/orders/17"), "{twice}");
        soon(order.set(&Order { lines: 2 })).await.unwrap();
        let same = TypedNode::<Order>::new(&other, "/shops/eu/orders/17").unwrap();
        soon(other.sync("/")).await.unwrap();
        assert_eq!(*soon(same.get()).await.unwrap().unwrap().value(), Order { lines: 2 });
        // There is one node, and no history.
        assert_eq!(soon(client.children("/shops/eu/orders")).await.unwrap().names, ["17"]);
        assert!(soon(client.children("/shops/eu/orders/17")).await.unwrap().names.is_empty());
        assert!(soon(order.delete()).await.unwrap());
        assert!(soon(client.exists("/shops/eu/orders/17")).await.unwrap().is_none());
        // `set` creates the node if it does not exist.
        soon(order.set(&Order { lines: 3 })).await.unwrap();
        assert_eq!(soon(order.get()).await.unwrap().unwrap().lines, 3);
        assert!(orders.node(&[("id", "17")]).is_err() && orders.node(&[("id", "a/b"), ("shop", "eu")]).is_err());
    }

    async fn concurrent_updates_are_all_applied_despite_a_lost_reply(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let count = TypedNode::<u32>::new(&client, "/count").unwrap();
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        soon(count.create(&0)).await.unwrap();
        proxy.add(Rule::on(OpCode::Multi).reset_after());
        soon(count.update(|now| Some(now? + 1))).await.unwrap();
        assert_eq!(*soon(count.get()).await.unwrap().unwrap().value(), 1);
        let clients = [connect(&server).await, connect(&server).await, connect(&server).await];
        let rivals = clients.each_ref().map(|client| TypedNode::<u32>::new(client, "/count").unwrap());
        let updates = (0..30).map(|number| soon(rivals[number % 3].update(|now| Some(now? + 1))));
        for updated in join_all(updates).await {
            updated.unwrap();
        }
        soon(client.sync("/")).await.unwrap();
        assert_eq!(*soon(count.get()).await.unwrap().unwrap().value(), 31);
    }

    async fn data_that_is_no_value_is_an_error_with_path_and_cause(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/order", r#"{"lines":"planted"}"#, CreateMode::Persistent).await.unwrap();
        let order = TypedNode::<Order>::new(&client, "/order").unwrap();
        let unreadable = soon(order.get()).await.unwrap_err();
        let text = "read \"/order\": the value of version 0: ";
        assert!(unreadable.to_string().starts_with(text), "{unreadable}");
        assert!(!format!("{unreadable} {unreadable:?}").contains("planted"));
        assert!(matches!(&unreadable, NodeError::Undecodable { fault, .. } if fault.reason() == RejectionReason::Codec && fault.detail().contains("line 1")));
        assert_eq!((unreadable.path(), unreadable.is_retryable(), unreadable.may_have_applied()), (Some("/order"), false, false));
        assert!(matches!(soon(order.update(|_| Some(Order { lines: 1 }))).await, Err(NodeError::Undecodable { .. })));
        assert_eq!(soon(client.get("/order")).await.unwrap().stat.version, 0, "the node was not overwritten");
        soon(order.set(&Order { lines: 1 })).await.unwrap();
        let digit = TypedNode::with_codec(&client, "/digit", Digit).unwrap();
        let refused = soon(digit.set(&10)).await.unwrap_err();
        assert_eq!(refused.to_string(), "write \"/digit\": the value: not a digit");
        assert!(soon(client.exists("/digit")).await.unwrap().is_none());
        soon(digit.set(&7)).await.unwrap();
        assert_eq!(*soon(digit.get()).await.unwrap().unwrap().value(), 7);
        client.create("/digit/below", "", CreateMode::Persistent).await.unwrap();
        let kept = soon(digit.delete()).await.unwrap_err();
        assert!(matches!(&kept, NodeError::Core(error) if error.kind() == ErrorKind::NotEmpty), "{kept}");
    }

    async fn a_subscription_reports_values_faults_and_the_end(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let order = TypedNode::<Order>::new(&client, "/order").unwrap();
        let mut changes = order.watch().unwrap();
        assert!(soon(changes.next()).await.unwrap().unwrap().is_none());
        let writer = TypedNode::<Order>::new(&other, "/order").unwrap();
        soon(writer.set(&Order { lines: 1 })).await.unwrap();
        assert_eq!(soon(changes.next()).await.unwrap().unwrap().unwrap().lines, 1);
        soon(other.set("/order", "[", None)).await.unwrap();
        let fault = soon(changes.next()).await.unwrap().unwrap_err();
        assert!(fault.to_string().starts_with("read \"/order\": the value of version 1: "), "{fault}");
        // The stream continues in the next session.
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(writer.set(&Order { lines: 2 })).await.unwrap();
        assert_eq!(soon(changes.next()).await.unwrap().unwrap().unwrap().lines, 2);
        soon(writer.delete()).await.unwrap();
        assert!(soon(changes.next()).await.unwrap().unwrap().is_none());
        soon(client.close()).await;
        assert!(soon(changes.next()).await.is_none());
    }
}
