//! Dubbo's layout, and dubbo-python's consumer, which is strict about the parameters of a provider.

use crate::beside_kazoo;
use crate::client::Kazoo;
use docent::client::ParentKind;
use docent::discovery::RegistryLayout;
use docent::{CreateMode, Instance, Registry};
use docent_battery::Backend;
use docent_tests::{connect, soon, until};
use serde_json::Value;

const NAME: &str = "com.shop.Orders";

fn provider(port: u16) -> Instance {
    Instance::new(NAME, "10.0.0.7", port).id(port.to_string())
}

beside_kazoo! {
    async fn a_strict_consumer_finds_providers_also_after_a_time_without_any(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = (connect(&server).await, Kazoo::start(&server).await);
        let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let first = soon(registry.register(provider(20880))).await.unwrap();
        let peer = kazoo.make(&format!("dubbo-consumer {NAME}")).await;
        assert_eq!(peer.done("host").await, ["10.0.0.7:20880"]);

        // The consumer registers itself with what it read from the provider.
        let consumers = soon(registry.typed_consumers::<Value>(NAME)).await.unwrap();
        until(async || consumers.instances().len() == 1).await;
        let payload = consumers.instances().iter().next().unwrap().payload.clone().unwrap();
        for (parameter, value) in [("dubbo", "2.0.2"), ("interface", NAME), ("methods", "*"), ("revision", "1.0.0")] {
            assert_eq!(payload[parameter], value, "{payload}");
        }

        let second = soon(registry.register(provider(20881))).await.unwrap();
        until(async || peer.done("hosts").await == ["10.0.0.7:20880", "10.0.0.7:20881"]).await;
        soon(first.deregister()).await.unwrap();
        until(async || peer.done("hosts").await == ["10.0.0.7:20881"]).await;
        soon(second.deregister()).await.unwrap();
        until(async || peer.done("hosts").await.is_empty() || peer.done("hosts").await == [""]).await;

        // The servers check for empty containers: one that became empty later is deleted.
        let containers = client.with_parents(ParentKind::Container);
        soon(containers.create("/empty/x", "", CreateMode::Persistent)).await.unwrap();
        soon(client.delete("/empty/x", None)).await.unwrap();
        soon(async { while client.exists("/empty").await.unwrap().is_some() {} }).await;
        let _third = soon(registry.register(provider(20882))).await.unwrap();
        until(async || peer.done("hosts").await == ["10.0.0.7:20882"]).await;
    }
}
