//! `Registry` and `ServiceDiscovery`, `Membership` and `GroupMember`.

use crate::curator::both;
use docent::discovery::{Peer, ServiceType};
use docent::{Instance, Membership, Registry, Service};
use docent_battery::Backend;
use docent_tests::{soon, until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const BASE: &str = "/services";

/// Serialized with the name of the class into which Jackson deserializes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "@class", rename = "java.util.HashMap")]
struct Meta {
    zone: String,
}

/// Waits until the view's instance with this id, or its absence, is as wanted.
async fn until_shown(view: &Service<Value>, id: &str, wanted: impl Fn(Option<&Instance<Value>>) -> bool) {
    until(async || wanted(view.instances().get(id).map(|instance| &**instance))).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn docents_instances_are_found_by_curator_with_all_their_fields() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let registry = Registry::new(&client, BASE).unwrap();
    let peer = curator.make(&format!("discovery {BASE}")).await;

    let mut own = Instance::new("orders", "10.0.0.7", 8080).id("ours").ssl_port(8443);
    own.registered_at_ms = 1_234_567_890_123;
    let own = own.uri_spec("{scheme}://{address}:{ssl-port}/{id}".parse().unwrap());
    let own = own.payload(Meta { zone: "a".into() });
    let registration = soon(registry.register(own.clone())).await.unwrap();
    assert_eq!(peer.done("names").await, ["orders"]);
    let fields = "orders ours 10.0.0.7 8080 8443 1234567890123 DYNAMIC";
    let all = |rest: &str| [fields, rest].join(" ").split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(peer.done("find orders ours").await, all("zone=a https://10.0.0.7:8443/ours true"));

    // Curator reads an object without a class name as a map.
    soon(registration.update(own.clone().payload(json!({ "zone": "b" })))).await.unwrap();
    assert_eq!(peer.done("find orders ours").await, all("zone=b https://10.0.0.7:8443/ours true"));
    soon(registration.update(own.payload("text"))).await.unwrap();
    soon(registration.set_enabled(false)).await.unwrap();
    assert_eq!(peer.done("find orders ours").await, all("text https://10.0.0.7:8443/ours false"));
    soon(registration.deregister()).await.unwrap();
    peer.refused("find orders ours").await;

    let bare = Instance::named("orders").id("bare").service_type(ServiceType::Static);
    let time = bare.registered_at_ms;
    let _registration = soon(registry.register(bare)).await.unwrap();
    let fields = format!("orders bare null null null {time} STATIC null null true");
    assert_eq!(peer.done("find orders bare").await.join(" "), fields);
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn curators_instances_are_found_with_all_their_fields_and_written_like_docents() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let view = soon(Registry::new(&client, BASE).unwrap().typed_service::<Value>("orders")).await.unwrap();
    let peer = curator.make(&format!("discovery {BASE}")).await;

    let uri = "{scheme}://{address}:{port}";
    peer.done(&format!("register orders theirs 10.0.0.9 80 null 1234567890123 DYNAMIC zone=a {uri}")).await;
    until_shown(&view, "theirs", |instance| instance.is_some()).await;
    let instance = view.instances().get("theirs").unwrap().clone();
    assert_eq!((instance.name.as_str(), instance.address.as_deref()), ("orders", Some("10.0.0.9")));
    assert_eq!((instance.port, instance.ssl_port, instance.weight), (Some(80), None, None));
    assert_eq!(instance.payload, Some(json!({ "@class": "java.util.HashMap", "zone": "a" })));
    assert_eq!((instance.registered_at_ms, instance.service_type), (1_234_567_890_123, ServiceType::Dynamic));
    assert_eq!((instance.uri().unwrap().as_str(), instance.enabled), ("http://10.0.0.9:80", true));
    assert_eq!(view.pick().unwrap().instance().id, "theirs");

    // Docent writes the same bytes for the same instance.
    let path = format!("{BASE}/orders/theirs");
    let node = soon(client.get(&path)).await.unwrap();
    assert!(node.stat.owner.is_some_and(|owner| Some(owner) != client.session_id()));
    let own = Instance::new("orders", "10.0.0.9", 80).id("theirs").payload(Meta { zone: "a".into() });
    let mut own = own.uri_spec(uri.parse().unwrap());
    own.registered_at_ms = 1_234_567_890_123;
    let elsewhere = Registry::new(&client, "/elsewhere").unwrap();
    let registration = soon(elsewhere.register(own.clone())).await.unwrap();
    assert_eq!(soon(client.get(&registration.path())).await.unwrap().data, node.data);

    peer.done("update orders theirs 10.0.0.9 81 444 1234567890123 DYNAMIC text null").await;
    until_shown(&view, "theirs", |instance| instance.is_some_and(|instance| instance.port == Some(81))).await;
    assert_eq!(view.instances().get("theirs").unwrap().payload, Some(json!("text")));
    let mut own = Instance::new("orders", "10.0.0.9", 81).id("theirs").ssl_port(444).payload("text");
    own.registered_at_ms = 1_234_567_890_123;
    soon(registration.update(own)).await.unwrap();
    let peer_now = soon(client.get(&path)).await.unwrap().data;
    assert_eq!(soon(client.get(&registration.path())).await.unwrap().data, peer_now);

    peer.done("unregister orders theirs 10.0.0.9 81 444 1234567890123 DYNAMIC text null").await;
    until_shown(&view, "theirs", |instance| instance.is_none()).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn members_of_both_see_each_other_join_and_leave() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let group = Membership::new(&client, "/cluster/web").unwrap();
    let members = soon(group.members()).await.unwrap();
    let until_members = async |wanted: &[&str]| {
        let fields = |peer: Peer| format!("{}={}", peer.id, String::from_utf8_lossy(&peer.data));
        let now = || members.current().into_iter().map(fields).collect::<Vec<_>>();
        until(async || now() == wanted).await;
    };
    let peer = curator.make("member /cluster/web theirs hello").await;
    until_members(&["theirs=hello"]).await;
    let me = soon(group.join("ours", "welcome")).await.unwrap();
    peer.done("until-members ours=welcome theirs=hello").await;
    until_members(&["ours=welcome", "theirs=hello"]).await;
    me.set_data("goodbye");
    peer.done("until-members ours=goodbye theirs=hello").await;
    soon(me.leave()).await.unwrap();
    peer.done("until-members theirs=hello").await;
    peer.done("leave").await;
    until_members(&[]).await;
}
