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
    async fn a_strict_consumer_and_a_view_come_to_the_same_weights(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = (connect(&server).await, Kazoo::start(&server).await);
        let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let _first = soon(registry.register(provider(20880))).await.unwrap();
        let _second = soon(registry.register(provider(20881))).await.unwrap();
        let rule = |port: u16, change: &str| format!(
            "/dubbo/{NAME}/configurators/override%3A%2F%2F10.0.0.7%3A{port}%2F{NAME}%3Fcategory%3Dconfigurators%26dynamic%3Dfalse%26enabled%3Dtrue%26{change}"
        );
        let publish = async |path: &str| soon(client.create(path, "", CreateMode::Persistent)).await.unwrap();
        publish(&rule(20880, "weight%3D50")).await;
        let peer = kazoo.make(&format!("dubbo-consumer {NAME}")).await;
        peer.done("host").await;
        let view = soon(registry.service(NAME)).await.unwrap();
        let shown = || {
            let instances = view.instances();
            let shown = |instance: &Instance| format!("{}={}", instance.authority().unwrap(), instance.weight.unwrap());
            let mut shown: Vec<_> = instances.iter().map(|instance| shown(instance)).collect();
            shown.sort();
            shown
        };
        let until_both = async |weights: [u32; 2]| {
            let expected = [format!("10.0.0.7:20880={}", weights[0]), format!("10.0.0.7:20881={}", weights[1])];
            until(async || peer.done("weights").await == expected && shown() == expected).await;
        };
        until_both([50, 100]).await;
        publish(&rule(20881, "weight%3D7")).await;
        until_both([50, 7]).await;
        soon(client.delete(&rule(20880, "weight%3D50"), None)).await.unwrap();
        until_both([100, 7]).await;
        // The view skips a disabled provider. The consumer does not know this parameter.
        publish(&rule(20880, "disabled%3Dtrue")).await;
        until(async || shown() == ["10.0.0.7:20881=7"]).await;
        assert_eq!(view.pick().unwrap().port, Some(20881));
        assert_eq!(peer.done("hosts").await, ["10.0.0.7:20880", "10.0.0.7:20881"]);
        soon(client.delete(&rule(20880, "disabled%3Dtrue"), None)).await.unwrap();
        soon(client.delete(&rule(20881, "weight%3D7"), None)).await.unwrap();
        until_both([100, 100]).await;
    }
}
