//! Registries with a neighbour, and Curator with the payload classes of Spring Cloud and of Dubbo 3.

use crate::curator::{Curator, both};
use docent::discovery::Neighbour;
use docent::{Client, ErrorKind, Instance, Registry, Service};
use docent_battery::Backend;
use docent_battery::peer::PeerRecipe;
use docent_tests::{soon, until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

const BASE: &str = "/services";
const SPRING: &str = "org.springframework.cloud.zookeeper.discovery.ZookeeperInstance";
const DUBBO: &str = "org.apache.dubbo.registry.zookeeper.ZookeeperInstance";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Meta {
    zone: String,
}

fn own(service: &str, id: &str) -> Instance<Meta> {
    Instance::new(service, "10.0.0.7", 8080).id(id).payload(Meta { zone: "a".into() })
}

fn with_neighbour(client: &Client) -> Registry {
    Registry::builder(client, BASE).neighbour(Neighbour::SpringCloud).build().unwrap()
}

async fn typed<'a>(curator: &'a Curator, class: &str) -> PeerRecipe<'a> {
    curator.make(&format!("typed-discovery {BASE} {class}")).await
}

fn ids<P>(view: &Service<P>) -> Vec<String> {
    view.instances().iter().map(|instance| instance.id.clone()).collect()
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn spring_clouds_class_reads_each_kind_of_payload_that_docent_accepts() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let plain = Registry::new(&client, BASE).unwrap();
    let preset = with_neighbour(&client);
    let peer = typed(&curator, SPRING).await;
    let up = |id: &str, place: &str| format!("{id}=http://{place}");

    // No payload.
    peer.done("register none theirs 10.0.0.9 80 UP b").await;
    let bare = Instance::new("none", "10.0.0.7", 8080).id("ours");
    let bare = bare.uri_spec("{scheme}://{address}:{port}".parse().unwrap());
    let _none = soon(plain.register(bare)).await.unwrap();
    assert_eq!(peer.done("find-up none").await, [up("ours", "10.0.0.7:8080"), up("theirs", "10.0.0.9:80")]);

    // A plain payload is refused beside typed ones. In a folder without them it is accepted, and Java fails.
    peer.done("register plain theirs 10.0.0.9 80 UP b").await;
    let error = soon(plain.register(own("plain", "ours"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains(SPRING) && text.contains("neighbour(Neighbour::SpringCloud)"), "{text}");
    assert_eq!(peer.done("find-up plain").await, [up("theirs", "10.0.0.9:80")]);
    let alone = soon(plain.register(own("alone", "ours"))).await.unwrap();
    let failed = peer.start("find-all alone").failed().await;
    assert!(failed.contains("ClassCastException"), "{failed}");
    soon(alone.deregister()).await.unwrap();

    // With the neighbour, both directions.
    peer.done("register preset theirs 10.0.0.9 80 UP b").await;
    let _preset = soon(preset.register(own("preset", "ours"))).await.unwrap();
    assert_eq!(
        peer.done("find-all preset").await,
        ["ours={instance_status=UP,zone=a}", "theirs={instance_status=UP,zone=b}"]
    );
    assert_eq!(peer.done("find-up preset").await, [up("ours", "10.0.0.7:8080"), up("theirs", "10.0.0.9:80")]);
    let view = soon(preset.typed_service::<Meta>("preset")).await.unwrap();
    let zone = |id: &str| view.instances().get(id).unwrap().payload.clone().unwrap().zone;
    assert_eq!((zone("ours"), zone("theirs")), ("a".to_owned(), "b".to_owned()));

    // Mixed: with the neighbour, without a payload, and Java's.
    let bare = Instance::new("preset", "10.0.0.8", 8080).id("bare");
    let bare = bare.uri_spec("{scheme}://{address}:{port}".parse().unwrap());
    let _bare = soon(plain.register(bare)).await.unwrap();
    assert_eq!(peer.done("find-up preset").await.len(), 3);
    until(async || ids(&view) == ["bare", "ours", "theirs"]).await;
    let loose = soon(plain.typed_service::<Value>("preset")).await.unwrap();
    let payload = loose.instances().get("theirs").unwrap().payload.clone().unwrap();
    assert_eq!((&payload["@class"], &payload["metadata"]["zone"]), (&json!(SPRING), &json!("b")));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn no_caller_of_spring_cloud_is_given_an_instance_that_drains() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let peer = typed(&curator, SPRING).await;
    peer.done("register orders theirs 10.0.0.9 80 UP b").await;
    let registration = soon(with_neighbour(&client).register(own("orders", "ours"))).await.unwrap();
    assert_eq!(peer.done("find-up orders").await.len(), 2);
    soon(registration.set_enabled(false)).await.unwrap();
    assert_eq!(peer.done("find-up orders").await, ["theirs=http://10.0.0.9:80"]);
    soon(registration.set_enabled(true)).await.unwrap();
    assert_eq!(peer.done("find-up orders").await.len(), 2);

    let path = registration.path();
    let drain = tokio::spawn(registration.drain(Duration::from_secs(600)));
    until(async || {
        let node = client.get(&path).await;
        node.is_ok_and(|node| String::from_utf8_lossy(&node.data).contains("OUT_OF_SERVICE"))
    })
    .await;
    for _ in 0..20 {
        assert_eq!(peer.done("find-up orders").await, ["theirs=http://10.0.0.9:80"]);
    }
    // The drain ends early, and the instance is deregistered.
    drain.abort();
    while peer.done("find-all orders").await.len() > 1 {
        assert_eq!(peer.done("find-up orders").await, ["theirs=http://10.0.0.9:80"]);
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn an_instance_that_is_out_of_service_in_java_is_not_picked() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let peer = typed(&curator, SPRING).await;
    let view = soon(Registry::new(&client, BASE).unwrap().service("orders")).await.unwrap();
    let preset = soon(with_neighbour(&client).typed_service::<Meta>("orders")).await.unwrap();
    peer.done("register orders theirs 10.0.0.9 80 OUT_OF_SERVICE b").await;
    until(async || view.instances().all().len() == 1 && preset.instances().all().len() == 1).await;
    assert!(view.pick().is_err() && preset.pick().is_err());
    peer.done("update orders theirs 10.0.0.9 80 UP b").await;
    until(async || view.pick().is_ok() && preset.pick().is_ok()).await;
    peer.done("update orders theirs 10.0.0.9 80 OUT_OF_SERVICE b").await;
    until(async || view.pick().is_err() && preset.pick().is_err()).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn dubbos_class_reads_an_application_with_its_endpoints() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let peer = typed(&curator, DUBBO).await;
    let registry = Registry::builder(&client, BASE).neighbour(Neighbour::Dubbo3).build().unwrap();
    peer.done("register shop 10.0.0.9:20880 10.0.0.9 20880 UP b").await;
    let own = Instance::new("shop", "10.0.0.7", 50051).id("10.0.0.7:50051");
    let own = own.payload(json!({ "interfaces": ["com.shop.Orders", "com.shop.Carts"], "zone": "a" }));
    let _own = soon(registry.register(own)).await.unwrap();
    let found = peer.done("find-all shop").await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("10.0.0.7:50051={dubbo.endpoints=[{\"port\":50051,\"protocol\":\"tri\"}],"),
        "{found:?}"
    );
    assert!(found[0].contains("dubbo.metadata.storage-type=remote"), "{found:?}");

    // One plain payload would hide the whole application.
    let plain =
        Instance::new("shop", "10.0.0.8", 50051).id("10.0.0.8:50051").payload(Meta { zone: "a".into() });
    let error = soon(Registry::new(&client, BASE).unwrap().register(plain)).await.unwrap_err().to_string();
    assert!(error.contains(DUBBO) && error.contains("--neighbour dubbo3"), "{error}");
    assert_eq!(peer.done("find-all shop").await.len(), 2);
}
