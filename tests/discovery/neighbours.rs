//! Registries whose instances other frameworks read, and payloads that would hide a service from them.

use crate::scene::{BASE, ORDERS, behind_proxy, orders, registry, until_deleted, until_owned};
use docent::discovery::{Neighbour, RegistrationStatus, RegistryLayout, ServiceType};
use docent::{Client, CreateMode, ErrorKind, Instance, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{SESSION, connect, soon, until};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const SPRING: &str = "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Meta {
    zone: String,
    cores: u32,
}

fn with(client: &Client, neighbour: Neighbour) -> Registry {
    Registry::builder(client, BASE).neighbour(neighbour).build().unwrap()
}

/// Writes the node of an instance whose payload has this class.
async fn foreign(client: &Client, id: &str, class: &str, status: &str) {
    let payload = json!({ "@class": class, "id": "application-1", "name": "orders", "metadata": { "instance_status": status } });
    let data = json!({ "name": "orders", "id": id, "address": "10.0.0.9", "port": 80, "payload": payload })
        .to_string();
    client.create(&format!("{ORDERS}/{id}"), data, CreateMode::Persistent).await.unwrap();
}

async fn data(client: &Client, path: &str) -> Value {
    serde_json::from_slice(&soon(client.get(path)).await.unwrap().data).unwrap()
}

async fn text(client: &Client, path: &str) -> String {
    String::from_utf8(soon(client.get(path)).await.unwrap().data.to_vec()).unwrap()
}

/// Returns an instance of a Dubbo application.
fn shop(id: &str, interfaces: &[&str]) -> Instance<Value> {
    Instance::new("shop", "10.0.0.7", 50051).id(id).payload(json!({ "interfaces": interfaces }))
}

both_backends! {
    async fn an_instance_for_spring_cloud_has_its_payload_and_its_status(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = with(&client, Neighbour::SpringCloud);
        for lifetime in [ServiceType::Dynamic, ServiceType::Static] {
            let own = Instance::new("orders", "10.0.0.7", 8080).id("one").service_type(lifetime);
            let registration = soon(registry.register(own.payload(Meta { zone: "a".into(), cores: 4 }))).await.unwrap();
            let written = data(&client, &registration.path()).await;
            assert_eq!((&written["payload"]["@class"], &written["payload"]["name"]), (&json!(SPRING), &json!("orders")));
            assert_eq!(written["payload"]["metadata"], json!({ "cores": "4", "instance_status": "UP", "zone": "a" }));
            assert_eq!(written["uriSpec"]["parts"][0], json!({ "value": "scheme", "variable": true }));
            let view = soon(registry.typed_service::<BTreeMap<String, String>>("orders")).await.unwrap();
            let fields = BTreeMap::from([("cores".to_owned(), "4".to_owned()), ("zone".to_owned(), "a".to_owned())]);
            assert_eq!(view.pick().unwrap().instance().payload, Some(fields));
            soon(registration.set_enabled(false)).await.unwrap();
            let written = data(&client, &registration.path()).await;
            assert_eq!(written["payload"]["metadata"]["instance_status"], "OUT_OF_SERVICE");
            assert_eq!(written["enabled"], false);
            soon(registration.deregister()).await.unwrap();
        }
    }

    async fn a_shutdown_that_drains_reports_out_of_service(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registry = Registry::builder(&client, BASE).neighbour(Neighbour::SpringCloud).drain(Duration::from_secs(60));
        let registration = soon(registry.build().unwrap().register(orders("one").payload(()))).await.unwrap();
        let path = registration.path();
        let shutdown = tokio::spawn({
            let client = client.clone();
            async move { client.shutdown(Duration::from_secs(120)).await }
        });
        let is_out = async || text(&other, &path).await.contains("OUT_OF_SERVICE");
        until(is_out).await;
        shutdown.abort();
        drop(registration);
        soon(client.close()).await;
        until_deleted(&other, &path).await;
    }

    async fn a_refused_payload_is_not_written_in_a_drain_either(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        foreign(&other, "theirs", SPRING, "UP").await;
        let registry = Registry::builder(&client, BASE).drain(Duration::from_millis(100)).build().unwrap();
        let bare = soon(registry.register(Instance::new("orders", "10.0.0.7", 80).id("bare"))).await.unwrap();
        soon(bare.update(orders("bare").payload("text"))).await.unwrap_err();
        let mut data = other.watch_data(&bare.path()).unwrap();
        let shutdown = tokio::spawn(async move { client.shutdown(Duration::from_secs(30)).await });
        // Every version of the node until it is deleted.
        while let Some(node) = soon(data.next()).await.unwrap().unwrap() {
            assert!(!String::from_utf8_lossy(&node.data).contains("text"));
        }
        soon(shutdown).await.unwrap();
        drop(bare);
    }

    async fn an_instance_that_is_out_of_service_elsewhere_is_not_available(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        foreign(&client, "up", SPRING, "UP").await;
        foreign(&client, "down", SPRING, "OUT_OF_SERVICE").await;
        let view = soon(registry(&client).service("orders")).await.unwrap();
        assert_eq!(view.instances().iter().map(|one| one.id.clone()).collect::<Vec<_>>(), ["up"]);
        assert!(view.instances().get("down").is_some_and(|one| !one.enabled));
    }

    async fn a_payload_that_would_hide_the_service_from_typed_readers_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        foreign(&client, "theirs", SPRING, "UP").await;
        for lifetime in [ServiceType::Dynamic, ServiceType::Static] {
            let error = soon(registry(&client).register(orders("ours").service_type(lifetime))).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            for part in ["\"theirs\"", SPRING, "neighbour(Neighbour::SpringCloud)", "--neighbour spring-cloud"] {
                assert!(text.contains(part), "{text}");
            }
            assert!(client.exists(&format!("{ORDERS}/ours")).await.unwrap().is_none());
            let dubbo = Instance::new("orders", "10.0.0.7", 80).payload(json!({ "interfaces": "com.shop.Orders" }));
            let error = soon(with(&client, Neighbour::Dubbo3).register(dubbo)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        let bare = soon(registry(&client).register(Instance::new("orders", "10.0.0.7", 80).id("bare"))).await.unwrap();
        let preset = soon(with(&client, Neighbour::SpringCloud).register(orders("preset").payload(json!({ "zone": "a" })))).await.unwrap();
        // An update to another payload is refused, too, and the instance stays as it is.
        let error = soon(bare.update(orders("bare").payload("text"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        soon(bare.set_enabled(false)).await.unwrap();
        let written = data(&client, &bare.path()).await;
        assert_eq!((&written["payload"], &written["enabled"]), (&Value::Null, &json!(false)));
        drop(preset);
    }

    async fn a_payload_is_compared_with_those_of_others_at_most_once_a_minute(backend: Backend) {
        let is_paused = matches!(backend, Backend::Memory);
        let server = backend.start().await;
        let client = connect(&server).await;
        let (registry, other) = (registry(&client), registry(&client));
        let first = soon(registry.register(orders("first"))).await.unwrap();
        soon(first.deregister()).await.unwrap();
        foreign(&client, "theirs", SPRING, "UP").await;
        let second = soon(registry.register(orders("second"))).await.unwrap();
        // Another kind of payload, and another registry.
        let meta = json!({ "@class": "com.shop.Meta" });
        soon(registry.register(orders("class").payload(meta))).await.unwrap_err();
        soon(other.register(orders("other"))).await.unwrap_err();
        // Only on paused time does the minute cost nothing.
        if is_paused {
            tokio::time::sleep(Duration::from_secs(59)).await;
            drop(soon(registry.register(orders("third"))).await.unwrap());
            tokio::time::sleep(Duration::from_secs(1)).await;
            soon(registry.register(orders("fourth"))).await.unwrap_err();
            // The instance that was announced before keeps its kind of payload.
            soon(second.update(orders("second").enabled(false))).await.unwrap();
        }
    }

    async fn a_check_that_skipped_a_node_of_the_same_name_is_not_remembered(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        foreign(&client, "theirs", SPRING, "UP").await;
        let registry = registry(&client);
        let replacement = orders("theirs").service_type(ServiceType::Static);
        drop(soon(registry.register(replacement)).await.unwrap());
        client.delete(&format!("{ORDERS}/theirs"), None).await.unwrap();
        foreign(&client, "theirs", SPRING, "UP").await;
        soon(registry.register(orders("ours"))).await.unwrap_err();
    }

    async fn an_announced_instance_waits_until_its_payload_breaks_no_reader(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        foreign(&other, "theirs", "com.shop.Meta", "UP").await;
        let registration = registry(&client).announce(orders("ours")).unwrap();
        let error = soon(registration.announced()).await.unwrap_err();
        assert!(error.to_string().contains("rename = \"com.shop.Meta\""), "{error}");
        assert!(matches!(registration.status(), RegistrationStatus::Failing(_)));
        assert!(other.exists(&format!("{ORDERS}/ours")).await.unwrap().is_none());
        soon(registration.update(orders("ours").payload(json!({ "@class": "com.shop.Meta" })))).await.unwrap();
        until_owned(&client, &other, &format!("{ORDERS}/ours")).await;

        let second = registry(&client).announce(orders("second")).unwrap();
        soon(second.announced()).await.unwrap_err();
        soon(registration.deregister()).await.unwrap();
        other.delete(&format!("{ORDERS}/theirs"), None).await.unwrap();
        until_owned(&client, &other, &format!("{ORDERS}/second")).await;
    }

    async fn a_registration_that_waits_for_readers_is_dropped_without_a_trace(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let other = connect(&server).await;
        foreign(&other, "theirs", SPRING, "UP").await;
        proxy.cut().await;
        let registration = registry(&client).announce(orders("ours")).unwrap();
        drop(registration);
        let refused = registry(&client).announce(orders("refused")).unwrap();
        proxy.heal().await.unwrap();
        soon(refused.announced()).await.unwrap_err();
        drop(refused);
        soon(client.close()).await;
        let names = soon(other.children(ORDERS)).await.unwrap().names;
        assert_eq!(names, ["theirs"]);
    }

    async fn a_dubbo_application_is_added_to_the_mapping_of_each_interface(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mapping = |interface: &str| format!("/dubbo/mapping/{interface}");
        client.create(&mapping("com.shop.Orders"), "till", CreateMode::Persistent).await.unwrap();
        let registry = with(&client, Neighbour::Dubbo3);
        let interfaces = ["com.shop.Orders", "com.shop.Carts"];
        let registration = soon(registry.register(shop("10.0.0.7:50051", &interfaces))).await.unwrap();
        assert_eq!(text(&client, &mapping("com.shop.Orders")).await, "till,shop");
        assert_eq!(text(&client, &mapping("com.shop.Carts")).await, "shop");
        let written = data(&client, &registration.path()).await;
        let revision = written["payload"]["metadata"]["dubbo.metadata.revision"].as_str().unwrap().to_owned();
        let described = data(&client, &format!("/dubbo/metadata/shop/{revision}")).await;
        assert_eq!((&described["app"], &described["revision"]), (&json!("shop"), &json!(revision)));
        assert!(described["services"]["com.shop.Carts:tri"].is_object(), "{described}");

        // The state changes neither; other interfaces change both.
        let version = client.exists(&mapping("com.shop.Carts")).await.unwrap().unwrap().version;
        soon(registration.set_enabled(false)).await.unwrap();
        assert_eq!(data(&client, &registration.path()).await["payload"]["metadata"]["dubbo.metadata.revision"], json!(revision));
        soon(registration.update(shop("10.0.0.7:50051", &["com.shop.Prices"]))).await.unwrap();
        assert_eq!(text(&client, &mapping("com.shop.Prices")).await, "shop");
        let next = data(&client, &registration.path()).await["payload"]["metadata"]["dubbo.metadata.revision"].clone();
        assert_ne!(next, json!(revision));
        data(&client, &format!("/dubbo/metadata/shop/{}", next.as_str().unwrap())).await;
        assert_eq!(client.exists(&mapping("com.shop.Carts")).await.unwrap().unwrap().version, version);
    }

    async fn applications_that_register_together_lose_none_of_the_mapping(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = with(&client, Neighbour::Dubbo3);
        let names: Vec<_> = (0..8).map(|number| format!("app-{number}")).collect();
        let registers = names.iter().map(|name| {
            let own = Instance::new(name, "10.0.0.7", 50051).id("i").payload(json!({ "interfaces": "com.shop.Orders" }));
            registry.register(own)
        });
        let registrations = soon(futures_util::future::try_join_all(registers)).await.unwrap();
        let mapping = text(&client, "/dubbo/mapping/com.shop.Orders").await;
        let mut mapped: Vec<_> = mapping.split(',').collect();
        mapped.sort_unstable();
        assert_eq!(mapped, names);
        drop(registrations);
    }

    async fn what_a_neighbour_cannot_represent_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let nested = Instance::new("orders", "10.0.0.7", 80).payload(json!({ "a": { "b": 1 } }));
        let error = soon(with(&client, Neighbour::SpringCloud).register(nested)).await.unwrap_err().to_string();
        assert!(error.contains("a payload for a neighbour must be an object of texts"), "{error}");
        let error = soon(with(&client, Neighbour::Dubbo3).register(shop("i", &[]).payload(json!({})))).await.unwrap_err();
        assert!(error.to_string().contains("must name the instance's interfaces"), "{error}");
        let builder = Registry::builder(&client, "/dubbo").layout(RegistryLayout::Dubbo).neighbour(Neighbour::Dubbo3);
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
