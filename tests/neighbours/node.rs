//! The consumer of Apache's Dubbo SDK for Node, beside providers that Docent registers.

use crate::processes::{peer, provider, until_containers_were_checked};
use docent::discovery::RegistryLayout;
use docent::{Instance, Registry};
use docent_battery::packages::DUBBO_JS;
use docent_battery::{Backend, both_backends_with_packages};
use docent_tests::{connect, soon, until};
use serde_json::{Value, json};

/// The service of the program `provider`.
const SERVICE: &str = "grpc.health.v1.Health";

fn instance(port: u16, version: &str) -> Instance<Value> {
    let payload = json!({ "version": version, "note": "with a space" });
    Instance::new(SERVICE, "10.0.0.7", port).id(port.to_string()).payload(payload)
}

both_backends_with_packages! {
    async fn a_consumer_in_node_follows_providers_of_docent(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap();
        let first = soon(registry.register(instance(20880, "1.0.0"))).await.unwrap();
        let second = soon(registry.register(instance(20881, "2.0.0"))).await.unwrap();
        let sdk = peer(&DUBBO_JS, "consumer.js", &server, &[]).await;
        let consumer = sdk.make(&format!("{SERVICE} 1.0.0")).await;
        let hosts = async |expected: &[&str]| until(async || consumer.done("hosts").await == expected).await;
        hosts(&["10.0.0.7:20880", "10.0.0.7:20881"]).await;
        assert_eq!(consumer.done("version 1.0.0").await, ["10.0.0.7:20880"]);
        assert_eq!(consumer.done("version 2.0.0").await, ["10.0.0.7:20881"]);

        // The consumer registers itself.
        let consumers = soon(registry.typed_consumers::<Value>(SERVICE)).await.unwrap();
        until(async || consumers.instances().len() == 1).await;
        let payload = consumers.instances().iter().next().unwrap().payload.clone().unwrap();
        for (parameter, value) in [("application", "shop"), ("interface", SERVICE), ("side", "consumer")] {
            assert_eq!(payload[parameter], value, "{payload}");
        }

        let mut killed = provider(&server, 3, "dubbo").await;
        until(async || consumer.done("hosts").await.len() == 3).await;
        killed.kill();
        hosts(&["10.0.0.7:20880", "10.0.0.7:20881"]).await;

        // The SDK does not read the parameter `enabled`, so a provider must serve until it is deregistered.
        soon(second.set_enabled(false)).await.unwrap();
        let added = soon(registry.register(instance(20882, "1.0.0"))).await.unwrap();
        hosts(&["10.0.0.7:20880", "10.0.0.7:20881", "10.0.0.7:20882"]).await;
        soon(second.deregister()).await.unwrap();
        hosts(&["10.0.0.7:20880", "10.0.0.7:20882"]).await;

        // Without providers the SDK keeps those that it knew last.
        soon(first.deregister()).await.unwrap();
        hosts(&["10.0.0.7:20882"]).await;
        soon(added.deregister()).await.unwrap();
        until_containers_were_checked(&client).await;
        assert_eq!(consumer.done("hosts").await, ["10.0.0.7:20882"]);
        let _last = soon(registry.register(instance(20883, "1.0.0"))).await.unwrap();
        hosts(&["10.0.0.7:20883"]).await;
    }
}
